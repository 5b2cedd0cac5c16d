"""The torch runtime: the reference model on a CPU or a GPU, numpy in and out."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import numpy as np
import torch
from msgspec import Struct
from torch import Tensor

from mercury_engine.model.batches import PRECISIONS, batched
from mercury_engine.model.config import ModelConfig, ModelError
from mercury_engine.model.export import SCALE, Weights, plain, read
from mercury_engine.model.network import KeyValues, Model
from mercury_engine.model.runtime import Cache, Forward, Pass, Rows, Runtime, score_bytes

GROWTH = 256
"""The number of rows by which a cache grows."""

BATCH = 16
"""The number of passes that a GPU computes together."""


class TorchForward(Struct, eq=False):
    """Float32 logits in numpy; keys and values stay on their device."""

    logits_WV: np.ndarray
    fresh: KeyValues


class TorchCache:
    """Per layer one buffer for keys and one for values, 1KCE, filled up to `length`."""

    def __init__(self, model: Model) -> None:
        config, weight = model.config, model.embedding.weight
        empty = weight.new_empty(1, config.kv_heads, 0, config.head_width)
        self.length = 0
        self._buffers = [(empty, empty)] * config.layers

    def append(self, forward: Forward, rows: Sequence[int]) -> None:
        self._reserve(self.length + len(rows))
        chosen = slice(rows[0], rows[-1] + 1) if _consecutive(rows) else list(rows)
        after = slice(self.length, self.length + len(rows))
        for buffers, fresh in zip(self._buffers, cast("TorchForward", forward).fresh, strict=True):
            for buffer, new in zip(buffers, fresh, strict=True):
                buffer[:, :, after] = new[:, :, chosen]
        self.length += len(rows)

    def truncate(self, length: int) -> None:
        assert 0 <= length <= self.length, "a cache is truncated to at most its length"
        self.length = length

    @property
    def bytes(self) -> int:
        return sum(buffer.nbytes for pair in self._buffers for buffer in pair)

    def bytes_for(self, rows: int) -> int:
        """The buffers, and the previous ones while they grow."""
        keys = self._buffers[0][0]
        capacity = -(-rows // GROWTH) * GROWTH
        columns_of_both = keys.shape[2] if capacity <= keys.shape[2] else 2 * capacity - GROWTH
        return 2 * len(self._buffers) * columns_of_both * keys.shape[1] * keys.shape[3] * keys.itemsize

    def filled(self) -> list[tuple[Tensor, Tensor]]:
        """A view of the filled part, for each layer."""
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
    """Weights on one device in one explicit precision.

    >>> runtime = TorchRuntime(load(folder), device="cpu", precision="float32")

    A GPU computes up to `batch` passes in about the time of one.
    """

    name = "torch"
    edits = False

    def __init__(
        self, model: Model, *, device: str = "cpu", precision: str = "float32", batch: int | None = None
    ) -> None:
        if precision not in PRECISIONS:
            raise ModelError(f"precision {precision!r} is not one of {', '.join(PRECISIONS)}")
        if device == "cpu" and precision == "float16":
            raise ModelError("precision float16 is hundreds of times slower on a CPU; choose bfloat16")
        self.model = model.requires_grad_(False).eval().to(device=device, dtype=PRECISIONS[precision])
        self.config = model.config
        self.device = device
        self.precision = precision
        self.batch = batch or (1 if device == "cpu" else BATCH)

    def cache(self, *, edits: bool = False) -> TorchCache:
        return TorchCache(self.model)

    def pass_bytes(self, rows: int, columns: int) -> int:
        return score_bytes(self.config, rows, columns)

    def padded(self, rows: int) -> int:
        return rows

    def forward(self, rows: Rows, cache: Cache) -> TorchForward:
        (only,) = self._batched([Pass(rows, cache)])
        return only

    def forwards(self, passes: Sequence[Pass]) -> list[TorchForward]:
        return batched(passes, self._batched)

    @torch.inference_mode()
    def _batched(self, passes: Sequence[Pass]) -> list[TorchForward]:
        """One forward. Rows and caches are padded at the end; each pass sees only its own."""
        longest = max(len(forward_pass.rows.ids_R) for forward_pass in passes)
        caches = [cast("TorchCache", forward_pass.cache) for forward_pass in passes]
        hidden_BTD, fresh = self.model(
            self._padded([forward_pass.rows.ids_R for forward_pass in passes], longest),
            self._padded([forward_pass.rows.positions_R for forward_pass in passes], longest),
            self._mask(passes, longest),
            _stacked(caches),
        )
        places = [(index, row) for index, forward_pass in enumerate(passes) for row in forward_pass.rows.wanted]
        batch_W, rows_W = torch.tensor(places, dtype=torch.long).reshape(-1, 2).unbind(1)
        logits_WV = self.model.logits(hidden_BTD[batch_W, rows_W]).cpu().numpy()
        ends = np.cumsum([len(forward_pass.rows.wanted) for forward_pass in passes])[:-1]
        return [
            TorchForward(own_WV, [(keys[index, None], values[index, None]) for keys, values in fresh])
            for index, own_WV in enumerate(np.split(logits_WV, ends))
        ]

    def _padded(self, values: Sequence[np.ndarray], longest: int) -> Tensor:
        padded_BT = np.zeros((len(values), longest), np.int64)
        for padded_T, own_R in zip(padded_BT, values, strict=True):
            padded_T[: len(own_R)] = own_R
        return torch.from_numpy(padded_BT).to(self.device)

    def _mask(self, passes: Sequence[Pass], longest: int) -> Tensor | None:
        """The mask; padding rows see themselves, since attention over nothing would be NaN."""
        if len(passes) == 1 and passes[0].rows.mask_RC is None:
            return None
        columns = max(forward_pass.cache.length for forward_pass in passes)
        mask_BTS = np.zeros((len(passes), longest, columns + longest), bool)
        mask_BTS[:, :, columns:] = np.eye(longest, dtype=bool)
        for mask_TS, forward_pass in zip(mask_BTS, passes, strict=True):
            count, cached, mask_RC = len(forward_pass.rows.ids_R), forward_pass.cache.length, forward_pass.rows.mask_RC
            mask_TS[:count, :cached] = True if mask_RC is None else mask_RC[:, :cached]
            own_RR = np.tri(count, dtype=bool) if mask_RC is None else mask_RC[:, cached:]
            mask_TS[:count, columns : columns + count] = own_RR
        return torch.from_numpy(mask_BTS).to(self.device)


def open_torch(folder: Path, *, device: str | None = None, precision: str | None = None) -> Runtime:
    """Open a model: by default on a GPU in bfloat16 if there is one, else on the CPU in float32."""
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    precision = precision or ("float32" if device == "cpu" else "bfloat16")
    config, weights = read(folder)
    return of_weights(config, weights, device=device, precision=precision)


def of_weights(config: ModelConfig, weights: Weights, *, device: str, precision: str) -> Runtime:
    """Run on a GPU with our kernels, if Triton is installed and they support the model.

    Else weights are dequantised one by one, so that memory holds at most one of them in float32.
    """
    if device != "cpu" and find_spec("triton"):
        from mercury_engine.model.gpu.runtime import GpuRuntime
        from mercury_engine.model.gpu.weights import is_served, prepared

        if is_served(config):
            return GpuRuntime(prepared(config, weights, device=device, dtype=PRECISIONS[precision]), device=device)
    kind = PRECISIONS[precision]
    names = [name for name in weights if not name.endswith(SCALE)]
    moved = {name: torch.tensor(plain(weights, name)).to(device=device, dtype=kind) for name in names}
    model = Model(config)
    model.load_state_dict(moved, assign=True)
    return TorchRuntime(model, device=device, precision=precision)


def _consecutive(rows: Sequence[int]) -> bool:
    """True if the rows are consecutive, so that a slice takes them."""
    return len(rows) > 0 and rows[-1] - rows[0] == len(rows) - 1


def _stacked(caches: Sequence["TorchCache"]) -> KeyValues | None:
    """Several caches as one, BKCE, padded to the longest; a single one unchanged."""
    longest = max(cache.length for cache in caches)
    if not longest:
        return None
    if len(caches) == 1:
        return caches[0].filled()
    layers = zip(*(cache.filled() for cache in caches), strict=True)
    return [
        cast("tuple[Tensor, Tensor]", tuple(_padded_stack(part, longest) for part in zip(*layer, strict=True)))
        for layer in layers
    ]


def _padded_stack(parts: Sequence[Tensor], longest: int) -> Tensor:
    _, heads, _, width = parts[0].shape
    stacked = parts[0].new_zeros(len(parts), heads, longest, width)
    for row, part in zip(stacked, parts, strict=True):
        row[:, : part.shape[2]] = part[0]
    return stacked
