"""The answer to a row, and what it looks like while it is drafted on canvases."""

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat

from mercury_engine.decode.answer import GapAnswer
from mercury_engine.decode.choice import Choice
from mercury_engine.decode.decoding import (
    DEFAULT_OPTIONS,
    Decoder,
    Decoding,
    DecodingOptions,
    first_probability,
    probabilities,
)
from mercury_engine.decode.drafts import DraftedTokens, DraftSource, PromptLookup
from mercury_engine.decode.frames import Held
from mercury_engine.decode.policy import Action
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.decode.tree import NO_DRAFT, DraftTree, grow
from mercury_engine.model.runtime import Passes
from mercury_engine.tokens.layout import LayoutRow
from mercury_engine.tokens.tokenizer import Tokenizer


class GapDecoding(Decoding[GapAnswer]):
    """The answer to a row; `chosen` are its first choices, made elsewhere. An answer that `is_hopeless` ends the
    decoding."""

    def __init__(
        self,
        decoder: Decoder[Tokenizer],
        session: EngineSession,
        row: LayoutRow,
        answer: GapAnswer,
        texts: Sequence[DraftSource],
        options: DecodingOptions = DEFAULT_OPTIONS,
        chosen: Sequence[Choice] = (),
        is_hopeless: Callable[[GapAnswer], bool] | None = None,
    ) -> None:
        self.is_settled = False
        """Whether this is the decoding to show to the end, so that what is shown only grows."""
        self._is_hopeless = is_hopeless
        lookup = PromptLookup.of(decoder.tokenizer, row, line=not answer.block)
        super().__init__(decoder, session, row.ids, answer, lookup, texts, options)
        self._spelled = decoder.tokenizer.token_bytes
        for choice in chosen:
            self._commit(choice)

    @property
    def done(self) -> bool:
        return super().done or (self._is_hopeless is not None and self._is_hopeless(self.answer))

    def sketch(self, size: int) -> Passes[None]:
        """Like `run`, but the only action is a canvas behind the forced start."""
        while (yield from self._decoder.read(self._session, self.ids)):
            yield
        draft = DraftTree.chain(self.options.forced.ids)
        size = min(size, max(self._sizes(), default=0)) if self._decoder.decode == "policy" else 0
        yield from self._act(Action(draft, size, (len(draft.ids),) if size else ()))

    def decoded(self) -> Sequence[Choice]:
        """The committed tokens of the answer, then the likeliest draft of the rest."""
        if self.answer.done:
            return self.answer.choices
        tail = self._shown_proposal()
        return [*self.answer.choices, *map(Choice, tail.ids, probabilities(tail))]

    def slots(self) -> Iterator[Held | None]:
        """The contents of the answer's slots: its committed tokens, which are settled unless other lines are tried,
        then the draft of the rest, masks before there is one."""
        answer = self.answer
        decoded, committed = self.decoded(), 0 if answer.one_line else len(answer.choices)
        for at, choice in enumerate(decoded):
            spelled, ends = self._spelled[choice.token], answer.ends(choice.token)
            yield spelled.partition(b"\n")[0] if ends else spelled, choice.probability, at < committed
            if ends:
                return
        if not decoded:
            yield from repeat(None, min(self.options.watched, answer.limit))

    def _next_action(self) -> Action:
        """When watched, a canvas, or the verification of all that one drafted; else the best action."""
        if not self.options.watched or self._decoder.decode != "policy":
            return super()._next_action()
        if self._has_fresh_canvas():
            return Action(grow([self._shown_proposal()], self._decoder.acceptance.of))
        size = max((size for size in self._sizes() if size <= self.options.watched), default=0)
        return Action(NO_DRAFT, size, (0,)) if size else super()._next_action()

    def _has_fresh_canvas(self) -> bool:
        """True until the answer deviates from the canvas: a new one would draft the same."""
        return self._canvas is not None and bool(self._canvas.proposal().probabilities)

    def _shown_proposal(self) -> DraftedTokens:
        """The likeliest proposal; when watched, that of the canvas."""
        if self.options.watched and self._canvas is not None:
            return self._canvas.proposal().head(self._left)
        return max(self._proposals(), key=first_probability, default=DraftedTokens("none"))
