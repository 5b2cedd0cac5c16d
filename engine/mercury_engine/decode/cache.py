"""What is encoded already: rows of tokens with their keys and values, kept from request to request."""

import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable

import numpy as np
from msgspec import Struct

from mercury_engine.model.runtime import Cache, Forward
from mercury_engine.tokens.layout import Frozen
from mercury_engine.tokens.prefix import HintedPrefix, common_prefix

__all__ = ["Answered", "Session", "Sessions"]

log = logging.getLogger(__name__)

ANSWERS = 8
"""How many earlier answers a session keeps: whoever corrects a slip is back where one of them was given."""

LIVE_SECONDS = 60.0
"""How long somebody is taken to go on where they asked last."""


class Answered(Struct, frozen=True):
    """An earlier answer: the end of the text before its span, what the model said there, and if it was all."""

    before: str
    text: str
    complete: bool


class Session:
    """One trail of tokens as far as it is encoded, with the frozen part of its layout and its last answers.

    The trail mirrors the cache exactly at every moment, so that whoever stops half-way leaves nothing
    wrong behind, and two who take turns disturb each other only in speed.
    """

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.frozen: Frozen | None = None
        self.answered: tuple[Answered, ...] = ()
        self.trail: HintedPrefix | None = None

    def remember(self, answers: Iterable[Answered]) -> None:
        """The newest first, one at each place; whoever was cancelled before anything was said adds nothing."""
        new = [answer for answer in answers if answer.text]
        places = {answer.before for answer in new}
        self.answered = (*new, *(old for old in self.answered if old.before not in places))[:ANSWERS]

    def align(self, trail: HintedPrefix) -> int:
        """Forget everything from the first difference on; how many of the trail's rows need no encoding.

        The last row is always left to encode: its prediction is what a caller wants.
        """
        common = 0 if self.trail is None else common_prefix(_read(self.trail), _read(trail))
        length = min(common, len(trail) - 1)
        self.cache.truncate(length)
        self.trail = trail.upto(length)
        return length

    def keep(self, forward: Forward, trail: HintedPrefix) -> None:
        """Keep the first rows of a forward that ran on this cache, up to the trail's end."""
        self.cache.append(forward, range(len(trail) - self.cache.length))
        self.trail = trail


class Sessions:
    """The sessions used last, in `memory` bytes. Where each client is now stays beyond that, as long as all together
    have `most`.

    A client that loses its place waits for its whole context to be read again: that is counted, and logged once.
    """

    def __init__(
        self, new_cache: Callable[[], Cache], memory: int, most: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.lost = 0
        self._new_cache = new_cache
        self._memory = min(memory, most)
        self._most = most
        self._clock = clock
        self._lost_at = -math.inf
        self._sessions: OrderedDict[tuple[str, Hashable], Session] = OrderedDict()
        self._current: dict[str, tuple[Hashable, float]] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def bytes(self) -> int:
        return sum(session.cache.bytes for session in self._sessions.values())

    @property
    def crowded(self) -> bool:
        """Whether somebody has lost a place a moment ago."""
        return self._clock() - self._lost_at < LIVE_SECONDS

    def open(self, client: str, place: Hashable) -> Session:
        """A client's session at a place, which from now on is the one used last."""
        session = self._sessions.pop((client, place), None) or Session(self._new_cache())
        self._sessions[client, place] = session
        self._current[client] = place, self._clock()
        return session

    def trim(self) -> None:
        """The ones unused for longest go if all together have grown too large, the one in use never."""
        live = self._live()
        for key in [key for key in self._sessions if key not in live]:
            if self.bytes <= self._memory:
                return
            del self._sessions[key]
        while len(self._sessions) > 1 and self.bytes > self._most:
            self._sessions.popitem(last=False)
            self._lose()

    def _live(self) -> set[tuple[str, Hashable]]:
        """Where each client is that has not been away for long, and the session in use."""
        since = self._clock() - LIVE_SECONDS
        self._current = {client: (place, used) for client, (place, used) in self._current.items() if used >= since}
        return {(client, place) for client, (place, _) in self._current.items()} | {*list(self._sessions)[-1:]}

    def _lose(self) -> None:
        if not self.lost:
            log.warning(
                "%d clients do not fit %d MiB of keys and values: their contexts are read again and again; "
                "raise engine.memory_mb",
                len(self._current),
                self._most >> 20,
            )
        self.lost += 1
        self._lost_at = self._clock()


def _read(trail: HintedPrefix) -> tuple[np.ndarray, ...]:
    """All that keys and values depend on."""
    return trail.ids_R, trail.positions_R, *trail.hints_RH.T
