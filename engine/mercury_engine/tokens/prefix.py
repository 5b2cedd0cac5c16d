"""What two sequences have in common."""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np


def common_prefix(ours_R: np.ndarray, theirs_R: np.ndarray) -> int:
    """The number of leading tokens that are equal."""
    length = min(len(ours_R), len(theirs_R))
    differs_R = ours_R[:length] != theirs_R[:length]
    return int(differs_R.argmax()) if differs_R.any() else length


def common_length(first: Sequence[object], second: Sequence[object]) -> int:
    """The length of the common prefix of two sequences of one type."""
    limit = min(len(first), len(second))
    return bisect_left(range(1, limit + 1), True, key=lambda count: first[:count] != second[:count])
