"""How good suggestions are as users get them: rows answered through the language server's own sessions.

    python -m bench.quality --fim FILE … --next-edit FILE … [--engine local|fake|FOLDER|URL|peer:NAME]
                            [--peers ar,llama,…] [--limit N] [--projects MIRRORS]

Each row is typed up to its place and asked for twice: as after a keystroke, under the default bar, and outright.
Peers answer the same rows in turn (A B, then B A), so that times are compared in pairs. With bare clones of the
repositories that the rows come from each row is asked in its project, else in a file that stands alone.
docs/benchmarks/README.md says what the figures mean; the last line is JSON.
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from bench.asking import editor
from bench.asking.contenders import Options, model_folder, opened
from bench.asking.editor import Asked, Contender, Cost, seen
from bench.asking.projects import Projects
from bench.edit_cases import Case, cases
from bench.next_edit import Outcome, assessed
from bench.next_edit import score as next_edit_score
from bench.replaying.usage import resident_mb
from mercury_training.evaluate.contestants import Suggestion
from mercury_training.evaluate.metrics import Interval, bootstrap, ece, exact, reliability, similarity, wilson
from mercury_training.evaluate.programs import executor
from mercury_training.evaluate.scores import Result, score
from mercury_training.rows.fim_rows import FimRow, read_rows, sample

__all__ = ["Answered", "Watch", "Work", "figures", "measure", "next_edit_figures"]

PASSES = 16
PERCENTILES = range(0, 101, 5)
MEMORY_POINTS = 60


class Work(Struct, frozen=True, kw_only=True):
    """What is to be measured."""

    engine: str = "local"
    peers: tuple[str, ...] = ()
    fim: tuple[Path, ...] = ()
    next_edit: tuple[Path, ...] = ()
    limit: int | None = None
    options: Options = Options()
    projects: Path | None = None


class Answered(Struct, frozen=True, kw_only=True):
    """One contender's answers to one row. `result` scores what came when asked outright; `right` is what its P(accept)
    is the chance of: that it is exact, or for the beginning of an answer that the true text begins with it.
    `shown_exact` and `shown_begins` are None where nothing was shown; `curve`: how like the draft is after a pass."""

    result: Result
    right: bool
    shown_exact: bool | None
    shown_begins: bool | None
    silence: str
    cost: Cost | None
    curve: tuple[float, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fim", type=Path, nargs="+", default=[], metavar="FILE", help="rows without their middle")
    parser.add_argument("--next-edit", type=Path, nargs="+", default=[], metavar="FILE", help="rows of git history")
    parser.add_argument("--engine", default="local", help="local, fake, a model's folder, a server's URL, or peer:NAME")
    parser.add_argument("--peers", default="", help="asked beside it: " + PEERS)
    parser.add_argument("--service-model", default=Options().service_model, help="what a service is asked for")
    parser.add_argument("--key-variable", default="", metavar="NAME", help="where the environment holds its key")
    parser.add_argument("--limit", type=int, help="rows of each file, drawn at random, always the same")
    parser.add_argument(
        "--projects", type=Path, metavar="MIRRORS", help="bare clones, owner+name/repo: rows have their projects"
    )
    given = parser.parse_args()
    found = asyncio.run(measure(work_of(given)))
    print("\n".join(tables(found)))
    print(json.dumps(found))


PEERS = "ar, ar+copy, llama, transformers, copy, ngram, openai=URL, inception=URL; separated by commas"


def work_of(given: argparse.Namespace) -> Work:
    options = Options(model_folder(given.engine), given.service_model, given.key_variable)
    peers = tuple(f"peer:{name}" for name in given.peers.split(",") if name)
    return Work(
        engine=given.engine,
        peers=peers,
        fim=tuple(given.fim),
        next_edit=tuple(given.next_edit),
        limit=given.limit,
        options=options,
        projects=given.projects,
    )


class Watch:
    """How far it is, and how much memory this process has by then: minutes and MB, row by row."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._memory: list[tuple[float, float]] = []

    def note(self, name: str, done: int, total: int) -> None:
        if sys.stderr.isatty() or done == total:
            print(f"\r{name} {done}/{total}", end="\n" if done == total else "", file=sys.stderr, flush=True)
        if (resident := resident_mb(os.getpid())) is not None:
            self._memory.append((round((time.monotonic() - self._began) / 60, 3), round(resident, 1)))

    def memory(self) -> list[tuple[float, float]]:
        return self._memory[:: max(1, len(self._memory) // MEMORY_POINTS)]


async def measure(work: Work) -> dict[str, Any]:
    watch = Watch()
    async with AsyncExitStack() as stack:
        names = (work.engine, *work.peers)
        contenders = [await stack.enter_async_context(opened(name, work.options)) for name in names]
        ours = contenders[0]
        found = {"engine": ours.name, "model": described(ours), "machine": machine(), "fim": {}, "next_edit": {}}
        for path in work.fim:
            found["fim"][set_name(path)] = await fim_set(path, contenders, work, watch)
        for path in work.next_edit:
            found["next_edit"][set_name(path)] = await next_edit_set(path, ours, work.limit, watch)
    return {**found, "memory_mb": watch.memory()}


def described(contender: Contender) -> str:
    info = contender.client.status.info
    return f"{info.engine} {info.model}, {info.device}" if info else contender.client.status.detail


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"


def set_name(path: Path) -> str:
    return f"{path.resolve().parent.name}/{path.stem}"


# Rows without their middle


async def fim_set(path: Path, contenders: Sequence[Contender], work: Work, watch: Watch) -> dict[str, Any]:
    rows, answers = sample(read_rows(path), work.limit), []
    with executor(rows) as (execute, _), TemporaryDirectory() as folder:
        projects = Projects(work.projects, Path(folder)) if work.projects else None
        for done, row in enumerate(rows, 1):
            for contender in contenders if done % 2 else reversed(contenders):
                asked = await editor.complete(contender, row, projects and projects.of(row))
                answers.append(answered(set_name(path), contender.name, row, asked, execute(row, asked.answer)))
            watch.note(set_name(path), done, len(rows))
    by_name = {each.name: [a for a in answers if a.result.by == each.name] for each in contenders}
    ours = by_name[contenders[0].name]
    return {name: figures(found) | ({} if found is ours else beside(ours, found)) for name, found in by_name.items()}


def answered(name: str, by: str, row: FimRow, asked: Asked, passed: bool | None) -> Answered:
    cost = asked.cost
    suggestion = Suggestion(
        asked.answer,
        asked.p_accept,
        True,
        cost.milliseconds if cost else 0.0,
        cost.reading_milliseconds if cost else 0.0,
        cost.passes if cost else None,
        cost.settled if cost else None,
    )
    drafts = cost.drafts if cost else ()
    curve = [similarity(seen(drafts, passes), row.middle) for passes in range(1, PASSES + 1)] if drafts else []
    return Answered(
        result=score(name, by, row, suggestion, passed),
        right=exact(asked.answer, row.middle) if asked.whole else row.middle.startswith(asked.answer),
        shown_exact=None if asked.shown is None else exact(asked.shown, row.middle),
        shown_begins=None if asked.shown is None else row.middle.startswith(asked.shown.rstrip()),
        silence=asked.silence,
        cost=cost,
        curve=tuple(curve),
    )


def figures(found: Sequence[Answered]) -> dict[str, Any]:
    """One contender on one set."""
    results = [each.result for each in found]
    kinds, languages = (sorted({getattr(r, field) for r in results}) for field in ("kind", "language"))
    costs = [each.cost for each in found if each.cost]
    given = [each for each in found if each.result.suggestion.text]
    confidences, right = [each.result.suggestion.p_accept for each in given], [each.right for each in given]
    return {
        **shares(found),
        "by_kind": {kind: shares([e for e in found if e.result.kind == kind]) for kind in kinds},
        "by_language": {name: shares([e for e in found if e.result.language == name]) for name in languages},
        "ece": number(ece(confidences, right)),
        "reliability": [asdict(each) for each in reliability(confidences, right)],
        "dropped": dict(Counter(reason(each.silence) for each in found if each.silence).most_common()),
        "passes": mean([cost.passes for cost in costs]),
        "characters_per_pass": ratio(sum(len(c.drafts[-1]) for c in costs), sum(c.passes for c in costs)),
        "milliseconds": percentiles([cost.milliseconds for cost in costs]),
        "reading_milliseconds": percentiles([cost.reading_milliseconds for cost in costs]),
        "similarity_after_passes": [mean(column) for column in zip(*(e.curve for e in found if e.curve), strict=True)],
    }


def shares(found: Sequence[Answered]) -> dict[str, Any]:
    """With the gate as users have it: how often something is shown, and how often that is right. Without: the same of
    what came when asked outright, and how close it is; `parses` is of what came."""
    results = [each.result for each in found]
    shown = [each.shown_exact for each in found if each.shown_exact is not None]
    begins = [each.shown_begins for each in found if each.shown_begins is not None]
    given = [r.exact for r in results if r.suggestion.text]
    parsed = [r.parses for r in results if r.suggestion.text and r.parses is not None]
    run = [r.passed for r in results if r.passed is not None]
    return {
        "n": len(found),
        "shown": share(len(shown), len(found)),
        "right_when_shown": share(sum(shown), len(shown)),
        "begins_when_shown": share(sum(begins), len(begins)),
        "given": share(len(given), len(found)),
        "right_when_given": share(sum(given), len(given)),
        "exact": share(sum(r.exact for r in results), len(results)),
        "first_line": share(sum(r.first_line for r in results), len(results)),
        "similarity": bounds(bootstrap([r.similarity for r in results], statistics.fmean)),
        "chrf": bounds(bootstrap([r.chrf for r in results], statistics.fmean)),
        "parses": share(sum(parsed), len(parsed)),
        "pass_at_1": share(sum(run), len(run)),
    }


def beside(ours: Sequence[Answered], theirs: Sequence[Answered]) -> dict[str, Any]:
    """A peer against us on the same rows: the median of the ratios of times, its interval and quartiles."""
    other = {each.result.id: each for each in theirs}
    pairs = [(each.cost, other[each.result.id].cost) for each in ours]
    known = [(mine, its) for mine, its in pairs if mine and its]
    ratios = [its.milliseconds / mine.milliseconds for mine, its in known if mine.milliseconds > 0]
    same = [mine.drafts[-1] == its.drafts[-1] for mine, its in known]
    return {
        "times_our_time": bounds(bootstrap(ratios, statistics.median)),
        "times_our_time_quartiles": [number(each) for each in statistics.quantiles(ratios)]
        if len(ratios) > 1
        else None,
        "times_our_passes": ratio(sum(its.passes for _, its in known), sum(mine.passes for mine, _ in known)),
        "same_answer": share(sum(same), len(same)),
    }


def reason(silence: str) -> str:
    """Without what is particular to one answer."""
    return silence.partition(":")[0]


# Next edits


async def next_edit_set(path: Path, contender: Contender, limit: int | None, watch: Watch) -> dict[str, Any]:
    found = sample(list(cases(path)), limit)
    outcomes = []
    for done, case in enumerate(found, 1):
        outcomes.append(await outcome(contender, case))
        watch.note(set_name(path), done, len(found))
    return next_edit_figures(outcomes)


async def outcome(contender: Contender, case: Case) -> Outcome:
    made = await editor.next_edit(contender, case)
    return assessed(case, made.changes, made.p_accept, made.milliseconds, label=made.label, silence=made.silence)


def next_edit_figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    kinds = sorted({each.kind for each in outcomes})
    shown = [each for each in outcomes if each.shown]
    confidences, right = [each.p_accept for each in shown], [each.exact for each in shown]
    return {
        **next_edit_shares(outcomes),
        "by_kind": {kind: next_edit_shares([each for each in outcomes if each.kind == kind]) for kind in kinds},
        "ece": number(ece(confidences, right)),
        "reliability": [asdict(each) for each in reliability(confidences, right)],
        "dropped": dict(Counter(reason(each.silence) for each in outcomes if each.silence).most_common()),
        "milliseconds": percentiles([each.milliseconds for each in outcomes]),
    }


def next_edit_shares(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    due = [each for each in outcomes if each.kind != "none"]
    silent = [each for each in outcomes if each.kind == "none"]
    shown = [each for each in outcomes if each.shown]
    return {
        "n": len(outcomes),
        "score": next_edit_score(outcomes)["score"] if due and silent else None,
        "show": share(sum(each.shown for each in due), len(due)),
        "quiet": share(sum(not each.shown for each in silent), len(silent)),
        "right_when_shown": share(sum(each.exact for each in shown), len(shown)),
        "exact": share(sum(each.exact for each in due), len(due)),
        "location": share(sum(each.located for each in due), len(due)),
        "delta_chrf": bounds(bootstrap([each.delta_chrf for each in due], statistics.fmean)),
    }


# Figures: each a value and where it may lie, or null where there is nothing to count


def share(successes: int, count: int) -> list[float] | None:
    return bounds(wilson(successes, count)) if count else None


def bounds(found: Interval) -> list[float] | None:
    values = (found.value, found.low, found.high)
    return [round(value, 4) for value in values] if found.value == found.value else None


def number(value: float) -> float | None:
    return round(value, 4) if value == value else None


def mean(values: Sequence[float]) -> float | None:
    return round(statistics.fmean(values), 3) if values else None


def ratio(one: float, other: float) -> float | None:
    return round(one / other, 2) if other else None


def percentiles(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    places = {percent: round((len(ordered) - 1) * percent / 100) for percent in PERCENTILES} if ordered else {}
    return {f"p{percent}": round(ordered[place], 2) for percent, place in places.items()}


# For people


def tables(found: dict[str, Any]) -> Iterator[str]:
    yield f"{found['engine']}: {found['model']}; {found['machine']}"
    for name, contenders in found["fim"].items():
        yield from fim_table(name, contenders)
    for name, given in found["next_edit"].items():
        yield from next_edit_table(name, given)


def fim_table(name: str, contenders: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield (
        f"{name:26}{'n':>5}  {'shown':>6} {'right':>14} {'begins':>6}  {'given':>6} {'right':>6}"
        f"  {'exact':16} {'line 1':>6} {'sim.':>5} {'chrF':>5} {'parses':>6} {'pass@1':>6} {'ms':>7} {'passes':>6}"
    )
    for by, given in contenders.items():
        yield f"{fim_line(by, given)} {given['milliseconds'].get('p50', ''):>7} {given['passes'] or '':>6}"
        if len(contenders) == 1 or by == next(iter(contenders)):
            for kind, part in [*given["by_kind"].items(), *given["by_language"].items()]:
                yield fim_line(f"  {kind}", part)
    for by, given in contenders.items():
        if "times_our_time" in given:
            yield beside_line(by, given)
    ours = next(iter(contenders.values()))
    yield f"calibration error {ours['ece']}; quiet because: {ours['dropped']}"


def fim_line(label: str, given: dict[str, Any]) -> str:
    return (
        f"{label:26}{given['n']:5}  {percent(given['shown'])} {spread(given['right_when_shown']):>14}"
        f" {percent(given['begins_when_shown'])}"
        f"  {percent(given['given'])} {percent(given['right_when_given'])}  {spread(given['exact']):16}"
        f" {percent(given['first_line'])} {given['similarity'][0]:5.2f} {given['chrf'][0]:5.1f}"
        f" {percent(given['parses'])} {percent(given['pass_at_1'])}"
    )


def beside_line(by: str, given: dict[str, Any]) -> str:
    time, same = given["times_our_time"], percent(given["same_answer"])
    taken = f"{time[0]:.2f} times our time ({time[1]:.2f} to {time[2]:.2f})" if time else "not timed"
    return f"  {by} takes {taken}, {given['times_our_passes']} times our passes; the same answer in {same.strip()}"


def next_edit_table(name: str, given: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield f"{name:26}{'n':>5}  {'show':16} {'quiet':16} {'right if shown':16} {'exact':16} {'located':>7} {'ΔchrF':>6}"
    for kind, part in [*given["by_kind"].items(), ("all", given)]:
        likeness = f"{part['delta_chrf'][0]:6.1f}" if part["delta_chrf"] else ""
        yield (
            f"  {kind:24}{part['n']:5}  {spread(part['show']):16} {spread(part['quiet']):16}"
            f" {spread(part['right_when_shown']):16} {spread(part['exact']):16}"
            f" {percent(part['location']):>7} {likeness}"
        )
    yield f"score {given['score']}; quiet because: {given['dropped']}"


def percent(found: Sequence[float] | None) -> str:
    return f"{found[0]:6.1%}" if found else "      "


def spread(found: Sequence[float] | None) -> str:
    return f"{found[0]:.0%} [{found[1]:.0%} {found[2]:.0%}]" if found else ""


if __name__ == "__main__":
    main()
