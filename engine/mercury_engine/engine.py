"""The engine: lays requests out, reuses cached prefixes, and answers with growing drafts."""

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from mercury_engine.api import (
    SLOWEST_FIRST_LINE_MS,
    Draft,
    Engine,
    EngineInfo,
    Gap,
    Opinions,
    Proposals,
    Regions,
    Rewrites,
)
from mercury_engine.decode.answer import GapAnswer, Presentation
from mercury_engine.decode.batching import ForwardBatcher, Steps, run_unbatched, until_output, until_pause
from mercury_engine.decode.choice import Choice, Chooser, ids_of
from mercury_engine.decode.confidence import Calibration, read_calibration
from mercury_engine.decode.costs import CostMeter, Costs, RepeatedMeasuring
from mercury_engine.decode.decoding import Decoder, DecodingOptions
from mercury_engine.decode.denoise import GapDecoding
from mercury_engine.decode.drafts import DraftSource
from mercury_engine.decode.frames import Frames, slots_of
from mercury_engine.decode.layouts import Layouts
from mercury_engine.decode.names import KnownNames
from mercury_engine.decode.opinion import Opinion, read_history
from mercury_engine.decode.policy import Acceptance, Decode, Report
from mercury_engine.decode.reading import ReadingPace
from mercury_engine.decode.revising import Revising
from mercury_engine.decode.search import HOPELESS, LOW_TOKENS, RUNNERS_UP, SKETCH, search
from mercury_engine.decode.sessions import EngineSession, PastAnswer, SessionPool
from mercury_engine.decode.work import logged
from mercury_engine.model.config import TOKENIZER_FILE, ModelError
from mercury_engine.model.runtime import Passes, Resources, Runtime, on_cpu, on_gpu, opened_with, weight_bytes
from mercury_engine.prompts.lines import indentation
from mercury_engine.tokens.layout import (
    LayoutRow,
    filled_text,
    pieces,
    until_end,
)
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import EOM

Told = TypeVar("Told", Opinions, Rewrites)

MEMORY = 1 << 30
"""Default bytes for the weights and all caches."""

IDLE_MEMORY = 96 << 20
"""Of these, on a CPU, for the caches of idle sessions: four full ones of the default model."""

LEAST_MEMORY = 16 << 20

START_BAR = 0.45
"""Of the starts of an answer that are at least this likely to be right, one is shown."""

FIRST_READ, FIRST_PASSES, FIRST_ROWS = 400, 4, 8
"""What comes before a line at a place that has not been read: the tokens of the nearest context, and passes."""

MOST_SEEDS = 16
"""The most runners-up of a token to consider for alternatives."""


class MercuryEngine(Engine):
    """Owns the sessions, and the statistics of verified drafts. Requests that take turns share their forwards where the
    device gains by it: see `ForwardBatcher`.

    >>> engine = open_engine(folder)
    >>> *_, last = engine.fill(gap)

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
        bar: float = START_BAR,
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
        self._sessions = SessionPool(runtime, IDLE_MEMORY if on_cpu(runtime) else memory, memory)
        self._batcher = ForwardBatcher(runtime)
        meter = CostMeter(runtime, clock=clock)
        self._measuring = RepeatedMeasuring(meter, _seem_slow) if costs is None else ()
        # Unknown until all costs are: a machine that is busy while an editor starts is not a slow one.
        self._first_line_ms = _first_line_ms(costs) if costs else 0.0
        costs = costs or meter.start()
        self._decoder = Decoder(
            runtime=runtime,
            tokenizer=tokenizer,
            chooser=Chooser(tokenizer, runtime.config.vocabulary),
            costs=costs,
            acceptance=Acceptance(),
            report=self.report,
            decode=decode,
            pace=pace or ReadingPace(costs, clock),
        )
        self._layouts = Layouts(tokenizer, runtime.config.context, self._decoder.pace, self._sessions)

    def fill(self, gap: Gap) -> Generator[Draft]:
        return logged("completion", self.report, self._filled(gap))

    def judge(self, proposals: Proposals) -> Generator[Opinions]:
        return logged("opinion", self.report, self._judged(proposals))

    def rewrite(self, regions: Regions) -> Generator[Rewrites]:
        return logged("rewrite", self.report, self._rewritten(regions))

    def _filled(self, gap: Gap) -> Generator[Draft]:
        row = self._layouts.row(gap)
        unread = self._sessions.unread(row.ids)
        self.report.asked(len(row.ids), unread)
        self.report.reads(pieces(row.ids, len(row.ids) - unread, len(row.ids)))
        session = self._sessions.open(gap.session, row.ids)
        yield from self._batcher.run(self._answer(gap, session, row), session)

    def warm(self, question: Gap | Regions) -> Generator[None]:
        """Encode the context up to its last row, the nearest lines first: with the newest suffix, snippets and edits if
        much of them is new, or if that is quick.

        With nothing left to encode, measure the costs that starting had no time for. This shares no forwards.
        """
        return logged("ahead", self.report, self._warmed(question))

    def _warmed(self, question: Gap | Regions) -> Generator[None]:
        if isinstance(question, Gap):
            yield from self._read_ahead(question)
        for costs in self._measuring:
            self._decoder = replace(self._decoder, costs=costs)
            self._decoder.pace.costs = costs
            yield
        self._first_line_ms = _first_line_ms(self._decoder.costs)

    def _read_ahead(self, gap: Gap) -> Generator[None]:
        for row in self._layouts.rows_ahead(gap):
            session = self._sessions.open(gap.session, row.ids)
            yield from run_unbatched(self._decoder.runtime, self._prefill(session, row))

    def info(self) -> EngineInfo:
        runtime = self._decoder.runtime
        return EngineInfo(
            engine="mercury",
            model=runtime.config.name,
            device=f"{runtime.device}, {runtime.name} {runtime.precision}",
            context_tokens=runtime.config.context,
            batch=runtime.batch,
            notes=self._sessions.notes,
            bytes=self._weights + self._sessions.bytes,
            bar=self._presentation.calibration.bar,
            judges=True,
            grows=True,
            starts=True,
            rewrites=runtime.edits,
            rewrites_lines=runtime.edits,
            reads_per_second=round(self._decoder.pace.per_second, 1),
            first_line_ms=self._first_line_ms,
            awaited_tokens=self._decoder.pace.prompts(runtime.config.context)[-1],
            prompts=dict(self.report.prompts),
        )

    def _answer(self, gap: Gap, session: EngineSession, row: LayoutRow) -> Steps[Draft]:
        """Before the first forward of an answer, what is copied may be shown."""
        started, steps = self._clock(), count(1)
        begin = partial(self._begin, session, gap, row)
        best, final, shown = begin(self._options(gap, row)), False, Draft()
        decodings = search(best, begin, gap, self._decoder.tokenizer)
        frames = Frames() if gap.slots else None
        is_late = not self._has_time(gap.deadline_ms, started)

        def draft() -> Draft:
            unread = len(row.ids) - 1 - session.shares(row.ids)
            is_written = not (unread > 0 or (final and is_late)) or bool(shown.confidence)
            if not is_written:
                return replace(shown, unread=unread, final=final)
            return replace(shown, step=next(steps), final=final)

        try:
            while not final:
                final = not self._has_time(gap.deadline_ms, started)
                if not final:
                    best, final = yield from until_output(decodings)
                shown = self._shown(best, gap, frames, final=final)
                yield draft()
        finally:
            self._layouts.place(gap).remember(self._past_answer(best, gap))
            self._sessions.trim()

    def _judged(self, proposals: Proposals) -> Generator[Opinions]:
        """How likely the model finds the proposals, one after the other; it has no opinion of those for which there is
        no time."""
        history = read_history(self._decoder.tokenizer, proposals.edits)
        opinions = [Opinion.of(self._decoder.tokenizer, history, proposal) for proposal in proposals.proposals]
        session = self._sessions.open(f"{proposals.session}, proposals", opinions[0].ids)
        steps = count(1)

        def told(final: bool) -> Opinions:
            return Opinions(next(steps), tuple(opinion.likelihood for opinion in opinions), final)

        forming = (opinion.form(session, self._decoder.pace, self.report) for opinion in opinions)
        yield from self._told(session, proposals.deadline_ms, forming, told)

    def _rewritten(self, regions: Regions) -> Generator[Rewrites]:
        revising = Revising.of(self._decoder.tokenizer, self._presentation.calibration, regions)
        session = self._sessions.open(f"{regions.session}, edits", revising.past, edits=True)
        steps = count(1)

        def told(final: bool) -> Rewrites:
            step = next(steps) if revising.answers else 0
            unread = 0 if step else len(revising.past) - session.shares(revising.past)
            return Rewrites(step, revising.rewritten(), final, unread=unread)

        passes = revising.run(session, self._decoder.chooser.permitted_V, self._decoder.pace, self.report)
        yield from self._told(session, regions.deadline_ms, (passes,), told)

    def _told(
        self,
        session: EngineSession,
        deadline_ms: float | None,
        work: Iterable[Passes[None]],
        told: Callable[[bool], Told],
    ) -> Generator[Told]:
        """What is told at each pause of the work, as long as there is time, and at the end."""
        started = self._clock()

        def steps() -> Steps[Told]:
            for passes in work:
                while self._has_time(deadline_ms, started) and (yield from until_pause(passes)):
                    yield told(False)
            yield told(True)

        try:
            yield from self._batcher.run(steps(), session)
        finally:
            self._sessions.trim()

    def _prefill(self, session: EngineSession, row: LayoutRow) -> Passes[None]:
        cached = session.shares(row.ids)
        while (yield from self._decoder.pace.read_ahead(session, row.ids, self.report)):
            self.report.reads(pieces(row.ids, cached, session.cache.length))
            cached = session.cache.length
            self._sessions.trim()
            yield

    def _has_time(self, deadline_ms: float | None, started: float) -> bool:
        """True if one more forward fits before the deadline."""
        if deadline_ms is None:
            return True
        return bool((self._clock() - started) * 1000 + self._decoder.costs.of(1) < deadline_ms)

    def _options(self, gap: Gap, row: LayoutRow) -> DecodingOptions:
        return DecodingOptions(
            floor=HOPELESS if gap.effort == "low" and self._presenting(gap).bar else 0.0,
            runners_up=min(gap.seed, MOST_SEEDS) + RUNNERS_UP if gap.seed or self._searches(gap) else 0,
            names=None if gap.effort == "instant" else KnownNames.of(gap, row.part),
            watched=SKETCH["block" if gap.block else "line"] if gap.slots else 0,
            one_line=self._searches(gap),
        )

    def _begin(
        self,
        session: EngineSession,
        gap: Gap,
        row: LayoutRow,
        options: DecodingOptions,
        sources: Sequence[DraftSource] = (),
        chosen: Sequence[Choice] = (),
    ) -> GapDecoding:
        limit, margin = self._limit(gap, row), indentation(gap.before.rpartition("\n")[2])
        answer = GapAnswer(
            self._decoder.tokenizer, row.part, limit, block=gap.block, margin=margin, one_line=options.one_line
        )
        texts = sources or self._past(gap, row.part)
        return GapDecoding(self._decoder, session, row, answer, texts, options, chosen, self._is_hopeless(gap))

    def _is_hopeless(self, gap: Gap) -> Callable[[GapAnswer], bool] | None:
        """Tells of an answer for somebody who types that no more of it will be shown; None where answers are heard
        out."""
        if gap.effort != "low" or not gap.bar or not self._presenting(gap).bar:
            return None
        return lambda answer: not self._presentation.may_show(answer, gap.bar)

    def _presenting(self, gap: Gap) -> Presentation:
        """Who asks by hand sees all that the model has to say, likely or not."""
        return replace(self._presentation, bar=0.0) if gap.invoked else self._presentation

    def _searches(self, gap: Gap) -> bool:
        """Whether the likeliest first line is searched for: by hand only, since what is likely enough to be shown while
        typing is the greedy line anyway."""
        return gap.effort != "instant" and gap.invoked

    def _limit(self, gap: Gap, row: LayoutRow) -> int:
        """The most tokens of an answer."""
        is_short = gap.effort == "low" and not gap.invoked
        tokens = min(gap.most_tokens, LOW_TOKENS) if is_short else gap.most_tokens
        return max(1, min(tokens, self._decoder.runtime.config.context - len(row.ids)))

    def _past(self, gap: Gap, part: str) -> list[DraftSource]:
        """The past answer that the user is typing or has gone back to."""
        text, complete = self._layouts.place(gap).expected(gap.before)
        end = [EOM] if complete else []
        return [DraftSource("previous", [*self._decoder.tokenizer.encode(part + text), *end])] if text else []

    def _shown(self, best: GapDecoding, gap: Gap, frames: Frames | None, *, final: bool) -> Draft:
        """Until the final one, what will not change any more; who watches sees drafts of the rest too."""
        presenting = self._presenting(gap)
        if frames is not None or final:
            decoded = best.decoded()
        else:
            decoded = presenting.settled(best.answer) if best.is_settled else ()
        draft = presenting.show(best.answer, decoded, best.options, gap.bar)
        if frames is None:
            return draft
        typed = best.answer.part.encode("utf-8", "replace")
        return replace(draft, slots=frames.next(slots_of(best.slots(), typed)))

    def _past_answer(self, best: GapDecoding, gap: Gap) -> PastAnswer:
        """The current answer, to be remembered."""
        answer, decoded = best.answer, best.decoded()
        text, _ = answer.bounded(filled_text(self._decoder.tokenizer, answer.part, until_end(ids_of(decoded))[0]))
        return PastAnswer.of(gap.before, text, complete=answer.completes(decoded))


def open_engine(
    folder: Path,
    resources: Resources = Resources(),  # noqa: B008  frozen
    *,
    decode: Decode = "policy",
    bar: float = START_BAR,
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


def _seem_slow(costs: Costs) -> bool:
    return _first_line_ms(costs) > SLOWEST_FIRST_LINE_MS


def _first_line_ms(costs: Costs) -> float:
    return round(float(costs.of(FIRST_READ) + FIRST_PASSES * costs.of(FIRST_ROWS)), 1)
