"""What is known of the names around the cursor: answered at once from what every analyser has said so far."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

from mercury_engine.api import Members
from mercury_ls.code.documents import Snapshot
from mercury_ls.names.analyser import Analyser
from mercury_ls.names.known import Known, Name
from mercury_ls.names.learner import PATIENCE_SECONDS, Learner, Wanted
from mercury_ls.names.places import Place, at_cursor, near, uses

__all__ = ["KnownNames"]

MOST_NAMES = 256
"""Of one receiver, those that the file uses first."""
LARGEST_TEXT = 1 << 18
DYNAMIC = "__getattr__"
"""A receiver that has it may have any member."""


class KnownNames:
    """Asks every analyser, each in its own time, the cursor's place first; what they know of a place is one answer."""

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
        """What is known now of the receivers at the cursor and near it."""
        found = ((each, self._known(each)) for each in self._places(snapshot, offset))
        return tuple(listed(known, snapshot, wanted.place) for wanted, known in found if known.names)

    def want(self, snapshot: Snapshot, offset: int) -> None:
        """Learn what is unknown at the cursor, before anything else."""
        wanted = [each for each in self._places(snapshot, offset) if each.place.is_cursor]
        for learner in self._learners:
            learner.want(wanted)

    def look_ahead(self, snapshot: Snapshot, offset: int) -> None:
        """Learn what is unknown or has changed, at the cursor and near it, instead of what was wanted before."""
        wanted = self._places(snapshot, offset)
        for learner in self._learners:
            learner.look_ahead(wanted)

    async def settled(self) -> None:
        """Wait until nothing more is wanted."""
        await asyncio.gather(*(learner.settled() for learner in self._learners))

    def forget(self, uri: str = "") -> None:
        """What was learned in one document, or all of it."""
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
        cursor = at_cursor(snapshot, offset)
        places = [*([cursor] if cursor else []), *near(snapshot, offset)]
        return [Wanted(snapshot, place) for place in places]

    def _known(self, wanted: Wanted) -> Known:
        return merged(known for learner in self._learners if (known := learner.known(wanted)))


def merged(answers: Iterable[Known]) -> Known:
    """All names that any of them knows, each with what the first that knows it says; they are complete if anybody says
    so, unless the receiver makes members up when it is asked for them."""
    names: dict[str, Name] = {}
    complete = False
    for known in answers:
        complete |= known.complete
        for name in known.names:
            names.setdefault(name.text, name)
    return Known(tuple(names.values()), complete and DYNAMIC not in names)


def listed(known: Known, snapshot: Snapshot, place: Place) -> Members:
    """The names, those first that the file uses behind this receiver. These exist even if no analyser knows them. At
    the cursor only those that go on with what is typed."""
    used, kinds = uses(snapshot.text, place), {name.text: name.kind for name in known.names}
    fitting = (name for name in dict.fromkeys([*used, *kinds]) if name.startswith(place.typed))
    found = sorted(fitting, key=lambda name: (-used[name], name.startswith("_")))
    kept = tuple(found[:MOST_NAMES])
    return Members(
        receiver="" if place.is_cursor else place.receiver,
        names=kept,
        uses=tuple(used[name] for name in kept),
        complete=known.complete and len(found) <= MOST_NAMES and not place.is_free,
        kinds=tuple(kinds.get(name, "") for name in kept) if any(kinds.values()) else (),
    )
