"""The engine for other people's autoregressive models: reads what changed of a prompt, and decodes greedily."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import copy
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from mercury_engine.api import ChatReply, ChatRequest, Draft, EngineError, EngineInfo, Filled, InfillRequest
from mercury_engine.autoregressive.answer import ContinuationQuestion
from mercury_engine.autoregressive.asking import Asking
from mercury_engine.autoregressive.decoding import AutoregressiveDecoder, AutoregressiveDecoding, departures, sequence
from mercury_engine.chat.reading import Manner
from mercury_engine.chat.talker import Talker, open_talker
from mercury_engine.decode.batching import ForwardBatcher, Steps, run_unbatched, until_pause
from mercury_engine.decode.choice import Chooser
from mercury_engine.decode.confidence import SHARED, Calibration
from mercury_engine.decode.costs import CostMeter, Costs
from mercury_engine.decode.drafts import DraftSource
from mercury_engine.decode.names import KnownNames
from mercury_engine.decode.policy import Acceptance, Report
from mercury_engine.decode.reading import ReadingPace
from mercury_engine.decode.sessions import EngineSession, PastAnswer, Place, Places, SessionPool, follow
from mercury_engine.model.config import TOKENIZER_FILE, ModelError
from mercury_engine.model.decoder import open_decoder
from mercury_engine.model.fitted import CALIBRATION_FILE, read_fitted
from mercury_engine.model.room import Room, room_of
from mercury_engine.model.runtime import Passes, Resources, Runtime, opened_with
from mercury_engine.prompts.fim import settled
from mercury_engine.prompts.line_ends import with_line_feeds
from mercury_engine.record import ModelRecord
from mercury_engine.tokens.pretrained import PretrainedTokenizer

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


class AutoregressiveEngine:
    """Owns the sessions: for each client and file what has been read of its prompt.

    >>> engine = open_autoregressive(folder, record, resources)
    >>> *_, last = engine.infill(request)

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
        self._sessions = SessionPool(runtime.cache, room.caches, room.caches)
        self._batcher = ForwardBatcher[Draft](runtime)
        meter = CostMeter(runtime, clock=clock)
        self._measuring = meter.rest() if costs is None else iter(())
        costs = costs or meter.start()
        chooser = Chooser(tokenizer, runtime.config.vocabulary, map(tokenizer.special, tokenizer.added))
        self._decoder = AutoregressiveDecoder(
            runtime=runtime,
            tokenizer=tokenizer,
            chooser=chooser,
            costs=costs,
            acceptance=Acceptance(),
            report=self.report,
            decode="policy" if drafting else "ar",
            pace=pace or ReadingPace(costs, clock),
        )
        self._asking = Asking(record, tokenizer)

    def infill(self, request: InfillRequest) -> Generator[Draft]:
        place = self._place(request)
        request = self._prepared(request, place)
        first = self._question(request, 0)
        self.report.asked(len(first.ids), self._unread(first))
        session = self._sessions.open(request.session, np.array(first.ids))
        yield from self._batcher.run(self._answer(request, first, place, session), session)

    def in_format(self, record: ModelRecord) -> "AutoregressiveEngine":
        """The same model, asked as another record of it says."""
        other = copy(self)
        other._record, other._asking = record, Asking(record, self._decoder.tokenizer)
        return other

    def chat(self, request: ChatRequest) -> Generator[ChatReply]:
        if self._talker is None:
            raise EngineError(f"{self._record.name} does not chat: its folder has no chat template")
        return self._talker.chat(request)

    def warm(self, request: InfillRequest) -> Generator[None]:
        """Reads the prompt up to its last token, the shortest that there is first. With nothing left to read, it
        measures the costs that starting had no time for."""
        request = self._prepared(request, self._place(request))
        questions = [self._asking.question(request, 0, budget) for budget in self._budgets(request)]
        for question in questions[:1] if self._is_quick(questions[0]) else reversed(questions):
            session = self._sessions.open(request.session, np.array(question.ids))
            with self._reserved(session, question):
                yield from run_unbatched(self._decoder.runtime, self._read(session, question))
        for costs in self._measuring:
            self._decoder = replace(self._decoder, costs=costs)
            self._decoder.pace.costs = costs
            yield

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
            answers=self._asking.answers,
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

    def _budgets(self, request: InfillRequest) -> tuple[int, ...]:
        """Of the prompts for a request, the longest first. What should change around the cursor is asked with all."""
        return self._prompts()[:1] if request.spans[0].mode == "region" else self._prompts()

    def _question(self, request: InfillRequest, number: int) -> ContinuationQuestion:
        """With no more context than is read quickly."""
        *longer, shortest = self._budgets(request)
        questions = (self._asking.question(request, number, budget) for budget in longer)
        quick = next(filter(self._is_quick, questions), None)
        return quick or self._asking.question(request, number, shortest)

    def _is_quick(self, question: ContinuationQuestion) -> bool:
        return self._decoder.pace.is_quick(self._unread(question))

    def _unread(self, question: ContinuationQuestion) -> int:
        return self._sessions.unread(np.array(question.ids))

    def _answer(
        self, request: InfillRequest, first: ContinuationQuestion, place: Place, session: EngineSession
    ) -> Steps[Draft]:
        """One span after the other, each as if it were the only one. At least one forward runs, whatever the deadline,
        so that reading a long prompt gets on."""
        started, forwards = self._clock(), 0
        filled = [Filled(request.old(span)) for span in request.spans]
        draft = Draft(0, tuple(filled))
        decodings: list[AutoregressiveDecoding] = []
        try:
            for number in range(len(request.spans)):
                question = self._question(request, number) if number else first
                names = KnownNames.of(self._decoder.tokenizer, request, question.prompt.forced)
                for decoding in self._attempts(place, session, question, request.seed, names):
                    decodings.append(decoding)
                    passes = decoding.run()
                    while (not forwards or self._goes_on(request, decoding, started)) and (
                        yield from until_pause(passes)
                    ):
                        forwards += 1
                        filled[number] = self._filled(decoding, request)
                        draft = _next_draft(draft, decoding, filled)
                        yield draft
                    filled[number] = self._filled(decoding, request)
                    draft = _next_draft(draft, decoding, filled)
            yield replace(draft, final=True)
        finally:
            place.remember(map(_past_answer, decodings))
            self._sessions.trim()

    def _prepared(self, request: InfillRequest, place: Place) -> InfillRequest:
        """The request as models know texts; with the edits that have been read already, while few are newer and reading
        takes long: all that stands behind them would be read again."""
        request = with_line_feeds(request)
        span = request.spans[0]
        if span.mode == "region":
            return request
        window = request.windows[span.window]
        edits = tuple(settled(request.edits, window.path, window.text, span.start))
        takes_long = not self._decoder.pace.is_quick(self._prompts()[0])
        if not (takes_long and follow(edits, place.edits)):
            place.edits = edits
        return replace(request, edits=place.edits)

    def _filled(self, decoding: AutoregressiveDecoding, request: InfillRequest) -> Filled:
        answer = decoding.answer
        filled = answer.filled(self._calibration, request.bar)
        return replace(filled, slots=tuple(answer.slots)) if request.slots else filled

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
        for expected, answer in product((PastAnswer.left_to_type, PastAnswer.deleted_and_left), place.past_answers):
            if remainder := expected(answer, question.before):
                return [DraftSource("previous", encode(forced + remainder)), *sources]
        return sources

    def _read(self, session: EngineSession, question: ContinuationQuestion) -> Passes[None]:
        while (yield from self._decoder.pace.read_ahead(session, sequence(question.ids), self.report)):
            self._sessions.trim()
            yield

    def _place(self, request: InfillRequest) -> Place:
        """Completions and next edits of a file are asked differently, so each has its own."""
        span = request.spans[0]
        path = request.windows[span.window].path
        return self._places.open(request.session, (request.root, path, span.mode == "region"))

    def _goes_on(self, request: InfillRequest, decoding: AutoregressiveDecoding, started: float) -> bool:
        """Whether the answer is still of use, and one more forward fits before the deadline."""
        if request.effort == "low" and request.bar and not request.seed and decoding.answer.is_hopeless(request.bar):
            return False
        if request.deadline_ms is None:
            return True
        return (self._clock() - started) * 1000 + self._decoder.next_ms(decoding.pending) < request.deadline_ms


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
        calibration=read_fitted(folder, CALIBRATION_FILE, Calibration),
        room=room,
        talker=talker,
    )


def _read_tokenizer(path: Path) -> PretrainedTokenizer:
    """With its vocabulary sorted, which the first begun word would wait for."""
    tokenizer = PretrainedTokenizer(path)
    tokenizer.allowed(b" ")
    return tokenizer


def _next_draft(draft: Draft, decoding: AutoregressiveDecoding, filled: Sequence[Filled]) -> Draft:
    """What there is after a forward: the same draft again if that is nothing new."""
    if not (draft.step or decoding.answer.choices):
        return Draft(0, tuple(filled), unread=decoding.pending - 1)
    return draft if draft.step and draft.spans == tuple(filled) else Draft(draft.step + 1, tuple(filled))


def _past_answer(decoding: AutoregressiveDecoding) -> PastAnswer:
    answer = decoding.answer
    return PastAnswer.of(answer.question.before, answer.text, complete=answer.ended)
