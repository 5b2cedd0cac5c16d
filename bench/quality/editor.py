"""Requests for rows as an editor would make them: each in a fresh session of the language server, all over one
engine."""

import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bench.next_edit.cases import Case
from bench.quality.projects import PATIENCE_SECONDS, CheckedOutProject
from mercury_engine.api import Draft, Effort, Engine, EngineInfo, Gap, Regions
from mercury_engine.autoregressive.engine import AutoregressiveEngine
from mercury_engine.engine import MercuryEngine
from mercury_ls.code.edits import TextEdit, applied
from mercury_ls.code.history import History
from mercury_ls.completion.offers import Answer
from mercury_ls.names.members import NameSources
from mercury_ls.session.outcomes import Outcomes
from mercury_ls.session.session import Session
from mercury_ls.session.wiring import Wiring
from mercury_ls.settings.schema import Settings
from mercury_training.rows.fim_rows import FimRow

NO_FILE = Path("/nonexistent")
LONGEST_DEADLINE = 60_000


class AnswerCost(Struct, frozen=True):
    """The cost of one answer once its context is read: `drafts` after each pass, `settled` tokens if known."""

    milliseconds: float
    reading_milliseconds: float
    passes: int
    settled: int | None
    drafts: tuple[str, ...]


class Metered(Engine):
    """An engine that reads the context before it answers, as after a pause in typing, and measures the cost."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._cost: AnswerCost | None = None

    def taken(self) -> AnswerCost | None:
        """The cost of the latest answer, returned once; None if the engine was not asked."""
        cost, self._cost = self._cost, None
        return cost

    def fill(self, gap: Gap) -> Generator[Draft]:
        began = time.perf_counter()
        for _ in self._engine.warm(gap):
            pass
        read, before = time.perf_counter(), _work(self._engine)
        drafts: dict[int, str] = {}
        for draft in self._engine.fill(gap):
            drafts[draft.step] = draft.text
            if draft.final:
                self._note([*drafts.values()], draft.step, before, began, read)
            yield draft

    def _note(self, drafts: Sequence[str], step: int, before: "_WorkDone | None", began: float, read: float) -> None:
        """Called before the final draft is yielded: the generator is not resumed afterwards."""
        ended, now = time.perf_counter(), _work(self._engine)
        self._cost = AnswerCost(
            (ended - read) * 1000,
            (read - began) * 1000,
            now.passes - before.passes if now and before else step,
            now.settled - before.settled if now and before else None,
            tuple(drafts),
        )

    def warm(self, question: Gap | Regions) -> Generator[None]:
        return self._engine.warm(question)

    def info(self) -> EngineInfo:
        return self._engine.info()


class _WorkDone(Struct, frozen=True):
    """The forwards so far, and the tokens that they settled."""

    passes: int
    settled: int


def _work(engine: Engine) -> _WorkDone | None:
    """The forwards of an answer; for an engine that does not report them, the number of its last draft counts."""
    is_counted = isinstance(engine, MercuryEngine | AutoregressiveEngine)
    return _WorkDone(engine.report.forwards, engine.report.settled) if is_counted else None


class Contender(Struct, frozen=True):
    """A contender: `client` for a session, and the meter of its engine, asked at this effort or the default one."""

    name: str
    client: Any
    meter: Metered
    effort: Effort | None = None


class RowAnswer(Struct, frozen=True, kw_only=True):
    """The answers to a row: `shown` while typing, under the bar, None for `silence`; `answer` on explicit request."""

    shown: str | None
    silence: str
    answer: str
    p_accept: float
    cost: AnswerCost | None


class NextEditAnswer(Struct, frozen=True):
    """The next edit offered after the last edit has settled, or why there is none."""

    changes: tuple[TextEdit, ...]
    p_accept: float
    milliseconds: float
    silence: str = ""


async def complete(contender: Contender, row: FimRow, project: CheckedOutProject | None = None) -> RowAnswer:
    """Request while typing, once the existing names are known, then explicitly; the second answer does not count
    towards the cost."""
    session, uri = opened(contender, row.path, row.language, row.prefix + row.suffix, project)
    offset = len(row.prefix)
    names = session.questions.names
    names.look_ahead(session.files.documents[uri].snapshot(), offset)
    await names.settled()
    typed = await _last_answer(session, uri, offset)
    cost = contender.meter.taken()
    outright = await _last_answer(session, uri, offset, invoked=True)
    contender.meter.taken()
    best = outright.offer
    return RowAnswer(
        shown=filled(row, typed.offer.edit) if typed.offer else None,
        silence=typed.silence,
        answer=filled(row, best.edit) if best else "",
        p_accept=best.p_accept if best else 0.0,
        cost=cost,
    )


async def next_edit(contender: Contender, case: Case) -> NextEditAnswer:
    """Let the session record the row's edits as `didChange` would, a minute apart, and request once."""
    given = case.snapshot
    session, uri = opened(contender, given.path, given.language, given.text)
    session.files.history = case.history
    # The tree is made while the user types, before any request.
    _ = session.files.documents[uri].snapshot().tree
    began = time.perf_counter()
    proposed = await session.next_edits.ask(uri, case.offset)
    elapsed = (time.perf_counter() - began) * 1000
    if proposed.offer is None:
        return NextEditAnswer((), 0.0, elapsed, silence=proposed.silence)
    return NextEditAnswer(proposed.offer.edits, proposed.offer.p_accept, elapsed)


def opened(
    contender: Contender, path: str, language: str, text: str, project: CheckedOutProject | None = None
) -> tuple[Session, str]:
    wiring = Wiring(user_file=NO_FILE, environ={}, make_engine=lambda settings, on_status: contender.client)
    session = wiring.session([project.root] if project else [], {}, lambda status: None)
    session.questions.settings, session.questions.outcomes = _steady(session.settings, contender.effort), Outcomes()
    if project:
        path, session.files.workspace = f"{project.root}/{path}", project.workspace
    analysers = [project.analyser] if project else []
    session.questions.names = NameSources(analysers, patience=PATIENCE_SECONDS)
    uri = f"file:///{path.lstrip('/')}"
    session.open(uri, path, language, 1, text)
    session.files.history = History()  # the file on disk has the text to be filled in, which nobody has deleted
    return session, uri


def _steady(settings: Settings, effort: Effort | None) -> Settings:
    """The default settings, but without alternatives, deadlines and prefetching, so that slower machines give the
    same answers, and each row pays for its own."""
    engine = replace(settings.engine, deadline_ms=LONGEST_DEADLINE, effort=effort or settings.engine.effort)
    return replace(settings, engine=engine, suggest=replace(settings.suggest, alternatives=1, ahead="off"))


async def _last_answer(session: Session, uri: str, offset: int, *, invoked: bool = False) -> Answer:
    """All of it, as a client gets it that asks again when there is more."""
    answer = await _answered(session.inline(uri, offset, invoked=invoked))
    if answer.offer is None:
        return answer
    await session.written()
    return await _answered(session.inline(uri, offset, invoked=invoked))


async def _answered(growing: AsyncGenerator[Answer]) -> Answer:
    answer = Answer(silence="no answer")
    async with aclosing(growing) as answers:
        async for latest in answers:
            answer = latest
    return answer


def filled(row: FimRow, edit: TextEdit) -> str:
    """The text between prefix and suffix once the edit is made; the edit's own text if it changes either."""
    before = row.prefix + row.suffix
    after = applied(before, [edit])
    if after.startswith(row.prefix) and after.endswith(row.suffix) and len(after) >= len(before):
        return after[len(row.prefix) : len(after) - len(row.suffix)]
    return edit.text


def seen(drafts: Sequence[str], passes: int) -> str:
    """The draft after that many passes; the last one if the answer took fewer."""
    return drafts[min(passes, len(drafts)) - 1] if drafts else ""
