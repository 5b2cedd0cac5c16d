"""Judges and writes several places at once, over one past: what `tokens.revisions` lays out.

    rewriting = Rewriting(runtime, session, past, questions, permitted_V)
    yield from rewriting.judge()        # one pass: how likely each place stays, and where its likeliest text departs
    yield from rewriting.write([0, 2])  # these, in common passes, up to their ends

The old lines are the draft of every answer, so the first pass already writes up to the first token that changes. From
there on a pass verifies, for each place that is still written, what follows in the old lines. Rows of one place see the
past and their own place alone: the places are siblings of a tree, as in training.

Shapes: R rows of a pass, C cached columns, V vocabulary, W rows with logits.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

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
    """The tokens so far, without the end, and the logarithms of how likely they are and how likely it is that the old
    lines stay."""

    ids: list[int]
    complete: bool
    log_probability: float
    log_kept: float


class Rewriting:
    """Works in a session of which it uses the columns behind the past. If another request has used the session
    between two passes, it begins again."""

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
        self._questions = questions
        self._places: list[_Place] = []
        self._length = 0
        self._forward: Forward | None = None

    @property
    def answers(self) -> list[RegionAnswer]:
        return [place.answer for place in self._places]

    def judge(self) -> Passes[None]:
        """Read the past's last tokens, and every place with its old lines as the draft."""
        self._places = [_Place(question, len(self._past)) for question in self._questions]
        cached = self._session.align(self._past)
        chains = [_Chain(place, [*place.question, *place.old[:-1]]) for place in self._places]
        logits = yield from self._pass(chains, self._past.ids_R[cached:], wanted=[len(p.old) for p in self._places])
        for chain, logits_WV in zip(chains, logits, strict=True):
            chain.place.judge(logits_WV, self._permitted_V)
        self._keep(chains, read=len(self._past) - cached)

    def write(self, numbers: Sequence[int]) -> Passes[None]:
        """Write the answers with these numbers. Each pause is after a pass."""
        while writing := [self._places[number] for number in numbers if self._goes_on(number)]:
            if not self._is_own():
                yield from self.judge()
                continue
            chains = [_Chain(place, [place.answer.ids[-1], *place.draft()]) for place in writing]
            logits = yield from self._pass(chains, (), wanted=[len(chain.ids) for chain in chains])
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
        self, chains: "Sequence[_Chain]", unread: Sequence[int] | np.ndarray, wanted: Sequence[int]
    ) -> Passes[list[np.ndarray]]:
        """The logits of the last rows of each chain, so many as are wanted; the past's unread tokens come first."""
        cached, read = self._session.cache.length, len(unread)
        sizes = [len(chain.ids) for chain in chains]
        total = read + sum(sizes)
        mask_RC = np.zeros((total, cached + total), bool)
        mask_RC[:, : len(self._past) - read] = True
        mask_RC[:read, cached : cached + read] = np.tri(read, dtype=bool)
        mask_RC[read:, cached : cached + read] = True
        positions, rows = [np.arange(len(self._past) - read, len(self._past))], []
        stops = read + np.cumsum(sizes)
        for chain, size, stop, count in zip(chains, sizes, stops, wanted, strict=True):
            own = slice(stop - size, stop)
            mask_RC[own, chain.place.columns] = True
            mask_RC[own, cached + stop - size : cached + stop] = np.tri(size, dtype=bool)
            positions.append(chain.place.position + np.arange(size))
            rows += range(stop - count, stop)
        ids_R = np.array([*unread, *(token for chain in chains for token in chain.ids)], np.int32)
        positions_R = np.concatenate(positions).astype(np.int32)
        forward = yield Pass(Rows(ids_R, positions_R, mask_RC=mask_RC, rows=rows), self._session.cache)
        self._forward = forward
        self.passes += 1
        self.rows += total
        return np.split(np.asarray(forward.logits_WV, np.float32), np.cumsum(wanted)[:-1])

    def _keep(self, chains: "Sequence[_Chain]", *, read: int) -> None:
        """Cache what was read of the past, and of each place the rows whose tokens are certain."""
        rows, at = [*range(read)], read
        column = self._session.cache.length + read
        for chain in chains:
            count = chain.place.certain
            rows += range(at, at + count)
            chain.place.columns += range(column, column + count)
            at, column = at + len(chain.ids), column + count
        self._session.cache.append(self._forward, rows)
        self._session.prefix = self._past
        self._length = self._session.cache.length


class _Place:
    """A question, and its answer as far as it is written. `columns` of the cache hold what only this place sees."""

    def __init__(self, question: RegionQuestion, past: int) -> None:
        self.question, self.old = list(question.question), list(question.old)
        self.answer = RegionAnswer([], complete=False, log_probability=0.0, log_kept=0.0)
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
        same = likeliest[: len(draft)] == np.array(draft, int)[: len(likeliest)]
        count = int(np.logical_and.accumulate(same).sum())
        written = likeliest[: count + 1]
        self.answer.log_probability += float(_log_probabilities(logits_WV[: len(written)], written).sum())
        for token in written.tolist():
            if token == EOM:
                self.answer.complete = True
                return
            self.answer.ids.append(token)
            self._source.advance(token)


class _Chain(Struct, frozen=True, eq=False):
    """Rows of a pass that belong to one place, each behind the one before."""

    place: _Place
    ids: list[int]


def _log_probabilities(logits_WV: np.ndarray, ids_W: np.ndarray) -> np.ndarray:
    shifted_WV = logits_WV - logits_WV.max(axis=1, keepdims=True)
    own_W = np.take_along_axis(shifted_WV, ids_W[:, None], axis=1)[:, 0]
    return own_W - np.log(np.exp(shifted_WV).sum(axis=1))
