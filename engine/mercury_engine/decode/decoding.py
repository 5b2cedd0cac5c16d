"""Decodes a stream of answers, a forward at a time: read, draft, verify, repeat.

Drafts of a masked-diffusion canvas and of other sources are verified as in speculative decoding (Stern et al. 2018,
Leviathan et al. 2023), so that the answer is exactly that of greedy autoregression.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import numpy as np
from msgspec import Struct

from mercury_engine.api import SpanMode
from mercury_engine.decode.canvas import Canvas, Fused, canvas_for, fuse, masked
from mercury_engine.decode.choice import Choice, Chooser
from mercury_engine.decode.costs import Costs
from mercury_engine.decode.drafts import DraftSource, PromptLookup, Proposal
from mercury_engine.decode.names import KnownNames
from mercury_engine.decode.policy import (
    Acceptance,
    Action,
    Decode,
    DraftSituation,
    Outlook,
    Report,
    choose,
    foresee,
    prior,
)
from mercury_engine.decode.reading import ReadingPace
from mercury_engine.decode.rivals import NamedAnswer, Rivals, competing
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.decode.tree import DraftTree
from mercury_engine.model.runtime import Pass, Passes, Runtime
from mercury_engine.tokens.layout import until_end
from mercury_engine.tokens.prefix import Prefix
from mercury_engine.tokens.vocabulary import CANVASES, EOM, HOLE_STRIDE, HOLES

ALTERNATIVES = 3
"""Of each slot of a canvas: the tokens that are drafted besides the likeliest one, where verifying them pays."""


class Decoder(Struct, frozen=True, eq=False, kw_only=True):
    """Shared by all decodings: the model, the statistics, and the ways of decoding. `canvases` are the sizes of those
    that the model has learned to fill."""

    runtime: Runtime
    chooser: Chooser
    costs: Costs
    acceptance: Acceptance
    report: Report
    decode: Decode
    pace: ReadingPace
    canvases: Sequence[int] = CANVASES

    def read(self, session: EngineSession, prefix: Prefix) -> Passes[bool]:
        """Read a chunk of the context, if more than one is left; True if that took a pass."""
        chunk = self.pace.chunk()
        return self.pace.read(session, prefix, self.report, leave=chunk, chunk=chunk)


class GrowingAnswer(NamedAnswer, Protocol):
    """Grows token by token until it is done."""

    choices: list[Choice]
    limit: int

    @property
    def mode(self) -> SpanMode: ...
    @property
    def done(self) -> bool: ...
    def add(self, choice: Choice) -> None: ...


A = TypeVar("A", bound=GrowingAnswer)


class Forced(Struct, frozen=True):
    """The forced start of answer `number`, and the probability of all tokens up to its end."""

    number: int = 0
    ids: Sequence[int] = ()
    probability: float = 1.0


UNFORCED = Forced()


class DecodingOptions(Struct, frozen=True, eq=False, kw_only=True):
    """Decoding stops where the probability of all that was committed falls below the `floor`. Choices have so many
    `runners_up`. While it is `watched`, everything missing is drafted on a canvas of this many slots whenever the
    answer has left the last one, even if that takes longer."""

    forced: Forced = UNFORCED
    floor: float = 0.0
    runners_up: int = 0
    names: KnownNames | None = None
    watched: int = 0


DEFAULT_OPTIONS = DecodingOptions()


class StreamStart(Struct, frozen=True, eq=False):
    """What the answers follow: the `prefix` up to the first anchor, and the positions of all `anchors`."""

    prefix: Prefix
    anchors: Sequence[int] = ()


class Decoding(Generic[A]):
    """Greedy answers, one after another.

    They form a stream behind the first anchor, in which each answer is followed by the next anchor. A drafted token
    is committed only if a clean row behind exactly this stream predicts it, as in plain autoregression. The
    session's cache always holds a prefix of the stream.
    """

    def __init__(
        self,
        decoder: Decoder,
        session: EngineSession,
        start: StreamStart,
        answers: Sequence[A],
        lookups: Sequence[PromptLookup],
        texts: Sequence[Sequence[DraftSource]],
        options: DecodingOptions = DEFAULT_OPTIONS,
    ) -> None:
        self.answers = answers
        self.ids = start.prefix.ids_R
        self.positions = start.prefix.positions_R
        self.starts = [len(self.ids)]
        self.probability = 1.0
        self._decoder = decoder
        self._session = session
        self._rivals: Rivals | None = None
        """The names between which the next forward decides."""
        self._start = start
        self.options = options
        self._lookups = lookups
        self._texts = texts
        self._canvases: list[DraftSource | None] = [None] * len(answers)

    @property
    def number(self) -> int:
        """The index of the answer being decoded."""
        return len(self.starts) - 1

    @property
    def prefix(self) -> Prefix:
        return Prefix(self.ids, self.positions)

    @property
    def done(self) -> bool:
        """True if all answers are complete, or have become too improbable to continue."""
        return self.answers[-1].done or self.probability < self.options.floor

    def advance(self) -> Passes[None]:
        """One pass: a chunk of the context, or the best action once at most a chunk is left."""
        if (yield from self._decoder.read(self._session, self.prefix)):
            return
        if self._rivals is not None:
            yield from self._choose_name(self._rivals)
        else:
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
            proposals=[] if decode == "ar" else [self._chained(p) for p in self._proposals(self.number)],
            outlook=self._outlook if drafting else None,
            sizes=self._sizes() if drafting else (),
            room=self._room,
            canvases=len(self._drafted()),
        )

    @cached_property
    def _outlook(self) -> Outlook:
        """The outlook of the whole decoding: statistics change little within one."""
        decoder = self._decoder
        length = decoder.acceptance.length(self.answers[0].mode)
        return foresee(decoder.costs, decoder.acceptance, length, decoder.canvases)

    def _proposals(self, number: int) -> list[Proposal]:
        """The drafts of all sources, up to the answer's limit."""
        answer = self.answers[number]
        copied = self._lookups[number].proposal(answer.typed)
        sources = self._sources(number) if self._decoder.decode == "policy" else []
        room = answer.limit - len(answer.choices)
        return [proposal.head(room) for proposal in (*(source.proposal() for source in sources), copied)]

    def _sources(self, number: int) -> list[DraftSource]:
        canvas = self._canvases[number]
        return [*([canvas] if canvas else []), *self._texts[number]]

    def _chained(self, proposal: Proposal) -> Proposal:
        """A draft that ends its answer continues with the next anchor and the best draft behind that."""
        number = self.number
        while number + 1 < len(self.answers) and proposal.ids and proposal.ids[-1] == EOM:
            number += 1
            drafts = (source.proposal().head(self.answers[number].limit) for source in self._sources(number))
            following = max(drafts, key=first_probability, default=Proposal("none"))
            proposal = Proposal(
                proposal.source,
                (*proposal.ids, HOLES[number], *following.ids),
                (*proposal.evidence, None, *following.evidence),
            )
        return proposal

    def _drafted(self) -> list[int]:
        """The answers to draft on canvases: all at first, then only the current one."""
        untouched = len(self.ids) == self.starts[0]
        return list(range(len(self.answers))) if untouched else [self.number]

    @property
    def _room(self) -> int:
        """The positions behind the stream that are left within the context, and before the next anchor."""
        room = self._decoder.runtime.config.context - 1 - int(self.positions[-1])
        if len(self.answers) > 1:
            room = min(room, HOLE_STRIDE - 1 - len(self.answers[self.number].choices))
        return room

    def _sizes(self) -> list[int]:
        """The canvases not much larger than the rest of the answer that fit into the room."""
        answer = self.answers[self.number]
        largest = min(self._room, canvas_for(answer.limit - len(answer.choices)))
        return [size for size in self._decoder.canvases if size <= largest]

    def _act(self, action: Action) -> Passes[None]:
        cached, before = self._session.align(self.prefix), len(self.ids)
        drafted = self._drafted() if action.kind == "canvas" else [self.number]
        fused, draft = self._fused(cached, action, drafted)
        forward = yield Pass(fused.rows, self._session.cache)
        for canvas, number in enumerate(drafted[1:], start=1):
            self._keep_canvas(number, fused.slots(forward.logits_WV, canvas))
        accepted = self._verify(fused, forward.logits_WV, draft)
        valid = [*range(before - cached), *(before - cached + number for number in accepted)]
        self._redraft(fused, forward.logits_WV, valid[-1], len(self.ids) - cached - len(valid))
        self._session.keep(forward, self.prefix.upto(cached + len(valid)), valid)
        self._decoder.report.count(action.kind, rows=len(fused.rows.ids_R), settled=len(self.ids) - before)

    def _redraft(self, fused: Fused, logits_WV: np.ndarray, row: int, settled: int) -> None:
        """Keep the canvas behind the row where verification stopped, if one is there and the answer goes on. The row's
        own prediction, the first slot, may be `settled` by now."""
        anchors = [canvas.anchor for canvas in fused.canvases]
        if row in anchors and settled <= 1 and not self.answers[self.number].done:
            self._keep_canvas(self.number, fused.slots(logits_WV, anchors.index(row))[settled:])

    def _choose_name(self, names: Rivals) -> Passes[None]:
        """Commit the best name as a whole; its first token stands for its worth among its rivals."""
        cached = self._session.align(self.prefix)
        rows = names.rows(self.prefix, cached, self._extended)
        forward = yield Pass(rows, self._session.cache)
        self._session.keep(forward, self.prefix)
        best, worth, name = names.chosen(forward.logits_WV, self._decoder.chooser)
        answer, before = self.answers[self.number], len(self.ids)
        for token in best.path[: answer.limit - len(answer.choices)]:
            self._commit(Choice(token, worth, name=name))
            worth, name = 1.0, None
        self._rivals = None
        self._decoder.report.count("name", rows=len(rows.ids_R), settled=len(self.ids) - before)

    def _fused(self, cached: int, action: Action, drafted: Sequence[int]) -> tuple[Fused, DraftTree]:
        """The uncached end of the stream, a draft to verify or the other anchors, and canvases."""
        last = len(self.ids) - cached - 1
        siblings = [HOLES[number] for number in drafted[1:]]
        draft = DraftTree.chain(siblings) if siblings else action.draft
        anchors = range(len(drafted)) if siblings else action.anchors
        group = 0 if siblings else -1
        canvases = [Canvas(last + anchor, masked(action.size), group) for anchor in anchors]
        permitted_V = self._decoder.chooser.permitted_V
        fused = fuse(cached, self.prefix, last, canvases, draft=draft, extend=self._extended, permitted_V=permitted_V)
        return fused, draft

    def _extended(self, ids: Sequence[int]) -> Prefix:
        """The stream with further tokens."""
        all_ids = np.concatenate([self.ids, np.array(ids, np.int32)])
        positions = np.concatenate([self.positions, self._positions_behind(ids)])
        return Prefix(all_ids, positions)

    def _positions_behind(self, ids: Sequence[int]) -> np.ndarray:
        """The positions of tokens behind the stream: consecutive, except that anchors have those of the row."""
        positions, at, anchors = [], int(self.positions[-1]), self._start.anchors
        for token in ids:
            at = anchors[token - HOLES[0]] if anchors and token in HOLES else at + 1
            positions.append(at)
        return np.array(positions, np.int32)

    def _keep_canvas(self, number: int, logits_SV: np.ndarray) -> None:
        choices = self._decoder.chooser.slots(logits_SV, self.answers[number].typed, ALTERNATIVES)
        ids = [choice.token for choice in choices]
        drafted = choices[: len(until_end(ids)[0]) + 1]
        canvas = self._canvases[number] = DraftSource(
            "canvas",
            ids[: len(drafted)],
            [choice.probability for choice in drafted],
            [choice.others for choice in drafted],
        )
        self._decoder.acceptance.drew(canvas.proposal().evidence, ended=EOM in ids)

    def _verify(self, fused: Fused, logits_WV: np.ndarray, draft: DraftTree) -> list[int]:
        """Commit what clean rows predict while their input is what was committed, until names compete; return the
        accepted tokens of the draft."""
        accepted, number, options = [], -1, self.options
        while True:
            answer, chooser, before = self.answers[self.number], self._decoder.chooser, len(self.ids)
            logits_V = fused.clean_row(logits_WV, fused.first + 1 + number)
            choice = self._choose(logits_V, answer)
            names = options.names if len(answer.choices) >= len(options.forced.ids) else None
            self._rivals = competing(names, answer, choice, logits_V, chooser)
            if self._rivals is not None:
                return accepted
            for evidence, is_right in draft.judged(number, choice.token):
                self._decoder.acceptance.observe(evidence, is_right)
                self._decoder.report.verified(evidence[0], is_right)
            self._commit(choice)
            for token in self.ids[before:].tolist():
                following = draft.next(number, token)
                if following is None:
                    return accepted
                accepted.append(following)
                number = following
            if self.done:
                return accepted

    def _choose(self, logits_V: np.ndarray, answer: A) -> Choice:
        chooser, forced, count = self._decoder.chooser, self.options.forced, len(answer.choices)
        if self.number == forced.number and count < len(forced.ids):
            return chooser.forced(logits_V, answer.typed, forced.ids[count], self.options.runners_up)
        return chooser.best(logits_V, answer.typed, self.options.runners_up)

    def _commit(self, choice: Choice) -> None:
        answer = self.answers[self.number]
        answer.add(choice)
        self.probability *= choice.probability
        self._append(choice.token)
        for source in (*self._sources(self.number), self._lookups[self.number]):
            source.advance(choice.token)
        if not answer.done:
            return
        self._decoder.acceptance.answered(answer.mode, len(answer.choices))
        if self.number + 1 < len(self.answers):
            self._append(*([] if choice.token == EOM else [EOM]), HOLES[self.number + 1])
            self.starts.append(len(self.ids))

    def _append(self, *ids: int) -> None:
        self.positions = np.concatenate([self.positions, self._positions_behind(ids)])
        self.ids = np.concatenate([self.ids, np.array(ids, np.int32)])


def first_probability(proposal: Proposal) -> float:
    """The prior probability of a draft's first token: the text shown must not depend on statistics of past answers."""
    return next(iter(probabilities(proposal)), 0.0)


def probabilities(proposal: Proposal) -> Sequence[float]:
    return proposal.probabilities or [prior(evidence) for evidence in proposal.evidence]
