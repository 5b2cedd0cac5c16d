"""The CPU runtime: the model's graph built from its weights in memory and compiled by OpenVINO; no torch.

Shapes: R rows of this forward and C cached columns, both padded to a bucket; W wanted rows; S = C + R; D width,
H query heads, K key heads, G = H / K, E head width; B = 2 · layers · K blocks, a layer's keys before its values.
"""

import math
import mmap
import os
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from mercury_engine.api import EngineError
from mercury_engine.model.adapter import adapted, read_adapter
from mercury_engine.model.config import ModelConfig
from mercury_engine.model.export import SCALE, Weights, read
from mercury_engine.model.runtime import Pass, Rows
from mercury_engine.model.silent_openvino import ops, ov
from mercury_engine.tokens.hints import HINTS
from mercury_engine.tokens.vocabulary import PAD

__all__ = ["OpenvinoRuntime", "Pace", "build", "load", "native_precision", "padded_columns", "padded_rows"]

HIDDEN = np.float32(-30_000)
"""Added to the score of a column that a row does not see: nothing after softmax, finite in every precision."""

COLUMN_STEP = 64

SPARE_ROWS = 8

QUANTISED_TOGETHER = 128

STORED = {ov.Type.f32: np.float32, ov.Type.f16: np.float16, ov.Type.bf16: np.uint16}
"""How numpy holds keys and values; it has no bf16, and nothing computes with them here."""


class OpenvinoForward:
    __slots__ = ("key_values_BRE", "logits_WV")

    def __init__(self, logits_WV: np.ndarray, key_values_BRE: np.ndarray) -> None:
        self.logits_WV = logits_WV
        self.key_values_BRE = key_values_BRE


class OpenvinoCache:
    """One buffer in the layout that the graph reads without a copy, sized in whole buckets of columns.

    Columns from `length` on hold finite values that the mask hides.
    """

    def __init__(self, blocks: int, width: int, precision: ov.Type) -> None:
        self.length = 0
        self._precision = precision
        self._buffer_BCE = np.zeros((blocks, COLUMN_STEP, width), STORED[precision])

    def append(self, forward: OpenvinoForward, rows: Sequence[int]) -> None:
        stop = self.length + len(rows)
        if stop > self.columns:
            self._resize(padded_columns(stop))
        self._buffer_BCE[:, self.length : stop] = forward.key_values_BRE[:, _indices(rows)]
        self.length = stop

    def truncate(self, length: int) -> None:
        """A bucket more than needed may stay, so that going back and forth copies nothing."""
        assert 0 <= length <= self.length, "a cache is cut to what it holds"
        self.length = length
        if padded_columns(length) + COLUMN_STEP < self.columns:
            self._resize(padded_columns(length))

    @property
    def columns(self) -> int:
        return self._buffer_BCE.shape[1]

    @property
    def bytes(self) -> int:
        return self._buffer_BCE.nbytes

    def tensor(self) -> ov.Tensor:
        """The buffer itself."""
        return ov.Tensor(self._buffer_BCE, ov.Shape(self._buffer_BCE.shape), self._precision)

    def _resize(self, columns: int) -> None:
        blocks, _, width = self._buffer_BCE.shape
        resized_BCE = np.zeros((blocks, columns, width), self._buffer_BCE.dtype)
        resized_BCE[:, : self.length] = self._buffer_BCE[:, : self.length]
        self._buffer_BCE = resized_BCE


class Pace:
    """Tells from how long passes take whether another program wants a core that they use.

    The threads of a pass wait for each other after every operation, so that one busy core delays them all, and
    a single thread is faster. Passes that overshoot the best time of their shape (rows, columns, rows with logits)
    give the cores back for a while; then one pass tries again.
    """

    OVERSHOOT = 1.6
    DRIFT = 1.03
    LATE = 3
    SHORTEST_REST, LONGEST_REST = 16, 256

    def __init__(self) -> None:
        self._best: dict[tuple[int, ...], float] = {}
        self._late = 0
        self._rest = 0
        self._next_rest = self.SHORTEST_REST

    @property
    def crowded(self) -> bool:
        return self._rest > 0

    def record(self, shape: tuple[int, ...], seconds: float) -> None:
        if self.crowded:
            self._rest -= 1
            return
        best = self._best.get(shape, seconds)
        if seconds <= best * self.OVERSHOOT:
            self._best[shape] = min(seconds, best)
            self._late, self._next_rest = 0, self.SHORTEST_REST
            return
        self._best[shape] = best * self.DRIFT
        self._late += 1
        if self._late >= self.LATE:
            self._rest, self._next_rest = self._next_rest, min(2 * self._next_rest, self.LONGEST_REST)


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
        pace: Pace | None = None,
    ) -> None:
        self.config = config
        self.precision = f"{_stored_as(weights)} weights, {precision.get_type_name()}"
        self._type = precision
        self.threads = threads
        self._pace = pace or Pace()
        self._weights = weights
        self._last_rows = 0
        self._model = build(config, weights, precision)
        self._compiled = {threads: self._compile(threads)}

    def cache(self) -> OpenvinoCache:
        blocks = 2 * self.config.layers * self.config.kv_heads
        return OpenvinoCache(blocks, self.config.head_width, self._type)

    def forward(self, rows: Rows, cache: OpenvinoCache) -> OpenvinoForward:
        self._check(rows)
        inputs, compiled = self._inputs(rows, cache), self._fitting()
        started = time.perf_counter()
        logits_WV, key_values_BRE, *trusted = compiled.run(inputs, cache.tensor())
        shape = len(inputs["ids"]), cache.columns, len(inputs["wanted"])
        self._pace.record(shape, time.perf_counter() - started)
        fresh_BRE = key_values_BRE[:, : len(rows.ids_R)].view(STORED[self._type])
        logits_WV = logits_WV[: len(rows.wanted)].copy()
        for trusted_WH in trusted:
            _lean(logits_WV, rows.hints_RH[rows.wanted], trusted_WH[: len(rows.wanted)])
        return OpenvinoForward(logits_WV, fresh_BRE.copy())

    def forwards(self, passes: Sequence[Pass]) -> list[OpenvinoForward]:
        """One after another: a processor computes a few rows no slower a row than many."""
        return [self.forward(one.rows, one.cache) for one in passes]

    def _fitting(self) -> "_Compiled":
        """One thread is compiled for when it is first needed: it costs memory and a third of a second."""
        threads = 1 if self._pace.crowded else self.threads
        if threads not in self._compiled:
            self._compiled[threads] = self._compile(threads)
        return self._compiled[threads]

    def _compile(self, threads: int) -> "_Compiled":
        compiled = _core().compile_model(self._model, "CPU", _properties(threads, self._type))
        return _Compiled(compiled, self._weights)

    def _inputs(self, rows: Rows, cache: OpenvinoCache) -> dict[str, np.ndarray]:
        size = self._last_rows = padded_rows(len(rows.ids_R), self._last_rows)
        inputs = {
            "ids": _padded(rows.ids_R, size),
            "positions": _padded(rows.positions_R, size),
            "wanted": _padded(rows.wanted, padded_rows(len(rows.wanted))),
            "mask": _mask(rows, size, cache),
        }
        if self.config.hints:
            inputs["hints"] = _padded(rows.hints_RH, size)
        if self.config.role_scalars:
            inputs["drafting"] = _padded(() if rows.drafting_R is None else rows.drafting_R, size)
        return inputs

    def _check(self, rows: Rows) -> None:
        furthest, largest = int(rows.positions_R.max()), int(rows.ids_R.max())
        if furthest >= self.config.context:
            raise EngineError(
                f"position {furthest}: {self.config.name} reads {self.config.context} tokens; send a shorter context"
            )
        if largest >= self.config.vocabulary:
            raise EngineError(
                f"token {largest}: {self.config.name} knows {self.config.vocabulary}; "
                "the tokenizer belongs to another model: install the model again"
            )


class _Compiled:
    """The compiled graph for one number of threads."""

    def __init__(self, compiled: ov.CompiledModel, weights: Weights) -> None:
        self._request = compiled.create_infer_request()
        self._outputs = len(compiled.outputs)
        self._unpacked: Weights | None = weights

    def run(self, inputs: dict[str, np.ndarray], key_values: ov.Tensor) -> list[np.ndarray]:
        """Views that hold until the next run."""
        for name, array in inputs.items():
            self._request.set_tensor(name, ov.Tensor(array, shared_memory=True))
        self._request.set_tensor("key_values", key_values)
        self._request.infer()
        if self._unpacked is not None:
            _forget_pages(self._unpacked)
            self._unpacked = None
        return [self._request.get_output_tensor(number).data for number in range(self._outputs)]


def load(
    folder: Path, *, threads: int | None = None, precision: ov.Type | None = None, adapter: Path | None = None
) -> OpenvinoRuntime:
    """The model of a folder, in the precision that this processor computes fastest unless one is asked for.

    Two threads where there are two cores: each further one gains less and is in the way of other programs.
    """
    config, weights = read(folder)
    if adapter is not None:
        weights = adapted(weights, read_adapter(adapter, folder))
    threads = threads or min(2, os.cpu_count() or 1)
    return OpenvinoRuntime(config, weights, threads=threads, precision=precision or native_precision())


@cache
def _core() -> ov.Core:
    """One for the process. Each gives its thread a stack for signals and takes it away again: where two end in another
    order than that in which they began, the next signal finds none, and kills the process."""
    return ov.Core()


def native_precision() -> ov.Type:
    """bf16 or f16 where the processor has instructions for it, float32 anywhere else."""
    preferred = _core().get_property("CPU", "INFERENCE_PRECISION_HINT")
    return preferred if preferred in STORED else ov.Type.f32


def padded_rows(count: int, before: int = 0) -> int:
    """Every new number of rows costs a few passes to prepare for, so rows come in buckets. Another number than
    `before` costs as much as five rows, each time, so that a few too many are kept."""
    if count <= 2:
        return max(1, count)
    step = 4 if count <= 64 else 8 if count <= 128 else 32
    fitting = math.ceil(count / step) * step
    return before if fitting <= before <= fitting + SPARE_ROWS else fitting


def padded_columns(length: int) -> int:
    return max(1, math.ceil(length / COLUMN_STEP)) * COLUMN_STEP


def build(config: ModelConfig, weights: Weights, stored: ov.Type) -> ov.Model:
    """The model as a graph whose rows and cached columns are dynamic; keys and values go in and out as `stored`."""
    return _Graph(config, weights, stored).model()


class _Graph:
    """The graph while it is being written."""

    def __init__(self, config: ModelConfig, weights: Weights, stored: ov.Type) -> None:
        self.config = config
        self.weights = weights
        self.stored = stored
        self.ids_R, self.positions_R, self.wanted_W, self.drafting_R = (
            ops.parameter([-1], ov.Type.i32, name=name) for name in ("ids", "positions", "wanted", "drafting")
        )
        self.hints_RH = ops.parameter([-1, HINTS], ov.Type.i32, name="hints")
        self.mask_RS = ops.parameter([-1, -1], ov.Type.f32, name="mask")
        blocks = 2 * config.layers * config.kv_heads
        self.cached_BCE = ops.parameter([blocks, -1, config.head_width], stored, name="key_values")

    def model(self) -> ov.Model:
        embedding_VD = self._matrix("embedding")
        rotation = [_take(table, self.positions_R) for table in _rotations(self.config)]
        cached = ops.split(self._float(self.cached_BCE), np.int64(0), 2 * self.config.layers).outputs()
        x_RD, drafting_R = self._told(embedding_VD), self.drafting_R
        mask = self._for_groups(self.mask_RS)
        fresh: list[ov.Node] = []
        for index in range(self.config.layers):
            q_RHE, *new = self._project(index, x_RD, rotation)
            fresh += new
            if index == self.config.layers - 1:
                x_RD, q_RHE, drafting_R = (_take(node, self.wanted_W) for node in (x_RD, q_RHE, drafting_R))
                mask = self._for_groups(_take(self.mask_RS, self.wanted_W))
            mixed_RD = self._attend(index, q_RHE, new, cached[2 * index : 2 * index + 2], mask)
            x_RD = ops.add(x_RD, self._weighed(index, mixed_RD, drafting_R))
            x_RD = ops.add(x_RD, self._weighed(index, self._feed_forward(index, x_RD), drafting_R))
        head_VD = embedding_VD if self.config.tied else self._matrix("head")
        hidden_WD = self._norm(x_RD, "norm")
        logits_WV = ops.matmul(hidden_WD, head_VD, False, True)
        trusted = [self._linear(hidden_WD, "trust")] if self.config.hints else []
        return self._finish(self._capped(logits_WV), ops.concat(fresh, 0), trusted)

    def _told(self, embedding_VD: ov.Node) -> ov.Node:
        """Each token, and what its hints add to it."""
        x_RD = _take(embedding_VD, self.ids_R)
        if not self.config.hints:
            return x_RD
        present_RH1 = ops.unsqueeze(ops.not_equal(self.hints_RH, np.int32(PAD)), np.int64(2))
        told_RHD = ops.multiply(_take(embedding_VD, self.hints_RH), ops.convert(present_RH1, ov.Type.f32))
        flat_RF = _reshape(told_RHD, -1, HINTS * self.config.width)
        return ops.add(x_RD, ops.multiply(self._linear(flat_RF, "hint"), np.float32(1 / HINTS)))

    def _finish(self, logits_WV: ov.Node, key_values_BRE: ov.Node, trusted: list[ov.Node]) -> ov.Model:
        if self.stored != ov.Type.f32:
            key_values_BRE = ops.convert(key_values_BRE, self.stored)
        parameters = [self.ids_R, self.positions_R, self.wanted_W, self.mask_RS, self.cached_BCE]
        if self.config.hints:
            parameters.append(self.hints_RH)
        if self.config.role_scalars:
            parameters.append(self.drafting_R)
        results = [ops.result(node) for node in (logits_WV, key_values_BRE, *trusted)]
        return ov.Model(results, parameters, self.config.name)

    def _project(self, index: int, x_RD: ov.Node, rotation: Sequence[ov.Node]) -> tuple[ov.Node, ov.Node, ov.Node]:
        """Queries by rows; keys and values by heads, as attention and the cache want them."""
        config, name = self.config, f"layers.{index}.attention"
        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        fused_RF = self._linear(self._norm(x_RD, f"{name}_norm"), *parts)
        heads = np.array([config.heads, config.kv_heads, config.kv_heads], np.int64)
        fused_RNE = _reshape(fused_RF, 0, -1, config.head_width)
        q_RHE, k_RKE, v_RKE = ops.variadic_split(fused_RNE, np.int64(1), heads).outputs()
        if config.qk_norm:
            q_RHE, k_RKE = self._norm(q_RHE, f"{name}.query_norm"), self._norm(k_RKE, f"{name}.key_norm")
        scaled_RHE = ops.multiply(q_RHE, np.float32(config.head_width**-0.5))
        return _rotate(scaled_RHE, rotation), _swap(_rotate(k_RKE, rotation)), _swap(v_RKE)

    def _attend(
        self, index: int, q_RHE: ov.Node, new: Sequence[ov.Node], cached: Sequence[ov.Output], mask: ov.Node
    ) -> ov.Node:
        """The queries of a group stand one after another as rows of their key head."""
        config = self.config
        keys_KSE, values_KSE = (ops.concat([old, own], 1) for old, own in zip(cached, new, strict=True))
        q_KTE = _reshape(_swap(q_RHE), config.kv_heads, -1, config.head_width)
        scores_KTS = ops.add(ops.matmul(q_KTE, keys_KSE, False, True), mask)
        mixed_KTE = ops.matmul(ops.softmax(scores_KTS, -1), values_KSE, False, False)
        mixed_RHE = _swap(_reshape(mixed_KTE, config.heads, -1, config.head_width))
        flat_RF = _reshape(mixed_RHE, -1, config.heads * config.head_width)
        return self._linear(flat_RF, f"layers.{index}.attention.output")

    def _feed_forward(self, index: int, x_RD: ov.Node) -> ov.Node:
        name = f"layers.{index}.feed_forward"
        normed_RD = self._norm(x_RD, f"{name}_norm")
        gate_RF, up_RF = self._linear(normed_RD, f"{name}.gate"), self._linear(normed_RD, f"{name}.up")
        return self._linear(ops.multiply(ops.swish(gate_RF), up_RF), f"{name}.down")

    def _linear(self, x: ov.Node, *names: str) -> ov.Node:
        """Matrices that read the same rows are one."""
        product = ops.matmul(x, self._matrix(*names), False, True)
        if f"{names[0]}.bias" not in self.weights:
            return product
        return ops.add(product, _constant(np.concatenate([self.weights[f"{name}.bias"] for name in names])))

    def _matrix(self, *names: str) -> ov.Node:
        """Quantised weights stay int8: the plugin multiplies them as they are."""
        values = [self.weights[f"{name}.weight"] for name in names]
        joined = values[0] if len(values) == 1 else np.concatenate(values)
        if joined.dtype != np.int8:
            return _constant(joined)
        scales = np.concatenate([self.weights[f"{name}.weight{SCALE}"] for name in names])
        return ops.multiply(ops.convert(_constant(joined), ov.Type.f32), _constant(scales))

    def _norm(self, x: ov.Node, name: str) -> ov.Node:
        mean = ops.reduce_mean(ops.multiply(x, x), np.array([-1], np.int64), True)
        length = ops.sqrt(ops.add(mean, np.float32(self.config.norm_epsilon)))
        return ops.multiply(
            ops.multiply(x, ops.divide(np.float32(1), length)), _constant(self.weights[f"{name}.weight"])
        )

    def _weighed(self, index: int, added_RD: ov.Node, drafting_R: ov.Node) -> ov.Node:
        """What a layer adds weighs less or more where the row drafts."""
        if not self.config.role_scalars:
            return added_RD
        scalars = _constant(self.weights[f"layers.{index}.role_scalars"].reshape(2, 1))
        return ops.multiply(added_RD, _take(scalars, drafting_R))

    def _capped(self, logits_WV: ov.Node) -> ov.Node:
        if self.config.softcap is None:
            return logits_WV
        cap = np.float32(self.config.softcap)
        return ops.multiply(ops.tanh(ops.divide(logits_WV, cap)), cap)

    def _for_groups(self, mask_RS: ov.Node) -> ov.Node:
        return ops.concat([mask_RS] * (self.config.heads // self.config.kv_heads), 0)

    def _float(self, node: ov.Node) -> ov.Node:
        return node if self.stored == ov.Type.f32 else ops.convert(node, ov.Type.f32)


def _rotations(config: ModelConfig) -> tuple[ov.Node, ov.Node]:
    """Cosines and sines of every position; the sign of the turned half is in the sines."""
    steps = np.arange(0, config.head_width, 2) / config.head_width
    angles = np.arange(config.context)[:, None] * config.rope_theta**-steps
    cosines = np.concatenate([np.cos(angles), np.cos(angles)], 1)
    sines = np.concatenate([-np.sin(angles), np.sin(angles)], 1)
    cosines_P1E, sines_P1E = (table[:, None].astype(np.float32) for table in (cosines, sines))
    return _constant(cosines_P1E), _constant(sines_P1E)


def _rotate(x_RHE: ov.Node, rotation: Sequence[ov.Node]) -> ov.Node:
    cosines_R1E, sines_R1E = rotation
    first, second = ops.split(x_RHE, np.int64(2), 2).outputs()
    turned_RHE = ops.concat([second, first], 2)
    return ops.add(ops.multiply(x_RHE, cosines_R1E), ops.multiply(turned_RHE, sines_R1E))


def _constant(array: np.ndarray) -> ov.Node:
    """What is memory-mapped is used where it lies, so its owner has to outlive the graph."""
    return ops.constant(array, shared_memory=isinstance(array, np.memmap))


def _take(table: ov.Node, indices: ov.Node) -> ov.Node:
    return ops.gather(table, indices, np.int64(0))


def _swap(x: ov.Node) -> ov.Node:
    return ops.transpose(x, np.array([1, 0, 2], np.int64))


def _reshape(x: ov.Node, *sizes: int) -> ov.Node:
    """A size of 0 stays as it is."""
    return ops.reshape(x, np.array(sizes, np.int64), special_zero=True)


def _properties(threads: int, precision: ov.Type) -> dict[str, object]:
    """Rows that meet int8 weights are quantised on the way in groups: without that they take half as long again."""
    return {
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": QUANTISED_TOGETHER,
    }


def _mask(rows: Rows, size: int, cache: OpenvinoCache) -> np.ndarray:
    """What is added to the scores: nothing where a row sees a column. Padded rows see nothing and are not read."""
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
    padded = np.zeros((size, *np.shape(values)[1:]), np.int32)
    padded[: len(values)] = values
    return padded


def _lean(logits_WV: np.ndarray, hints_WH: np.ndarray, trusted_WH: np.ndarray) -> None:
    """Add to the logit of each hint what the model trusts it."""
    rows = np.arange(len(logits_WV))[:, None]
    np.add.at(logits_WV, (rows, hints_WH), np.where(hints_WH == PAD, 0, trusted_WH))


def _indices(rows: Sequence[int]) -> Sequence[int] | slice:
    """Neighbouring rows are copied faster as one slice."""
    if isinstance(rows, range) and rows.step == 1:
        return slice(rows.start, rows.stop)
    return list(rows)


def _forget_pages(weights: Weights) -> None:
    """The first pass packs the weights; what was mapped from the files need not stay in memory beside that."""
    if not hasattr(mmap, "MADV_DONTNEED"):
        return
    maps = {id(weight._mmap): weight._mmap for weight in weights.values() if isinstance(weight, np.memmap)}
    for mapped in maps.values():
        mapped.madvise(mmap.MADV_DONTNEED)


def _stored_as(weights: Weights) -> str:
    return "int8" if weights["embedding.weight"].dtype == np.int8 else "float32"
