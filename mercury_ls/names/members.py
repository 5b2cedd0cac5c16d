"""The members known around the cursor, answered at once from what analysers have answered."""

import asyncio
import time
from collections.abc import Callable, Sequence

from mercury_engine.api import Members
from mercury_ls.code.documents import Snapshot
from mercury_ls.names.analyser import Analyser
from mercury_ls.names.learner import PATIENCE_SECONDS, Learner, Wanted
from mercury_ls.names.places import at_cursor, near, uses

MOST_NAMES = 256
"""Per receiver: of an object with more, nothing is told."""
LARGEST_TEXT = 1 << 18
DYNAMIC = "__getattr__"
"""A receiver that defines one of these may have any member."""


class NameSources:
    """Asks every analyser at its own pace, the cursor's place first, and merges their answers. Without analysers,
    nothing is known."""

    def __init__(
        self,
        analysers: Sequence[Analyser] = (),
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._learners = [Learner(analyser, clock, patience) for analyser in analysers]
        self._closing: asyncio.Task[None] | None = None

    @property
    def analysers(self) -> tuple[Analyser, ...]:
        return tuple(learner.analyser for learner in self._learners)

    def about(self, snapshot: Snapshot, offset: int) -> tuple[Members, ...]:
        """Where all members are known now, at and near the cursor."""
        members = (self._members(query) for query in self._places(snapshot, offset))
        return tuple(filter(None, members))

    def want(self, snapshot: Snapshot, offset: int) -> None:
        """Learn what is unknown at the cursor, before anything else."""
        at_cursor_only = [query for query in self._places(snapshot, offset) if query.place.is_cursor]
        for learner in self._learners:
            learner.want(at_cursor_only)

    def look_ahead(self, snapshot: Snapshot, offset: int) -> None:
        """Learn what is unknown or has changed, at and near the cursor, instead of what was requested before."""
        queries = self._places(snapshot, offset)
        for learner in self._learners:
            learner.look_ahead(queries)

    async def settled(self) -> None:
        """Wait until nothing is left to learn."""
        await asyncio.gather(*(learner.settled() for learner in self._learners))

    def forget(self, uri: str = "") -> None:
        """Forget what was learned in one document, or in all."""
        for learner in self._learners:
            learner.forget(uri)

    def leave(self) -> None:
        """Close in the background, if there is anything to close."""
        if any(learner.was_asked for learner in self._learners):
            self._closing = asyncio.get_running_loop().create_task(self.close())

    async def close(self) -> None:
        await asyncio.gather(*(learner.close() for learner in self._learners))

    def _places(self, snapshot: Snapshot, offset: int) -> list[Wanted]:
        if not self._learners or len(snapshot.text) > LARGEST_TEXT:
            return []
        return [Wanted(snapshot, place) for place in (*at_cursor(snapshot, offset), *near(snapshot, offset))]

    def _members(self, query: Wanted) -> Members | None:
        """All members, if any source lists them all: those that the file uses exist even if no analyser knows them. At
        the cursor, those that continue what is typed."""
        place, listed, is_complete = query.place, dict[str, None](), False
        for learner in self._learners:
            if answer := learner.known(query):
                listed |= dict.fromkeys(answer.names)
                is_complete |= answer.complete
        if place.is_free or not is_complete or DYNAMIC in listed:
            return None
        listed |= dict.fromkeys(uses(query.snapshot.text, place))
        names = tuple(name for name in listed if name.startswith(place.typed))
        is_told = 0 < len(names) <= MOST_NAMES
        return Members("" if place.is_cursor else place.receiver, names) if is_told else None
