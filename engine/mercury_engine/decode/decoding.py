"""Decodes an answer, a forward at a time: read, draft, verify, repeat.

Drafts of a masked-diffusion canvas and of other sources are verified as in speculative decoding (Stern et al. 2018,
Leviathan et al. 2023), so that the answer is exactly that of greedy autoregression.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import numpy as np
from msgspec import Struct

from mercury_engine.decode.canvas import Canvas, Fused, canvas_for, fuse, masked
from mercury_engine.decode.choice import Choice, Chooser, ids_of
from mercury_engine.decode.costs import Costs
from mercury_engine.decode.drafts import DraftedTokens, DraftSource, PromptLookup
from mercury_engine.decode.names import KnownNames
from mercury_engine.decode.policy import (
    Acceptance,
    Action,
    AnswerKind,
    Decode,
    DraftSituation,
    Outlook,
    Report,
    choose,
    foresee,
    prior,
)
from mercury_engine.decode.reading import ReadingPace
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.decode.tree import DraftTree
from mercury_engine.model.runtime import Pass, Passes, Runtime
from mercury_engine.tokens.layout import until_end
from mercury_engine.tokens.spelling import Spelling
from mercury_engine.tokens.vocabulary import CANVASES, EOM

ALTERNATIVES = 3
"""Of each slot of a canvas: the tokens that are drafted besides the likeliest one, where verifying them pays."""


T = TypeVar("T", bound=Spelling, covariant=True)


class Decoder(Struct, Generic[T], frozen=True, eq=False, kw_only=True):
    """Shared by all decodings: the model, the statistics, and the ways of decoding. `canvases` are the sizes of those
    that the model has learned to fill."""

    runtime: Runtime
    tokenizer: T
    chooser: Chooser
    costs: Costs
    acceptance: Acceptance
    report: Report
    decode: Decode
    pace: ReadingPace
    canvases: Sequence[int] = CANVASES

    def read(self, session: EngineSession, ids: np.ndarray) -> Passes[bool]:
        """Read a chunk of the context, if more than one is left; True if that took a pass."""
        chunk = self.pace.chunk()
        return self.pace.read(session, ids, self.report, leave=chunk, chunk=chunk)


class GrowingAnswer(Protocol):
    """Grows token by token until it is done, with `typed` left to spell of the text before the cursor."""

    typed: bytes
    choices: list[Choice]
    limit: int

    @property
    def kind(self) -> AnswerKind: ...
    @property
    def done(self) -> bool: ...
    def add(self, choice: Choice) -> None: ...


A = TypeVar("A", bound=GrowingAnswer)


class Forced(Struct, frozen=True):
    """The forced start of an answer, and the probability of all its tokens."""

    ids: Sequence[int] = ()
    probability: float = 1.0


UNFORCED = Forced()


class DecodingOptions(Struct, frozen=True, eq=False, kw_only=True):
    """Decoding stops where the probability of all that was committed falls below the `floor`. Choices have so many
    `runners_up`. While it is `watched`, everything missing is drafted on a canvas of this many slots whenever the
    answer has left the last one, even if that takes longer. With `one_line` it stops behind its first line that is not
    blank, complete or not."""

    forced: Forced = UNFORCED
    floor: float = 0.0
    runners_up: int = 0
    names: KnownNames | None = None
    watched: int = 0
    one_line: bool = False


DEFAULT_OPTIONS = DecodingOptions()


class Decoding(Generic[A]):
    """A greedy answer.

    It forms a stream behind the `read` tokens. A drafted token is committed only if a clean row behind exactly this
    stream predicts it, as in plain autoregression. The session's cache always holds a prefix of the stream.
    """

    def __init__(
        self,
        decoder: Decoder[Spelling],
        session: EngineSession,
        read: np.ndarray,
        answer: A,
        lookup: PromptLookup,
        texts: Sequence[DraftSource],
        options: DecodingOptions = DEFAULT_OPTIONS,
    ) -> None:
        self.answer = answer
        self.ids = read
        self.probability = 1.0
        self._decoder = decoder
        self._session = session
        self.options = options
        self._lookup = lookup
        self._texts = texts
        self._canvas: DraftSource | None = None

    @property
    def done(self) -> bool:
        """True if the answer is complete, or has become too improbable to continue."""
        return self.answer.done or self.probability < self.options.floor

    def advance(self) -> Passes[None]:
        """One pass: a chunk of the context, or the best action once at most a chunk is left."""
        if (yield from self._decoder.read(self._session, self.ids)):
            return
        yield from self._act(self._next_action())

    def run(self) -> Passes[None]:
        """Decode until it is done, and pause between forwards."""
        if self.done:
            return
        yield from self.advance()
        while not self.done:
            yield
            yield from self.advance()

    def _next_action(self) -> Action:
        return choose(self._situation(), self._decoder.costs, self._decoder.acceptance)

    def _situation(self) -> DraftSituation:
        decode, drafting = self._decoder.decode, self._decoder.decode == "policy"
        return DraftSituation(
            pending=len(self.ids) - self._session.cache.length,
            proposals=[] if decode == "ar" else self._proposals(),
            outlook=self._outlook if drafting else None,
            sizes=self._sizes() if drafting else (),
            room=self._room,
        )

    @cached_property
    def _outlook(self) -> Outlook:
        """The outlook of the whole decoding: statistics change little within one."""
        decoder = self._decoder
        length = decoder.acceptance.length(self.answer.kind)
        return foresee(decoder.costs, decoder.acceptance, length, decoder.canvases)

    def _proposals(self) -> list[DraftedTokens]:
        """The drafts of all sources, up to the answer's limit."""
        copied = self._lookup.proposal(self.answer.typed)
        sources = self._sources() if self._decoder.decode == "policy" else []
        return [proposal.head(self._left) for proposal in (*(source.proposal() for source in sources), copied)]

    def _sources(self) -> list[DraftSource]:
        return [*([self._canvas] if self._canvas else []), *self._texts]

    @property
    def _left(self) -> int:
        """The tokens that the answer may still have."""
        return self.answer.limit - len(self.answer.choices)

    @property
    def _room(self) -> int:
        """The positions behind the stream that are left within the context."""
        return self._decoder.runtime.config.context - len(self.ids)

    def _sizes(self) -> list[int]:
        """The canvases not much larger than the rest of the answer that fit into the room."""
        largest = min(self._room, canvas_for(self._left))
        return [size for size in self._decoder.canvases if size <= largest]

    def _act(self, action: Action) -> Passes[None]:
        cached, before = self._session.align(self.ids), len(self.ids)
        fused = self._fused(cached, action)
        forward = yield Pass(fused.rows, self._session.cache)
        accepted = self._verify(fused, forward.logits_WV, action.draft)
        valid = [*range(before - cached), *(before - cached + number for number in accepted)]
        self._redraft(fused, forward.logits_WV, valid[-1], len(self.ids) - cached - len(valid))
        self._session.keep(forward, self.ids[: cached + len(valid)], valid)
        self._decoder.report.count(action.kind, rows=len(fused.rows.ids_R), settled=len(self.ids) - before)

    def _redraft(self, fused: Fused, logits_WV: np.ndarray, row: int, settled: int) -> None:
        """Keep the canvas behind the row where verification stopped, if one is there and the answer goes on. The row's
        own prediction, the first slot, may be `settled` by now."""
        anchors = [canvas.anchor for canvas in fused.canvases]
        if row in anchors and settled <= 1 and not self.answer.done:
            self._keep_canvas(fused.slots(logits_WV, anchors.index(row))[settled:])

    def _fused(self, cached: int, action: Action) -> Fused:
        """The uncached end of the stream, a draft to verify, and canvases."""
        last = len(self.ids) - cached - 1
        canvases = [Canvas(last + anchor, masked(action.size)) for anchor in action.anchors]
        permitted_V = self._decoder.chooser.permitted_V
        return fuse(cached, self.ids, last, canvases, draft=action.draft, permitted_V=permitted_V)

    def _keep_canvas(self, logits_SV: np.ndarray) -> None:
        choices = self._decoder.chooser.slots(logits_SV, self.answer.typed, ALTERNATIVES)
        ids = ids_of(choices)
        drafted = choices[: len(until_end(ids)[0]) + 1]
        canvas = self._canvas = DraftSource(
            "canvas",
            ids[: len(drafted)],
            [choice.probability for choice in drafted],
            [choice.others for choice in drafted],
        )
        self._decoder.acceptance.drew(canvas.proposal().evidence, ended=EOM in ids)

    def _verify(self, fused: Fused, logits_WV: np.ndarray, draft: DraftTree) -> list[int]:
        """Commit what clean rows predict while their input is what was committed; return the accepted
        tokens of the draft."""
        accepted, number = [], -1
        while True:
            logits_V = fused.clean_row(logits_WV, fused.first + 1 + number)
            choice = self._choose(logits_V)
            for evidence, is_right in draft.judged(number, choice.token):
                self._decoder.acceptance.observe(evidence, is_right)
                self._decoder.report.verified(evidence[0], is_right)
            self._commit(choice)
            following = draft.next(number, choice.token)
            if following is None:
                return accepted
            accepted.append(following)
            number = following
            if self.done:
                return accepted

    def _choose(self, logits_V: np.ndarray) -> Choice:
        chooser, answer, forced = self._decoder.chooser, self.answer, self.options.forced.ids
        count = len(answer.choices)
        if count < len(forced):
            return chooser.forced(logits_V, answer.typed, forced[count], self.options.runners_up)
        return chooser.best(logits_V, answer.typed, self.options.runners_up)

    def _commit(self, choice: Choice) -> None:
        self.answer.add(choice)
        self.probability *= choice.probability
        self.ids = np.append(self.ids, np.int32(choice.token))
        for source in (*self._sources(), self._lookup):
            source.advance(choice.token)
        if self.answer.done:
            self._decoder.acceptance.answered(self.answer.kind, len(self.answer.choices))


def first_probability(proposal: DraftedTokens) -> float:
    """The prior probability of a draft's first token: the text shown must not depend on statistics of past answers."""
    return next(iter(probabilities(proposal)), 0.0)


def probabilities(proposal: DraftedTokens) -> Sequence[float]:
    return proposal.probabilities or [prior(evidence) for evidence in proposal.evidence]
