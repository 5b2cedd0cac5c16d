"""How measurements are reported: percentiles, and the machine that they were made on."""

import math
import os
import platform
from collections.abc import Sequence

__all__ = ["machine", "percentile"]


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"


def percentile(ordered: Sequence[float], percent: float) -> float:
    """By nearest rank: a value that was measured."""
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]
