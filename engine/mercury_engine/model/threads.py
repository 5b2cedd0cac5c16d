"""How many threads compute: two, unless both share one core, as hyperthreads do.

A second thread of the same core makes a pass a tenth to a third faster and takes twice the processor's time. No system
tells reliably which processors share a core, a virtual machine least of all, so it is tried: divisions wait for a unit
that each core has once.
"""

import os
import threading
import time
from collections.abc import Callable
from functools import cache

import numpy as np

WORTH = 1.6
"""How many times as much as one thread two have to do."""
NUMBERS, DIVISIONS, TRIALS = 1 << 15, 200, 5


def worthwhile(seconds: Callable[[int], float]) -> int:
    """One or two: `seconds` says how long so many threads take, each for the same work."""
    alone, together = (min(seconds(threads) for _ in range(TRIALS)) for threads in (1, 2))
    return 2 if 2 * alone >= WORTH * together else 1


@cache
def usual_threads() -> int:
    """At most two: more gain little and slow other programs down. It takes a thirtieth of a second, once."""
    return worthwhile(_dividing) if (os.cpu_count() or 1) > 1 else 1


def _dividing(count: int) -> float:
    """The seconds that so many threads take for divisions that fit into the caches of a core."""
    numbers = np.full(NUMBERS, 1.5, np.float32)

    def divide() -> None:
        quotients = np.empty_like(numbers)
        for _ in range(DIVISIONS):
            np.divide(1.0, numbers, out=quotients)

    threads = [threading.Thread(target=divide) for _ in range(count)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began
