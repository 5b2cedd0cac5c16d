"""The clock of a replay: as recorded while an answer is pending, otherwise as fast as requested."""

import asyncio
import time
from collections.abc import Awaitable, Callable

Wait = Callable[[set[asyncio.Task], float], Awaitable[object]]


async def _answered(waiting: set[asyncio.Task], seconds: float) -> None:
    await asyncio.wait(waiting, timeout=seconds)


class ReplayPace:
    """`now` in milliseconds of the session. An answer that a real pause would have let through gets all of that
    pause, at any speed; only idle time is skipped. So a fast replay requests, cancels and receives like a slow one;
    only the server's idle work, encoding ahead, has less time.
    """

    def __init__(
        self,
        speed: float = 1.0,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        wait: Wait = _answered,
    ) -> None:
        self.now = 0.0
        self.waiting: set[asyncio.Task] = set()
        self._speed = speed
        self._clock = clock
        self._sleep = sleep
        self._wait = wait

    def awaits(self, answer: asyncio.Task) -> None:
        self.waiting.add(answer)
        answer.add_done_callback(self.waiting.discard)

    async def until(self, moment: float) -> None:
        while self.now < moment:
            left = moment - self.now
            if not self.waiting:
                await self._sleep(left / self._speed / 1000)
                self.now = moment
                return
            began = self._clock()
            await self._wait(set(self.waiting), left / 1000)
            self.now = min(moment, self.now + (self._clock() - began) * 1000)
        await self._sleep(0)
