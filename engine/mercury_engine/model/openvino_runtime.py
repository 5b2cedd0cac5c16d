"""The CPU runtime: the graph of the model compiled by OpenVINO, without torch.

Shapes: R rows of this forward and C cached columns, both padded to a bucket; W wanted rows; S = C + R; E head width;
V vocabulary; B = 2 · layers · key heads blocks, a layer's keys before its values.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from platform import machine
from typing import cast

import numpy as np
from msgspec import Struct

from mercury_engine.api import EngineError
from mercury_engine.model.adapter import Adapter, read_adapter
from mercury_engine.model.config import ModelConfig
from mercury_engine.model.export import ADAPTER_FILE, SCALE, Weights, read
from mercury_engine.model.openvino_graph import AdapterInput, Graph, build
from mercury_engine.model.runtime import Cache, Forward, Pass, Rows, score_bytes, usual_threads
from mercury_engine.model.silent_openvino import ov
from mercury_engine.model.stored import forget_pages

HIDDEN = np.float32(-30_000)
"""Added to the score of a hidden column: zero after softmax, finite in every precision."""

COLUMN_STEP = 64
STEPS = 16

SPARE_WEIGHTS = 10_000_000
"""Switching to another number of rows takes each layer as long as computing a row with so many weights."""

QUANTISED_TOGETHER = 128

X86 = ("x86_64", "AMD64")

STORED = {ov.Type.f32: np.float32, ov.Type.f16: np.float16, ov.Type.bf16: np.uint16}
"""numpy types for storing keys and values. It lacks bf16, but nothing here computes with them."""


class OpenvinoForward(Struct, eq=False):
    logits_WV: np.ndarray
    key_values_BRE: np.ndarray


class OpenvinoCache:
    """One buffer that the graph reads without a copy, sized in whole buckets of columns.

    Columns from `length` on hold finite values, which the mask hides.
    """

    def __init__(self, blocks: int, width: int, precision: ov.Type, *, edits: bool = False) -> None:
        self.length = 0
        self.edits = edits
        self._precision = precision
        self._buffer_BCE = np.zeros((blocks, COLUMN_STEP, width), STORED[precision])

    def append(self, forward: Forward, rows: Sequence[int]) -> None:
        key_values_BRE = cast("OpenvinoForward", forward).key_values_BRE
        stop = self.length + len(rows)
        if stop > self.columns:
            self._resize(padded_columns(stop))
        self._buffer_BCE[:, self.length : stop] = key_values_BRE[:, _indices(rows)]
        self.length = stop

    def truncate(self, length: int) -> None:
        """Truncate; up to one bucket more than needed is kept, so that going back and forth copies nothing."""
        assert 0 <= length <= self.length, "a cache is truncated to at most its length"
        self.length = length
        if padded_columns(length) + _column_step(length) < self.columns:
            self._resize(padded_columns(length))

    @property
    def columns(self) -> int:
        return self._buffer_BCE.shape[1]

    @property
    def bytes(self) -> int:
        return self._buffer_BCE.nbytes

    def bytes_for(self, rows: int) -> int:
        """The buffer, and the previous one while it grows."""
        columns = padded_columns(rows)
        columns_of_both = self.columns if columns <= self.columns else 2 * columns - _column_step(rows)
        return self.bytes // self.columns * columns_of_both

    def tensor(self) -> ov.Tensor:
        """A tensor that shares the buffer."""
        return ov.Tensor(self._buffer_BCE, ov.Shape(self._buffer_BCE.shape), self._precision)

    def _resize(self, columns: int) -> None:
        blocks, _, width = self._buffer_BCE.shape
        resized_BCE = np.zeros((blocks, columns, width), self._buffer_BCE.dtype)
        resized_BCE[:, : self.length] = self._buffer_BCE[:, : self.length]
        self._buffer_BCE = resized_BCE


class OpenvinoRuntime:
    name = "openvino"
    device = "cpu"
    batch = 1

    def __init__(
        self,
        config: ModelConfig,
        weights: Weights,
        *,
        threads: int,
        precision: ov.Type,
        adapter: Adapter | None = None,
    ) -> None:
        self.config = config
        self.edits = adapter is not None
        self.precision = f"{_stored_as(weights)} weights, {precision.get_type_name()}"
        self._type = precision
        self.threads = threads
        self._last_rows = 0
        self._spare_rows = SPARE_WEIGHTS * config.layers // config.parameters
        properties = _properties(threads, precision, _quantised_together(weights))
        graph = build(config, weights, precision, adapter)
        self._compiled = _Compiled(_core().compile_model(graph.model, "CPU", properties), weights, graph)

    def cache(self, *, edits: bool = False) -> OpenvinoCache:
        blocks = 2 * self.config.layers * self.config.kv_heads
        return OpenvinoCache(blocks, self.config.head_width, self._type, edits=edits)

    def pass_bytes(self, rows: int, columns: int) -> int:
        return score_bytes(self.config, rows, columns)

    def padded(self, rows: int) -> int:
        return padded_rows(rows)

    def forward(self, rows: Rows, cache: Cache) -> OpenvinoForward:
        own = cast("OpenvinoCache", cache)
        self._check(rows)
        logits_WV, key_values_BRE = self._compiled.run(self._inputs(rows, own), own.tensor(), edits=own.edits)
        fresh_BRE = key_values_BRE[:, : len(rows.ids_R)].view(STORED[self._type])
        return OpenvinoForward(logits_WV[: len(rows.wanted)].copy(), fresh_BRE.copy())

    def forwards(self, passes: Sequence[Pass]) -> list[OpenvinoForward]:
        """One after another: batching makes no row cheaper on a CPU."""
        return [self.forward(forward_pass.rows, forward_pass.cache) for forward_pass in passes]

    def _inputs(self, rows: Rows, cache: OpenvinoCache) -> dict[str, np.ndarray]:
        # OpenVINO 2026.4 cannot prepare the attention of a model without groups for one row before it has for more
        least = 1 if self._last_rows else 2
        size = self._last_rows = max(padded_rows(len(rows.ids_R), self._last_rows, self._spare_rows), least)
        return {
            "ids": _padded(rows.ids_R, size),
            "positions": _padded(rows.positions_R, size),
            "wanted": _padded(rows.wanted, padded_rows(len(rows.wanted))),
            "mask": _mask(rows, size, cache),
        }

    def _check(self, rows: Rows) -> None:
        furthest, largest = int(rows.positions_R.max()), int(rows.ids_R.max())
        if furthest >= self.config.context:
            raise EngineError(
                f"position {furthest}: {self.config.name} has a context of {self.config.context} tokens; send less text"
            )
        if largest >= self.config.vocabulary:
            raise EngineError(
                f"token {largest}: {self.config.name} has a vocabulary of {self.config.vocabulary}; "
                "the tokenizer belongs to another model: install the model again"
            )


class _Compiled:
    """The compiled graph."""

    def __init__(self, compiled: ov.CompiledModel, weights: Weights, graph: Graph) -> None:
        self._request = compiled.create_infer_request()
        self._outputs = len(compiled.outputs)
        self._unpacked: Weights | None = weights
        self._adapter, self._no_adapter = graph.adapter, graph.no_adapter
        self._adapt(edits=False)

    def run(self, inputs: dict[str, np.ndarray], key_values: ov.Tensor, *, edits: bool) -> list[np.ndarray]:
        """Run a pass; the results are views that stay valid until the next run."""
        if edits != self._edits:
            self._adapt(edits=edits)
        for name, array in inputs.items():
            self._request.set_tensor(name, ov.Tensor(array, shared_memory=True))
        self._request.set_tensor("key_values", key_values)
        self._request.infer()
        if self._unpacked is not None:
            forget_pages(self._unpacked.values())  # the first pass has repacked the weights
            self._unpacked = None
        return [self._request.get_output_tensor(number).data for number in range(self._outputs)]

    def _adapt(self, *, edits: bool) -> None:
        """Compute with the adapter, if there is one, or without. It takes seven times as much memory as its file, so
        it is unpacked only for as long as edits are computed."""
        inputs = _in_one_piece(self._adapter) if edits else self._no_adapter
        for name, array in inputs.items():
            self._request.set_tensor(name, ov.Tensor(array, shared_memory=True))
        self._adapted, self._edits = inputs, edits  # OpenVINO does not keep shared memory


def _in_one_piece(inputs: Mapping[str, AdapterInput]) -> dict[str, np.ndarray]:
    """The inputs in one array, so that their memory goes back to the system with them."""
    whole = np.empty(sum(given.size for given in inputs.values()), np.float32)
    arrays, at = {}, 0
    for name, given in inputs.items():
        arrays[name] = whole[at : at + given.size].reshape(given.shape)
        arrays[name][:] = given.make()
        at += given.size
    return arrays


def load(folder: Path, *, threads: int | None = None, precision: ov.Type | None = None) -> OpenvinoRuntime:
    """The model in a folder, in the fastest precision of this processor unless one is given."""
    config, weights = read(folder)
    path = folder / ADAPTER_FILE
    return OpenvinoRuntime(
        config,
        weights,
        threads=threads or usual_threads(),
        precision=precision or fastest_precision(weights),
        adapter=read_adapter(path, config) if path.exists() else None,
    )


@cache
def _core() -> ov.Core:
    """The one core of the process. Each core installs a signal stack for its thread and removes it at the end; if
    two do not end in reverse order, the next signal finds no stack and kills the process."""
    return ov.Core()


def fastest_precision(weights: Weights) -> ov.Type:
    """That of the processor; but for int4 matrices float32 on x86, where OpenVINO quantises no other inputs of theirs:
    in bf16, 8 rows take 2 to 3.6 times as long, with AMX or without."""
    return ov.Type.f32 if _stored_as(weights) == "int4" and machine() in X86 else native_precision()


def native_precision() -> ov.Type:
    """bf16 or f16 where the processor has instructions for it, else float32."""
    preferred = _core().get_property("CPU", "INFERENCE_PRECISION_HINT")
    return preferred if preferred in STORED else ov.Type.f32


def padded_rows(count: int, before: int = 0, spare: int = 0) -> int:
    """The bucket for a number of rows: OpenVINO takes a few passes to prepare for a new one. The one `before` is kept
    if it has at most `spare` rows more."""
    if count <= 2:
        return max(1, count)
    step = 4 if count <= 64 else 8 if count <= 128 else 32
    fitting = math.ceil(count / step) * step
    return before if fitting <= before <= fitting + spare else fitting


def _column_step(length: int) -> int:
    """The step of column buckets grows with the cached length, by a sixteenth at most, so that a long text is seldom
    copied."""
    return COLUMN_STEP << max(0, (length // (STEPS * COLUMN_STEP)).bit_length() - 1)


def padded_columns(length: int) -> int:
    step = _column_step(length)
    return max(1, math.ceil(length / step)) * step


def _quantised_together(weights: Weights) -> int:
    """The number of inputs that share a scale: at most that of the weights, else the plugin quantises none."""
    groups = (
        2 * weight.shape[1] // weights[name + SCALE].shape[1]
        for name, weight in weights.items()
        if weight.dtype == np.uint8
    )
    return min(groups, default=QUANTISED_TOGETHER)


def _properties(threads: int, precision: ov.Type, group: int) -> dict[str, object]:
    """Dynamic quantisation of the inputs of int8 matrices: without it passes take half as long again."""
    return {
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": group,
    }


def _mask(rows: Rows, size: int, cache: OpenvinoCache) -> np.ndarray:
    """The mask to add to attention scores: zero where a row sees a column. Padding rows see nothing and are ignored."""
    count, length, columns = len(rows.ids_R), cache.length, cache.columns
    mask_RS = np.full((size, columns + size), HIDDEN, np.float32)
    cached_RC, own_RR = mask_RS[:count, :length], mask_RS[:count, columns : columns + count]
    if rows.mask_RC is None:
        cached_RC[:] = 0
        own_RR[np.tri(count, dtype=bool)] = 0
    else:
        cached_RC[rows.mask_RC[:, :length]] = 0
        own_RR[rows.mask_RC[:, length:]] = 0
    return mask_RS


def _padded(values: Sequence[int] | np.ndarray, size: int) -> np.ndarray:
    padded = np.zeros(size, np.int32)
    padded[: len(values)] = values
    return padded


def _indices(rows: Sequence[int]) -> Sequence[int] | slice:
    """Indices of rows: consecutive ones are copied faster as one slice."""
    if isinstance(rows, range) and rows.step == 1:
        return slice(rows.start, rows.stop)
    return list(rows)


def _stored_as(weights: Weights) -> str:
    kinds = {weight.dtype for weight in weights.values()}
    return "int4" if np.dtype(np.uint8) in kinds else "int8" if np.dtype(np.int8) in kinds else "float32"
