"""What a decoder needs of whatever runs the weights: one forward over a few rows on top of a cache."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from mercury_engine.config import ModelConfig

__all__ = ["Cache", "Forward", "Rows", "Runtime"]


class Rows:
    """The rows of one forward. `mask_RC` covers the cached columns and then the rows themselves; None is causal.

    `drafting_R` marks canvas rows (the weights' drafting role); `wanted` are the rows whose logits are needed.
    """

    __slots__ = ("drafting_R", "ids_R", "mask_RC", "positions_R", "wanted")

    def __init__(
        self,
        ids_R: np.ndarray,
        positions_R: np.ndarray,
        *,
        mask_RC: np.ndarray | None = None,
        drafting_R: np.ndarray | None = None,
        wanted: Sequence[int] | None = None,
    ):
        self.ids_R = ids_R
        self.positions_R = positions_R
        self.mask_RC = mask_RC
        self.drafting_R = drafting_R
        self.wanted = range(len(ids_R)) if wanted is None else wanted


class Forward(Protocol):
    """The result of one forward: float32 logits of the wanted rows, and keys and values for `Cache.append`."""

    logits_WV: np.ndarray


class Cache(Protocol):
    """Keys and values of clean rows, in the order in which they were appended."""

    length: int

    def append(self, forward: Forward, rows: Sequence[int]) -> None:
        """Keep the keys and values of exactly these rows of a forward that was run on this cache."""
        ...

    def truncate(self, length: int) -> None: ...

    @property
    def bytes(self) -> int: ...


class Runtime(Protocol):
    """One set of weights on one device. Not thread-safe: the engine's thread owns it."""

    config: ModelConfig
    name: str
    device: str
    precision: str

    def cache(self) -> Cache: ...

    def forward(self, rows: Rows, cache: Cache) -> Forward:
        """Leaves the cache as it is."""
        ...
