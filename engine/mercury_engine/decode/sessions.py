"""What stays cached between requests: encoded tokens with their keys and values, and what is known of each file.

This is prefix caching, as in inference servers, with whole sequences instead of a tree of shared blocks.
"""

import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from itertools import product

import numpy as np
from msgspec import Struct, field

from mercury_engine.api import Edit, Gap, Snippet
from mercury_engine.model.runtime import Cache, Forward, Runtime
from mercury_engine.tokens.layout import Budget, Frozen, freeze, is_stale
from mercury_engine.tokens.prefix import common_prefix
from mercury_engine.tokens.tokenizer import Tokenizer

log = logging.getLogger(__name__)

PAST_ANSWERS = 8
"""The number of past answers that a session keeps: a user who corrects a slip is back where one of them was given."""

CONTEXT_CHARACTERS = 200
"""Characters before a gap by which a past answer is looked up."""

MOST_DELETED = CONTEXT_CHARACTERS // 2
"""The number of these that the user may have deleted since; the others still identify the place."""

CROWDED = "engine.memory_mb is too small for the clients at work: their contexts are encoded again; raise it"

LAYOUTS = 8
"""Of a file: whoever jumps back is where one of them was made."""

NEWER = 3
"""So many edits may be newer than those that were read."""

PLACES = 256

LIVE_SECONDS = 60.0
"""How long a client is expected to return to the place of its last request."""


class PastAnswer(Struct, frozen=True):
    """An earlier answer: the end of the text before its gap, the answer's text, and whether it was complete."""

    before: str
    text: str
    complete: bool

    @classmethod
    def of(cls, before: str, text: str, *, complete: bool) -> "PastAnswer":
        return cls(before[-CONTEXT_CHARACTERS:], text, complete)

    def left_to_type(self, before: str) -> str | None:
        """The rest of the answer if the user has typed its start, so that `before` precedes the gap now; else None."""
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


class Layout(Struct, frozen=True):
    """The frozen part of rows of one budget, and what it was made from."""

    budget: Budget
    frozen: Frozen
    snippets: tuple[Snippet, ...]
    edits: tuple[Edit, ...]

    @classmethod
    def of(cls, tokenizer: Tokenizer, gap: Gap, budget: Budget) -> "Layout":
        return cls(budget, freeze(tokenizer, gap, budget), gap.snippets, gap.edits)

    def is_outdated(self, gap: Gap) -> bool:
        """True if so much is new that all that stands behind it should be read again while nobody waits."""
        return gap.snippets != self.snippets or not follow(gap.edits, self.edits)


def follow(edits: Sequence[Edit], read: Sequence[Edit]) -> bool:
    """Whether only a few are new since these were read: the last of these may have grown, and the oldest have been
    forgotten, but none was undone."""
    now, then = list(map(_texts, edits)), list(map(_texts, read))
    new = [edit for edit in now if edit not in then]
    gone = [edit for edit in then[:-1] if edit not in now]
    return len(new) <= NEWER and len(now) >= len(then) and gone == then[: len(gone)]


def _texts(edit: Edit) -> tuple[str, str, str]:
    """What a model reads of an edit: its line moves with every line that is typed above it."""
    return edit.path, edit.before, edit.after


class Place(Struct, eq=False):
    """What is known of one file of one client beside its keys and values: the layouts of its rows, newest first, and
    the past answers."""

    layouts: tuple[Layout, ...] = ()
    past_answers: tuple[PastAnswer, ...] = ()
    edits: tuple[Edit, ...] = ()
    """Those of the user that were read."""

    def keep(self, layout: Layout) -> Layout:
        """As the newest, in place of one that makes the same rows."""
        others = (old for old in self.layouts if (old.budget, old.frozen) != (layout.budget, layout.frozen))
        self.layouts = (layout, *others)[:LAYOUTS]
        return layout

    def usable(self, gap: Gap, budget: Budget) -> list[Layout]:
        """The layouts that still fit where the gap is, newest first."""
        own = (layout for layout in self.layouts if layout.budget == budget)
        return [layout for layout in own if not is_stale(layout.frozen, gap)]

    def expected(self, before: str) -> tuple[str, bool]:
        """What is left of the past answer that the user is typing or has gone back to, and whether that is all."""
        for left, answer in product((PastAnswer.left_to_type, PastAnswer.deleted_and_left), self.past_answers):
            if text := left(answer, before):
                return text, answer.complete
        return "", False

    def remember(self, answer: PastAnswer) -> None:
        """Store an answer, newest first, one per place. One cancelled before its first token is ignored."""
        if answer.text:
            others = (old for old in self.past_answers if old.before != answer.before)
            self.past_answers = (answer, *others)[:PAST_ANSWERS]


class Places:
    """The most recently used places of all clients."""

    def __init__(self) -> None:
        self._places: OrderedDict[Hashable, Place] = OrderedDict()

    def open(self, client: str, file: Hashable) -> Place:
        key = client, file
        place = self._places[key] = self._places.pop(key, None) or Place()
        if len(self._places) > PLACES:
            self._places.popitem(last=False)
        return place


class EngineSession(Struct, eq=False):
    """Encoded rows: `cache` holds those of the tokens `ids` at every moment. A request may therefore stop anywhere, and
    two that take turns in one session only cost each other time."""

    cache: Cache
    edits: bool = False
    ids: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))

    def shares(self, ids: np.ndarray) -> int:
        """How many of these tokens it begins with."""
        return common_prefix(self.ids, ids)

    def align(self, ids: np.ndarray) -> int:
        """Truncate the cache at the first difference; return how many of these tokens are cached.

        The last one is never cached: the caller needs its logits.
        """
        length = min(self.shares(ids), len(ids) - 1)
        self.cache.truncate(length)
        self.ids = ids[:length]
        return length

    def keep(self, forward: Forward, ids: np.ndarray, rows: Sequence[int] | None = None) -> None:
        """Cache these rows of a forward that ran on this cache, the first ones by default; with them it holds these
        tokens."""
        self.cache.append(forward, range(len(ids) - self.cache.length) if rows is None else rows)
        self.ids = ids


class SessionPool:
    """The most recently used sessions, within `memory` bytes; each client's current one up to `limit` bytes in all.

    Who asks gets the session that has read most of the row: after a jump or a return, the one of that place, whichever
    client it was read for. A client that loses its session waits for its whole context to be encoded again, which is
    counted and logged once.
    """

    def __init__(
        self, runtime: Runtime, memory: int, limit: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.lost = 0
        self._runtime = runtime
        self._memory = min(memory, limit)
        self._most = limit
        self._clock = clock
        self._lost_at = -math.inf
        self._sessions: list[EngineSession] = []
        """The last one used is the last."""
        self._current: dict[str, tuple[EngineSession, float]] = {}

    @property
    def bytes(self) -> int:
        return sum(session.cache.bytes for session in self._sessions)

    @property
    def notes(self) -> tuple[str, ...]:
        """Advice if a client has lost its session within the last minute."""
        return (CROWDED,) if self._clock() - self._lost_at < LIVE_SECONDS else ()

    def unread(self, ids: np.ndarray) -> int:
        """How many of these tokens have to be read by the session that they get."""
        session = self._fitting(ids, edits=False)
        return len(ids) - (0 if session is None else session.shares(ids))

    def open(self, client: str, ids: np.ndarray, *, edits: bool = False) -> EngineSession:
        """The session that has read most of these tokens, now the last one used; a new one if it holds more else. Those
        for `edits` are computed with an adapter, and kept apart."""
        if (session := self._fitting(ids, edits=edits)) is None:
            session = EngineSession(self._runtime.cache(edits=edits), edits=edits)
        else:
            self._sessions.remove(session)
        self._sessions.append(session)
        self._current[client] = session, self._clock()
        return session

    def _fitting(self, ids: np.ndarray, *, edits: bool) -> EngineSession | None:
        alike = (session for session in self._sessions if session.edits == edits)
        session = max(alike, key=lambda session: session.shares(ids), default=None)
        return None if session is None or 2 * session.shares(ids) < session.cache.length else session

    def trim(self) -> None:
        """Drop the least recently used sessions beyond the limits, but never the last one used."""
        live = self._live()
        for session in [session for session in self._sessions if session not in live]:
            if self.bytes <= self._memory:
                return
            self._sessions.remove(session)
        while len(self._sessions) > 1 and self.bytes > self._most:
            lost = self._sessions.pop(0)
            self._count_loss()
            self._current = {client: current for client, current in self._current.items() if current[0] is not lost}

    def _live(self) -> list[EngineSession]:
        """The current session of each recently active client, and the last one used."""
        since = self._clock() - LIVE_SECONDS
        self._current = {client: (session, used) for client, (session, used) in self._current.items() if used >= since}
        return [*(session for session, _ in self._current.values()), *self._sessions[-1:]]

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
