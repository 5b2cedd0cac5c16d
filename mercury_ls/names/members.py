"""The names known around the cursor, answered at once from the text and from what analysers have answered."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from mercury_engine.api import Members
from mercury_ls.code import syntax
from mercury_ls.code.documents import Snapshot
from mercury_ls.names.analyser import Analyser
from mercury_ls.names.known import Name, NameList
from mercury_ls.names.learner import PATIENCE_SECONDS, Learner, Wanted
from mercury_ls.names.places import NamePlace, at_cursor, given, near, uses
from mercury_ls.names.written import WrittenNames

MOST_NAMES = 256
"""Per receiver; those that the file uses come first."""
MOST_IN_SCOPE = 512
LARGEST_TEXT = 1 << 18
DYNAMIC = "__getattr__"
"""A receiver that defines one of these may have any member."""
NOWHERE = NameList((), complete=False)


class NameSources:
    """Asks every analyser at its own pace, the cursor's place first, and merges their answers with the names in the
    text. Without `written`, only analysers are asked; without either, nothing is known."""

    def __init__(
        self,
        analysers: Sequence[Analyser] = (),
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE_SECONDS,
        reader: WrittenNames | None = None,
    ) -> None:
        self._learners = [Learner(analyser, clock, patience) for analyser in analysers]
        self._written = reader
        self._reading: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def analysers(self) -> tuple[Analyser, ...]:
        return tuple(learner.analyser for learner in self._learners)

    def about(self, snapshot: Snapshot, offset: int) -> tuple[Members, ...]:
        """What is known now about the places at and near the cursor, and what is in scope."""
        members = [_listed(names, snapshot, place, offset) for place, names in self.known(snapshot, offset)]
        return (*members, *self._in_scope(snapshot, offset))

    def known(self, snapshot: Snapshot, offset: int) -> Iterator[tuple[NamePlace, NameList]]:
        """The same in full, except for what is in scope."""
        for query in self._places(snapshot, offset):
            learned = [names for learner in self._learners if (names := learner.known(query))]
            names = _merged([*learned, self._read(query, offset)])
            if names.names:
                yield query.place, names

    def in_scope(self, snapshot: Snapshot, offset: int) -> NameList:
        """The names that may begin an expression at the cursor."""
        if self._written is None or len(snapshot.text) > LARGEST_TEXT or syntax.inside(snapshot, offset) is not None:
            return NOWHERE
        return self._written.in_scope(snapshot, offset)

    def want(self, snapshot: Snapshot, offset: int) -> None:
        """Learn what is unknown at the cursor, before anything else."""
        at_cursor_only = [query for query in self._places(snapshot, offset) if query.place.is_cursor]
        for learner in self._learners:
            learner.want(at_cursor_only)

    def look_ahead(self, snapshot: Snapshot, offset: int) -> None:
        """Learn what is unknown or has changed, at and near the cursor, instead of what was requested before. What
        other files say about these places is looked up ahead of the request."""
        queries = self._places(snapshot, offset)
        if self._written is not None and len(snapshot.text) <= LARGEST_TEXT:
            self._read_on(snapshot, offset)
        for learner in self._learners:
            learner.look_ahead(queries)

    async def settled(self) -> None:
        """Wait until nothing is left to learn."""
        await asyncio.gather(*(learner.settled() for learner in self._learners))
        if self._reading is not None:
            await self._reading

    def forget(self, uri: str = "") -> None:
        """Forget what was learned in one document, or in all."""
        for learner in self._learners:
            learner.forget(uri)
        if self._written is not None:
            self._written.forget(uri)

    def leave(self) -> None:
        """Close in the background, if there is anything to close."""
        if any(learner.was_asked for learner in self._learners):
            self._closing = asyncio.get_running_loop().create_task(self.close())

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        await asyncio.gather(*(learner.close() for learner in self._learners))

    def _places(self, snapshot: Snapshot, offset: int) -> list[Wanted]:
        if not (self._learners or self._written) or len(snapshot.text) > LARGEST_TEXT:
            return []
        return [Wanted(snapshot, place) for place in (*at_cursor(snapshot, offset), *near(snapshot, offset))]

    def _read_on(self, snapshot: Snapshot, offset: int) -> None:
        if self._reading is not None:
            self._reading.cancel()
        self._reading = asyncio.get_running_loop().create_task(self._read_file(snapshot, offset))

    async def _read_file(self, snapshot: Snapshot, offset: int) -> None:
        assert self._written is not None, "there is something to read with"
        for _ in self._written.reading(snapshot, offset):
            await asyncio.sleep(0)
        for query in self._places(snapshot, offset):
            self._read(query, offset)
            await asyncio.sleep(0)

    def _read(self, query: Wanted, offset: int) -> NameList:
        return self._written.at(query.snapshot, query.place, offset) if self._written is not None else NOWHERE

    def _in_scope(self, snapshot: Snapshot, offset: int) -> Iterator[Members]:
        answer = self.in_scope(snapshot, offset)
        if answer.names and self._written is not None:
            counted = self._written.counted(snapshot)
            names = sorted(answer.names, key=lambda name: -counted[name.text])
            yield _members_of(names[:MOST_IN_SCOPE], counted, answer.complete and len(names) <= MOST_IN_SCOPE)


def _members_of(names: Sequence[Name], used: Counter[str], complete: bool) -> Members:
    return Members(
        receiver="",
        names=tuple(name.text for name in names),
        uses=tuple(used[name.text] for name in names),
        complete=complete,
        role="scope",
    )


def _merged(answers: Iterable[NameList]) -> NameList:
    """All names known to any source, each as the first source describes it; complete if any source says so, unless the
    receiver creates members on demand."""
    answers = [*answers]
    names = [name for answer in answers for name in answer.names]
    is_dynamic = any(name.text == DYNAMIC for name in names)
    return NameList.of(names, complete=not is_dynamic and any(answer.complete for answer in answers))


def _listed(names: NameList, snapshot: Snapshot, place: NamePlace, offset: int) -> Members:
    """The names, first those that the file uses behind this receiver, which exist even if no analyser knows them. At
    the cursor, only those that continue what is typed; for a call, without the arguments that it already has."""
    if place.role == "keyword":
        names = _not_given(names, snapshot, place, offset)
    used = uses(snapshot.text, place)
    listed = [name.text for name in names.names]
    fitting = (name for name in dict.fromkeys([*used, *listed]) if name.startswith(place.typed))
    ranked = sorted(fitting, key=lambda name: (-used[name], name.startswith("_")))
    first_names = tuple(ranked[:MOST_NAMES])
    return Members(
        receiver="" if place.is_cursor else place.receiver,
        names=first_names,
        uses=tuple(used[name] for name in first_names),
        complete=names.complete and len(ranked) <= MOST_NAMES and not place.is_free,
        role=place.role,
    )


def _not_given(answer: NameList, snapshot: Snapshot, place: NamePlace, offset: int) -> NameList:
    count, names = given(snapshot, place, offset)
    remaining = (name for at, name in enumerate(answer.names) if at >= count or name.kind == "keyword")
    return replace(answer, names=tuple(name for name in remaining if name.text not in names))
