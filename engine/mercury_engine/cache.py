"""What is encoded already: rows of tokens with their keys and values, kept from request to request."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.layout import Frozen
from mercury_engine.runtime import Cache, Forward

__all__ = ["Answered", "Session", "Sessions", "common_prefix"]

ANSWERS = 8
"""How many earlier answers a session keeps: whoever corrects a slip is back where one of them was given."""


class Answered(Struct, frozen=True):
    """An earlier answer: the end of the text before its span, what the model said there, and if it was all."""

    before: str
    text: str
    complete: bool


class Session:
    """One row of tokens as far as it is encoded, with the frozen part of its layout and its last answers.

    Ids and positions mirror the cache exactly at every moment, so that whoever stops half-way leaves nothing
    wrong behind, and two who take turns disturb each other only in speed.
    """

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.frozen: Frozen | None = None
        self.answered: tuple[Answered, ...] = ()
        self._ids = np.empty(0, np.int32)
        self._positions = np.empty(0, np.int32)

    def remember(self, answers: Iterable[Answered]) -> None:
        """The newest first, one at each place; whoever was cancelled before anything was said adds nothing."""
        new = [answer for answer in answers if answer.text]
        places = {answer.before for answer in new}
        self.answered = (*new, *(old for old in self.answered if old.before not in places))[:ANSWERS]

    def align(self, ids: np.ndarray, positions: np.ndarray) -> int:
        """Forget everything from the first difference on; how many of these rows need no encoding.

        The last row is always left to encode: its prediction is what a caller wants.
        """
        common = common_prefix((self._ids, self._positions), (ids, positions))
        self._truncate(min(common, len(ids) - 1))
        return self.cache.length

    def keep(self, forward: Forward, ids: np.ndarray, positions: np.ndarray) -> None:
        """Keep the first rows of a forward that ran on this cache: as many as there are ids."""
        self.cache.append(forward, range(len(ids)))
        self._ids = np.concatenate([self._ids, ids])
        self._positions = np.concatenate([self._positions, positions])

    def _truncate(self, length: int) -> None:
        self.cache.truncate(length)
        self._ids = self._ids[:length]
        self._positions = self._positions[:length]


class Sessions:
    """The sessions used last, in as much memory as their caches may take."""

    def __init__(self, new_cache: Callable[[], Cache], memory: int) -> None:
        self._new_cache = new_cache
        self._memory = memory
        self._sessions: OrderedDict[Hashable, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def bytes(self) -> int:
        return sum(session.cache.bytes for session in self._sessions.values())

    def open(self, key: Hashable) -> Session:
        """The session of that name, which from now on is the one used last."""
        session = self._sessions.pop(key, None) or Session(self._new_cache())
        self._sessions[key] = session
        return session

    def trim(self) -> None:
        """The ones unused for longest go if all together have grown too large, the one in use never."""
        while len(self._sessions) > 1 and self.bytes > self._memory:
            self._sessions.popitem(last=False)


def common_prefix(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> int:
    """How many leading places agree in every pair of arrays."""
    length = min(len(ours[0]), len(theirs[0]))
    differs = np.zeros(length, bool)
    for one, other in zip(ours, theirs, strict=True):
        differs |= one[:length] != other[:length]
    return int(differs.argmax()) if differs.any() else length
