"""The engine for other people's autoregressive models: reads what changed of a prompt, and decodes greedily."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import copy
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from mercury_engine.api import (
    ChatReply,
    ChatRequest,
    Context,
    Draft,
    Engine,
    EngineError,
    EngineInfo,
    Gap,
    Regions,
    Rewrites,
)
from mercury_engine.autoregressive.answer import ContinuationQuestion
from mercury_engine.autoregressive.asking import Asking
from mercury_engine.autoregressive.decoding import AutoregressiveDecoding, departures
from mercury_engine.chat.reading import Manner
from mercury_engine.chat.talker import Talker, open_talker
from mercury_engine.decode.batching import ForwardBatcher, Steps, run_unbatched, until_pause
from mercury_engine.decode.choice import Chooser
from mercury_engine.decode.confidence import SHARED, Calibration, read_calibration
from mercury_engine.decode.costs import CostMeter, Costs
from mercury_engine.decode.decoding import Decoder
from mercury_engine.decode.drafts import DraftSource
from mercury_engine.decode.names import KnownNames
from mercury_engine.decode.policy import Acceptance, Report
from mercury_engine.decode.reading import ReadingPace
from mercury_engine.decode.sessions import EngineSession, PastAnswer, Place, Places, SessionPool, follow
from mercury_engine.model.config import TOKENIZER_FILE, ModelError
from mercury_engine.model.decoder import open_decoder
from mercury_engine.model.room import Room, room_of
from mercury_engine.model.runtime import Passes, Resources, Runtime, opened_with
from mercury_engine.prompts.dialects import Dialect
from mercury_engine.prompts.edits import EditFormat
from mercury_engine.prompts.edits.asked import window_of
from mercury_engine.prompts.fim import settled
from mercury_engine.record import ModelRecord
from mercury_engine.tokens.pretrained import PretrainedTokenizer

Ask = Callable[[int], ContinuationQuestion]
"""Puts a question into a prompt of so many tokens at most."""

Answer = TypeVar("Answer", Draft, Rewrites)

LONGEST_ANSWER = 1024
"""Tokens of the context that are left for the answer, but at most a quarter."""

RUNNERS_UP = 2
MOST_SEEDS = 16

SAMPLE = """\
import { readFile } from "node:fs/promises";

export async function load(path: string, options: Options = {}): Promise<Map<string, number>> {
    const text = await readFile(path, { encoding: options.encoding ?? "utf-8" });
    return new Map(text.split("\\n").map((line) => [line, line.length]));
}

class Cart:
    def __init__(self, items=None):
        self.items = list(items or [])

    def total(self, discount=0.0):
        \"\"\"The sum of all prices, less the discount.\"\"\"
        if not 0 <= discount < 1:
            raise ValueError(f"discount must be in [0, 1), not {discount!r}")
        return sum(item.price * item.count for item in self.items) * (1 - discount)
"""


class AutoregressiveEngine(Engine):
    """Owns the sessions: for each client and file what has been read of its prompt.

    >>> engine = open_autoregressive(folder, record, resources)
    >>> *_, last = engine.fill(gap)

    `drafting` changes how fast answers come but not which; a prompt for which there is no `room` is refused. `report`
    counts the forwards, and the tokens that they read and settled. With a `talker` it chats.
    """

    def __init__(
        self,
        runtime: Runtime,
        tokenizer: PretrainedTokenizer,
        record: ModelRecord,
        *,
        calibration: Calibration | None = None,
        costs: Costs | None = None,
        pace: ReadingPace | None = None,
        drafting: bool = True,
        room: Room | None = None,
        talker: Talker | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if tokenizer.vocabulary > runtime.config.vocabulary:
            raise ModelError(
                f"{record.name}: the tokenizer has {tokenizer.vocabulary} tokens, the model "
                f"{runtime.config.vocabulary}; they belong to different models: add the model again"
            )
        self.report = Report()
        self._record = record
        self._clock = clock
        self._talker = talker
        self._calibrated = calibration is not None
        self._calibration = calibration or SHARED
        self._room = room = room or Room(runtime, record.name)
        self._places = Places()
        self._sessions = SessionPool(runtime, room.caches, room.caches)
        self._batcher = ForwardBatcher(runtime)
        meter = CostMeter(runtime, clock=clock)
        self._measuring = meter.rest() if costs is None else iter(())
        costs = costs or meter.start()
        chooser = Chooser(tokenizer, runtime.config.vocabulary, map(tokenizer.special, tokenizer.added))
        self._decoder = Decoder(
            runtime=runtime,
            tokenizer=tokenizer,
            chooser=chooser,
            costs=costs,
            acceptance=Acceptance(),
            report=self.report,
            decode="policy" if drafting else "ar",
            pace=pace or ReadingPace(costs, clock),
            canvases=(),  # it only continues texts
        )
        self._asking = Asking(record, tokenizer)

    def fill(self, gap: Gap) -> Generator[Draft]:
        if (dialect := self._asking.dialect) is None:
            return super().fill(gap)
        return self._filled(dialect, gap)

    def rewrite(self, regions: Regions) -> Generator[Rewrites]:
        if (edits := self._asking.edits) is None:
            return super().rewrite(regions)
        return self._rewritten(edits, regions)

    def _filled(self, dialect: Dialect, gap: Gap) -> Generator[Draft]:
        place = self._place(gap, gap.path)
        gap = self._prepared(gap, place)
        question = self._affordable(partial(self._asking.about_gap, dialect, gap), self._prompts())
        names = KnownNames.of(gap, question.prompt.forced)
        bar = gap.bar if gap.effort == "low" and not gap.seed else 0.0
        draft = Draft()
        for decoding, final in self._decodings(gap, question, place, seed=gap.seed, names=names, bar=bar):
            shown = decoding.answer.draft(self._calibration, gap.bar)
            slots = tuple(decoding.answer.slots) if gap.slots else ()
            draft = _next(draft, replace(shown, slots=slots), decoding)
            yield replace(draft, final=True) if final else draft

    def _rewritten(self, edits: EditFormat, regions: Regions) -> Generator[Rewrites]:
        """What should change around the cursor is asked with all that there is room for."""
        place = self._place(regions, f"{window_of(regions).path}, rewritten")
        question = self._affordable(partial(self._asking.about_window, edits, regions), self._prompts()[:1])
        rewrites = Rewrites(0, ())
        for decoding, final in self._decodings(regions, question, place):
            rewrites = _next(rewrites, Rewrites(0, (decoding.answer.rewritten(self._calibration),)), decoding)
            yield replace(rewrites, final=True) if final else rewrites

    def in_format(self, record: ModelRecord) -> "AutoregressiveEngine":
        """The same model, asked as another record of it says."""
        other = copy(self)
        other._record, other._asking = record, Asking(record, self._decoder.tokenizer)
        return other

    def chat(self, request: ChatRequest) -> Generator[ChatReply]:
        if self._talker is None:
            raise EngineError(f"{self._record.name} does not chat: its folder has no chat template")
        return self._talker.chat(request)

    def warm(self, question: Gap | Regions) -> Generator[None]:
        """Reads the prompt up to its last token, the shortest that there is first. With nothing left to read, it
        measures the costs that starting had no time for."""
        prompts = self._ahead(question)
        if prompts and self._is_quick(prompts[0]):
            del prompts[1:]
        for prompt in reversed(prompts):
            session = self._sessions.open(question.session, prompt.ids)
            with self._reserved(session, prompt):
                yield from run_unbatched(self._decoder.runtime, self._read(session, prompt))
        for costs in self._measuring:
            self._decoder = replace(self._decoder, costs=costs)
            self._decoder.pace.costs = costs
            yield

    def _ahead(self, question: Gap | Regions) -> list[ContinuationQuestion]:
        """The prompts that may be asked, the longest first."""
        if isinstance(question, Gap) and (dialect := self._asking.dialect):
            gap = self._prepared(question, self._place(question, question.path))
            return [self._asking.about_gap(dialect, gap, budget) for budget in self._prompts()]
        if isinstance(question, Regions) and (edits := self._asking.edits):
            return [self._asking.about_window(edits, question, self._prompts()[0])]
        return []

    def info(self) -> EngineInfo:
        runtime = self._decoder.runtime
        return EngineInfo(
            engine="autoregressive",
            model=self._record.name,
            device=f"{runtime.device}, {runtime.name} {runtime.precision}",
            context_tokens=self._prompts()[0],
            characters_per_token=round(len(SAMPLE) / len(self._decoder.tokenizer.encode(SAMPLE)), 2),
            batch=runtime.batch,
            notes=self._sessions.notes,
            bytes=self._room.weights + self._sessions.bytes + (self._talker.bytes if self._talker else 0),
            fills=self._asking.dialect is not None,
            rewrites=self._asking.edits is not None,
            calibrated=self._calibrated,
            bar=self._calibration.bar,
            chats=self._talker is not None,
            strong=True,
            grows=True,
            reads_per_second=round(self._decoder.pace.per_second, 1),
            awaited_tokens=self._prompts()[-1],
            prompts=dict(self.report.prompts),
        )

    def _prompts(self) -> tuple[int, ...]:
        """The tokens that a prompt may have, in all and at once; a record that names a context means all of it."""
        context = self._decoder.runtime.config.context
        room = context - min(LONGEST_ANSWER, context // 4)
        return (room,) if self._record.context else self._decoder.pace.prompts(room)

    def _affordable(self, ask: Ask, budgets: Sequence[int]) -> ContinuationQuestion:
        """With no more context than is read quickly."""
        *longer, shortest = budgets
        return next(filter(self._is_quick, map(ask, longer)), None) or ask(shortest)

    def _is_quick(self, question: ContinuationQuestion) -> bool:
        return self._decoder.pace.is_quick(self._unread(question))

    def _unread(self, question: ContinuationQuestion) -> int:
        return self._sessions.unread(question.ids)

    def _decodings(
        self,
        context: Context,
        question: ContinuationQuestion,
        place: Place,
        *,
        seed: int = 0,
        names: KnownNames | None = None,
        bar: float = 0.0,
    ) -> Iterator[tuple[AutoregressiveDecoding, bool]]:
        """What is being decoded, after each forward, and whether that was the last."""
        self.report.asked(len(question.ids), self._unread(question))
        session = self._sessions.open(context.session, question.ids)
        attempts = self._attempts(place, session, question, seed, names)
        return self._batcher.run(self._steps(attempts, place, context.deadline_ms, bar), session)

    def _steps(
        self, attempts: Iterator[AutoregressiveDecoding], place: Place, deadline_ms: float | None, bar: float
    ) -> Steps[tuple[AutoregressiveDecoding, bool]]:
        """At least one forward runs, whatever the deadline, so that reading a long prompt gets on."""
        started, forwards = self._clock(), 0
        decodings: list[AutoregressiveDecoding] = []
        try:
            for decoding in attempts:
                decodings.append(decoding)
                passes = decoding.run()
                while (not forwards or self._goes_on(decoding, deadline_ms, started, bar)) and (
                    yield from until_pause(passes)
                ):
                    forwards += 1
                    yield decoding, False
            yield decodings[-1], True
        finally:
            for decoding in decodings:
                place.remember(_past_answer(decoding))
            self._sessions.trim()

    def _prepared(self, gap: Gap, place: Place) -> Gap:
        """The gap with the edits that have been read already, while few are newer and reading takes long: all that
        stands behind them would be read again."""
        edits = tuple(settled(gap))
        takes_long = not self._decoder.pace.is_quick(self._prompts()[0])
        if not (takes_long and follow(edits, place.edits)):
            place.edits = edits
        return replace(gap, edits=place.edits)

    def _attempts(
        self,
        place: Place,
        session: EngineSession,
        question: ContinuationQuestion,
        seed: int,
        names: KnownNames | None = None,
    ) -> Iterator[AutoregressiveDecoding]:
        """The greedy answer; with a seed, then another start, continued greedily: the likeliest one for the first seed,
        the next one for the second, and so on."""
        runners_up = min(seed, MOST_SEEDS) + RUNNERS_UP if seed else 0
        with self._reserved(session, question) as limit:
            greedy = AutoregressiveDecoding(
                self._decoder,
                session,
                question,
                limit,
                self._sources(place, question),
                runners_up=runners_up,
                names=names,
            )
            yield greedy
            options = departures(greedy.answer, self._decoder.tokenizer) if seed and greedy.answer.done else []
            if options:
                alternative = options[(seed - 1) % len(options)]
                yield AutoregressiveDecoding(self._decoder, session, question, limit, chosen=alternative, names=names)

    def _reserved(self, session: EngineSession, question: ContinuationQuestion) -> AbstractContextManager[int]:
        """Room for the question, and the tokens that the answer may have."""
        return self._room.reserved(len(question.ids), question.prompt.most_tokens, session.cache)

    def _sources(self, place: Place, question: ContinuationQuestion) -> list[DraftSource]:
        """The past answer that the user is typing along with or went back to, and the text that is probably copied."""
        encode, forced, copied = self._decoder.tokenizer.encode, question.prompt.forced, question.prompt.copied
        sources = [DraftSource("old", encode(forced + copied))] if copied else []
        text, _ = place.expected(question.before)
        return [DraftSource("previous", encode(forced + text)), *sources] if text else sources

    def _read(self, session: EngineSession, question: ContinuationQuestion) -> Passes[None]:
        while (yield from self._decoder.pace.read_ahead(session, question.ids, self.report)):
            self._sessions.trim()
            yield

    def _place(self, context: Context, name: str) -> Place:
        return self._places.open(context.session, (context.root, name))

    def _goes_on(self, decoding: AutoregressiveDecoding, deadline_ms: float | None, started: float, bar: float) -> bool:
        """Whether the answer is still of use, and one more forward fits before the deadline."""
        if bar and decoding.answer.is_hopeless(bar):
            return False
        if deadline_ms is None:
            return True
        return (self._clock() - started) * 1000 + decoding.next_ms < deadline_ms


def open_autoregressive(folder: Path, record: ModelRecord, resources: Resources) -> AutoregressiveEngine:
    runtime, tokenizer = opened_with(
        partial(_read_tokenizer, folder / TOKENIZER_FILE), partial(open_decoder, folder, record, resources)
    )
    room = room_of(runtime, record.name, folder, resources)
    talker = open_talker(folder, room, tokenizer, Manner(block=1, shift=True))
    return AutoregressiveEngine(
        runtime,
        tokenizer,
        record,
        calibration=read_calibration(folder),
        room=room,
        talker=talker,
    )


def _read_tokenizer(path: Path) -> PretrainedTokenizer:
    """With its vocabulary sorted, which the first begun word would wait for."""
    tokenizer = PretrainedTokenizer(path)
    tokenizer.allowed(b" ")
    return tokenizer


def _next(last: Answer, new: Answer, decoding: AutoregressiveDecoding) -> Answer:
    """What there is after a forward: the same answer again if that is nothing new."""
    if not (last.step or decoding.answer.choices):
        return replace(new, unread=decoding.pending - 1)
    if last.step and replace(new, step=last.step) == last:
        return last
    return replace(new, step=last.step + 1)


def _past_answer(decoding: AutoregressiveDecoding) -> PastAnswer:
    answer = decoding.answer
    return PastAnswer.of(answer.question.before, answer.text, complete=answer.ended)
