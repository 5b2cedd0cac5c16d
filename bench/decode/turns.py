"""Timings of several variants that take turns, so that whatever else the machine does affects them all."""

import statistics
import time
from collections.abc import Callable

import numpy as np

Times = dict[str, list[float]]


def alternate(variants: dict[str, Callable[[], None]], rounds: int) -> Times:
    """The milliseconds of each variant, taking turns; the first turn is not counted."""
    times: Times = {name: [] for name in variants}
    for number in range(rounds + 1):
        for name, once in variants.items():
            began = time.perf_counter()
            once()
            if number:
                times[name].append(1000 * (time.perf_counter() - began))
    return times


def shown(values: list[float]) -> str:
    low, high = np.percentile(values, (10, 90))
    return f"{statistics.median(values):.1f} [{low:.1f} {high:.1f}]"
