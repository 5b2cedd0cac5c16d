"""Tokens with their positions, as a model reads them, and what two sequences have in common.

Shapes: R rows.
"""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from msgspec import Struct


class Prefix(Struct, frozen=True, eq=False):
    """Rows from the first on."""

    ids_R: np.ndarray
    positions_R: np.ndarray

    @classmethod
    def of(cls, ids: Sequence[int] | np.ndarray, positions: Sequence[int] | np.ndarray) -> "Prefix":
        return cls(np.array(ids, np.int32), np.array(positions, np.int32))

    @classmethod
    def stream(cls, ids: Sequence[int] | np.ndarray) -> "Prefix":
        """Tokens at consecutive positions."""
        return cls.of(ids, np.arange(len(ids)))

    def __len__(self) -> int:
        return len(self.ids_R)

    def upto(self, row: int) -> "Prefix":
        return Prefix(self.ids_R[:row], self.positions_R[:row])


def common_prefix(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> int:
    """The number of leading indices at which all pairs of arrays are equal."""
    length = min(len(ours[0]), len(theirs[0]))
    differs = np.zeros(length, bool)
    for our_token, other in zip(ours, theirs, strict=True):
        differs |= our_token[:length] != other[:length]
    return int(differs.argmax()) if differs.any() else length


def common_length(first: Sequence[object], second: Sequence[object]) -> int:
    """The length of the common prefix of two sequences of one type."""
    limit = min(len(first), len(second))
    return bisect_left(range(1, limit + 1), True, key=lambda count: first[:count] != second[:count])
