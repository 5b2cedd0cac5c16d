"""The engine with a model: lays requests out, reuses what is encoded, and answers with growing drafts."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path

from mercury_engine.answer import Answer, Presentation
from mercury_engine.api import Draft, EngineInfo, Filled, InfillRequest, Span
from mercury_engine.cache import Answered, Session, Sessions
from mercury_engine.choice import Chooser
from mercury_engine.confidence import Calibration, read_calibration
from mercury_engine.config import ModelError
from mercury_engine.denoise import UNFORCED, Decoder, Decoding, Forced, read
from mercury_engine.drafts import Known, remembered, still_to_type
from mercury_engine.layout import (
    EOM,
    HOLE_STRIDE,
    Hole,
    Row,
    budget_for,
    filled_text,
    freeze,
    is_stale,
    lay_out,
    until_end,
)
from mercury_engine.policy import Acceptance, Costs, Decode, Report, calibrate
from mercury_engine.runtime import Runtime
from mercury_engine.search import HOPELESS, LOW_TOKENS, RUNNERS_UP, Search
from mercury_engine.tokenizer import Tokenizer

__all__ = ["MercuryEngine", "open_engine"]

MEMORY = 96 << 20
"""Bytes of keys and values kept for all sessions together: four full ones of the default model."""

BAR = 0.3
"""An answer less likely to be accepted is cut back to the beginning that is this probable."""

MOST_SEEDS = 16
"""How many runners-up of a token are looked at for alternatives."""

TOKENIZER_FILE = "tokenizer.json"


class MercuryEngine:
    """Owns the sessions and what was learnt from verifying drafts.

    >>> engine = open_engine(folder)
    >>> *_, last = engine.infill(request)

    `decode` is how answers come about, not what they are: plain autoregression says the same, and is there
    to compare with. `bar` 0 shows all that was decoded. `report` tells which actions did the work.
    """

    def __init__(
        self,
        runtime: Runtime,
        tokenizer: Tokenizer,
        *,
        calibration: Calibration | None = None,
        costs: Costs | None = None,
        decode: Decode = "policy",
        redraft: bool | None = None,
        bar: float = BAR,
        memory: int = MEMORY,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if tokenizer.vocabulary > runtime.config.vocabulary:
            raise ModelError(
                f"{runtime.config.name}: the tokenizer has {tokenizer.vocabulary} tokens, the model "
                f"{runtime.config.vocabulary}; they belong to different models, install both again"
            )
        self.report = Report()
        self._clock = clock
        self._budget = budget_for(runtime.config.context)
        self._presentation = Presentation(tokenizer, calibration or Calibration(), bar)
        self._sessions = Sessions(runtime.cache, memory)
        self._decoder = Decoder(
            runtime,
            tokenizer,
            Chooser(tokenizer, runtime.config.vocabulary),
            costs or calibrate(runtime),
            Acceptance(),
            self.report,
            decode,
            not runtime.device.lower().startswith("cpu") if redraft is None else redraft,
        )

    def infill(self, request: InfillRequest) -> Iterator[Draft]:
        started = self._clock()
        session = self._session(request)
        row = self._laid_out(session, request)
        search = Search(self._decoder, session, self._starter(session, request, row))
        step = 1
        try:
            for _ in self._until(request.deadline_ms, started, search.run(request.effort, request.seed)):
                yield Draft(step, self._shown(request, search))
                step += 1
            yield Draft(step, self._shown(request, search), final=True)
        finally:
            session.answered = self._answered(request, search.best)
            self._sessions.trim()

    def warm(self, request: InfillRequest) -> Iterator[None]:
        """Takes over the newest suffix, snippets and edits, then reads up to the last row of the context."""
        session = self._session(request)
        session.frozen = None
        row = self._laid_out(session, request)
        end = row.holes[0].anchor + 1
        while read(self._decoder, session, row.ids[:end], row.positions[:end], leave=1):
            self._sessions.trim()
            yield

    def info(self) -> EngineInfo:
        runtime, costs = self._decoder.runtime, self._decoder.costs
        measured = {f"rows {rows}": ms for rows, ms in zip(costs.rows, costs.milliseconds, strict=True)}
        shares = {f"share {kind}": share for kind, share in self.report.shares().items()}
        return EngineInfo(
            engine="mercury",
            model=runtime.config.name,
            device=f"{runtime.device}, {runtime.name} {runtime.precision}",
            context_tokens=runtime.config.context,
            costs_ms={name: round(value, 3) for name, value in (measured | shares).items()},
        )

    def _session(self, request: InfillRequest) -> Session:
        """Completions and rewrites of a file are laid out differently, and each keep their own rows."""
        edited = {span.window for span in request.spans}
        paths = tuple(window.path for index, window in enumerate(request.windows) if index in edited)
        return self._sessions.open((request.session, paths, _inserts(request)))

    def _laid_out(self, session: Session, request: InfillRequest) -> Row:
        """A rewrite always sees the newest edits, which it follows from; a completion what was frozen."""
        stale = session.frozen is None or not _inserts(request) or is_stale(session.frozen, request)
        if stale:
            session.frozen = freeze(self._decoder.tokenizer, request, self._budget)
        return lay_out(self._decoder.tokenizer, request, session.frozen, self._budget)

    def _until(self, deadline_ms: float | None, started: float, forwards: Iterator[None]) -> Iterator[None]:
        """The pauses between forwards, as long as there is time for another one."""
        step_ms = self._decoder.costs.of(1)
        while deadline_ms is None or (self._clock() - started) * 1000 + step_ms < deadline_ms:
            try:
                next(forwards)
            except StopIteration:
                return
            yield

    def _starter(self, session: Session, request: InfillRequest, row: Row) -> Callable[..., Decoding]:
        exploring = min(request.seed, MOST_SEEDS) + RUNNERS_UP if request.seed or request.effort == "high" else 0
        limits = [self._limit(request, number, row) for number in range(len(row.holes))]

        def start(forced: Forced = UNFORCED, known: Sequence[Sequence[Known]] | None = None) -> Decoding:
            tokenizer = self._decoder.tokenizer
            answers = map(Answer, repeat(tokenizer), row.holes, request.spans, limits)
            return Decoding(
                self._decoder,
                session,
                row,
                list(answers),
                known or self._known(session, request, row),
                forced=forced,
                floor=HOPELESS if request.effort == "low" and self._presentation.bar else 0.0,
                runners_up=exploring,
            )

        return start

    def _limit(self, request: InfillRequest, number: int, row: Row) -> int:
        """How many tokens an answer may have; a whole text is replaced by a whole one, at any effort."""
        span = request.spans[number]
        room = HOLE_STRIDE - 1 if len(row.holes) > 1 else self._budget.context - len(row.ids)
        wanted = min(span.budget, LOW_TOKENS) if request.effort == "low" and _is_insertion(span) else span.budget
        return max(1, min(wanted, room))

    def _known(self, session: Session, request: InfillRequest, row: Row) -> list[list[Known]]:
        """For each hole the earlier answer that the user is typing along with, and the text to rewrite."""
        return [
            [*self._previous(session, request, number, hole), *([Known("old", [*hole.old, EOM])] if hole.old else [])]
            for number, hole in enumerate(row.holes)
        ]

    def _previous(self, session: Session, request: InfillRequest, number: int, hole: Hole) -> list[Known]:
        before = _before(request, number)
        for answered in session.answered:
            rest = still_to_type(before, answered)
            if rest:
                end = [EOM] if answered.complete else []
                return [Known("previous", [*self._decoder.tokenizer.encode(hole.part + rest), *end])]
        return []

    def _shown(self, request: InfillRequest, search: Search) -> tuple[Filled, ...]:
        best = search.best
        return tuple(
            self._presentation.show(answer, best.spoken(number), _old(request, number), search.departure)
            for number, answer in enumerate(best.answers)
        )

    def _answered(self, request: InfillRequest, best: Decoding) -> tuple[Answered, ...]:
        return tuple(self._remember(request, number, best) for number in range(len(best.answers)))

    def _remember(self, request: InfillRequest, number: int, best: Decoding) -> Answered:
        spoken = best.spoken(number)
        text = filled_text(self._decoder.tokenizer, best.answers[number].hole, until_end(spoken.ids)[0])
        return remembered(_before(request, number), text, spoken.complete)


def open_engine(folder: Path, *, decode: Decode = "policy", bar: float = BAR) -> MercuryEngine:
    """The model of a folder, on a GPU if torch finds one, else by OpenVINO."""
    tokenizer = Tokenizer.load(folder / TOKENIZER_FILE)
    calibration = read_calibration(folder)
    return MercuryEngine(open_runtime(folder), tokenizer, calibration=calibration, decode=decode, bar=bar)


def open_runtime(folder: Path) -> Runtime:
    """Either is imported only where it may be used: a base installation has no torch, and loading it takes a
    second."""
    if shutil.which("nvidia-smi") and find_spec("torch"):
        import torch

        from mercury_engine.torch_runtime import open_torch

        if torch.cuda.is_available():
            return open_torch(folder, device="cuda")
    from mercury_engine import openvino_runtime

    return openvino_runtime.load(folder)


def _is_insertion(span: Span) -> bool:
    return span.start == span.end


def _inserts(request: InfillRequest) -> bool:
    """Whether this is a completion: one place where text is inserted."""
    return len(request.spans) == 1 and _is_insertion(request.spans[0])


def _before(request: InfillRequest, number: int) -> str:
    span = request.spans[number]
    return request.windows[span.window].text[: span.start]


def _old(request: InfillRequest, number: int) -> str:
    span = request.spans[number]
    return request.windows[span.window].text[span.start : span.end]
