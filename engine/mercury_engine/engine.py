"""The engine with a model: lays requests out, reuses what is encoded, and answers with growing drafts."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import count, product, repeat
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Draft, EngineError, EngineInfo, Filled, InfillRequest, Span, Worth
from mercury_engine.decode.answer import NOTHING, Answer, Earlier, Presentation
from mercury_engine.decode.batching import Steps, Together, alone, until_pause
from mercury_engine.decode.cache import Answered, Session, Sessions
from mercury_engine.decode.choice import Chooser
from mercury_engine.decode.confidence import Calibration, read_calibration
from mercury_engine.decode.continuation import continued, still_to_rewrite
from mercury_engine.decode.denoise import UNFORCED, Decoder, Decoding, Forced, read
from mercury_engine.decode.drafts import Known, deleted_again, remembered, still_to_type
from mercury_engine.decode.echo import Echo, read_echo
from mercury_engine.decode.policy import Acceptance, Costs, Decode, Gauge, Report
from mercury_engine.decode.search import HOPELESS, LOW_TOKENS, RUNNERS_UP, Search
from mercury_engine.model.config import ModelError
from mercury_engine.model.fitted import WORTH_FILE, read_fitted
from mercury_engine.model.runtime import Passes, Runtime
from mercury_engine.tokens.layout import (
    Hole,
    LayoutError,
    Row,
    budget_for,
    filled_text,
    freeze,
    is_stale,
    lay_out,
    until_end,
)
from mercury_engine.tokens.prefix import HintBuilder
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import EOM, HOLE_STRIDE

__all__ = ["MercuryEngine", "Resources", "open_engine", "open_runtime"]

MEMORY = 1 << 30
"""Bytes for the weights and all caches where nothing else is asked for."""

IDLE_MEMORY = 96 << 20
"""Of them for keys and values of sessions that nobody is at, on a CPU: four full ones of the default model."""

LEAST_MEMORY = 16 << 20

CROWDED = "more clients are at work than engine.memory_mb has room for: their contexts are read again; raise it"

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
    to compare with. `bar` 0 shows all that was decoded. `report` tells which actions did the work. `memory` is for
    caches; the bytes of the `weights` are only reported.
    """

    def __init__(
        self,
        runtime: Runtime,
        tokenizer: Tokenizer,
        *,
        calibration: Calibration | None = None,
        echo: Echo | None = None,
        worth: Worth | None = None,
        costs: Costs | None = None,
        decode: Decode = "policy",
        redraft: bool | None = None,
        bar: float = BAR,
        memory: int = MEMORY,
        weights: int = 0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if tokenizer.vocabulary > runtime.config.vocabulary:
            raise ModelError(
                f"{runtime.config.name}: the tokenizer has {tokenizer.vocabulary} tokens, the model "
                f"{runtime.config.vocabulary}; they belong to different models, install both again"
            )
        self.report = Report()
        self._clock = clock
        self._weights = weights
        self._worth = worth
        self._budget = budget_for(runtime.config.context)
        self._presentation = Presentation(tokenizer, calibration or Calibration(), bar)
        self._sessions = Sessions(runtime.cache, IDLE_MEMORY if _on_cpu(runtime) else memory, memory)
        self._together = Together[Draft](runtime)
        gauge = Gauge(runtime, clock=clock)
        self._measuring = gauge.rest() if costs is None else iter(())
        self._decoder = Decoder(
            runtime,
            tokenizer,
            Chooser(tokenizer, runtime.config.vocabulary),
            costs or gauge.start(),
            Acceptance(),
            self.report,
            decode,
            not _on_cpu(runtime) if redraft is None else redraft,
            echo,
        )

    def infill(self, request: InfillRequest) -> Iterator[Draft]:
        """Requests that take turns share their forwards where the device gains by it: see `Together`."""
        session = self._session(request)
        yield from self._together.run(self._answer(request, session), session)

    def warm(self, request: InfillRequest) -> Iterator[None]:
        """Takes over the newest suffix, snippets and edits, then reads up to the last row of the context.

        With nothing left to read it measures what the start had no time to. It joins nobody's forwards.
        """
        session = self._session(request)
        session.frozen = None
        row = self._laid_out(session, request)
        yield from alone(self._decoder.runtime, self._read(session, row))
        for costs in self._measuring:
            self._decoder = replace(self._decoder, costs=costs)
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
            batch=runtime.batch,
            costs_ms={name: round(value, 3) for name, value in (measured | shares).items()},
            notes=(CROWDED,) if self._sessions.crowded else (),
            bytes=self._weights + self._sessions.bytes,
            worth=self._worth,
        )

    @property
    def costs(self) -> Costs:
        """As far as they are measured."""
        return self._decoder.costs

    def _answer(self, asked: InfillRequest, session: Session) -> Steps[Draft]:
        """Part after part, each of which may have another one follow."""
        started, steps = self._clock(), count(1)
        parts, filled = [self._first(asked, session)], [Filled("") for _ in asked.spans]
        try:
            for part in parts:
                passes = part.search.run(part.request.effort, part.request.seed)
                while self._has_time(asked.deadline_ms, started) and (yield from until_pause(passes)):
                    self._show(part, asked, filled)
                    yield Draft(next(steps), tuple(filled))
                self._show(part, asked, filled)
                if self._has_time(asked.deadline_ms, started) and (following := self._following(part)):
                    parts.append(following)
                    yield Draft(next(steps), tuple(filled))
            yield Draft(next(steps), tuple(filled), final=True)
        finally:
            session.remember(self._answered(parts, asked))
            self._sessions.trim()

    def _first(self, request: InfillRequest, session: Session) -> "Part":
        row, numbers = self._laid_out(session, request), tuple(range(len(request.spans)))
        return self._part(request, session, row, numbers, [NOTHING] * len(numbers))

    def _part(
        self, request: InfillRequest, session: Session, row: Row, numbers: tuple[int, ...], earlier: Sequence[Earlier]
    ) -> "Part":
        search = Search(self._decoder, session, self._starter(session, request, row, earlier))
        return Part(request, session, numbers, search)

    def _following(self, part: "Part") -> "Part | None":
        """What goes on behind the answers that ended only because the next anchor stands there; None if nothing."""
        answers = part.search.best.answers
        cut = [number for number, answer in enumerate(answers) if _is_cut(answer)]
        if part.request.effort == "instant" or not part.search.best.done or not cut:
            return None
        said, left = zip(*(self._said_and_left(part, number) for number in range(len(answers))), strict=True)
        request = replace(continued(_spent(part.request, answers), said, left), seed=0)
        part.session.frozen = None
        try:
            row = self._laid_out(part.session, request)
        except LayoutError:
            return None
        numbers = tuple(part.numbers[number] for number in cut)
        return self._part(request, part.session, row, numbers, [_so_far(answers[n], said[n]) for n in cut])

    def _said_and_left(self, part: "Part", number: int) -> tuple[str, str | None]:
        """What to write in place of a span, and what of it is still to be rewritten: None if nothing is."""
        answer, old = part.search.best.answers[number], _old(part.request, number)
        text = self._presentation.text(answer, answer.ids)
        if _is_cut(answer):
            return text, still_to_rewrite(self._decoder.tokenizer, answer.hole, old, answer.ids)
        return (old if old and not answer.complete else text), None

    def _read(self, session: Session, row: Row) -> Passes[None]:
        end, decoder = row.holes[0].anchor + 1, self._decoder
        listener = HintBuilder.of(row, decoder.tokenizer, hints=decoder.runtime.config.hints)
        trail = listener.build_from(row.ids[:end], row.positions[:end], session.trail)
        while (yield from read(decoder, session, trail, leave=1)):
            self._sessions.trim()
            yield

    def _session(self, request: InfillRequest) -> Session:
        """Completions and rewrites of a file are laid out differently, and each keep their own rows."""
        edited = {span.window for span in request.spans}
        paths = tuple(window.path for index, window in enumerate(request.windows) if index in edited)
        return self._sessions.open(request.session, (request.root, paths, _inserts(request)))

    def _laid_out(self, session: Session, request: InfillRequest) -> Row:
        """A rewrite always sees the newest edits, which it follows from; a completion what was frozen."""
        stale = session.frozen is None or not _inserts(request) or is_stale(session.frozen, request)
        if stale:
            session.frozen = freeze(self._decoder.tokenizer, request, self._budget)
        return lay_out(self._decoder.tokenizer, request, session.frozen, self._budget)

    def _has_time(self, deadline_ms: float | None, started: float) -> bool:
        """Enough for one more pass."""
        if deadline_ms is None:
            return True
        return (self._clock() - started) * 1000 + self._decoder.costs.of(1) < deadline_ms

    def _starter(
        self, session: Session, request: InfillRequest, row: Row, earlier: Sequence[Earlier]
    ) -> Callable[..., Decoding]:
        exploring = min(request.seed, MOST_SEEDS) + RUNNERS_UP if request.seed or request.effort == "high" else 0
        limits = [self._limit(request, number, row) for number in range(len(row.holes))]

        def start(forced: Forced = UNFORCED, known: Sequence[Sequence[Known]] | None = None) -> Decoding:
            tokenizer = self._decoder.tokenizer
            answers = map(Answer, repeat(tokenizer), row.holes, request.spans, limits, earlier)
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
        """For each hole the earlier answer that the user is typing along with or went back to, and the text to
        rewrite."""
        return [
            [*self._previous(session, request, number, hole), *([Known("old", [*hole.old, EOM])] if hole.old else [])]
            for number, hole in enumerate(row.holes)
        ]

    def _previous(self, session: Session, request: InfillRequest, number: int, hole: Hole) -> list[Known]:
        before = _before(request, number)
        for expected, answered in product((still_to_type, deleted_again), session.answered):
            rest = expected(before, answered)
            if rest:
                end = [EOM] if answered.complete else []
                return [Known("previous", [*self._decoder.tokenizer.encode(hole.part + rest), *end])]
        return []

    def _show(self, part: "Part", asked: InfillRequest, filled: list[Filled]) -> None:
        best = part.search.best
        for at, (number, answer) in enumerate(zip(part.numbers, best.answers, strict=True)):
            old = _old(asked, number)
            filled[number] = self._presentation.show(answer, best.spoken(at), old, part.search.departure)

    def _answered(self, parts: Sequence["Part"], asked: InfillRequest) -> Iterator[Answered]:
        """The answer of each span as it stands, to be remembered: what the last part that has the span says."""
        last = {number: (part, at) for part in parts for at, number in enumerate(part.numbers)}
        for number, (part, at) in last.items():
            answer, spoken = part.search.best.answers[at], part.search.best.spoken(at)
            text = filled_text(self._decoder.tokenizer, answer.hole, until_end(spoken.ids)[0])
            yield remembered(_before(asked, number), answer.earlier.text + text, spoken.complete)


class Part(Struct, frozen=True, eq=False):
    """What one row answers of a request: the spans of these numbers, or what is left of them."""

    request: InfillRequest
    session: Session
    numbers: tuple[int, ...]
    search: Search


class Resources(Struct, frozen=True):
    """What a model may use. `threads` 0 chooses; `memory` is for the weights and all caches, in bytes, 0 what serves
    well. On a CPU caches take that much only while as many clients are at work."""

    device: Literal["auto", "cpu", "gpu"] = "auto"
    threads: int = 0
    memory: int = 0


def open_engine(
    folder: Path,
    resources: Resources = Resources(),  # noqa: B008  frozen
    *,
    adapter: Path | None = None,
    costs: Costs | None = None,
    decode: Decode = "policy",
    bar: float = BAR,
) -> MercuryEngine:
    """The model of a folder, with what an adapter adds to it, on a GPU if torch finds one, else by OpenVINO.

    `costs` are those of the same model without the adapter, which need no measuring again.
    """
    with ThreadPoolExecutor(1) as beside:  # compiling keeps no other thread from running
        loading = beside.submit(Tokenizer.load, folder / TOKENIZER_FILE)
        runtime = open_runtime(folder, resources, adapter)
        tokenizer = loading.result()
    weights = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    return MercuryEngine(
        runtime,
        tokenizer,
        calibration=read_calibration(folder),
        echo=read_echo(folder),
        worth=read_fitted(folder / WORTH_FILE, Worth),
        costs=costs,
        decode=decode,
        bar=bar,
        memory=max(LEAST_MEMORY, (resources.memory or MEMORY) - weights),
        weights=weights,
    )


def open_runtime(
    folder: Path,
    resources: Resources = Resources(),  # noqa: B008  frozen
    adapter: Path | None = None,
) -> Runtime:
    """Either is imported only where it may be used: a base installation has no torch, and loading it takes a
    second."""
    if resources.device != "cpu" and _finds_gpu():
        from mercury_engine.model.torch_runtime import open_torch

        return open_torch(folder, device="cuda", adapter=adapter)
    if resources.device == "gpu":
        raise EngineError(
            "engine.device is 'gpu', and torch finds none; "
            "`pip install '.[train]'` in a clone of mercury-ls, or choose 'auto'"
        )
    from mercury_engine.model import openvino_runtime

    return openvino_runtime.load(folder, threads=resources.threads or None, adapter=adapter)


def _finds_gpu() -> bool:
    if not (shutil.which("nvidia-smi") and find_spec("torch")):
        return False
    import torch

    return torch.cuda.is_available()


def _on_cpu(runtime: Runtime) -> bool:
    return runtime.device.lower().startswith("cpu")


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


def _is_cut(answer: Answer) -> bool:
    """Whether it ended where the next anchor stands, and may say more."""
    return answer.done and not answer.complete and answer.limit == HOLE_STRIDE - 1 < answer.span.budget


def _so_far(answer: Answer, said: str) -> Earlier:
    return Earlier(
        answer.earlier.text + said,
        (*answer.earlier.probabilities, *answer.spoken().probabilities),
    )


def _spent(request: InfillRequest, answers: Sequence[Answer]) -> InfillRequest:
    """The request with what is left of each span's budget."""
    pairs = zip(request.spans, answers, strict=True)
    return replace(request, spans=tuple(replace(span, budget=span.budget - len(a.ids)) for span, a in pairs))
