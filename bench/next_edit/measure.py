"""How good next edits are: shown when one is due, quiet when none is, in the right place, with the right text.

python -m bench.next_edit FILE [--engine fake|none|shipped|FOLDER] [--limit N] [--every K] [--mirrors FOLDER]

FILE holds rows of git history with whole files (.jsonl) or the edit rows of a corpus (.jsonl.xz). An answer is exact
when its edits are some of those that were still to come, and nothing else. deltaChrF compares with those of them that
the answer touches, and is 0 where an edit was due and none came; score = deltaChrF/100 · harmonic mean(show, quiet).
That score never counts what is wrong against the one who shows it; net = (right - wrong) / due does, where right is
what is exact, and wrong all else that is shown, also where nothing was due.
What the model costs is told by the forwards and the processor's milliseconds of a silent row: the clock of a busy
machine has no part in them.
"""

import argparse
import asyncio
import itertools
import json
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from bench.harness.measures import machine
from bench.next_edit.cases import Case, candidates_after, cases, verdict
from mercury_engine import model_folders
from mercury_engine.api import Engine, EngineInfo, Opinions, Proposals, Regions, Rewrites
from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.code.edits import TextEdit, applied
from mercury_ls.code.history import History
from mercury_ls.completion.budgets import USUAL_BAR
from mercury_ls.completion.context import ContextBudget, Related
from mercury_ls.completion.offers import Answer
from mercury_ls.completion.suggest import judges_in_time
from mercury_ls.completion.target import Silence, Target
from mercury_ls.next_edit.candidates import Candidate
from mercury_ls.next_edit.pipeline import next_edits
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.next_edit.situation import Situation
from mercury_ls.settings.schema import SuggestSettings
from mercury_training.evaluate.metrics import delta_chrf, exact, wilson

RESAMPLED = 2000


Told = TypeVar("Told", Rewrites, Opinions)


class Local:
    """An engine of this process, as the straight path wants it; it counts what it does."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.forwards = 0
        self.processor_seconds = 0.0

    def rewrite(self, regions: Regions) -> AsyncGenerator[Rewrites]:
        return self._counted(self.engine.rewrite(regions))

    def judge(self, proposals: Proposals) -> AsyncGenerator[Opinions]:
        return self._counted(self.engine.judge(proposals))

    async def _counted(self, answers: Iterable[Told]) -> AsyncGenerator[Told]:
        step, began = 0, time.process_time()
        for answer in answers:
            step = answer.step
            yield answer
        self.forwards += step
        self.processor_seconds += time.process_time() - began


class Outcome(Struct, frozen=True):
    """One row: `located` whether an edit touches lines that change, `_rank` that of the first place found that does,
    `_lost` at which stage an edit that was due got lost, `offered` the kind of what is shown."""

    kind: str
    shown: bool
    exact: bool
    located: bool
    rank: int
    delta_chrf: float
    p_accept: float
    milliseconds: float
    silence: str = ""
    lost: str = ""
    offered: str = ""
    forwards: int = 0
    model_ms: float = 0.0


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("file", type=Path)
    arguments.add_argument("--engine", default="none")
    arguments.add_argument("--limit", type=int)
    arguments.add_argument("--every", type=int, default=1, help="take each K-th row only")
    arguments.add_argument("--mirrors", type=Path, help="the repositories that a corpus' rows come from")
    given = arguments.parse_args()
    engine, bar = engine_of(given.engine), USUAL_BAR
    rows = itertools.islice(cases(given.file, given.mirrors, given.every), given.limit)
    _report(asyncio.run(measure(rows, engine, bar)), given.engine)


def engine_of(name: str) -> Local | None:
    if name == "none":
        return None
    from mercury_engine.opening import open_model

    return Local(open_model(model_folders.resolve("auto" if name == "shipped" else name)))


async def measure(rows: Iterable[Case], engine: Local | None, bar: float) -> list[Outcome]:
    return [await outcome(case, engine, bar) for case in rows]


def _found_for(question: NextQuestion) -> tuple[Candidate, ...] | Silence:
    edits = question.history.edits(question.recent_edits)
    return candidates_after(Situation(question.snapshot, question.offset, edits))


async def last_of(given: AsyncGenerator[Answer]) -> Answer:
    answer = Answer(silence="no answer")
    async with aclosing(given):
        async for latest in given:
            answer = latest
    return answer


async def outcome(case: Case, engine: Local | None, bar: float) -> Outcome:
    question = question_of(case, bar, engine and engine.engine)
    # The tree is made while the user types: it is there before anything is asked.
    _ = question.snapshot.tree
    forwards, seconds = (engine.forwards, engine.processor_seconds) if engine else (0, 0.0)
    began = time.perf_counter()
    answer = await last_of(next_edits(question, engine))
    elapsed = (time.perf_counter() - began) * 1000
    due = (*case.expected, *case.also_ok)
    p_accept = answer.offer.p_accept if answer.offer else 0.0
    offered = answer.offer.kind if answer.offer else ""
    known = {"rank": _rank(question, due), "silence": answer.silence, "offered": offered}
    found = assessed(case, answer.edits, p_accept, elapsed, lost=_lost(case, question, answer.edits, due), **known)
    if engine is None:
        return found
    spent = (engine.processor_seconds - seconds) * 1000
    return replace(found, forwards=engine.forwards - forwards, model_ms=spent)


def assessed(
    case: Case,
    changes: Sequence[TextEdit],
    p_accept: float,
    milliseconds: float,
    *,
    rank: int = 0,
    silence: str = "",
    lost: str = "",
    offered: str = "",
) -> Outcome:
    due = (*case.expected, *case.also_ok)
    return Outcome(
        case.kind,
        bool(changes),
        is_exact(case.snapshot.text, changes, due),
        any(_near(case.snapshot, change, each) for change in changes for each in due),
        rank,
        likeness(case, changes) if due else 100.0 * (not changes),
        p_accept,
        milliseconds,
        silence,
        lost,
        offered,
    )


def question_of(case: Case, bar: float, engine: Engine | None = None) -> NextQuestion:
    given, info = case.snapshot, engine.info() if engine else None
    snapshot = Document(given.uri, given.path, given.language, given.version, given.text).snapshot()
    question = question_at(snapshot, case.offset, case.history, info, bar)
    if info is None:
        return question
    return replace(question, judges=judges_in_time(info))


def question_at(
    snapshot: Snapshot, offset: int, history: History, info: EngineInfo | None, bar: float = USUAL_BAR
) -> NextQuestion:
    """With the default settings, of an engine that judges if it can, however slow it is."""
    return NextQuestion(
        snapshot=snapshot,
        offset=offset,
        target=Target(offset, offset),
        history=history,
        related=Related(snapshot.uri, 0, 0.0),
        settings=SuggestSettings(),
        budget=ContextBudget(info.context_tokens, info.characters_per_token) if info else ContextBudget(),
        session="bench",
        bar=bar,
        rewrites=info is not None and info.rewrites,
        rewrites_lines=info is not None and info.rewrites_lines,
        judges=info is not None and info.judges,
    )


def is_exact(text: str, changes: Sequence[TextEdit], due: Sequence[TextEdit]) -> bool:
    """The document after the answer is that after one or more of the edits due."""
    if not changes or not due:
        return False
    after = applied(text, changes)
    chosen = touched(text, changes, due)
    return exact(after, applied(text, chosen)) or any(exact(after, applied(text, [each])) for each in due)


def touched(text: str, changes: Sequence[TextEdit], due: Sequence[TextEdit]) -> list[TextEdit]:
    """The edits due that the answer is about."""
    lines = [(text.rfind("\n", 0, c.start) + 1, text.find("\n", c.end)) for c in changes]
    reach = [(start, end if end >= 0 else len(text)) for start, end in lines]
    return [each for each in due if any(each.start <= end + 1 and each.end >= start for start, end in reach)]


def _near(snapshot: Snapshot, change: TextEdit | Candidate, due: TextEdit) -> bool:
    """They touch the same lines; an insertion counts as the lines on either side."""
    first, last = snapshot.line_of(change.start), snapshot.line_of(change.end)
    start, end = snapshot.line_of(due.start), snapshot.line_of(max(due.end - 1, due.start))
    return first <= end and last >= start - (due.start == due.end)


def _lost(case: Case, question: NextQuestion, changes: Sequence[TextEdit], due: Sequence[TextEdit]) -> str:
    """Empty where nothing was due, or what was due is shown."""
    if not due or is_exact(case.snapshot.text, changes, due):
        return ""
    found = _found_for(question)
    if isinstance(found, Silence):
        return "no candidate" if found.reason.startswith("nothing") else "suppressed"
    right = any(verdict(question.snapshot, each, due)[0] for each in found if each.text is not None)
    if changes:
        located = any(_near(case.snapshot, change, each) for change in changes for each in due)
        return "shown incomplete" if located and right else "shown wrong text" if located else "shown wrong place"
    if right:
        return "below the bar"
    places = [each for each in found if any(_near(question.snapshot, each, other) for other in due)]
    if any(each.text is not None for each in places):
        return "candidate with another text"
    return "place without a text" if places else "no candidate"


def _rank(question: NextQuestion, due: Sequence[TextEdit]) -> int:
    """0 where no place found is one that changes."""
    found = _found_for(question)
    if isinstance(found, Silence):
        return 0
    for number, each in enumerate(found, 1):
        if any(_near(question.snapshot, each, other) for other in due):
            return number
    return 0


def likeness(case: Case, changes: Sequence[TextEdit]) -> float:
    if not changes:
        return 0.0
    text = case.snapshot.text
    due = (*case.expected, *case.also_ok)
    truths = [[*case.expected], *([each] for each in case.also_ok)]
    if several := touched(text, changes, due):
        truths.append(several)
    after = applied(text, changes)
    return max(delta_chrf(text, after, applied(text, truth)) for truth in truths)


def score(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Shares in percent; `delta_chrf`, `exact`, `location` and recalls are over the rows in which an edit was due."""
    due = [each for each in outcomes if each.kind != "none"]
    silent = [each for each in outcomes if each.kind == "none"]
    show, quiet = _share(each.shown for each in due), _share(not each.shown for each in silent)
    delta = sum(each.delta_chrf for each in due) / max(len(due), 1)
    times = sorted(each.milliseconds for each in outcomes)
    return {
        "score": round(delta / 100 * _harmonic(show, quiet) / 100, 3),
        "net": round(net(outcomes), 3),
        "show": round(show, 1),
        "quiet": round(quiet, 1),
        "delta_chrf": round(delta, 1),
        "exact": round(_share(each.exact for each in due), 1),
        "location": round(_share(each.located for each in due), 1),
        "recall_at_1": round(_share(each.rank == 1 for each in due), 1),
        "recall_at_3": round(_share(1 <= each.rank <= 3 for each in due), 1),
        "right_when_shown": round(_share(each.exact for each in outcomes if each.shown), 1),
        **cost_of([each for each in outcomes if not each.shown]),
        "p50_ms": round(times[len(times) // 2], 2) if times else 0.0,
        "p90_ms": round(times[len(times) * 9 // 10], 2) if times else 0.0,
        "n": len(outcomes),
    }


def net(outcomes: Sequence[Outcome]) -> float:
    """Right answers less all others that are shown, for each row in which an edit was due."""
    right = sum(each.exact for each in outcomes)
    return (2 * right - sum(each.shown for each in outcomes)) / max(sum(each.kind != "none" for each in outcomes), 1)


def cost_of(silent: Sequence[Outcome]) -> dict[str, float]:
    """What the model costs where nothing is shown, on average."""
    count = max(len(silent), 1)
    return {
        "silent_forwards": round(sum(each.forwards for each in silent) / count, 2),
        "silent_model_ms": round(sum(each.model_ms for each in silent) / count, 1),
    }


def _share(values: Iterable[bool]) -> float:
    found = list(values)
    return 100 * sum(found) / len(found) if found else 0.0


def _harmonic(one: float, other: float) -> float:
    return 2 * one * other / (one + other) if one + other else 0.0


def _report(outcomes: Sequence[Outcome], engine: str) -> None:
    kinds = sorted({each.kind for each in outcomes})
    print(f"{len(outcomes)} rows, engine {engine}; {machine()}")
    print(f"{'':16}{'n':>6}{'shown':>8}{'quiet':>8}{'exact':>8}{'located':>9}{'ΔchrF':>8}{'@1':>7}{'@3':>7}")
    for kind in [*kinds, "all"]:
        found = score([each for each in outcomes if kind in ("all", each.kind)])
        cells = ("show", "quiet", "exact", "location", "delta_chrf", "recall_at_1", "recall_at_3")
        widths = (8, 8, 8, 9, 8, 7, 7)
        print(f"{kind:16}{found['n']:6}" + "".join(f"{found[c]:{w}.1f}" for c, w in zip(cells, widths, strict=True)))
    _print_losses(outcomes)
    _print_offers(outcomes)
    silent = [each for each in outcomes if each.kind == "none"]
    quiet = wilson(sum(not each.shown for each in silent), len(silent))
    print(
        f"quiet in {quiet.value:.1%} of {len(silent)} silent rows ({quiet.low:.1%} to {quiet.high:.1%}, 19 of 20 times)"
    )
    net_of_all = {"net_interval": _interval(len(outcomes), lambda chosen: net([outcomes[at] for at in chosen]))}
    print(json.dumps({**score(outcomes), **net_of_all, "engine": engine, "machine": machine()}))


def _interval(count: int, figure: Callable[[Sequence[int]], float]) -> tuple[float, float]:
    """What the figure is between 19 of 20 times when as many rows are drawn again."""
    draw = random.Random(0)
    drawn = sorted(figure(draw.choices(range(count), k=count)) for _ in range(RESAMPLED))
    return round(drawn[RESAMPLED // 40], 3), round(drawn[-RESAMPLED // 40 - 1], 3)


def _print_losses(outcomes: Sequence[Outcome]) -> None:
    """How many rows of each kind lost the edit that was due, by stage."""
    kinds = sorted({each.kind for each in outcomes if each.lost})
    print(f"{'lost where':28}" + "".join(f"{kind[:13]:>15}" for kind in kinds))
    for stage in sorted({each.lost for each in outcomes if each.lost}):
        counts = (sum(each.lost == stage and each.kind == kind for each in outcomes) for kind in kinds)
        print(f"{stage:28}" + "".join(f"{count:15}" for count in counts))


def _print_offers(outcomes: Sequence[Outcome]) -> None:
    """What is shown, by the kind of its likeliest edit."""
    shown = [each for each in outcomes if each.shown]
    counts = Counter((each.offered, _fate(each)) for each in shown)
    fates = ("right", "shown incomplete", "shown wrong text", "shown wrong place", "nothing due")
    print(f"{'offered':20}" + "".join(f"{fate.removeprefix('shown '):>13}" for fate in fates))
    for kind in sorted({each.offered for each in shown}):
        print(f"{kind:20}" + "".join(f"{counts[kind, fate]:13}" for fate in fates))


def _fate(shown: Outcome) -> str:
    return "right" if shown.exact else shown.lost or "nothing due"
