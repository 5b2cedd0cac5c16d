"""Our engine and its peers answer rows in turn, through the language server's own sessions."""

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bench.harness.measures import machine
from bench.harness.usage import Usage
from bench.next_edit.cases import Case, cases
from bench.next_edit.measure import Outcome, assessed
from bench.quality import editor
from bench.quality.contenders import EFFORTS, opened
from bench.quality.editor import Contender, RowAnswer, seen
from bench.quality.figures import AnsweredRow, beside, figures, next_edit_figures
from bench.quality.projects import Projects
from mercury_training.evaluate.contestants import Suggestion
from mercury_training.evaluate.metrics import exact, similarity
from mercury_training.evaluate.programs import executor
from mercury_training.evaluate.scores import score
from mercury_training.progress import shown
from mercury_training.rows.fim_rows import FimRow, read_rows, sample

PASSES = 16
SHORTEST_COPY = 4
"""Characters; closing brackets and short keywords occur anywhere."""


class QualityRun(Struct, frozen=True, kw_only=True):
    """The parameters of a run."""

    engine: str = "local"
    peers: tuple[str, ...] = ()
    fim: tuple[Path, ...] = ()
    next_edit: tuple[Path, ...] = ()
    limit: int | None = None
    projects: Path | None = None


async def measure(work: QualityRun) -> dict[str, Any]:
    usage = Usage()
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(opened(work.engine))
        contenders = [ours]
        for name in work.peers:
            if name in EFFORTS:
                contenders.append(replace(ours, name=name.removeprefix("peer:"), effort=EFFORTS[name]))
            else:
                contenders.append(await stack.enter_async_context(opened(name, work.engine)))
        found = {"engine": ours.name, "model": _described(ours), "machine": machine(), "fim": {}, "next_edit": {}}
        for path in work.fim:
            found["fim"][_set_name(path)] = await fim_set(path, contenders, work, usage)
        for path in work.next_edit:
            found["next_edit"][_set_name(path)] = await _next_edit_set(path, ours, work.limit, usage)
    return {**found, "memory_mb": usage.line()}


def _described(contender: Contender) -> str:
    info = contender.client.status.info
    return f"{info.engine} {info.model}, {info.device}" if info else contender.client.status.detail


def _set_name(path: Path) -> str:
    return f"{path.resolve().parent.name}/{path.stem}"


async def fim_set(path: Path, contenders: Sequence[Contender], work: QualityRun, usage: Usage) -> dict[str, Any]:
    rows, answers = sample(read_rows(path), work.limit), []
    with executor(rows) as (execute, _), TemporaryDirectory() as folder:
        projects = Projects(work.projects, Path(folder)) if work.projects else None
        for done, row in enumerate(shown(_set_name(path), rows)):
            for contender in contenders if done % 2 == 0 else reversed(contenders):
                asked = await editor.complete(contender, row, projects and projects.of(row))
                answers.append(answered(_set_name(path), contender.name, row, asked, execute(row, asked.answer)))
            usage.look(os.getpid())
        if projects:
            await projects.close()
    by_name = {each.name: [a for a in answers if a.result.by == each.name] for each in contenders}
    ours = by_name[contenders[0].name]
    return {name: figures(found) | ({} if found is ours else beside(ours, found)) for name, found in by_name.items()}


def answered(name: str, by: str, row: FimRow, asked: RowAnswer, passed: bool | None) -> AnsweredRow:
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
    return AnsweredRow(
        result=score(name, by, row, suggestion, passed),
        right=row.middle.startswith(asked.answer.rstrip()),
        shown_exact=None if asked.shown is None else exact(asked.shown, row.middle),
        shown_begins=None if asked.shown is None else row.middle.startswith(asked.shown.rstrip()),
        ended=ends_in_place(row, asked.answer) if asked.answer else None,
        silence=asked.silence,
        cost=cost,
        curve=tuple(curve),
    )


def ends_in_place(row: FimRow, answer: str) -> bool:
    """True if an answer holds nothing of the code that follows the gap."""
    if answer.startswith(row.middle):
        return not answer[len(row.middle) :].strip()
    last, following = answer.rstrip().rpartition("\n")[2].strip(), row.suffix.lstrip().partition("\n")[0]
    return len(last) < SHORTEST_COPY or not following.startswith(last)


async def _next_edit_set(path: Path, contender: Contender, limit: int | None, usage: Usage) -> dict[str, Any]:
    found = sample(list(cases(path)), limit)
    outcomes = []
    for case in shown(_set_name(path), found):
        outcomes.append(await _outcome(contender, case))
        usage.look(os.getpid())
    return next_edit_figures(outcomes)


async def _outcome(contender: Contender, case: Case) -> Outcome:
    made = await editor.next_edit(contender, case)
    return assessed(case, made.changes, made.p_accept, made.milliseconds, silence=made.silence)
