"""Chooses the backends that compute a pass fastest here, our kernels or torch, by measuring at engine start."""

import logging
from collections.abc import Callable
from itertools import product

from mercury_engine.model.gpu.step import ATTENTIONS, PRODUCTS, Backends

KEYSTROKE = 40
"""The rows of a pass after a keystroke: some that were typed, and a canvas of 32."""

CHUNK = 256
"""The number of rows from which products are no longer bound by reading the weights."""

log = logging.getLogger(__name__)

Timed = Callable[[Backends, int, Callable[[], float]], float]
"""The seconds of a pass of this many rows, by a clock; an error if a backend cannot be used."""


def chosen_backends(timed: Timed, clock: Callable[[], float]) -> dict[int, Backends]:
    """The fastest backends for short and for long passes. In a tie ours win, whose sums are more exact."""
    return {rows: _fastest(timed, rows, clock) for rows in (KEYSTROKE, CHUNK)}


def _fastest(timed: Timed, rows: int, clock: Callable[[], float]) -> Backends:
    candidates = [Backends(*names) for names in product(PRODUCTS, ATTENTIONS)]
    times = {
        candidate: seconds
        for candidate in candidates
        if (seconds := _seconds_of(timed, candidate, rows, clock)) is not None
    }
    if not times:
        raise RuntimeError(f"no pass of {rows} rows can be computed with Triton or torch")
    return min(times, key=times.__getitem__)


def _seconds_of(timed: Timed, backends: Backends, rows: int, clock: Callable[[], float]) -> float | None:
    try:
        return timed(backends, rows, clock)
    except Exception:  # a missing or outdated compiler fails in many ways
        log.warning("%s products and %s attention cannot be computed here", *backends, exc_info=True)
        return None
