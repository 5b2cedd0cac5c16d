"""Background work for idle moments: failures are logged, and retried after increasing pauses."""

import inspect
import logging
from collections.abc import Callable

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0


class Chore:
    """`run` may be called at any time: during a pause after a failure it does nothing."""

    def __init__(self, name: str, work: Callable[[], object], clock: Callable[[], float]) -> None:
        self._name = name
        self._work = work
        self._clock = clock
        self._pause = FIRST_PAUSE
        self._resting_until = float("-inf")

    async def run(self) -> None:
        if self._clock() < self._resting_until:
            return
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
