"""The decoding of one request, a pass at a time: read, draft on canvases, verify, go on."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.decode.answer import Answer, Spoken
from mercury_engine.decode.cache import Session
from mercury_engine.decode.canvas import Canvas, Fused, canvas_for, fuse, masked
from mercury_engine.decode.choice import Choice, Chooser
from mercury_engine.decode.drafts import Copies, Known, Proposal
from mercury_engine.decode.echo import Echo
from mercury_engine.decode.policy import Acceptance, Action, Costs, Decode, Report, Situation, choose, prior
from mercury_engine.model.runtime import Pass, Passes, Runtime
from mercury_engine.tokens.layout import Row, until_end
from mercury_engine.tokens.prefix import HintBuilder, HintedPrefix, common_prefix
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import CANVASES, EOM, HOLE_STRIDE, HOLES

__all__ = ["CHUNK", "UNFORCED", "Decoder", "Decoding", "Forced", "read"]

CHUNK = 256
"""Rows of context encoded in one forward: what a keystroke waits for at most."""


class Decoder(Struct, frozen=True, eq=False):
    """What every decoding shares: the weights, the statistics, and how they are used."""

    runtime: Runtime
    tokenizer: Tokenizer
    chooser: Chooser
    costs: Costs
    acceptance: Acceptance
    report: Report
    decode: Decode
    redraft: bool
    echo: Echo | None = None


class Forced(Struct, frozen=True):
    """The beginning of one answer, decided beforehand."""

    number: int = 0
    ids: Sequence[int] = ()


UNFORCED = Forced()


class Decoding:
    """Greedy answers to the holes of a row, one after another.

    They are the tokens of a stream behind the first anchor, each end followed by the next anchor. Whatever is
    drafted, a token is settled only by the prediction of a clean row behind exactly this stream: that is what
    plain autoregression would say. The session's cache always holds a beginning of the stream.
    """

    def __init__(
        self,
        decoder: Decoder,
        session: Session,
        row: Row,
        answers: Sequence[Answer],
        known: Sequence[Sequence[Known]],
        *,
        forced: Forced = UNFORCED,
        floor: float = 0.0,
        runners_up: int = 0,
    ) -> None:
        first = row.holes[0].anchor + 1
        self.row = row
        self.answers = answers
        self.ids = row.ids[:first]
        self.positions = row.positions[:first]
        self.starts = [first]
        self.forced = forced
        self.probability = 1.0
        self._decoder = decoder
        self._session = session
        self._floor = floor
        self._runners_up = runners_up
        self._known = [list(texts) for texts in known]
        self._listener = HintBuilder.of(row, decoder.tokenizer, hints=decoder.runtime.config.hints)
        self._trail = self._listener.build_from(self.ids, self.positions, session.trail)
        self._canvases: list[Known | None] = [None] * len(answers)
        self._copies = [
            Copies(decoder.tokenizer, row, number, line=answer.span.mode == "line")
            for number, answer in enumerate(answers)
        ]

    @property
    def number(self) -> int:
        """Which answer is being decoded."""
        return len(self.starts) - 1

    @property
    def trail(self) -> HintedPrefix:
        """The stream with its hints."""
        if len(self._trail) < len(self.ids):
            self._trail = self._listener.build(self.ids, self.positions, self._trail)
        return self._trail

    @property
    def done(self) -> bool:
        """All is said, or it became too improbable to go on."""
        return self.answers[-1].done or self.probability < self._floor

    def advance(self) -> Passes[None]:
        """One pass: a chunk of the context, or the best action once no more than a chunk is left."""
        if not (yield from read(self._decoder, self._session, self.trail)):
            yield from self._act(choose(self._situation(), self._decoder.costs, self._decoder.acceptance))

    def sketch(self, size: int) -> Passes[bool]:
        """The same, but the action is a canvas on every anchor, or behind what is forced; whether it was."""
        if (yield from read(self._decoder, self._session, self.trail)):
            return False
        draft = Proposal("branch", tuple(self.forced.ids), (None,) * len(self.forced.ids))
        kind = "redraft" if draft.ids else "canvas"
        drafting = self._decoder.decode == "policy"
        size = min(size, max(self._sizes(), default=0))
        yield from self._act(Action(kind, 0.0, draft, size) if drafting and size else Action("verify", 0.0, draft))
        return True

    def spoken(self, number: int) -> Spoken:
        """An answer as it stands: what is settled, then the likeliest draft of what is not."""
        answer = self.answers[number]
        settled = answer.spoken()
        if answer.done:
            return settled
        rest = max(self._proposals(number), key=_promise, default=Proposal("none"))
        ids = [*settled.ids, *rest.ids]
        complete = bool(rest.ids) and answer.ends(rest.ids[-1])
        return Spoken(ids, [*settled.probabilities, *_probabilities(rest)], complete)

    def _situation(self) -> Situation:
        answer = self.answers[self.number]
        decode = self._decoder.decode
        drafting = decode == "policy"
        return Situation(
            pending=len(self.ids) - self._session.cache.length,
            left=self._decoder.acceptance.length(answer.span.mode),
            proposals=[] if decode == "ar" else [self._chained(p) for p in self._proposals(self.number)],
            canvas_sizes=self._sizes() if drafting and not self._has_fresh_canvas() else (),
            canvases=len(self._drafted()),
            redraft_sizes=self._sizes() if drafting and self._decoder.redraft and not answer.typed else (),
        )

    def _proposals(self, number: int) -> list[Proposal]:
        """No longer than what may be said."""
        answer = self.answers[number]
        copies = self._copies[number].rest(answer.typed)
        texts = self._texts(number) if self._decoder.decode == "policy" else []
        room = answer.limit - len(answer.choices)
        return [proposal.head(room) for proposal in (*(text.rest() for text in texts), copies)]

    def _texts(self, number: int) -> list[Known]:
        canvas = self._canvases[number]
        return [*([canvas] if canvas else []), *self._known[number]]

    def _chained(self, proposal: Proposal) -> Proposal:
        """A draft that ends its answer goes on with the next anchor and the draft behind that."""
        number = self.number
        while proposal.ids and proposal.ids[-1] == EOM and number + 1 < len(self.answers):
            number += 1
            texts = (text.rest().head(self.answers[number].limit) for text in self._texts(number))
            following = max(texts, key=_promise, default=Proposal("none"))
            proposal = Proposal(
                proposal.source,
                (*proposal.ids, HOLES[number], *following.ids),
                (*proposal.evidence, None, *following.evidence),
            )
        return proposal

    def _drafted(self) -> list[int]:
        """The answers that a canvas drafts: all together at first, later the current one."""
        untouched = len(self.ids) == self.starts[0]
        return list(range(len(self.answers))) if untouched else [self.number]

    def _has_fresh_canvas(self) -> bool:
        """Until something else than it drafted has been said, another canvas would draft the same."""
        canvas = self._canvases[self.number]
        return canvas is not None and bool(canvas.rest().probabilities)

    def _sizes(self) -> list[int]:
        """Canvases that are not much larger than what may be said, and end where the context does, or before
        the next anchor."""
        answer = self.answers[self.number]
        said = len(answer.choices)
        room = self._decoder.runtime.config.context - 1 - int(self.positions[-1])
        if len(self.answers) > 1:
            room = min(room, HOLE_STRIDE - 1 - said)
        return [size for size in CANVASES if size <= min(room, canvas_for(answer.limit - said))]

    def _act(self, action: Action) -> Passes[None]:
        cached = self._session.align(self.trail)
        drafted = self._drafted()
        trail, fused = self._fused(cached, action, drafted)
        forward = yield Pass(fused.rows, self._session.cache)
        if action.kind == "canvas":
            for canvas, number in enumerate(drafted):
                self._draw(number, fused.slots(forward.logits_WV, canvas))
        before = len(self.ids)
        read = self._settle(fused, forward.logits_WV, cached, action.proposal)
        if action.kind == "redraft" and len(self.ids) == cached + fused.clean + 1 and not self.done:
            self._redraw(fused.slots(forward.logits_WV, 0))
        self._session.keep(forward, trail.upto(cached + read))
        self._decoder.report.count(action.kind, rows=len(fused.rows.ids_R), settled=len(self.ids) - before)

    def _fused(self, cached: int, action: Action, drafted: Sequence[int]) -> tuple[HintedPrefix, Fused]:
        """The unread end of the stream, then a draft to verify, or the other anchors and their canvases."""
        pending = len(self.ids) - cached
        siblings = tuple(HOLES[number] for number in drafted[1:])
        behind = siblings if action.kind == "canvas" else action.proposal.ids
        ids = np.concatenate([self.ids, np.array(behind, np.int32)])
        positions = np.concatenate([self.positions, self._places(behind)])
        trail = self._listener.build(ids, positions, self.trail)
        last = len(ids) - cached - 1
        anchors = {"canvas": range(pending - 1, last + 1), "redraft": [last]}.get(action.kind, ())
        canvases = [Canvas(anchor, masked(action.size)) for anchor in anchors]
        return trail, fuse(cached, trail, pending - 1, canvases)

    def _places(self, ids: Sequence[int]) -> np.ndarray:
        """Positions behind the stream's end: one after another, but anchors where the row has them."""
        places, at = [], int(self.positions[-1])
        for token in ids:
            at = self._anchor_position(token - HOLES[0]) if token in HOLES else at + 1
            places.append(at)
        return np.array(places, np.int32)

    def _anchor_position(self, number: int) -> int:
        return int(self.row.positions[self.row.holes[number].anchor])

    def _draw(self, number: int, logits_SV: np.ndarray) -> None:
        ids, probabilities = self._decoder.chooser.slots(logits_SV, self.answers[number].typed)
        count = len(until_end(ids)[0]) + 1
        self._canvases[number] = Known("canvas", ids[:count], probabilities[:count])

    def _redraw(self, logits_SV: np.ndarray) -> None:
        """A canvas behind a draft that was right throughout; its first slot has been settled meanwhile."""
        self._draw(self.number, logits_SV)
        self._canvases[self.number].advance(int(self.ids[-1]))

    def _settle(self, fused: Fused, logits_WV: np.ndarray, cached: int, draft: Proposal) -> int:
        """Say what clean rows predict, as long as they have read what was said; how many of them had."""
        fed = fused.rows.ids_R[: fused.clean]
        row = fused.first
        while True:
            choice = self._choose(fused.clean_row(logits_WV, row))
            self._observe(draft, row - fused.first, choice.token)
            self._say(choice)
            read = common_prefix([fed], [self.ids[cached:]])
            if self.done or read < len(self.ids) - cached:
                return read
            row = read - 1

    def _choose(self, logits_V: np.ndarray) -> Choice:
        answer, chooser = self.answers[self.number], self._decoder.chooser
        said = len(answer.choices)
        logits_V = self._echoed(logits_V, answer)
        if self.number == self.forced.number and said < len(self.forced.ids):
            return chooser.forced(logits_V, answer.typed, self.forced.ids[said])
        return chooser.best(logits_V, answer.typed, self._runners_up)

    def _echoed(self, logits_V: np.ndarray, answer: Answer) -> np.ndarray:
        """With the odds that a heard token has, where text is inserted; old text is not rewritten by hearsay."""
        echo = self._decoder.echo
        heard = None if echo is None or answer.span.mode == "edit" else self._copies[self.number].heard(answer.typed)
        if heard is None:
            return logits_V
        return echo.lean(logits_V, self._decoder.chooser.log_odds(logits_V, answer.typed, heard.token), heard)

    def _observe(self, draft: Proposal, place: int, token: int) -> None:
        evidence = draft.evidence[place] if place < len(draft.ids) else None
        if evidence is not None:
            self._decoder.acceptance.observe(evidence, draft.ids[place] == token)
            self._decoder.report.verified(evidence[0], draft.ids[place] == token)

    def _say(self, choice: Choice) -> None:
        answer = self.answers[self.number]
        answer.add(choice)
        self.probability *= choice.probability
        self._append(choice.token)
        for text in (*self._texts(self.number), self._copies[self.number]):
            text.advance(choice.token)
        if not answer.done:
            return
        self._decoder.acceptance.answered(answer.span.mode, len(answer.choices))
        if self.number + 1 < len(self.answers):
            self._append(*([] if choice.token == EOM else [EOM]), HOLES[self.number + 1])
            self.starts.append(len(self.ids))

    def _append(self, *ids: int) -> None:
        self.positions = np.concatenate([self.positions, self._places(ids)])
        self.ids = np.concatenate([self.ids, np.array(ids, np.int32)])


def read(decoder: Decoder, session: Session, trail: HintedPrefix, *, leave: int = CHUNK) -> Passes[bool]:
    """Encode a chunk of rows if more than `leave` of them are not; whether that took a pass."""
    cached = session.align(trail)
    if len(trail) - cached <= leave:
        return False
    chunk = trail.upto(min(cached + CHUNK, len(trail) - 1))
    rows = fuse(cached, chunk, len(chunk) - cached).rows
    forward = yield Pass(rows, session.cache)
    session.keep(forward, chunk)
    decoder.report.count("read", rows=len(rows.ids_R), settled=0)
    return True


def _promise(proposal: Proposal) -> float:
    """How sure the first token of a draft is, whatever was seen so far: what is shown depends on no history."""
    return next(iter(_probabilities(proposal)), 0.0)


def _probabilities(proposal: Proposal) -> Sequence[float]:
    return proposal.probabilities or [prior(evidence) for evidence in proposal.evidence]
