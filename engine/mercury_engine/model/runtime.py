"""The runtime interface for decoding: one forward over a few rows on top of a cache."""

import os
import shutil
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from msgspec import Struct

from mercury_engine.api import EngineError
from mercury_engine.installation import with_extra
from mercury_engine.model.config import ModelConfig

FLOAT = 4


class Resources(Struct, frozen=True):
    """The resources of a model. `threads` 0 is automatic; `memory` is for weights and caches, in bytes, 0 for the
    default. On a CPU caches only grow that large while many clients are active. `free` returns the bytes that the
    machine could provide now, 0 if unknown."""

    device: Literal["auto", "cpu", "gpu"] = "auto"
    threads: int = 0
    memory: int = 0
    free: Callable[[], int] = int


def usual_threads() -> int:
    """At most two: more gain little and slow other programs down."""
    return min(2, os.cpu_count() or 1)


def on_gpu(resources: Resources) -> bool:
    """True if a model runs on a GPU: if allowed, and torch finds one. Imports torch only where that is possible."""
    if resources.device != "cpu" and _finds_gpu():
        return True
    if resources.device == "gpu":
        raise EngineError(f"engine.device is 'gpu', but torch finds no GPU: {with_extra('train')}, or choose 'auto'")
    return False


def _finds_gpu() -> bool:
    if not (shutil.which("nvidia-smi") and find_spec("torch")):
        return False
    import torch

    return torch.cuda.is_available()


class Rows(Struct, eq=False):
    """The rows of one forward. `mask_RC` covers the cached columns, then the rows themselves; None is causal.

    The logits of these `rows` are needed, by default of all. A device may choose among the tokens `permitted_V`, and
    return `Predictions`.
    """

    ids_R: np.ndarray
    positions_R: np.ndarray
    mask_RC: np.ndarray | None = None
    rows: Sequence[int] | None = None
    permitted_V: np.ndarray | None = None

    @property
    def wanted(self) -> Sequence[int]:
        return range(len(self.ids_R)) if self.rows is None else self.rows


class Choices(NamedTuple):
    """For each wanted row the likeliest permitted token, then some of the next ones, and their probabilities among
    these: 0 where there are no more, NaN where logits are no distribution."""

    ids_WC: np.ndarray
    probability_WC: np.ndarray


class Predictions:
    """Logits that stay on their device until accessed, for several rows or one; the `choices` among permitted tokens
    are known already."""

    def __init__(self, fetch: Callable[[], np.ndarray], choices: Choices, rows: np.ndarray) -> None:
        self._fetch = fetch
        self._choices = choices
        self._rows = rows

    @property
    def choices(self) -> Choices:
        choices = Choices(*(figure[self._rows] for figure in self._choices))
        if np.isnan(choices.probability_WC).any():
            raise EngineError(
                "the model's logits are not a distribution: its weights are damaged; install the model again"
            )
        return choices

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._fetch()[self._rows], dtype)

    def __getitem__(self, key: Any) -> "Predictions | np.ndarray":
        """Some of several rows, unchanged; for one row or for columns, the numbers."""
        if self._rows.ndim and not isinstance(key, tuple):
            return Predictions(self._fetch, self._choices, self._rows[key])
        return np.asarray(self)[key]

    def __len__(self) -> int:
        return len(self._rows) if self._rows.ndim else len(np.asarray(self))

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)  # numpy looks for its own protocols first
        return getattr(np.asarray(self), name)


class Forward(Protocol):
    """The result of one forward: float32 logits of the wanted rows, or `Predictions`, which can stand in for such an
    array, and keys and values for `Cache.append`."""

    logits_WV: np.ndarray


class Cache(Protocol):
    """Keys and values of clean rows, in the order in which they were appended. A cache and the forwards that it keeps
    are of the same runtime."""

    length: int

    def append(self, forward: Forward, rows: Sequence[int]) -> None:
        """Keep the keys and values of exactly these rows of a forward that ran on this cache."""
        ...

    def truncate(self, length: int) -> None: ...

    @property
    def bytes(self) -> int: ...

    def bytes_for(self, rows: int) -> int:
        """The maximum memory while it grows to this many rows, including the present."""
        ...


class Pass(Struct, frozen=True, eq=False):
    """A forward that a generator waits for."""

    rows: Rows
    cache: Cache


Result = TypeVar("Result")

Passes = Generator[Pass | None, Forward, Result]
"""Work between forwards, as a generator. It yields a pass and is sent its forward; or it yields None to pause, in a
consistent state, and may be resumed later or never. There is at most one pass between two pauses."""


class Runtime(Protocol):
    """One set of weights on one device. Not thread-safe: the engine's thread owns it.

    `batch`: how many passes are worth computing together; 1 where batching gains nothing. `edits`: whether it has an
    adapter for edits.
    """

    @property
    def config(self) -> ModelConfig: ...
    @property
    def name(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def precision(self) -> str: ...
    @property
    def batch(self) -> int: ...
    @property
    def edits(self) -> bool: ...

    def cache(self, *, edits: bool = False) -> Cache:
        """An empty cache; one for `edits` is computed with the adapter, if there is one."""
        ...

    def pass_bytes(self, rows: int, columns: int) -> int:
        """The temporary memory of a forward of this many rows, which see this many columns."""
        ...

    def padded(self, rows: int) -> int:
        """The size of a pass of this many rows: a few sizes are prepared, and rows that fill one up cost nothing."""
        ...

    def forward(self, rows: Rows, cache: Cache) -> Forward:
        """Run a pass without changing its cache."""
        ...

    def forwards(self, passes: Sequence[Pass]) -> Sequence[Forward]:
        """Run several passes on different caches, batched where the device gains by it."""
        ...


def on_cpu(runtime: Runtime) -> bool:
    return runtime.device.lower().startswith("cpu")


def opened_with(load: Callable[[], Result], open_runtime: Callable[[], Runtime]) -> tuple[Runtime, Result]:
    """A runtime, and the result of loading something else meanwhile: compiling releases the GIL."""
    with ThreadPoolExecutor(1) as executor:
        loading = executor.submit(load)
        return open_runtime(), loading.result()


def score_bytes(config: ModelConfig, rows: int, columns: int) -> int:
    """The bytes of a forward's mask and of three arrays of a layer's scores."""
    return FLOAT * rows * columns * (1 + 3 * config.heads)


def weight_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))
