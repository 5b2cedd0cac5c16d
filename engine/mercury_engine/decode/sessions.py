"""What stays cached between requests: for each client and place, encoded tokens with their keys and values.

This is prefix caching, as in inference servers, with one sequence per place instead of a tree of shared blocks.
"""

import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.api import Edit
from mercury_engine.model.runtime import Cache, Forward
from mercury_engine.tokens.layout import Frozen
from mercury_engine.tokens.prefix import HintedPrefix, common_prefix

log = logging.getLogger(__name__)

PAST_ANSWERS = 8
"""The number of past answers that a session keeps: a user who corrects a slip is back where one of them was given."""

CONTEXT_CHARACTERS = 200
"""Characters before a span by which a past answer is looked up."""

MOST_DELETED = CONTEXT_CHARACTERS // 2
"""The number of these that the user may have deleted since; the others still identify the place."""

CROWDED = "engine.memory_mb is too small for the clients at work: their contexts are encoded again; raise it"

LIVE_SECONDS = 60.0
"""How long a client is expected to return to the place of its last request."""


class PastAnswer(Struct, frozen=True):
    """An earlier answer: the end of the text before its span, the answer's text, and whether it was complete."""

    before: str
    text: str
    complete: bool

    @classmethod
    def of(cls, before: str, text: str, *, complete: bool) -> "PastAnswer":
        return cls(before[-CONTEXT_CHARACTERS:], text, complete)

    def left_to_type(self, before: str) -> str | None:
        """The rest of the answer if the user has typed its start, so that `before` precedes the span now; else None."""
        for typed in range(len(self.text) + 1):
            if self._matches(before, self.before + self.text[:typed]):
                return self.text[typed:]
        return None

    def deleted_and_left(self, before: str) -> str | None:
        """What the user has deleted since, followed by the answer, if nothing else has changed; else None."""
        for deleted in range(1, min(MOST_DELETED, len(self.before)) + 1):
            if self._matches(before, self.before[:-deleted]):
                return self.before[-deleted:] + self.text
        return None

    def _matches(self, before: str, end: str) -> bool:
        from_start = len(self.before) < CONTEXT_CHARACTERS
        return before == end if from_start else before.endswith(end)


class EngineSession:
    """The encoded prefix at one place, with the frozen part of its layout and the past answers.

    `prefix` describes the contents of `cache` at every moment. A request may therefore stop anywhere, and two that
    take turns in one session only cost each other time.
    """

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.frozen: Frozen | None = None
        self.past_answers: tuple[PastAnswer, ...] = ()
        self.edits: tuple[Edit, ...] = ()
        """Those of the user that the prefix tells of."""
        self.prefix: HintedPrefix | None = None

    def remember(self, answers: Iterable[PastAnswer]) -> None:
        """Store an answer, newest first, one per place. One cancelled before its first token is ignored."""
        new = [answer for answer in answers if answer.text]
        places = {answer.before for answer in new}
        self.past_answers = (*new, *(old for old in self.past_answers if old.before not in places))[:PAST_ANSWERS]

    def align(self, prefix: HintedPrefix) -> int:
        """Truncate the cache at the first difference; return how many rows of the prefix are cached.

        The last row is never cached: the caller needs its logits.
        """
        common = 0 if self.prefix is None else common_prefix(_inputs(self.prefix), _inputs(prefix))
        length = min(common, len(prefix) - 1)
        self.cache.truncate(length)
        self.prefix = prefix.upto(length)
        return length

    def keep(self, forward: Forward, prefix: HintedPrefix, rows: Sequence[int] | None = None) -> None:
        """Cache these rows of a forward that ran on this cache, the first ones by default; with them it holds the
        prefix."""
        self.cache.append(forward, range(len(prefix) - self.cache.length) if rows is None else rows)
        self.prefix = prefix


class SessionPool:
    """The most recently used sessions, within `memory` bytes; each client's current one up to `most` bytes in all.

    A client that loses its session waits for its whole context to be encoded again, which is counted and logged once.
    """

    def __init__(
        self, new_cache: Callable[[], Cache], memory: int, limit: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.lost = 0
        self._new_cache = new_cache
        self._memory = min(memory, limit)
        self._most = limit
        self._clock = clock
        self._lost_at = -math.inf
        self._sessions: OrderedDict[tuple[str, Hashable], EngineSession] = OrderedDict()
        self._current: dict[str, tuple[Hashable, float]] = {}

    @property
    def bytes(self) -> int:
        return sum(session.cache.bytes for session in self._sessions.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """Advice if a client has lost its session within the last minute."""
        return (CROWDED,) if self._clock() - self._lost_at < LIVE_SECONDS else ()

    def open(self, client: str, place: Hashable) -> EngineSession:
        """A client's session at a place, now the most recently used one."""
        session = self._sessions.pop((client, place), None) or EngineSession(self._new_cache())
        self._sessions[client, place] = session
        self._current[client] = place, self._clock()
        return session

    def trim(self) -> None:
        """Drop the least recently used sessions beyond the limits, but never the last one used."""
        live = self._live()
        for key in [key for key in self._sessions if key not in live]:
            if self.bytes <= self._memory:
                return
            del self._sessions[key]
        while len(self._sessions) > 1 and self.bytes > self._most:
            self._sessions.popitem(last=False)
            self._count_loss()

    def _live(self) -> set[tuple[str, Hashable]]:
        """The current session of each recently active client, and the last one used."""
        since = self._clock() - LIVE_SECONDS
        self._current = {client: (place, used) for client, (place, used) in self._current.items() if used >= since}
        return {(client, place) for client, (place, _) in self._current.items()} | {*list(self._sessions)[-1:]}

    def _count_loss(self) -> None:
        if not self.lost:
            log.warning(
                "the keys and values of %d clients do not fit into %d MiB, so their contexts are encoded again and "
                "again; raise engine.memory_mb",
                len(self._current),
                self._most >> 20,
            )
        self.lost += 1
        self._lost_at = self._clock()


def _inputs(prefix: HintedPrefix) -> tuple[np.ndarray, ...]:
    """Everything that keys and values depend on."""
    return prefix.ids_R, prefix.positions_R, *prefix.hints_RH.T
