"""Finds and writes the likeliest changes of several places at once, over one past: what `tokens.revisions` lays out.

    rewriting = Rewriting(session, past, questions, permitted_V, limit, least=-2.0)
    yield from rewriting.judge([0, 1, 2])  # one pass: how likely each place stays, and where it may change
    yield from rewriting.write(3)          # the three likeliest changes, in common passes, up to their ends

A place stays as it is far more often than not, so what is likeliest there by itself is mostly the old lines. The pass
that reads these tells, at each of their tokens, how likely an answer follows them up to there and parts from them with
another token. The likeliest partings of all places are written on; what follows in the old lines is their draft. A
change that becomes less likely than `least`, a logarithm, is given up. Rows of one place see the past and their own
place alone: the places are siblings of a tree, as in training, and so are changes of one place.

Shapes: R rows of a pass, C cached columns, V vocabulary, W rows with logits.
"""

import heapq
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.decode.drafts import DraftSource
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.model.runtime import Forward, Pass, Passes, Rows
from mercury_engine.tokens.vocabulary import EOM

DRAFTED = 7
"""Tokens that a pass verifies for a change: on a CPU eight rows take about twice as long as one."""


class RegionQuestion(Struct, frozen=True):
    """A region up to its anchor, and its old lines as an answer, with the end."""

    question: Sequence[int]
    old: Sequence[int]


class RegionAnswer(Struct, frozen=True):
    """The likeliest change that is `complete`: its tokens, without the end, and the probabilities of all; `log_kept` is
    the logarithm of how likely the old lines are."""

    log_kept: float
    ids: tuple[int, ...] = ()
    probabilities: tuple[float, ...] = ()
    complete: bool = False


class Rewriting(Struct, eq=False):
    """Works in a session of which it uses the columns behind the past. If another request has used the session
    between two passes, what is still written is read again."""

    session: EngineSession
    past: np.ndarray
    questions: Sequence[RegionQuestion]
    permitted_V: np.ndarray
    limit: int
    least: float
    passes: int = 0
    rows: int = 0
    places: "dict[int, _Place]" = {}
    changes: "list[_Change]" = []
    length: int = 0
    forward: Forward | None = None

    @property
    def answers(self) -> dict[int, RegionAnswer]:
        """Of the questions that were judged, by their numbers."""
        return {number: self._answer(place) for number, place in self.places.items()}

    def judge(self, numbers: Sequence[int]) -> Passes[None]:
        """Read the questions with these numbers and their old lines in one pass; it also reads what the session has not
        of the past."""
        unread = self._unread()
        asked = [self.questions[number] for number in numbers]
        places = [_Place(list(question.question), list(question.old)) for question in asked]
        chains = [_Chain(place.columns, place.unread) for place in places]
        logits = yield from self._pass(chains, unread, [len(place.old) for place in places])
        for place, logits_WV in zip(places, logits, strict=True):
            place.judge(logits_WV, self.permitted_V)
        self._keep(chains, [len(chain.ids) for chain in chains], read=len(unread))
        self.places |= dict(zip(numbers, places, strict=True))

    def write(self, count: int) -> Passes[None]:
        """Write so many of the likeliest changes, if there are as many. Each pause is after a pass."""
        partings = heapq.nlargest(count, self._partings(), key=lambda parting: parting.log_probability)
        self.changes = [_Change.of(parting) for parting in partings]
        while writing := [change for change in self.changes if self._goes_on(change)]:
            unread = self._unread()
            drafts = [change.draft() for change in writing]
            pairs = zip(writing, drafts, strict=True)
            chains = [_Chain(change.columns, [*change.unread, *draft]) for change, draft in pairs]
            logits = yield from self._pass(chains, unread, [1 + len(draft) for draft in drafts])
            for change, draft, logits_WV in zip(writing, drafts, logits, strict=True):
                change.verify(draft, logits_WV, self.permitted_V)
            self._keep(chains, [change.certain for change in writing], read=len(unread))
            yield

    def _partings(self) -> Iterator["_Parting"]:
        for place in self.places.values():
            yield from (parting for parting in place.partings if parting.log_probability >= self.least)

    def _goes_on(self, change: "_Change") -> bool:
        is_open = not change.complete and len(change.ids) < self.limit
        return is_open and change.log_probability >= self.least

    def _answer(self, place: "_Place") -> RegionAnswer:
        changes = [change for change in self.changes if change.place is place and change.complete]
        if not changes:
            return RegionAnswer(place.log_kept)
        best = max(changes, key=lambda change: change.log_probability)
        return RegionAnswer(place.log_kept, tuple(best.ids), tuple(np.exp(best.logs).tolist()), complete=True)

    def _unread(self) -> Sequence[int] | np.ndarray:
        """What the session has to read of the past again, and all places with it, if another request has used it."""
        if self.session.ids is self.past and self.session.cache.length == self.length:
            return ()
        for place in self.places.values():
            place.columns.clear()
        for change in self.changes:
            change.columns.clear()
        return self.past[self.session.align(self.past) :]

    def _pass(
        self, chains: "Sequence[_Chain]", unread: Sequence[int] | np.ndarray, counts: Sequence[int]
    ) -> Passes[list[np.ndarray]]:
        """The logits of the last rows of each chain, so many as `counts` says; the past's unread tokens come first."""
        cached, read, past = self.session.cache.length, len(unread), len(self.past)
        sizes = [len(chain.ids) for chain in chains]
        total = read + sum(sizes)
        mask_RC = np.zeros((total, cached + total), bool)
        mask_RC[:, : past - read] = True
        mask_RC[:read, cached : cached + read] = np.tri(read, dtype=bool)
        mask_RC[read:, cached : cached + read] = True
        positions, rows = [np.arange(past - read, past)], []
        stops = read + np.cumsum(sizes)
        for chain, size, stop, count in zip(chains, sizes, stops, counts, strict=True):
            own = slice(stop - size, stop)
            mask_RC[own, chain.columns] = True
            mask_RC[own, cached + stop - size : cached + stop] = np.tri(size, dtype=bool)
            positions.append(past + len(chain.columns) + np.arange(size))
            rows += range(stop - count, stop)
        ids_R = np.array([*unread, *(token for chain in chains for token in chain.ids)], np.int32)
        positions_R = np.concatenate(positions).astype(np.int32)
        self.forward = forward = yield Pass(Rows(ids_R, positions_R, mask_RC=mask_RC, rows=rows), self.session.cache)
        self.passes += 1
        self.rows += total
        return np.split(np.asarray(forward.logits_WV, np.float32), np.cumsum(counts)[:-1])

    def _keep(self, chains: "Sequence[_Chain]", counts: Sequence[int], *, read: int) -> None:
        """Cache what was read of the past, and so many rows of each chain."""
        rows, at = [*range(read)], read
        column = self.session.cache.length + read
        for chain, count in zip(chains, counts, strict=True):
            rows += range(at, at + count)
            chain.columns.extend(range(column, column + count))
            at, column = at + len(chain.ids), column + count
        assert self.forward is not None, "a pass was run"
        self.session.cache.append(self.forward, rows)
        self.session.ids = self.past
        self.length = self.session.cache.length


class _Chain(Struct, frozen=True, eq=False):
    """Rows of a pass, each behind the one before, and the columns of the cache before them that only they see."""

    columns: list[int]
    ids: list[int]


class _Place(Struct, eq=False):
    """A question, and what its old lines tell."""

    question: list[int]
    old: list[int]
    columns: list[int] = []
    log_kept: float = 0.0
    partings: "list[_Parting]" = []

    @property
    def unread(self) -> list[int]:
        return [*self.question, *self.old[:-1]]

    def judge(self, logits_WV: np.ndarray, permitted_V: np.ndarray) -> None:
        logs_WV, rows_W = _log_probabilities(logits_WV), np.arange(len(self.old))
        log_old_W = logs_WV[rows_W, self.old]
        self.log_kept = float(log_old_W.sum())
        logs_WV = np.where(permitted_V, logs_WV, -np.inf)
        logs_WV[rows_W, self.old] = -np.inf
        tokens_W = logs_WV.argmax(axis=1)
        log_other_W = logs_WV[rows_W, tokens_W]
        self.partings = [
            _Parting(self, int(token), [*log_old_W[:at].tolist(), float(log_other_W[at])])
            for at, token in enumerate(tokens_W)
        ]


class _Parting(Struct, frozen=True, eq=False):
    """The old lines up to a token, and another one instead of it; the logarithms of how likely each of these is."""

    place: _Place
    token: int
    logs: list[float]

    @property
    def log_probability(self) -> float:
        return sum(self.logs)


class _Change(Struct, eq=False):
    """A text that parts from the old lines of its place, as far as it is written."""

    place: _Place
    ids: list[int]
    logs: list[float]
    columns: list[int]
    source: DraftSource
    complete: bool = False

    @classmethod
    def of(cls, parting: _Parting) -> "_Change":
        place, count = parting.place, len(parting.logs) - 1
        change = cls(place, [], [], place.columns[: len(place.question) + count], DraftSource("old", place.old))
        for token, log in zip([*place.old[:count], parting.token], parting.logs, strict=True):
            change._write(token, log)
        return change

    @property
    def log_probability(self) -> float:
        return sum(self.logs)

    @property
    def unread(self) -> list[int]:
        return [*self.place.question, *self.ids][len(self.columns) :]

    @property
    def certain(self) -> int:
        """The rows of the last pass that will be read again: all but that of the newest token, which had none."""
        return 0 if self.complete else len(self.unread) - 1

    def draft(self) -> list[int]:
        """What follows in the old lines, as far as a pass verifies it, without the end."""
        return [token for token in self.source.proposal().ids[:DRAFTED] if token != EOM]

    def verify(self, draft: Sequence[int], logits_WV: np.ndarray, permitted_V: np.ndarray) -> None:
        """Write the likeliest tokens: the draft as far as it has them, then one more."""
        logs_WV = _log_probabilities(logits_WV)
        likeliest = np.where(permitted_V, logs_WV, -np.inf).argmax(axis=1)
        agreeing = likeliest[: len(draft)] == np.array(draft, int)
        count = int(np.logical_and.accumulate(agreeing).sum())
        for row, token in enumerate(likeliest[: count + 1].tolist()):
            self._write(token, float(logs_WV[row, token]))

    def _write(self, token: int, log: float) -> None:
        self.logs.append(log)
        self.complete = token == EOM
        if not self.complete:
            self.ids.append(token)
            self.source.advance(token)


def _log_probabilities(logits_WV: np.ndarray) -> np.ndarray:
    shifted_WV = logits_WV - logits_WV.max(axis=1, keepdims=True)
    return shifted_WV - np.log(np.exp(shifted_WV).sum(axis=1, keepdims=True))
