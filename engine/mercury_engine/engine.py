"""The engine: lays requests out, reuses cached prefixes, and answers with growing drafts."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from itertools import count, product
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Draft, EngineInfo, Filled, InfillRequest, Slot, Span
from mercury_engine.decode.answer import NOTHING_CARRIED, Carried, HoleAnswer, Presentation
from mercury_engine.decode.batching import ForwardBatcher, Steps, run_unbatched, until_pause
from mercury_engine.decode.choice import Choice, Chooser
from mercury_engine.decode.confidence import Calibration, read_calibration
from mercury_engine.decode.continuation import continued, left_to_rewrite
from mercury_engine.decode.costs import CostMeter, Costs
from mercury_engine.decode.decoding import UNFORCED, DecodingOptions, Forced
from mercury_engine.decode.denoise import HoleDecoder, HoleDecoding, stream_start
from mercury_engine.decode.drafts import DraftSource
from mercury_engine.decode.ending import indentation
from mercury_engine.decode.frames import Frames, slots_of
from mercury_engine.decode.names import KnownNames
from mercury_engine.decode.opinion import Opinion, read_history
from mercury_engine.decode.policy import Acceptance, Decode, Report
from mercury_engine.decode.reading import ReadingPace
from mercury_engine.decode.search import HOPELESS, LOW_TOKENS, RUNNERS_UP, SKETCH, Search
from mercury_engine.decode.sessions import EngineSession, Layout, PastAnswer, Place, Places, SessionPool
from mercury_engine.decode.work import logged
from mercury_engine.model.config import TOKENIZER_FILE, ModelError
from mercury_engine.model.runtime import Passes, Resources, Runtime, on_cpu, on_gpu, opened_with, weight_bytes
from mercury_engine.tokens.layout import (
    Budget,
    Hole,
    LayoutError,
    LayoutRow,
    filled_text,
    lay_out,
    pieces,
    shorter_budget,
    until_end,
)
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import EOM, HOLE_STRIDE

MEMORY = 1 << 30
"""Default bytes for the weights and all caches."""

IDLE_MEMORY = 96 << 20
"""Of these, on a CPU, for the caches of idle sessions: four full ones of the default model."""

LEAST_MEMORY = 16 << 20

BAR = 0.45
"""Of the starts of an answer that are at least this likely to be right, one is shown."""

FIRST_READ, FIRST_PASSES, FIRST_ROWS = 400, 4, 8
"""What comes before a line at a place that has not been read: the tokens of the nearest context, and passes."""

MOST_SEEDS = 16
"""The most runners-up of a token to consider for alternatives."""


class MercuryEngine:
    """Owns the sessions, and the statistics of verified drafts.

    >>> engine = open_engine(folder)
    >>> *_, last = engine.infill(request)

    `decode` changes how answers are decoded but not the answers: plain autoregression is there for comparison. A `bar`
    of 0 shows all that was decoded. `report` counts the actions. `memory` is for caches; the bytes of the `weights` are
    only reported.
    """

    def __init__(
        self,
        runtime: Runtime,
        tokenizer: Tokenizer,
        *,
        calibration: Calibration | None = None,
        costs: Costs | None = None,
        pace: ReadingPace | None = None,
        decode: Decode = "policy",
        bar: float = BAR,
        presentation: Presentation | None = None,
        memory: int = MEMORY,
        weights: int = 0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if tokenizer.vocabulary > runtime.config.vocabulary:
            raise ModelError(
                f"{runtime.config.name}: the tokenizer has {tokenizer.vocabulary} tokens, the model "
                f"{runtime.config.vocabulary}; they belong to different models: install the model again"
            )
        self.report = Report()
        self._clock = clock
        self._weights = weights
        self._presentation = presentation or Presentation(tokenizer, calibration or Calibration(), bar)
        self._places = Places()
        self._sessions = SessionPool(runtime.cache, IDLE_MEMORY if on_cpu(runtime) else memory, memory)
        self._batcher = ForwardBatcher[Draft](runtime)
        meter = CostMeter(runtime, clock=clock)
        self._measuring = meter.rest() if costs is None else iter(())
        costs = costs or meter.start()
        self._decoder = HoleDecoder(
            runtime=runtime,
            tokenizer=tokenizer,
            chooser=Chooser(tokenizer, runtime.config.vocabulary),
            costs=costs,
            acceptance=Acceptance(),
            report=self.report,
            decode=decode,
            pace=pace or ReadingPace(costs, clock),
        )

    def infill(self, request: InfillRequest) -> Generator[Draft]:
        """Answer a request. Those that take turns share their forwards where the device gains by it: see
        `ForwardBatcher`."""
        if request.proposes:
            return logged("opinion", self.report, self._judged(request))
        return logged("completion", self.report, self._completed(request))

    def _completed(self, request: InfillRequest) -> Generator[Draft]:
        place = self._place(request)
        row = self._laid_out(place, request)
        unread = self._sessions.unread(row.ids)
        self.report.asked(len(row.ids), unread)
        self.report.reads(pieces(row.ids, len(row.ids) - unread, len(row.ids)))
        session = self._sessions.open(request.session, row.ids)
        yield from self._batcher.run(self._answer(request, place, session, row), session)

    def warm(self, request: InfillRequest) -> Generator[None]:
        """Encode the context up to its last row, the nearest lines first: with the newest suffix, snippets and edits if
        much of them is new, or if that is quick.

        With nothing left to encode, measure the costs that starting had no time for. This shares no forwards. Proposals
        have no context worth encoding ahead.
        """
        return logged("ahead", self.report, self._warmed(request))

    def _warmed(self, request: InfillRequest) -> Generator[None]:
        if request.proposes:
            return
        place = self._place(request)
        rows = [self._ahead(place, request, budget) for budget in self._budgets(request)]
        for row in rows[:1] if self._is_quick(rows[0]) else reversed(rows):
            session = self._sessions.open(request.session, row.ids)
            yield from run_unbatched(self._decoder.runtime, self._prefill(session, row))
        for costs in self._measuring:
            self._decoder = replace(self._decoder, costs=costs)
            self._decoder.pace.costs = costs
            yield

    def info(self) -> EngineInfo:
        runtime, costs = self._decoder.runtime, self._decoder.costs
        passes_ms = FIRST_PASSES * float(costs.of(FIRST_ROWS))
        return EngineInfo(
            engine="mercury",
            model=runtime.config.name,
            device=f"{runtime.device}, {runtime.name} {runtime.precision}",
            context_tokens=runtime.config.context,
            batch=runtime.batch,
            notes=self._sessions.notes,
            bytes=self._weights + self._sessions.bytes,
            bar=self._presentation.calibration.bar,
            answers=("line", "block", "edit", "proposal"),
            reads_per_second=round(self._decoder.pace.per_second, 1),
            first_line_ms=round(self._decoder.pace.milliseconds(FIRST_READ) + passes_ms, 1),
            awaited_tokens=self._decoder.pace.prompts(runtime.config.context)[-1],
            prompts=dict(self.report.prompts),
        )

    def _answer(self, question: InfillRequest, place: Place, session: EngineSession, row: LayoutRow) -> Steps[Draft]:
        """Answer part after part: each may be continued by another. Before the first forward of an answer, what is
        copied may be shown."""
        started, steps = self._clock(), count(1)
        parts, filled = [self._first(question, place, session, row)], [Filled("") for _ in question.spans]
        frames = Frames() if question.slots else None
        is_late = not self._has_time(question.deadline_ms, started)

        def draft(*, final: bool = False) -> Draft:
            unread = row.holes[0].anchor - session.shares(row.ids) if len(parts) == 1 else 0
            is_written = not (unread > 0 or (final and is_late)) or any(span.confidence for span in filled)
            return Draft(next(steps) if is_written else 0, tuple(filled), final, unread=0 if is_written else unread)

        try:
            for part in parts:
                passes = part.search.run(part.request.effort, part.request.seed)
                while self._has_time(question.deadline_ms, started) and (yield from until_pause(passes)):
                    self._show(part, question, filled, frames)
                    yield draft()
                self._show(part, question, filled, frames)
                if self._has_time(question.deadline_ms, started) and (following := self._following(part)):
                    parts.append(following)
                    yield draft()
            yield draft(final=True)
        finally:
            place.remember(self._past_answers(parts, question))
            self._sessions.trim()

    def _judged(self, request: InfillRequest) -> Generator[Draft]:
        """How likely the model finds the proposals, one after the other; the probabilities of those for which there is
        no time are missing."""
        history = read_history(self._decoder.tokenizer, request)
        opinions = [Opinion.of(self._decoder.tokenizer, history, request, span) for span in request.spans]
        session = self._sessions.open(f"{request.session}, proposals", opinions[0].ids)
        started, steps = self._clock(), count(1)

        def draft(*, final: bool = False) -> Draft:
            spans = zip(request.spans, opinions, strict=True)
            filled = (Filled(span.text, opinion.probabilities, complete=True) for span, opinion in spans)
            return Draft(next(steps), tuple(filled), final)

        def judge() -> Steps[Draft]:
            for opinion in opinions:
                passes = opinion.form(session, self._decoder.pace, self.report)
                while self._has_time(request.deadline_ms, started) and (yield from until_pause(passes)):
                    yield draft()
            yield draft(final=True)

        try:
            yield from self._batcher.run(judge(), session)
        finally:
            self._sessions.trim()

    def _first(self, request: InfillRequest, place: Place, session: EngineSession, row: LayoutRow) -> "_Part":
        numbers = tuple(range(len(request.spans)))
        return self._part(request, place, session, row, numbers, [NOTHING_CARRIED] * len(numbers))

    def _part(
        self,
        request: InfillRequest,
        place: Place,
        session: EngineSession,
        row: LayoutRow,
        numbers: tuple[int, ...],
        carried: Sequence[Carried],
    ) -> "_Part":
        start = self._starter(place, session, request, row, carried)
        search = Search(self._decoder.tokenizer, start, thorough=self._searches(request))
        return _Part(request, place, session, numbers, search)

    def _following(self, part: "_Part") -> "_Part | None":
        """Continue the answers that ended only because the next anchor follows; None if there are none."""
        answers = part.search.best.answers
        cut = [number for number, answer in enumerate(answers) if _is_cut(answer)]
        if part.request.effort == "instant" or not part.search.best.done or not cut:
            return None
        texts, tails = zip(*(self._text_and_left(part, number) for number in range(len(answers))), strict=True)
        request = replace(continued(_spent(part.request, answers), texts, tails), seed=0)
        try:
            row = self._row(request, self._layout(request))
        except LayoutError:
            return None
        numbers = tuple(part.numbers[number] for number in cut)
        return self._part(request, part.place, part.session, row, numbers, [_carry(answers[n], texts[n]) for n in cut])

    def _text_and_left(self, part: "_Part", number: int) -> tuple[str, str | None]:
        """The text in place of a span, and the part of its old text that is left to rewrite; None if it is all done."""
        answer, old = part.search.best.answers[number], part.request.old(part.request.spans[number])
        text = self._presentation.text(answer, answer.ids)
        if _is_cut(answer):
            return text, left_to_rewrite(self._decoder.tokenizer, answer.hole, old, answer.ids)
        return (old if old and not answer.complete else text), None

    def _prefill(self, session: EngineSession, row: LayoutRow) -> Passes[None]:
        prefix = stream_start(row).prefix
        cached = session.shares(row.ids)
        while (yield from self._decoder.pace.read_ahead(session, prefix, self.report)):
            self.report.reads(pieces(row.ids, cached, session.cache.length))
            cached = session.cache.length
            self._sessions.trim()
            yield

    def _place(self, request: InfillRequest) -> Place:
        """Completions and rewrites of a file are laid out differently, so each has its own."""
        edited = {span.window for span in request.spans}
        paths = tuple(window.path for index, window in enumerate(request.windows) if index in edited)
        return self._places.open(request.session, (request.root, paths, _inserts(request)))

    def _budgets(self, request: InfillRequest) -> tuple[Budget, ...]:
        """Of the rows that a request may have, the longest first. Old text is rewritten with all that there is."""
        context, pace = self._decoder.runtime.config.context, self._decoder.pace
        lengths = pace.prompts(context) if _inserts(request) else (context,)
        return tuple(shorter_budget(context, length) for length in lengths)

    def _laid_out(self, place: Place, request: InfillRequest) -> LayoutRow:
        """The request laid out: a rewrite always sees the newest edits, which it follows from; a completion the
        frozen ones, and no more than is read quickly."""
        if not _inserts(request):
            return self._row(request, self._layout(request))
        candidates = self._candidates(place, request)
        row = next(candidates)
        while not self._is_quick(row) and (shorter := next(candidates, None)):
            row = shorter
        return row

    def _candidates(self, place: Place, request: InfillRequest) -> Iterator[LayoutRow]:
        """The rows that a completion may have, the longest and newest first."""
        for budget in self._budgets(request):
            layouts = place.usable(request, budget) or [place.keep(self._layout(request, budget))]
            yield from (self._row(request, layout) for layout in layouts)

    def _ahead(self, place: Place, request: InfillRequest, budget: Budget) -> LayoutRow:
        """The row to encode while nobody waits."""
        usable, fresh = place.usable(request, budget), self._layout(request, budget)
        row = self._row(request, fresh)
        if usable and not (self._is_quick(row) or usable[0].is_outdated(request)):
            return self._row(request, usable[0])
        place.keep(fresh)
        return row

    def _layout(self, request: InfillRequest, budget: Budget | None = None) -> Layout:
        return Layout.of(self._decoder.tokenizer, request, budget or self._budgets(request)[0])

    def _row(self, request: InfillRequest, layout: Layout) -> LayoutRow:
        return lay_out(self._decoder.tokenizer, request, layout.frozen, layout.budget)

    def _is_quick(self, row: LayoutRow) -> bool:
        return self._decoder.pace.is_quick(self._sessions.unread(row.ids))

    def _has_time(self, deadline_ms: float | None, started: float) -> bool:
        """True if one more forward fits before the deadline."""
        if deadline_ms is None:
            return True
        return bool((self._clock() - started) * 1000 + self._decoder.costs.of(1) < deadline_ms)

    def _starter(
        self, place: Place, session: EngineSession, request: InfillRequest, row: LayoutRow, carried: Sequence[Carried]
    ) -> Callable[..., HoleDecoding]:
        limits = [self._limit(request, number, row) for number in range(len(row.holes))]
        margins = [_margin(request, number) for number in range(len(row.holes))]
        sketched = request.effort == "instant"
        options = DecodingOptions(
            floor=HOPELESS if request.effort == "low" and self._presenting(request).bar else 0.0,
            runners_up=min(request.seed, MOST_SEEDS) + RUNNERS_UP if request.seed or self._searches(request) else 0,
            names=None if sketched else self._names(request, row),
            watched=max(SKETCH.get(span.mode, 0) for span in request.spans) if request.slots else 0,
        )

        is_hopeless = self._is_hopeless(request)

        def start(
            forced: Forced = UNFORCED,
            sources: Sequence[Sequence[DraftSource]] | None = None,
            *,
            chosen: Sequence[Choice] = (),
            one_line: bool = False,
            floor: float = 0.0,
        ) -> HoleDecoding:
            answer = partial(HoleAnswer, self._decoder.tokenizer, one_line=one_line)
            answers = list(map(answer, row.holes, request.spans, limits, carried, margins))
            texts = sources or self._sources(place, request, row)
            own = replace(options, forced=forced, floor=max(options.floor, floor))
            return HoleDecoding(self._decoder, session, row, answers, texts, own, chosen, is_hopeless)

        return start

    def _is_hopeless(self, request: InfillRequest) -> Callable[[HoleAnswer], bool] | None:
        """Tells of an answer for somebody who types that no more of it will be shown; None where answers are heard
        out."""
        if request.effort != "low" or not request.bar or not _inserts(request) or not self._presenting(request).bar:
            return None
        return lambda answer: not self._presentation.may_show(answer, request.bar)

    def _names(self, request: InfillRequest, row: LayoutRow) -> KnownNames | None:
        """They only end an answer before one that cannot exist: by hand, too, the model chooses better alone."""
        return KnownNames.of(self._decoder.tokenizer, replace(request, invoked=False), row.holes[0].part)

    def _presenting(self, request: InfillRequest) -> Presentation:
        """Who asks by hand sees all that the model has to say, likely or not."""
        return replace(self._presentation, bar=0.0) if request.invoked else self._presentation

    def _searches(self, request: InfillRequest) -> bool:
        """Whether the likeliest first line is searched for: by hand only, since what is likely enough to be shown while
        typing is the greedy line anyway."""
        is_completion = _inserts(request) and request.spans[0].mode != "edit"
        return is_completion and request.effort != "instant" and request.invoked

    def _limit(self, request: InfillRequest, number: int, row: LayoutRow) -> int:
        """The most tokens of an answer; old text is replaced by a complete answer at any effort."""
        span = request.spans[number]
        room = HOLE_STRIDE - 1 if len(row.holes) > 1 else self._decoder.runtime.config.context - len(row.ids)
        is_short = request.effort == "low" and _is_insertion(span) and not request.invoked
        tokens = min(span.budget, LOW_TOKENS) if is_short else span.budget
        return max(1, min(tokens, room))

    def _sources(self, place: Place, request: InfillRequest, row: LayoutRow) -> list[list[DraftSource]]:
        """For each hole, the past answer that the user is typing or has gone back to, and the old text."""
        return [
            [*self._past(place, request, number, hole), *([DraftSource("old", [*hole.old, EOM])] if hole.old else [])]
            for number, hole in enumerate(row.holes)
        ]

    def _past(self, place: Place, request: InfillRequest, number: int, hole: Hole) -> list[DraftSource]:
        before = _before(request, number)
        for expected, answer in product((PastAnswer.left_to_type, PastAnswer.deleted_and_left), place.past_answers):
            tail = expected(answer, before)
            if tail:
                end = [EOM] if answer.complete else []
                return [DraftSource("previous", [*self._decoder.tokenizer.encode(hole.part + tail), *end])]
        return []

    def _show(self, part: "_Part", question: InfillRequest, filled: list[Filled], frames: Frames | None) -> None:
        best = part.search.best
        for at, (number, answer) in enumerate(zip(part.numbers, best.answers, strict=True)):
            old = question.old(question.spans[number])
            filled[number] = self._presenting(question).show(
                answer, best.decoded(at), old, part.search.departure, best.options.names, question.bar
            )
            if frames:
                carried = [Slot(answer.carried.text, 1.0, settled=True)] if answer.carried.text else []
                typed = answer.hole.part.encode("utf-8", "replace")
                slots = frames.next(number, [*carried, *slots_of(best.slots(at), typed)])
                filled[number] = replace(filled[number], slots=slots)

    def _past_answers(self, parts: Sequence["_Part"], question: InfillRequest) -> Iterator[PastAnswer]:
        """The current answer to each span, from the last part with that span, to be remembered."""
        last = {number: (part, at) for part in parts for at, number in enumerate(part.numbers)}
        for number, (part, at) in last.items():
            answer, decoded = part.search.best.answers[at], part.search.best.decoded(at)
            text, _ = answer.bounded(filled_text(self._decoder.tokenizer, answer.hole, until_end(decoded.ids)[0]))
            yield PastAnswer.of(_before(question, number), answer.carried.text + text, complete=decoded.complete)


class _Part(Struct, frozen=True, eq=False):
    """The answers in one row: to the spans with these numbers, or to what is left of them."""

    request: InfillRequest
    place: Place
    session: EngineSession
    numbers: tuple[int, ...]
    search: Search


def open_engine(
    folder: Path,
    resources: Resources = Resources(),  # noqa: B008  frozen
    *,
    decode: Decode = "policy",
    bar: float = BAR,
) -> MercuryEngine:
    """The model in a folder, on a GPU if torch finds one, else on OpenVINO."""
    runtime, tokenizer = opened_with(
        partial(Tokenizer.load, folder / TOKENIZER_FILE), partial(open_runtime, folder, resources)
    )
    weights = weight_bytes(folder)
    return MercuryEngine(
        runtime,
        tokenizer,
        calibration=read_calibration(folder),
        decode=decode,
        bar=bar,
        memory=max(LEAST_MEMORY, (resources.memory or MEMORY) - weights),
        weights=weights,
    )


def open_runtime(
    folder: Path,
    resources: Resources = Resources(),  # noqa: B008  frozen
) -> Runtime:
    """Imports only the runtime in use: a base installation has no torch, and importing it takes a second."""
    if on_gpu(resources):
        from mercury_engine.model.torch_runtime import open_torch

        return open_torch(folder, device="cuda")
    from mercury_engine.model import openvino_runtime

    return openvino_runtime.load(folder, threads=resources.threads or None)


def _is_insertion(span: Span) -> bool:
    return span.start == span.end


def _inserts(request: InfillRequest) -> bool:
    """True for a completion: a single insertion."""
    return len(request.spans) == 1 and _is_insertion(request.spans[0])


def _before(request: InfillRequest, number: int) -> str:
    span = request.spans[number]
    return request.windows[span.window].text[: span.start]


def _margin(request: InfillRequest, number: int) -> int:
    """The indentation of the line that a span inserts into."""
    line = _before(request, number).rpartition("\n")[2]
    return indentation(line) if _is_insertion(request.spans[number]) else -1


def _is_cut(answer: HoleAnswer) -> bool:
    """True if it ended only because the next anchor follows, with budget left."""
    at_limit = answer.done and not (answer.complete or answer.circles)
    return at_limit and answer.limit == HOLE_STRIDE - 1 < answer.span.budget


def _carry(answer: HoleAnswer, text: str) -> Carried:
    return Carried(
        answer.carried.text + text,
        (*answer.carried.probabilities, *answer.decoded().probabilities),
    )


def _spent(request: InfillRequest, answers: Sequence[HoleAnswer]) -> InfillRequest:
    """The request with the rest of each span's budget."""
    pairs = zip(request.spans, answers, strict=True)
    return replace(request, spans=tuple(replace(span, budget=span.budget - len(a.ids)) for span, a in pairs))
