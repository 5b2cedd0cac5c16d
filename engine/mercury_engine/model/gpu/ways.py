"""Which way of computing a pass is the fastest here: our kernels or torch's, measured when the engine starts."""

import logging
from collections.abc import Callable
from itertools import product

from mercury_engine.model.gpu.step import ATTENTIONS, PRODUCTS, Ways

__all__ = ["CHUNK", "KEYSTROKE", "chosen_ways"]

KEYSTROKE = 40
"""Rows of a pass behind a keystroke: some that were typed, and a canvas of 32."""

CHUNK = 256
"""Rows from which on products are no longer bound by reading the weights."""

log = logging.getLogger(__name__)

Timed = Callable[[Ways, int, Callable[[], float]], float]
"""The seconds of a pass of so many rows, by a clock; an error where a way cannot be taken."""


def chosen_ways(timed: Timed, clock: Callable[[], float]) -> dict[int, Ways]:
    """The fastest way for short passes and for long ones. Among equals ours, whose sums are more exact."""
    return {rows: _fastest(timed, rows, clock) for rows in (KEYSTROKE, CHUNK)}


def _fastest(timed: Timed, rows: int, clock: Callable[[], float]) -> Ways:
    candidates = [Ways(*names) for names in product(PRODUCTS, ATTENTIONS)]
    times = {ways: seconds for ways in candidates if (seconds := _seconds_of(timed, ways, rows, clock)) is not None}
    if not times:
        raise RuntimeError(f"no pass of {rows} rows can be computed: neither by Triton nor by torch")
    return min(times, key=times.__getitem__)


def _seconds_of(timed: Timed, ways: Ways, rows: int, clock: Callable[[], float]) -> float | None:
    try:
        return timed(ways, rows, clock)
    except Exception:  # a compiler that is missing or too old shows itself in many ways
        log.warning("%s products and %s attention cannot be computed here", *ways, exc_info=True)
        return None
