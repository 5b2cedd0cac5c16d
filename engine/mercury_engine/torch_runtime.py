"""The reference model behind the runtime's protocol: torch on a CPU or a GPU, numpy in and out."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mercury_engine.config import ModelError
from mercury_engine.model import KeyValues, Model, load
from mercury_engine.runtime import Rows

__all__ = ["PRECISIONS", "TorchCache", "TorchForward", "TorchRuntime", "open_torch"]

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

GROWTH = 256
"""Rows by which a cache grows."""


class TorchForward:
    """Float32 logits in numpy; keys and values stay where they were computed."""

    __slots__ = ("fresh", "logits_WV")

    def __init__(self, logits_WV: np.ndarray, fresh: KeyValues) -> None:
        self.logits_WV = logits_WV
        self.fresh = fresh


class TorchCache:
    """One buffer a layer for keys and one for values, 1KCE each, filled up to `length`."""

    def __init__(self, model: Model) -> None:
        config, weight = model.config, model.embedding.weight
        empty = weight.new_empty(1, config.kv_heads, 0, config.head_width)
        self.length = 0
        self._buffers = [(empty, empty)] * config.layers

    def append(self, forward: TorchForward, rows: Sequence[int]) -> None:
        self._reserve(self.length + len(rows))
        chosen = slice(rows[0], rows[-1] + 1) if _run(rows) else list(rows)
        after = slice(self.length, self.length + len(rows))
        for buffers, fresh in zip(self._buffers, forward.fresh, strict=True):
            for buffer, new in zip(buffers, fresh, strict=True):
                buffer[:, :, after] = new[:, :, chosen]
        self.length += len(rows)

    def truncate(self, length: int) -> None:
        assert 0 <= length <= self.length, "a cache is cut inside of what it holds"
        self.length = length

    @property
    def bytes(self) -> int:
        return sum(buffer.nbytes for pair in self._buffers for buffer in pair)

    def filled(self) -> list[tuple[Tensor, Tensor]] | None:
        if not self.length:
            return None
        return [(keys[:, :, : self.length], values[:, :, : self.length]) for keys, values in self._buffers]

    def _reserve(self, length: int) -> None:
        capacity = self._buffers[0][0].shape[2]
        if length > capacity:
            capacity = -(-length // GROWTH) * GROWTH
            self._buffers = [(self._grown(k, capacity), self._grown(v, capacity)) for k, v in self._buffers]

    def _grown(self, buffer: Tensor, capacity: int) -> Tensor:
        grown = buffer.new_empty(*buffer.shape[:2], capacity, buffer.shape[3])
        grown[:, :, : self.length] = buffer[:, :, : self.length]
        return grown


class TorchRuntime:
    """Weights on one device in one stated precision.

    >>> runtime = TorchRuntime(load(folder), device="cpu", precision="float32")
    """

    name = "torch"

    def __init__(self, model: Model, *, device: str = "cpu", precision: str = "float32") -> None:
        if precision not in PRECISIONS:
            raise ModelError(f"precision {precision!r} is not one of {', '.join(PRECISIONS)}")
        if device == "cpu" and precision == "float16":
            raise ModelError("precision float16 is hundreds of times slower on a CPU; choose bfloat16")
        self.model = model.requires_grad_(False).eval().to(device=device, dtype=PRECISIONS[precision])
        self.config = model.config
        self.device = device
        self.precision = precision

    def cache(self) -> TorchCache:
        return TorchCache(self.model)

    @torch.inference_mode()
    def forward(self, rows: Rows, cache: TorchCache) -> TorchForward:
        hidden_BTD, fresh = self.model(
            self._batch(rows.ids_R, torch.long),
            self._batch(rows.positions_R, torch.long),
            None if rows.mask_RC is None else torch.from_numpy(rows.mask_RC).to(self.device),
            cache.filled(),
            None if rows.drafting_R is None else self._batch(rows.drafting_R, torch.bool),
        )
        logits_WV = self.model.logits(hidden_BTD[0, list(rows.wanted)])
        return TorchForward(logits_WV.cpu().numpy(), fresh)

    def _batch(self, values_R: np.ndarray, dtype: torch.dtype) -> Tensor:
        return torch.from_numpy(values_R)[None].to(device=self.device, dtype=dtype)


def open_torch(folder: Path, *, device: str | None = None, precision: str | None = None) -> TorchRuntime:
    """Without a choice: the GPU in bfloat16 where there is one, else the CPU in float32."""
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    precision = precision or ("float32" if device == "cpu" else "bfloat16")
    return TorchRuntime(load(folder), device=device, precision=precision)


def _run(rows: Sequence[int]) -> bool:
    """Whether the rows follow each other, so that a slice takes them."""
    return len(rows) > 0 and rows[-1] - rows[0] == len(rows) - 1
