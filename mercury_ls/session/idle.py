"""What is done while nobody types: the project is read step by step, and the engine encodes ahead."""

import asyncio
import inspect
import logging
from collections.abc import Callable
from contextlib import suppress

from mercury_engine.api import EngineError
from mercury_ls.completion.suggest import gap_at
from mercury_ls.link.client import EngineUnavailable
from mercury_ls.next_edit import region
from mercury_ls.session.questions import Questions
from mercury_ls.session.stats import Stats

log = logging.getLogger(__name__)

IDLE_SECONDS = 0.3
READING_PAUSE_SECONDS = 1.0
"""How long reading the project waits for activity before it goes on by itself."""
READING = "reading the project"
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0


class Chore:
    """Work whose failures are logged, and retried after increasing pauses. `run` does nothing
    during one, nor while the work goes on."""

    def __init__(self, name: str, work: Callable[[], object], clock: Callable[[], float]) -> None:
        self._name = name
        self._work = work
        self._clock = clock
        self._pause = FIRST_PAUSE
        self._resting_until = float("-inf")
        self._is_running = False

    async def run(self) -> None:
        if self._is_running or self._clock() < self._resting_until:
            return
        self._is_running = True
        try:
            result = self._work()
            if inspect.isawaitable(result):
                await result
        except Exception:
            log.exception("%s failed; retrying in %.0f s", self._name, self._pause)
            self._resting_until = self._clock() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        else:
            self._pause = FIRST_PAUSE
        finally:
            self._is_running = False


class Idle:
    """Waits until nothing has been `active` for a moment, then does the `chores` one after the other."""

    def __init__(self, questions: Questions, stats: Stats, is_writing: Callable[[], bool]):
        self.active = asyncio.Event()
        self.chores: dict[str, Chore] = {}
        self._questions = questions
        self._files = questions.files
        self._stats = stats
        self._is_writing = is_writing
        self.add(READING, self._read_on)
        self.add("writing the counts", self._count)
        self.add("letting the engine encode ahead", self.warm)
        self.add("learning which names exist", self.look_ahead)

    def add(self, name: str, work: Callable[[], object]) -> None:
        """Something to do, at once or as a coroutine."""
        self.chores[name] = Chore(name, work, self._questions.clock)

    async def tend(self) -> None:
        while True:
            if not await self._is_used():
                await self.chores[READING].run()
                continue
            await self._quiet()
            for chore in self.chores.values():
                if not self.active.is_set():
                    await chore.run()

    async def _is_used(self) -> bool:
        """Waits for activity; False if there is none while a part of the project still has to be read."""
        with suppress(TimeoutError):
            async with asyncio.timeout(None if self._files.workspace.is_read else READING_PAUSE_SECONDS):
                return await self.active.wait()
        return False

    async def _quiet(self) -> None:
        while self.active.is_set():
            self.active.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(IDLE_SECONDS):
                    await self.active.wait()

    async def _read_on(self) -> None:
        while not self.active.is_set() and self._files.workspace.step(self._questions.clock()):
            await asyncio.sleep(0)

    def _count(self) -> None:
        if self._stats.write_now_and_then():
            self._questions.outcomes.write()

    def look_ahead(self) -> None:
        """Only sets it going: an analyser may take long."""
        if place := self._place():
            uri, offset = place
            self._questions.names.look_ahead(self._files.documents[uri].snapshot(), offset)

    async def warm(self) -> None:
        """Let the engine encode what the next request in the document in use will need."""
        if (place := self._place()) is None or self._is_writing():
            return
        (uri, offset), files = place, self._files
        if files.documents[uri].is_slow:
            await files.parsed(uri)
        question = self._questions.about(files.documents[uri].snapshot(), offset)
        ahead = gap_at(question) if question.fills else region.regions_at(question, question.snapshot, offset)
        try:
            await self._questions.engine.warm(ahead)
        except (EngineUnavailable, EngineError) as error:
            log.debug("nothing was warmed: %s", error)

    def _place(self) -> tuple[str, int] | None:
        """Where the user was last, if suggestions may come there."""
        place = self._files.last_place()
        return None if place is None or self._questions.unavailable(place[0], invoked=False) else place
