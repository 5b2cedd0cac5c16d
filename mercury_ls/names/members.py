"""What is known of the members around the cursor: answered at once, and learned while nobody waits."""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import suppress

from msgspec import Struct

from mercury_engine.api import Members
from mercury_ls.code.documents import Snapshot
from mercury_ls.names.analyser import Analyser
from mercury_ls.names.known import Known
from mercury_ls.names.places import Place, asked, at_cursor, near, uses

__all__ = ["LANGUAGE", "KnownMembers"]

LANGUAGE = "python"
MOST_PLACES = 256
MOST_NAMES = 256
"""Of one receiver, those that the file uses first."""
LARGEST_TEXT = 1 << 18
HOLDS_SECONDS = 60.0
"""What is known of a receiver that is only near is not asked for again sooner, whatever is typed."""


class Wanted(Struct, frozen=True):
    """A place in one version of a text."""

    snapshot: Snapshot
    place: Place


class Learned(Struct, frozen=True):
    """What was known of a receiver in one version of its file, and when."""

    known: Known
    text: str
    at: float

    def still_holds(self, wanted: Wanted, now: float) -> bool:
        recent = now - self.at < HOLDS_SECONDS and not wanted.place.is_cursor
        return recent or self.text == wanted.snapshot.text


class KnownMembers:
    """Asks the analyser about one place at a time, the cursor's first. Nobody waits for an answer: it serves the next
    request there."""

    def __init__(self, analyser: Analyser | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._analyser = analyser
        self._clock = clock
        self._learned: OrderedDict[tuple[str, str, str], Learned] = OrderedDict()
        self._wanted: deque[Wanted] = deque()
        self._work: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    def about(self, snapshot: Snapshot, offset: int) -> tuple[Members, ...]:
        """What is known now of the receivers at the cursor and near it."""
        return tuple(self._members(snapshot, offset)) if self._covers(snapshot) else ()

    def want(self, snapshot: Snapshot, offset: int) -> None:
        """Learn what is unknown at the cursor, before anything else."""
        place = at_cursor(snapshot, offset) if self._covers(snapshot) else None
        if place is not None and (snapshot.uri, *place.key) not in self._learned:
            self._wanted.appendleft(Wanted(snapshot, place))
            self._go_on()

    def look_ahead(self, snapshot: Snapshot, offset: int) -> None:
        """Learn what is unknown or has changed, at the cursor and near it, instead of what was wanted before."""
        if self._covers(snapshot):
            self._wanted = deque(Wanted(snapshot, place) for place in places(snapshot, offset))
            self._go_on()

    async def settled(self) -> None:
        """Wait until nothing more is wanted."""
        if self._work is not None:
            await self._work

    def forget(self, uri: str = "") -> None:
        """What was learned in one document, or all of it."""
        for key in [key for key in self._learned if uri in ("", key[0])]:
            del self._learned[key]

    def leave(self) -> None:
        """Close in the background, if there is anything to close."""
        if self._work is not None:
            self._closing = self._work.get_loop().create_task(self.close())

    async def close(self) -> None:
        self._wanted.clear()
        if self._work is not None:
            self._work.cancel()
            with suppress(asyncio.CancelledError):
                await self._work
        if self._analyser is not None:
            await self._analyser.close()

    def _covers(self, snapshot: Snapshot) -> bool:
        return self._analyser is not None and snapshot.language == LANGUAGE and len(snapshot.text) <= LARGEST_TEXT

    def _members(self, snapshot: Snapshot, offset: int) -> Iterator[Members]:
        for place in places(snapshot, offset):
            learned = self._learned.get((snapshot.uri, *place.key))
            if learned is not None and learned.known.names:
                yield listed(learned.known, snapshot, place)

    def _go_on(self) -> None:
        if self._work is None or self._work.done():
            self._work = asyncio.get_running_loop().create_task(self._learn_wanted())

    async def _learn_wanted(self) -> None:
        while self._wanted and self._analyser is not None:
            wanted = self._wanted.popleft()
            key = wanted.snapshot.uri, *wanted.place.key
            before = self._learned.get(key)
            if before is not None and before.still_holds(wanted, self._clock()):
                continue
            known = await self._analyser.ask(asked(wanted.snapshot, wanted.place))
            kept = known if known.names or before is None else before.known
            self._learned[key] = Learned(kept, wanted.snapshot.text, self._clock())
            self._learned.move_to_end(key)
            if len(self._learned) > MOST_PLACES:
                self._learned.popitem(last=False)


def places(snapshot: Snapshot, offset: int) -> list[Place]:
    """The place at the cursor, then those near it."""
    cursor = at_cursor(snapshot, offset)
    return [*([cursor] if cursor else []), *near(snapshot, offset)]


def listed(known: Known, snapshot: Snapshot, place: Place) -> Members:
    """The names, those first that the file uses behind this receiver. These exist even if the analyser knows nothing of
    them. At the cursor only those that go on with what is typed."""
    used = uses(snapshot.text, place)
    names = dict.fromkeys([*used, *(name.text for name in known.names)])
    fitting = (name for name in names if name.startswith(place.typed))
    found = sorted(fitting, key=lambda name: (-used[name], name.startswith("_")))
    complete = known.complete and len(found) <= MOST_NAMES and not place.is_free
    kept = tuple(found[:MOST_NAMES])
    return Members("" if place.is_cursor else place.receiver, kept, tuple(used[name] for name in kept), complete)
