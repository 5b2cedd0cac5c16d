"""Answers conversations: block by block, or under a grammar from left to right; each forward is one `Said`."""

import codecs
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from mercury_engine.api import ChatReply, ChatRequest, Finish, Slot
from mercury_engine.chat.calls import MAY_BE_JSON, Dialogue, ParsedAnswer, called_in_json, dialogue_of
from mercury_engine.chat.drafting import PACES, DraftBlock, Settled, walk
from mercury_engine.chat.fair_thread import FairThread
from mercury_engine.chat.grammar import Grammars, Guide, Steps
from mercury_engine.chat.reading import CANVAS, CachedConversation, ConversationCanvas, Manner
from mercury_engine.chat.template import ChatTemplate, read_source
from mercury_engine.chat.vocabulary import AnswerVocabulary, TokenChooser
from mercury_engine.model.room import Room
from mercury_engine.tokens.prefix import common_length
from mercury_engine.tokens.pretrained import PretrainedTokenizer

PREPARING_SECONDS = 0.005
"""At a time, while what others may be slow with, the model's template and the request's schema, is waited for."""
CACHES = 2
"""The share of the cache memory for conversations; the last one stays in any case."""

SLICE_SECONDS = 0.01
"""Grammars are worked on for so long at a time, so that completions need not wait."""

NOTHING = ChatReply(0, "")

Result = TypeVar("Result")


class Talker:
    """One model in conversation, within its `room`; its `dialogue` is opened on first use. `forwards` and `rows`
    count the computed ones."""

    def __init__(
        self,
        room: Room,
        tokenizer: PretrainedTokenizer,
        manner: Manner,
        dialogue: Callable[[], Dialogue],
        ends: Sequence[str] = (),
    ) -> None:
        self.room = room
        self.runtime = room.runtime
        self.manner = manner
        self.clock = time.perf_counter
        self.forwards = 0
        self.rows = 0
        self.forward_ms = 0.0
        self._tokenizer = tokenizer
        self._open_dialogue = dialogue
        self._ends = ends
        self._kept: list[tuple[str, CachedConversation]] = []
        self._preparing = FairThread("chat")

    @cached_property
    def dialogue(self) -> Dialogue:
        return self._open_dialogue()

    @cached_property
    def vocabulary(self) -> AnswerVocabulary:
        calls, size = self.dialogue.calls, self.runtime.config.vocabulary
        spelled = "".join((calls.before, calls.between, calls.after, calls.apart))
        ends = [name for name in dict.fromkeys([self.dialogue.end, *self._ends]) if name and name not in spelled]
        return AnswerVocabulary(self._tokenizer, size, ends, spelled)

    @cached_property
    def grammars(self) -> Grammars:
        return Grammars(self.vocabulary)

    @property
    def bytes(self) -> int:
        return sum(conversation.cache.bytes for _, conversation in self._kept)

    def chat(self, request: ChatRequest) -> Generator[ChatReply]:
        started = self.clock()
        rendered, guide = yield from self._prepared(request)
        with self._place(request.session, rendered) as conversation:
            yield from _Reply(self, request, rendered, guide, conversation, started).run()

    def _prepared(self, request: ChatRequest) -> Generator[ChatReply, None, tuple[str, Guide | None]]:
        """The conversation as the model reads it, and what the answer must keep to. Both are programs of others, which
        may take seconds: conversations wait for each other, and nobody else for them."""
        preparing = self._preparing.submit(request.session, partial(self._prepare, request))
        try:
            while not wait([preparing], PREPARING_SECONDS).done:
                yield NOTHING
            return preparing.result()
        finally:
            preparing.cancel()

    def _prepare(self, request: ChatRequest) -> tuple[str, Guide | None]:
        rendered = self.dialogue.render(request)
        self.room.check_characters(len(rendered))
        return rendered, self.grammars.guide(request, self.dialogue.calls)

    def timed(self, forwards: Generator[Result | None]) -> Generator[Result | None]:
        """The results of forwards, None where one pauses for others."""
        started, spent = self.clock(), 0.0
        for result in forwards:
            spent += self.clock() - started
            if result is not None:
                self.forwards += 1
                self.forward_ms, spent = spent * 1000, 0.0
            yield result
            started = self.clock()

    def in_slices(self, steps: Steps[Result]) -> Steps[Result]:
        """Run the steps, and pause where they have taken a while."""
        started = self.clock()
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value
            if self.clock() - started >= SLICE_SECONDS:
                yield
                started = self.clock()

    @contextmanager
    def _place(self, session: str, conversation: str) -> Iterator[CachedConversation]:
        """The encoded part of the session's most similar conversation, for one answer at a time. A request that
        comes meanwhile starts from scratch, and so does one that would discard more than it reuses."""
        shared = {
            candidate: common_length(candidate.asked, conversation)
            for owner, candidate in self._kept
            if owner == session
        }
        best = max(shared, key=shared.__getitem__, default=None)
        if best is None or 2 * shared[best] < len(best.asked):
            best = CachedConversation(self.runtime.cache())
        self._kept = [(owner, other) for owner, other in self._kept if other is not best]
        best.asked = conversation
        try:
            yield best
        finally:
            self.rows += best.read
            best.read = 0
            self._kept.append((session, best))
            while len(self._kept) > 1 and self.bytes > self.room.caches // CACHES:
                del self._kept[0]


class _Reply:
    """One answer while it is written: its final part, and after it the block being denoised."""

    def __init__(
        self,
        model: "Talker",
        request: ChatRequest,
        rendered: str,
        guide: Guide | None,
        conversation: CachedConversation,
        started: float,
    ) -> None:
        self._started = started
        self._model = model
        self._request = request
        self._kept = conversation
        self._pace = PACES[request.effort]
        self._chooser = TokenChooser(model.vocabulary, request.temperature, request.seed)
        self._calls = bool(request.tools) and request.tool_choice != "none"
        self._guide = guide
        self._ending: list[int] | None = None
        self._rendered = rendered
        self._prompt = self._encoded()
        self._ids = list(self._prompt)
        exact = request.effort == "high" and not model.manner.block
        self._room = model.room.reserved(
            len(self._prompt),
            request.most_tokens,
            conversation.cache,
            canvas=max(CANVAS, model.manner.block),
            at_once=exact,
            remedy="ask at an effort below high" if exact else "",
        )
        self._most = 0
        self._canvas = ConversationCanvas(model.runtime, model.manner, conversation, exact=exact)
        self._written: list[Settled] = []
        self._revised: set[int] = set()
        self._block: DraftBlock | None = None
        self._stopped_at: int | None = None
        self._step = 0

    def run(self) -> Generator[ChatReply]:
        with self._room as self._most:
            yield from self._replies()

    @property
    def _closes(self) -> bool:
        """True if the answer has room for its ending."""
        return self._ending is not None and len(self._ending) <= self._most

    def _replies(self) -> Generator[ChatReply]:
        """A reply after each forward, and at each pause the latest again; past its deadline the answer ends without
        another forward."""
        finish: Finish = ""
        reply = NOTHING
        for outcome in self._model.timed(self._forwards()):
            if outcome is not None:
                self._step += 1
                finish = outcome
            if finish := finish or self._late_finish():
                break
            if outcome is not None:
                reply = self._said()
            yield reply
            if finish := self._late_finish():
                break
        self._remember()
        yield self._said(finish)

    def _forwards(self) -> Generator[Finish | None]:
        """The reason why the answer ends after each forward, "" if it goes on; None at a pause."""
        if self._guide is not None:
            self._ending = yield from self._model.in_slices(self._guide.closing())
        self._canvas.begin(self._prompt)
        for _ in self._canvas.catch_up(self._prompt):
            yield ""
        while True:
            yield self._write_freely() if self._guide is None else (yield from self._write_along(self._guide))

    def _write_freely(self) -> Finish:
        start = len(self._ids) % self._model.manner.block if self._model.manner.block else 0
        count, window, ends = self._canvas.slots(self._ids), self._model.manner.window, self._model.vocabulary.ends
        block = self._block = self._block or DraftBlock(count, self._pace, ends, window=window, start=start)
        block.settle(self._canvas.logits(self._ids, block.ids), self._chooser)
        leading = block.leading
        if self._finds_stop([*self._written, *leading]):
            return self._finished(leading, "stop")
        remaining = self._most - len(self._written)
        if len(leading) >= remaining and block.end != remaining:
            return self._finished(leading[:remaining], "length")
        if block.open:
            return ""
        return self._finished(leading, "stop" if block.end < count else "")

    def _finished(self, tokens: Sequence[Settled], finish: Finish) -> Finish:
        if self._block:
            self._revised |= {len(self._written) + at for at in self._block.revised}
        self._block = None
        self._written += tokens
        self._ids += [token for token, _ in tokens]
        return finish

    def _write_along(self, guide: Guide) -> Steps[Finish]:
        room, ends = self._most - len(self._written), self._model.vocabulary.ends
        logits_SV = self._canvas.logits(self._ids, [-1] * self._canvas.slots(self._ids))
        in_slices = self._model.in_slices
        walked = yield from in_slices(walk(guide, logits_SV, self._chooser, ends, self._pace, room))
        if walked.ended:
            return self._finished(walked.tokens, "stop")
        tokens = walked.tokens
        if self._closes:
            tokens = yield from in_slices(self._that_can_close(guide, tokens, room))
        self._finished(tokens, "")
        if guide.allowed() is None:  # text, in which a call may begin
            stopped = self._finds_stop(self._written)
            return "stop" if stopped else "length" if not tokens or len(tokens) == room else ""
        if not tokens or (self._closes and len(tokens) + len(self._ending or ()) == room):
            return self._cut_short()
        return "length" if len(tokens) == room else ""

    def _that_can_close(self, guide: Guide, tokens: list[Settled], room: int) -> Steps[list[Settled]]:
        """As many of the tokens as leave room for an ending; none at all always does."""
        known, fits, excess, count = self._ending, 0, len(tokens) + 1, len(tokens)
        while excess - fits > 1:
            ending = yield from guide.closing()
            if ending is not None and len(ending) <= room - count:
                known, fits = ending, count
            else:
                excess = count
            middle = (fits + excess) // 2
            guide.back(count - middle)
            for token, _ in tokens[count:middle]:
                guide.take(token)
            count = middle
        self._ending = known
        return list(tokens[:fits])

    def _cut_short(self) -> Finish:
        """End the answer: under a grammar, with the shortest known ending; else where it stands."""
        if self._guide is None:
            leading = self._block.leading if self._block else ()
            return self._finished(leading, "length")
        if not self._closes or self._guide.allowed() is None:
            return "length"
        ending = self._ending or ()
        return self._finished([(token, 1.0) for token in ending], "stop")

    def _late_finish(self) -> Finish:
        """End the answer if another forward would finish after the deadline; the first one may."""
        elapsed_ms = (self._model.clock() - self._started) * 1000
        next_ms = self._model.forward_ms if self._step else 0.0
        if self._request.deadline_ms is None or elapsed_ms + next_ms < self._request.deadline_ms:
            return ""
        return self._cut_short()

    def _encoded(self) -> list[int]:
        """The tokens of the conversation; where it continues an earlier answer, with the tokens of that answer."""
        template, conversation = self._model.dialogue.template, self._kept
        if conversation.text and self._rendered.startswith(conversation.text):
            return [*conversation.tokens, *template.encode(self._rendered[len(conversation.text) :])]
        return template.encode(self._rendered)

    def _remember(self) -> None:
        if self._stopped_at is None:
            text = self._model.vocabulary.spell(token for token, _ in self._written)
            self._kept.text, self._kept.tokens = self._rendered + text.decode("utf-8", "replace"), self._ids

    def _finds_stop(self, tokens: Sequence[Settled]) -> bool:
        """True if the text has a stop string, before which it ends."""
        text = self._text(tokens)[0]
        stops = [at for stop in self._request.stops if stop and (at := text.find(stop)) >= 0]
        self._stopped_at = min(stops, default=None)
        return bool(stops)

    def _said(self, finish: Finish = "") -> ChatReply:
        text, certain = self._text(self._written)
        slots = [token for slot, guess in zip(*self._drafted, strict=True) if (token := slot or guess)]
        message = self._heard(self._text([*self._written, *slots])[0] if slots else text)
        settled = self._heard(text[:certain])
        if finish == "stop" and self._calls and (called := called_in_json(text, self._request.tools, self._turn)):
            message = settled = called
        held_back = 0 if finish else self._held_back(settled.text)
        if finish and message.calls:
            finish = "tool_calls"
        return ChatReply(
            self._step,
            message.text,
            settled=len(message.text) if finish else len(settled.text) - held_back,
            calls=settled.calls,
            final=bool(finish),
            finish=finish,
            prompt_tokens=len(self._prompt),
            answer_tokens=len(self._written) + (len(self._block.leading) if self._block else 0),
            slots=tuple(self._slots()) if self._request.slots else (),
        )

    @property
    def _drafted(self) -> tuple[list[Settled | None], list[Settled | None]]:
        """The slots of the block up to its end, with the model's choices for the open ones."""
        if self._block is None:
            return [], []
        return self._block.slots[: self._block.end], self._block.guesses[: self._block.end]

    def _heard(self, text: str) -> ParsedAnswer:
        text = text[: self._stopped_at]
        return self._model.dialogue.read(text, self._turn) if self._calls else ParsedAnswer(text)

    @property
    def _turn(self) -> int:
        return len(self._request.messages)

    def _held_back(self, text: str) -> int:
        """The length of the end that may be the beginning of a stop string or of a call, or all that may be one."""
        if self._calls and MAY_BE_JSON.match(text):
            return len(text)
        marks = [*self._request.stops, *([self._model.dialogue.calls.trigger] if self._calls else [])]
        longest = max(map(len, marks), default=0)
        return next(
            (
                size
                for size in range(min(longest, len(text)), 0, -1)
                if any(len(mark) > size and mark.startswith(text[-size:]) for mark in marks)
            ),
            0,
        )

    def _text(self, tokens: Sequence[Settled]) -> tuple[str, int]:
        """The text of tokens, and how much of it no further token changes."""
        spelled = self._model.vocabulary.spell(token for token, _ in tokens)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        certain = decoder.decode(spelled)
        return certain + decoder.decode(b"", final=True), len(certain)

    def _slots(self) -> Iterator[Slot]:
        spell = self._model.vocabulary.spell
        for at, (token, probability) in enumerate(self._written):
            text = spell([token]).decode("utf-8", "replace")
            yield Slot(text, probability, settled=True, revised=at in self._revised)
        if (block := self._block) is None:
            return
        for at, slot in enumerate(block.slots[: block.end]):
            if slot is None:
                yield Slot("")
            else:
                text = spell([slot[0]]).decode("utf-8", "replace")
                yield Slot(text, slot[1], settled=False, revised=at in block.revised)


def open_talker(
    folder: Path, room: Room, tokenizer: PretrainedTokenizer, manner: Manner, ends: Sequence[str] = ()
) -> Talker | None:
    """A talker; None for a model that was not trained to chat."""
    source = read_source(folder)
    if source is None:
        return None

    def dialogue() -> Dialogue:
        return dialogue_of(ChatTemplate(source, tokenizer))

    return Talker(room, tokenizer, manner, dialogue, [*ends, source.names.get("eos_token", "")])
