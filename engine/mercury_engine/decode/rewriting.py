"""Judges and writes several places at once, over one past: what `tokens.revisions` lays out.

    rewriting = Rewriting(session, past, questions, permitted_V, limit)
    yield from rewriting.judge([0, 1, 2])  # one pass: how likely each place stays, and where its likeliest text departs
    yield from rewriting.write([0, 2])     # these, in common passes, up to their ends

The old lines are the draft of every answer, so the first pass already writes up to the first token that changes. From
there on a pass verifies, for each place that is still written, what follows in the old lines. Rows of one place see the
past and their own place alone: the places are siblings of a tree, as in training.

Shapes: R rows of a pass, C cached columns, V vocabulary, W rows with logits.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct, field

from mercury_engine.decode.drafts import DraftSource
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.model.runtime import Forward, Pass, Passes, Rows
from mercury_engine.tokens.prefix import Prefix
from mercury_engine.tokens.vocabulary import EOM

DRAFTED = 7
"""Tokens that a pass verifies for a place: on a CPU eight rows take about twice as long as one."""


class RegionQuestion(Struct, frozen=True):
    """A region up to its anchor, and its old lines as an answer, with the end."""

    question: Sequence[int]
    old: Sequence[int]


class RegionAnswer(Struct):
    """The tokens so far, without the end, and the probabilities of all; `log_kept` is the logarithm of how likely the
    old lines are."""

    ids: list[int] = field(default_factory=list)
    probabilities: list[float] = field(default_factory=list)
    complete: bool = False
    log_kept: float = 0.0


class Rewriting:
    """Works in a session of which it uses the columns behind the past. If another request has used the session
    between two passes, what is still written begins again."""

    def __init__(
        self,
        session: EngineSession,
        past: Prefix,
        questions: Sequence[RegionQuestion],
        permitted_V: np.ndarray,
        limit: int,
    ) -> None:
        self.passes = 0
        self.rows = 0
        self._session = session
        self._past = past
        self._permitted_V = permitted_V
        self._limit = limit
        self.questions = questions
        self._places: dict[int, _Place] = {}
        self._length = 0
        self._forward: Forward | None = None

    @property
    def answers(self) -> dict[int, RegionAnswer]:
        """Of the questions that were judged, by their numbers."""
        return {number: place.answer for number, place in self._places.items()}

    def judge(self, numbers: Sequence[int]) -> Passes[None]:
        """Read the questions with these numbers, with their old lines as drafts, in one pass; it also reads what the
        session has not of the past."""
        unread = () if self._is_own() else self._past.ids_R[self._session.align(self._past) :]
        places = [_Place(self.questions[number], len(self._past)) for number in numbers]
        chains = [_PassRows(place, [*place.question, *place.old[:-1]]) for place in places]
        logits = yield from self._pass(chains, unread, counts=[len(place.old) for place in places])
        for place, logits_WV in zip(places, logits, strict=True):
            place.judge(logits_WV, self._permitted_V)
        self._keep(chains, read=len(unread))
        self._places |= dict(zip(numbers, places, strict=True))

    def write(self, numbers: Sequence[int]) -> Passes[None]:
        """Write the answers with these numbers, which were judged. Each pause is after a pass."""
        while writing := [number for number in numbers if self._goes_on(number)]:
            if not self._is_own():
                yield from self.judge(writing)
                continue
            places = [self._places[number] for number in writing]
            chains = [_PassRows(place, [place.answer.ids[-1], *place.draft()]) for place in places]
            logits = yield from self._pass(chains, (), counts=[len(chain.ids) for chain in chains])
            for chain, logits_WV in zip(chains, logits, strict=True):
                chain.place.verify(chain.ids[1:], logits_WV, self._permitted_V)
            self._keep(chains, read=0)
            yield

    def _goes_on(self, number: int) -> bool:
        answer = self._places[number].answer
        return not answer.complete and len(answer.ids) < self._limit

    def _is_own(self) -> bool:
        """Whether the session still holds what the last pass left there."""
        return self._session.prefix is self._past and self._session.cache.length == self._length

    def _pass(
        self, chains: "Sequence[_PassRows]", unread: Sequence[int] | np.ndarray, counts: Sequence[int]
    ) -> Passes[list[np.ndarray]]:
        """The logits of the last rows of each chain, so many as `counts` says; the past's unread tokens come first."""
        cached, read = self._session.cache.length, len(unread)
        sizes = [len(chain.ids) for chain in chains]
        total = read + sum(sizes)
        mask_RC = np.zeros((total, cached + total), bool)
        mask_RC[:, : len(self._past) - read] = True
        mask_RC[:read, cached : cached + read] = np.tri(read, dtype=bool)
        mask_RC[read:, cached : cached + read] = True
        positions, rows = [np.arange(len(self._past) - read, len(self._past))], []
        stops = read + np.cumsum(sizes)
        for chain, size, stop, count in zip(chains, sizes, stops, counts, strict=True):
            own = slice(stop - size, stop)
            mask_RC[own, chain.place.columns] = True
            mask_RC[own, cached + stop - size : cached + stop] = np.tri(size, dtype=bool)
            positions.append(chain.place.position + np.arange(size))
            rows += range(stop - count, stop)
        ids_R = np.array([*unread, *(token for chain in chains for token in chain.ids)], np.int32)
        positions_R = np.concatenate(positions).astype(np.int32)
        self._forward = forward = yield Pass(Rows(ids_R, positions_R, mask_RC=mask_RC, rows=rows), self._session.cache)
        self.passes += 1
        self.rows += total
        return np.split(np.asarray(forward.logits_WV, np.float32), np.cumsum(counts)[:-1])

    def _keep(self, chains: "Sequence[_PassRows]", *, read: int) -> None:
        """Cache what was read of the past, and of each place the rows whose tokens are certain."""
        rows, at = [*range(read)], read
        column = self._session.cache.length + read
        for chain in chains:
            count = chain.place.certain
            rows += range(at, at + count)
            chain.place.columns += range(column, column + count)
            at, column = at + len(chain.ids), column + count
        assert self._forward is not None, "a pass was run"
        self._session.cache.append(self._forward, rows)
        self._session.prefix = self._past
        self._length = self._session.cache.length


class _Place:
    """A question, and its answer as far as it is written. `columns` of the cache hold what only this place sees."""

    def __init__(self, question: RegionQuestion, past: int) -> None:
        self.question, self.old = list(question.question), list(question.old)
        self.answer = RegionAnswer()
        self.columns: list[int] = []
        self._past = past
        self._source = DraftSource("old", self.old)

    @property
    def position(self) -> int:
        """Of the next row."""
        return self._past + len(self.columns)

    @property
    def certain(self) -> int:
        """The rows of the last pass that will be read again: all but that of the newest token, which had none."""
        return 0 if self.answer.complete else len(self.question) + len(self.answer.ids) - 1 - len(self.columns)

    def judge(self, logits_WV: np.ndarray, permitted_V: np.ndarray) -> None:
        """Read off how likely the old lines are, and accept them as far as they are the likeliest answer."""
        old = np.array(self.old)
        self.answer.log_kept = float(_log_probabilities(logits_WV, old).sum())
        self.verify(self.old, logits_WV, permitted_V)

    def draft(self) -> list[int]:
        """What follows in the old lines, as far as a pass verifies it, without the end."""
        ids = self._source.proposal().ids[:DRAFTED]
        return [token for token in ids if token != EOM]

    def verify(self, draft: Sequence[int], logits_WV: np.ndarray, permitted_V: np.ndarray) -> None:
        """Write the likeliest tokens: the draft as far as it has them, then one more."""
        likeliest = np.where(permitted_V, logits_WV, -np.inf).argmax(axis=1)
        agreeing = likeliest[: len(draft)] == np.array(draft, int)[: len(likeliest)]
        count = int(np.logical_and.accumulate(agreeing).sum())
        tokens = likeliest[: count + 1]
        self.answer.probabilities += np.exp(_log_probabilities(logits_WV[: len(tokens)], tokens)).tolist()
        for token in tokens.tolist():
            if token == EOM:
                self.answer.complete = True
                return
            self.answer.ids.append(token)
            self._source.advance(token)


class _PassRows(Struct, frozen=True, eq=False):
    """Rows of a pass that belong to one place, each behind the one before."""

    place: _Place
    ids: list[int]


def _log_probabilities(logits_WV: np.ndarray, ids_W: np.ndarray) -> np.ndarray:
    shifted_WV = logits_WV - logits_WV.max(axis=1, keepdims=True)
    own_W = np.take_along_axis(shifted_WV, ids_W[:, None], axis=1)[:, 0]
    return own_W - np.log(np.exp(shifted_WV).sum(axis=1))
