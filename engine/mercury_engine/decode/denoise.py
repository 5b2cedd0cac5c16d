"""Answers to the holes of a row, and what they look like while they are drafted on canvases."""

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat

from mercury_engine.decode.answer import DecodedAnswer, HoleAnswer
from mercury_engine.decode.choice import Choice
from mercury_engine.decode.decoding import (
    DEFAULT_OPTIONS,
    Decoder,
    Decoding,
    DecodingOptions,
    StreamStart,
    first_probability,
    probabilities,
)
from mercury_engine.decode.drafts import DraftSource, PromptLookup, Proposal
from mercury_engine.decode.frames import Held
from mercury_engine.decode.policy import Action
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.decode.tree import NO_DRAFT, DraftTree, grow
from mercury_engine.model.runtime import Passes
from mercury_engine.tokens.layout import LayoutRow
from mercury_engine.tokens.prefix import Prefix
from mercury_engine.tokens.tokenizer import Tokenizer


class HoleDecoder(Decoder, frozen=True, eq=False, kw_only=True):
    """The decoder of a model that knows our layout."""

    tokenizer: Tokenizer


class HoleDecoding(Decoding[HoleAnswer]):
    """Answers to the holes of a row; `chosen` are the first choices of the first one, made elsewhere. An answer that
    `is_hopeless` ends the decoding."""

    def __init__(
        self,
        decoder: HoleDecoder,
        session: EngineSession,
        row: LayoutRow,
        answers: Sequence[HoleAnswer],
        texts: Sequence[Sequence[DraftSource]],
        options: DecodingOptions = DEFAULT_OPTIONS,
        chosen: Sequence[Choice] = (),
        is_hopeless: Callable[[HoleAnswer], bool] | None = None,
    ) -> None:
        self._is_hopeless = is_hopeless
        tokenizer = decoder.tokenizer
        lookups = [
            PromptLookup.of(tokenizer, row, number, line=answer.mode == "line") for number, answer in enumerate(answers)
        ]
        super().__init__(decoder, session, stream_start(row), answers, lookups, texts, options)
        self._spelled = tokenizer.token_bytes
        for choice in chosen:
            self._commit(choice)

    @property
    def done(self) -> bool:
        return super().done or self._is_given_up

    @property
    def _is_given_up(self) -> bool:
        return self._is_hopeless is not None and self._is_hopeless(self.answers[self.number])

    def sketch(self, size: int) -> Passes[bool]:
        """Like `advance`, but the action is a canvas on every anchor, or behind the forced start; True if it was
        that action."""
        if (yield from self._decoder.read(self._session, self.prefix)):
            return False
        draft = DraftTree.chain(self.options.forced.ids)
        size = min(size, max(self._sizes(), default=0)) if self._decoder.decode == "policy" else 0
        yield from self._act(Action(draft, size, (len(draft.ids),) if size else ()))
        return True

    def decoded(self, number: int) -> DecodedAnswer:
        """The committed tokens of an answer, then the likeliest draft of the rest."""
        answer = self.answers[number]
        committed = answer.decoded()
        if answer.done:
            return committed
        tail = self._shown_proposal(number)
        ids = [*committed.ids, *tail.ids]
        complete = bool(tail.ids) and answer.ends(tail.ids[-1])
        return DecodedAnswer(ids, [*committed.probabilities, *probabilities(tail)], complete, committed.names)

    def slots(self, number: int) -> Iterator[Held | None]:
        """The contents of an answer's slots: its committed tokens, which are settled unless other lines are tried, then
        the draft of the rest, masks before there is one."""
        answer = self.answers[number]
        decoded, committed = self.decoded(number), 0 if answer.one_line else len(answer.choices)
        for at, (token, probability) in enumerate(zip(decoded.ids, decoded.probabilities, strict=True)):
            if answer.ends(token):
                yield self._spelled[token].partition(b"\n")[0], probability, at < committed
                return
            yield self._spelled[token], probability, at < committed
        if not decoded.ids:
            yield from repeat(None, min(self.options.watched, answer.limit))

    def _next_action(self) -> Action:
        """When watched, a canvas, or the verification of all that one drafted; else the best action."""
        if not self.options.watched or self._decoder.decode != "policy":
            return super()._next_action()
        if self._has_fresh_canvas():
            return Action(grow([self._chained(self._shown_proposal(self.number))], self._decoder.acceptance.of))
        size = max((size for size in self._sizes() if size <= self.options.watched), default=0)
        return Action(NO_DRAFT, size, (0,)) if size else super()._next_action()

    def _has_fresh_canvas(self) -> bool:
        """True until the answer deviates from the canvas: a new one would draft the same."""
        canvas = self._canvases[self.number]
        return canvas is not None and bool(canvas.proposal().probabilities)

    def _shown_proposal(self, number: int) -> Proposal:
        """The likeliest proposal; when watched, that of the canvas."""
        canvas = self._canvases[number] if self.options.watched else None
        if canvas is not None:
            return canvas.proposal().head(self.answers[number].limit - len(self.answers[number].choices))
        return max(self._proposals(number), key=first_probability, default=Proposal("none"))


def stream_start(row: LayoutRow) -> StreamStart:
    """The stream behind a row's first anchor."""
    end = row.holes[0].anchor + 1
    anchors = [int(row.positions[hole.anchor]) for hole in row.holes]
    return StreamStart(Prefix(row.ids[:end], row.positions[:end]), anchors)
