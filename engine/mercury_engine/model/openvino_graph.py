"""The model as an OpenVINO graph, built in memory from its weights.

Shapes: R rows of this forward and C cached columns, both padded to a bucket; W wanted rows; S = C + R; D width,
H query heads, K key heads, G = H / K, E head width; B = 2 · layers · K blocks, a layer's keys before its values.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple, cast

import numpy as np

from mercury_engine.model.adapter import DOWN, UP, Adapter
from mercury_engine.model.config import ModelConfig
from mercury_engine.model.export import SCALE, Weights, plain
from mercury_engine.model.silent_openvino import ops, ov

CHANGE = "change"
"""The input of what special tokens have learned."""


class AdapterInput(NamedTuple):
    """The shape of a part of an adapter, and what computes it."""

    shape: tuple[int, int]
    make: Callable[[], np.ndarray]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Graph(NamedTuple):
    """A model, and what makes the inputs that are its adapter, by name: a product of two matrices of rank 0 adds
    nothing, nor do vectors of zeros, so the same weights compute with the adapter and without."""

    model: ov.Model
    adapter: dict[str, AdapterInput]
    no_adapter: dict[str, np.ndarray]


def build(config: ModelConfig, weights: Weights, stored: ov.Type, adapter: Adapter | None = None) -> Graph:
    """A graph with dynamic numbers of rows and cached columns; keys and values go in and out as `stored`."""
    graph = _Graph(config, weights, stored, adapter)
    return Graph(graph.model(), graph.adapter_inputs, graph.no_adapter)


class _Graph:
    """The graph under construction."""

    def __init__(self, config: ModelConfig, weights: Weights, stored: ov.Type, adapter: Adapter | None) -> None:
        self.config = config
        self.weights = weights
        self.stored = stored
        self.adapter = adapter
        self.adapter_inputs: dict[str, AdapterInput] = {}
        self.no_adapter: dict[str, np.ndarray] = {}
        self.input_nodes: list[ov.Node] = []
        self.change_SD: ov.Node | None = None
        if adapter is not None:
            change_SD = _special_change(weights, adapter)
            self.no_adapter[CHANGE] = np.zeros_like(change_SD)
            self.change_SD = self._input(CHANGE, lambda: change_SD)
        self.ids_R, self.positions_R, self.wanted_W = (
            ops.parameter([-1], ov.Type.i32, name=name) for name in ("ids", "positions", "wanted")
        )
        self.mask_RS = ops.parameter([-1, -1], ov.Type.f32, name="mask")
        blocks = 2 * config.layers * config.kv_heads
        self.cached_BCE = ops.parameter([blocks, -1, config.head_width], stored, name="key_values")

    def model(self) -> ov.Model:
        embedding_VD = self._matrix("embedding")
        rotation = [_take(table, self.positions_R) for table in _rotations(self.config)]
        cached = ops.split(self._float(self.cached_BCE), np.int64(0), 2 * self.config.layers).outputs()
        x_RD = self._looked_up("embedding", self.ids_R)
        mask = self._for_groups(self.mask_RS)
        fresh: list[ov.Node] = []
        for index in range(self.config.layers):
            q_RHE, *new = self._project(index, x_RD, rotation)
            fresh += new
            if index == self.config.layers - 1:
                x_RD, q_RHE = (_take(node, self.wanted_W) for node in (x_RD, q_RHE))
                mask = self._for_groups(_take(self.mask_RS, self.wanted_W))
            x_RD = ops.add(x_RD, self._attend(index, q_RHE, new, cached[2 * index : 2 * index + 2], mask))
            x_RD = ops.add(x_RD, self._feed_forward(index, x_RD))
        head_VD = embedding_VD if self.config.tied else self._matrix("head")
        hidden_WD = self._norm(x_RD, "norm")
        return self._finish(self._changed(ops.matmul(hidden_WD, head_VD, False, True), hidden_WD), ops.concat(fresh, 0))

    def _looked_up(self, name: str, ids_R: ov.Node) -> ov.Node:
        """Some rows of a matrix; only these are converted to floats."""
        weight_VD, scales_V1 = self.weights[f"{name}.weight"], self.weights.get(f"{name}.weight{SCALE}")
        rows_RD = _take(self._matrix(name) if weight_VD.dtype == np.uint8 else _constant(weight_VD), ids_R)
        if weight_VD.dtype == np.int8 and scales_V1 is not None:
            rows_RD = ops.multiply(ops.convert(rows_RD, ov.Type.f32), _take(_constant(scales_V1), ids_R))
        if self.change_SD is not None:
            unchanged = np.int32(self.no_adapter[CHANGE].shape[0] - 1)
            rows_RD = ops.add(rows_RD, _take(self.change_SD, ops.minimum(ids_R, unchanged)))
        scale = self.config.embedding_scale
        return rows_RD if scale == 1 else ops.multiply(rows_RD, np.float32(scale))

    def _changed(self, logits_WV: ov.Node, hidden_WD: ov.Node) -> ov.Node:
        """With what special tokens have learned."""
        if self.change_SD is None:
            return logits_WV
        specials = self.no_adapter[CHANGE].shape[0]
        sizes = np.array([specials, self.config.vocabulary - specials], np.int64)
        special_WS, text_WT = ops.variadic_split(logits_WV, np.int64(1), sizes).outputs()
        change_WS = ops.matmul(hidden_WD, self.change_SD, False, True)
        return ops.concat([ops.add(special_WS, change_WS), text_WT], 1)

    def _finish(self, logits_WV: ov.Node, key_values_BRE: ov.Node) -> ov.Model:
        if self.stored != ov.Type.f32:
            key_values_BRE = ops.convert(key_values_BRE, self.stored)
        parameters = [self.ids_R, self.positions_R, self.wanted_W, self.mask_RS, self.cached_BCE, *self.input_nodes]
        results = [ops.result(node) for node in (logits_WV, key_values_BRE)]
        return ov.Model(results, parameters, self.config.name)  # pyright: ignore

    def _project(self, index: int, x_RD: ov.Node, rotation: Sequence[ov.Node]) -> tuple[ov.Node, ov.Node, ov.Node]:
        """Queries by row; keys and values by head, as attention and the cache need them."""
        config, name = self.config, f"layers.{index}.attention"
        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        fused_RF = self._linear(self._norm(x_RD, f"{name}_norm"), *parts)
        heads = np.array([config.heads, config.kv_heads, config.kv_heads], np.int64)
        fused_RNE = _reshape(fused_RF, 0, -1, config.head_width)
        q_RHE, k_RKE, v_RKE = cast("list[ov.Node]", ops.variadic_split(fused_RNE, np.int64(1), heads).outputs())
        if config.qk_norm:
            q_RHE, k_RKE = self._norm(q_RHE, f"{name}.query_norm"), self._norm(k_RKE, f"{name}.key_norm")
        scaled_RHE = ops.multiply(q_RHE, np.float32(config.head_width**-0.5))
        return _rotate(scaled_RHE, rotation), _swap(_rotate(k_RKE, rotation)), _swap(v_RKE)

    def _attend(
        self, index: int, q_RHE: ov.Node, new: Sequence[ov.Node], cached: Sequence[ov.Output], mask: ov.Node
    ) -> ov.Node:
        """The queries of a group are consecutive rows of their key head."""
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
        up_RF = self._linear(normed_RD, f"{name}.up")
        if not self.config.gated:
            return self._linear(self._activated(up_RF), f"{name}.down")
        gate_RF = self._linear(normed_RD, f"{name}.gate")
        return self._linear(ops.multiply(self._activated(gate_RF), up_RF), f"{name}.down")

    def _activated(self, x_RF: ov.Node) -> ov.Node:
        if self.config.activation == "silu":
            return ops.swish(x_RF)
        return ops.gelu(x_RF, "erf" if self.config.activation == "gelu" else "tanh")

    def _linear(self, x: ov.Node, *names: str) -> ov.Node:
        """Concatenate matrices with the same input, as far as they are stored alike."""
        alike = [list(names) for _, names in groupby(names, self._kind)]
        products = [ops.matmul(x, self._matrix(*names), False, True) for names in alike]
        product = products[0] if len(products) == 1 else ops.concat(products, -1)
        if f"{names[0]}.bias" in self.weights:
            product = ops.add(product, _constant(np.concatenate([self.weights[f"{name}.bias"] for name in names])))
        return self._adapted(product, x, names)

    def _adapted(self, product: ov.Node, x: ov.Node, names: Sequence[str]) -> ov.Node:
        sizes = [(f"{name}.weight", len(self.weights[f"{name}.weight"])) for name in names]
        if self.adapter is None or not (learned := self.adapter.learned([name for name, _ in sizes])):
            return product
        down_KI = self._input(names[0] + DOWN, partial(self.adapter.down, learned))
        up_KO = self._input(names[0] + UP, partial(self.adapter.up, sizes))
        return ops.add(product, ops.matmul(ops.matmul(x, down_KI, False, True), up_KO, False, False))

    def _input(self, name: str, make: Callable[[], np.ndarray]) -> ov.Node:
        """An input for a part of the adapter; of rank 0 where nothing else is said."""
        rows, columns = make().shape
        node = ops.parameter([-1, columns], ov.Type.f32, name=name)
        self.adapter_inputs[name] = AdapterInput((rows, columns), make)
        self.no_adapter.setdefault(name, np.empty((0, columns), np.float32))
        self.input_nodes.append(node)
        return node

    def _kind(self, name: str) -> tuple[np.dtype, int]:
        """The type of a matrix, and in how many groups its inputs share a scale."""
        scales = self.weights.get(f"{name}.weight{SCALE}")
        return self.weights[f"{name}.weight"].dtype, 1 if scales is None else scales.shape[1]

    def _matrix(self, *names: str) -> ov.Node:
        """Quantised weights stay int8 or int4: the plugin multiplies them directly."""
        joined = _together([self.weights[f"{name}.weight"] for name in names])
        if joined.dtype not in (np.int8, np.uint8):
            return _constant(joined)
        scales = _together([self.weights[f"{name}.weight{SCALE}"] for name in names])
        if joined.dtype == np.int8:
            return ops.multiply(ops.convert(_constant(joined), ov.Type.f32), _constant(scales))
        return _unpacked(joined, scales)

    def _norm(self, x: ov.Node, name: str) -> ov.Node:
        weight = _constant(self.weights[f"{name}.weight"])
        if self.config.layer_norm:
            normed = ops.mvn(x, np.array([-1], np.int64), True, self.config.norm_epsilon, "inside_sqrt")
            return ops.add(ops.multiply(normed, weight), _constant(self.weights[f"{name}.bias"]))
        mean = ops.reduce_mean(ops.multiply(x, x), np.array([-1], np.int64), True)
        length = ops.sqrt(ops.add(mean, np.float32(self.config.norm_epsilon)))
        return ops.multiply(ops.multiply(x, ops.divide(np.float32(1), length)), weight)

    def _for_groups(self, mask_RS: ov.Node) -> ov.Node:
        return ops.concat([mask_RS] * (self.config.heads // self.config.kv_heads), 0)

    def _float(self, node: ov.Node) -> ov.Node:
        return node if self.stored == ov.Type.f32 else ops.convert(node, ov.Type.f32)


def _special_change(weights: Weights, adapter: Adapter) -> np.ndarray:
    """What special tokens have learned, then zeros for all others."""
    names, count = ("embedding.weight", f"embedding.weight{SCALE}"), len(adapter.special_SD)
    special_SD = plain({name: weights[name][:count] for name in names if name in weights}, names[0])
    return np.concatenate([adapter.special_SD - special_SD, np.zeros_like(special_SD[:1])])


def _rotations(config: ModelConfig) -> tuple[ov.Node, ov.Node]:
    """Cosines and sines of every position; the sines carry the sign of the rotated half."""
    steps = np.arange(0, config.head_width, 2) / config.head_width
    frequencies = np.array(config.rope_frequencies) if config.rope_frequencies else config.rope_theta**-steps
    angles = np.arange(config.context)[:, None] * frequencies
    cosines = np.concatenate([np.cos(angles), np.cos(angles)], 1) * config.rope_scale
    sines = np.concatenate([-np.sin(angles), np.sin(angles)], 1) * config.rope_scale
    cosines_P1E, sines_P1E = (table[:, None].astype(np.float32) for table in (cosines, sines))
    return _constant(cosines_P1E), _constant(sines_P1E)


def _rotate(x_RHE: ov.Node, rotation: Sequence[ov.Node]) -> ov.Node:
    cosines_R1E, sines_R1E = rotation
    first, second = ops.split(x_RHE, np.int64(2), 2).outputs()
    turned_RHE = ops.concat([second, first], 2)
    return ops.add(ops.multiply(x_RHE, cosines_R1E), ops.multiply(turned_RHE, sines_R1E))


def _constant(array: np.ndarray) -> ov.Node:
    """Memory-mapped weights are not copied, so their owner must outlive the graph."""
    return ops.constant(array, shared_memory=isinstance(array, np.memmap))


def _together(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The matrices stacked; without a copy where they are adjacent in a mapped file."""
    first, size = arrays[0], sum(array.nbytes for array in arrays)
    if len(arrays) == 1:
        return first
    starts = [array.ctypes.data for array in arrays]
    ends = [start + array.nbytes for start, array in zip(starts, arrays, strict=True)]
    if not isinstance(first, np.memmap) or starts[1:] != ends[:-1] or first.base is None:
        return np.concatenate(arrays)
    offset = starts[0] - first.base.ctypes.data
    return first.base[offset : offset + size].view(first.dtype).reshape(-1, *first.shape[1:])


def _unpacked(packed_NK: np.ndarray, scales_NG: np.ndarray) -> ov.Node:
    """The float matrix of int4 groups."""
    rows, groups = scales_NG.shape
    shape = ov.Shape([rows, groups, 2 * packed_NK.shape[1] // groups])
    values_NGK = ops.constant(ov.Tensor(packed_NK, shape, ov.Type.i4), shared_memory=isinstance(packed_NK, np.memmap))
    scaled_NGK = ops.multiply(ops.convert(values_NGK, ov.Type.f16), _constant(scales_NG[..., None]))
    return ops.convert(_reshape(scaled_NGK, rows, -1), ov.Type.f32)


def _take(table: ov.Node, indices: ov.Node) -> ov.Node:
    return ops.gather(table, indices, np.int64(0))


def _swap(x: ov.Node) -> ov.Node:
    return ops.transpose(x, np.array([1, 0, 2], np.int64))


def _reshape(x: ov.Node, *sizes: int) -> ov.Node:
    """A size of 0 keeps the dimension."""
    return ops.reshape(x, np.array(sizes, np.int64), special_zero=True)
