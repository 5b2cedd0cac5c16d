"""Reports measurements: percentiles, and the machine that they were made on."""

import math
import os
import platform
import re
from collections.abc import Sequence


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The percentile by nearest rank: an actual measurement."""
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def reason(silence: str) -> str:
    """The reason of a silence without the details of one answer."""
    return re.split(r"[:(]", silence)[0].strip() or "no reason given"
