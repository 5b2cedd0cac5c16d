"""The cost of a forward on this device by its number of rows, measured when the engine starts and while it is idle."""

import math
import time
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from msgspec import Struct

from mercury_engine.decode.canvas import Canvas, fuse, masked
from mercury_engine.model.runtime import Cache, Rows, Runtime

MOST_ROWS = 128
"""The most rows of a pass that verifies drafts and draws canvases behind them."""
MEASURED = (1, 2, 4, 8, 16, 32, 64, MOST_ROWS)
MEASURED_AT_START = (1, 32)
"""The two sizes measured at the start: to know more of them made answers no faster on any device so far."""
TABLED = 1 << 16
"""The numbers of rows whose cost is looked up: more than a policy ever chooses among."""
START_SECONDS = 0.2
REPEATS = 3
LONGEST_MS = 100.0
"""Where a forward takes longer, more rows are not measured: their cost grows with their number."""
AGAIN_SECONDS = 30.0
"""How long after the last measurement costs that seem too high are measured again, the first time."""
MEASURED_CONTEXT = 1024


class Costs(Struct, frozen=True):
    """The milliseconds of a forward by its number of rows, which are padded to the next of the `sizes`."""

    rows: tuple[int, ...]
    milliseconds: tuple[float, ...]
    sizes: tuple[int, ...] = ()

    def of(self, rows: np.ndarray | float) -> np.ndarray | float:
        """The interpolated cost; beyond the last measurement each row costs the average there. Rows are whole numbers,
        or infinite."""
        if isinstance(rows, np.ndarray):
            return _tabled(self)[np.minimum(rows, TABLED).astype(int)]
        return _tabled(self)[int(rows)] if rows < TABLED else self.interpolated(np.asarray(rows))

    def interpolated(self, rows: np.ndarray) -> np.ndarray:
        at = np.searchsorted(self.sizes, rows)
        padded = np.where(at < len(self.sizes), np.take([*self.sizes, 0], at), rows)
        return np.interp(padded, self.rows, self.milliseconds) * np.maximum(1.0, padded / self.rows[-1])


@lru_cache(2)
def _tabled(costs: Costs) -> np.ndarray:
    """The cost of 0, 1, … rows, and at the end infinity: a policy asks several times for each pass."""
    return np.append(costs.interpolated(np.arange(TABLED)), np.inf)


class CostMeter:
    """Times forwards of 1 to 128 rows on a cache of typical length: two sizes at the start, the others when idle.

    The fastest of a few runs counts, but not the first, for which the runtime may have had to prepare. Fewer rows
    never cost more, since they could be padded.
    """

    def __init__(self, runtime: Runtime, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._runtime = runtime
        self.clock = clock
        self._context = min(MEASURED_CONTEXT, runtime.config.context // 2)
        self._permitted_V = np.ones(runtime.config.vocabulary, bool)
        self._fastest: dict[int, float] = {}

    def start(self, seconds: float = START_SECONDS) -> Costs:
        """Time each size at least once, and more often only while its share of the time lasts."""
        cache, began = self._filled(), self.clock()
        for number, rows in enumerate(MEASURED_AT_START, start=1):
            end = began + seconds * number / len(MEASURED_AT_START)
            self._time(rows, cache)
            times = [self._time(rows, cache)]
            while len(times) < REPEATS and self.clock() < end:
                times.append(self._time(rows, cache))
            self._fastest[rows] = min(times)
        return self._costs()

    def rest(self) -> Iterator[Costs]:
        """The costs known after each further forward, until all sizes are measured that are quick."""
        cache = self._filled()
        for rows in MEASURED:
            for repeat in range(1 + REPEATS):
                milliseconds = self._time(rows, cache)
                if repeat:
                    self._fastest[rows] = min(milliseconds, self._fastest.get(rows, math.inf))
                yield self._costs()
            if self._fastest[rows] > LONGEST_MS:
                return

    def _costs(self) -> Costs:
        rows = sorted(self._fastest)
        milliseconds = [self._fastest[count] for count in rows]
        sizes = tuple(sorted({self._runtime.padded(count) for count in range(1, MOST_ROWS + 1)}))
        return Costs(tuple(rows), tuple(np.minimum.accumulate(milliseconds[::-1])[::-1].tolist()), sizes)

    def _filled(self) -> Cache:
        """The contents do not affect the costs: the same row over and over."""
        cache, ids = self._runtime.cache(), np.zeros(1, np.int32)
        forward = self._runtime.forward(Rows(ids, ids, rows=[]), cache)
        cache.append(forward, [0] * self._context)
        return cache

    def _time(self, rows: int, cache: Cache) -> float:
        """The milliseconds of one clean row with a canvas behind it."""
        canvases = [Canvas(0, masked(rows - 1))] if rows > 1 else []
        ids = np.zeros(self._context + 1, np.int32)
        fused = fuse(self._context, ids, 0, canvases, permitted_V=self._permitted_V)
        started = self.clock()
        self._runtime.forward(fused.rows, cache)
        return (self.clock() - started) * 1000


class RepeatedMeasuring:
    """The costs while they are measured. If they `seem_slow`, all are measured again after half a minute, for the
    machine may have been busy; then after twice as long, and so on."""

    def __init__(self, meter: CostMeter, seem_slow: Callable[[Costs], bool]) -> None:
        self._meter, self._seem_slow = meter, seem_slow
        self._left: Iterator[Costs] = meter.rest()
        self._latest: Costs | None = None
        self._pause, self._again_at = AGAIN_SECONDS, math.inf

    def __iter__(self) -> Iterator[Costs]:
        if self._latest and self._meter.clock() >= self._again_at and self._seem_slow(self._latest):
            self._left, self._pause = self._meter.rest(), 2 * self._pause
        for costs in self._left:
            self._latest, self._again_at = costs, self._meter.clock() + self._pause
            yield costs


def measure_costs(runtime: Runtime, *, clock: Callable[[], float] = time.perf_counter) -> Costs:
    """Measure all sizes at once."""
    *_, costs = CostMeter(runtime, clock=clock).rest()
    return costs
