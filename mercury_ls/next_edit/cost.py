"""What one answer takes of the processor: it ends after a second, and gives way every few milliseconds."""

import asyncio
import time
from collections.abc import Callable, Generator
from typing import TypeVar

T = TypeVar("T")

TURN_SECONDS = 0.01
MOST_SECONDS = 0.85
"""A rename in 88 files of a project of a thousand, at 669 places, takes 0.75."""


class Cost:
    """Shared by all pieces of work for one answer."""

    def __init__(self, limit: float = MOST_SECONDS, clock: Callable[[], float] = time.thread_time) -> None:
        self._left, self._clock = limit, clock

    async def in_turns(self, work: Generator[None, None, T], late: T) -> T:
        """Runs the generator to its end and returns its value, or `late` if that takes longer than is left."""
        began = self._clock()
        while True:
            try:
                next(work)
            except StopIteration as end:
                self._left -= self._clock() - began
                return end.value
            spent = self._clock() - began
            if spent > min(TURN_SECONDS, self._left):
                self._left -= spent
                if self._left <= 0:
                    work.close()
                    return late
                await asyncio.sleep(0)
                began = self._clock()
