"""Answers of one analyser, collected: it is asked about one place at a time, in the background, and rests after a
failure."""

import asyncio
import logging
import re
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from mercury_ls.code.documents import Snapshot
from mercury_ls.names.analyser import Analyser
from mercury_ls.names.known import NameList
from mercury_ls.names.places import NamePlace, asked

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 5.0
FIRST_REST, LONGEST_REST = 5.0, 600.0
MOST_PLACES = 256
MOST_NAMES = 2048
HOLDS_SECONDS = 60.0
"""A place is not asked about again sooner: at the cursor, if text is only typed behind it; near the cursor, whatever is
typed."""
NAME = re.compile(r"[#$]?[^\W\d][\w$]*[!?]?")
"""A name in any language."""


class Wanted(Struct, frozen=True):
    """A place, in one version of a text, to learn about."""

    snapshot: Snapshot
    place: NamePlace

    @property
    def key(self) -> tuple[str, ...]:
        return self.snapshot.uri, *self.place.key


class _Learned(Struct, frozen=True):
    """What was known of a place in one version of its file, and when."""

    known: NameList
    text: str
    at: float

    def still_holds(self, query: Wanted, time: float) -> bool:
        """True while only text behind the place changes, which changes nothing about it."""
        at = query.place.at if query.place.is_cursor else 0
        recent = time - self.at < HOLDS_SECONDS and self.text[:at] == query.snapshot.text[:at]
        return recent or self.text == query.snapshot.text


class Learner:
    """Learns names in the background: an answer serves the next request at that place."""

    def __init__(
        self, analyser: Analyser, clock: Callable[[], float] = time.monotonic, patience: float = PATIENCE_SECONDS
    ) -> None:
        self.analyser = analyser
        self._clock = clock
        self._patience = patience
        self._learned: OrderedDict[tuple[str, ...], _Learned] = OrderedDict()
        self._wanted: deque[Wanted] = deque()
        self._work: asyncio.Task[None] | None = None
        self._rest = FIRST_REST
        self._resting_until = float("-inf")

    @property
    def was_asked(self) -> bool:
        return self._work is not None

    def known(self, query: Wanted) -> NameList | None:
        """What is known now, if anything."""
        learned = self._learned.get(query.key)
        return learned.known if learned is not None and learned.known.names else None

    def want(self, queries: Iterable[Wanted]) -> None:
        """Learn what is unknown about these places, before anything else."""
        unknown = [query for query in queries if self._covers(query) and query.key not in self._learned]
        self._wanted.extendleft(reversed(unknown))
        self._go_on()

    def look_ahead(self, queries: Iterable[Wanted]) -> None:
        """Learn what is unknown about these places or has changed, instead of what was requested before."""
        self._wanted = deque(query for query in queries if self._covers(query))
        self._go_on()

    async def settled(self) -> None:
        """Wait until nothing is left to learn."""
        if self._work is not None:
            await self._work

    def forget(self, uri: str = "") -> None:
        """Forget what was learned in one document, or in all."""
        for key in [key for key in self._learned if uri in ("", key[0])]:
            del self._learned[key]

    async def close(self) -> None:
        self._wanted.clear()
        if self._work is not None:
            self._work.cancel()
            with suppress(asyncio.CancelledError):
                await self._work
        await self.analyser.close()

    def _covers(self, query: Wanted) -> bool:
        if self.analyser.only_cursor and not query.place.is_cursor:
            return False
        return self.analyser.languages is None or query.snapshot.written_in.id in self.analyser.languages

    def _go_on(self) -> None:
        if self._wanted and (self._work is None or self._work.done()):
            self._work = asyncio.get_running_loop().create_task(self._learn_wanted())

    async def _learn_wanted(self) -> None:
        while self._wanted and self._clock() >= self._resting_until:
            query = self._wanted.popleft()
            before = self._learned.get(query.key)
            if before is not None and before.still_holds(query, self._clock()):
                continue
            answer = await self._asked(query)
            if answer is None:
                continue
            names = answer if answer.names or before is None else before.known
            self._learned[query.key] = _Learned(names, query.snapshot.text, self._clock())
            self._learned.move_to_end(query.key)
            if len(self._learned) > MOST_PLACES:
                self._learned.popitem(last=False)
        self._wanted.clear()

    async def _asked(self, query: Wanted) -> NameList | None:
        """The analyser's answer; None if it cannot tell, or fails in whatever way: it may be a third-party program."""
        try:
            async with asyncio.timeout(self._patience):
                answer = await self.analyser.ask(asked(query.snapshot, query.place))
        except Exception as error:
            log.info("no names from %s, which rests for %.0f s: %r", type(self.analyser).__name__, self._rest, error)
            self._resting_until = self._clock() + self._rest
            self._rest = min(2 * self._rest, LONGEST_REST)
            return None
        self._rest = FIRST_REST
        return answer and _cleaned(answer)


def _cleaned(answer: NameList) -> NameList:
    """Drop what is not a name, and all beyond a limit."""
    names = [name for name in answer.names if NAME.fullmatch(name)]
    is_whole = len(names) == len(answer.names) and len(names) <= MOST_NAMES
    return replace(answer, names=tuple(names[:MOST_NAMES]), complete=answer.complete and is_whole)
