"""The same weights as the stateful graph that openvino-genai reads: text in `openvino_model.xml`, weights beside it.

Shapes: B batch, T tokens of this forward, S with those before, D width, H query heads, K key heads, E head width.
"""

import json
from pathlib import Path

import numpy as np
from openvino import opset13 as ops  # noqa: TID251  genai itself loads all of OpenVINO
from openvino import save_model  # noqa: TID251

from mercury_engine.model.config import ModelConfig
from mercury_engine.model.convert import read_converted
from mercury_engine.model.export import SCALE, Weights
from mercury_engine.model.silent_openvino import ov

__all__ = ["write_stateful"]


def write_stateful(converted: Path, folder: Path) -> Path:
    """From the int8 weights that `convert` wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    config, weights = read_converted(converted)
    save_model(_Stateful(config, weights).model(), folder / "openvino_model.xml", compress_to_fp16=False)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": config.vocabulary - 1}))
    (folder / "config.json").write_bytes((converted / "config.json").read_bytes())
    return folder


class _Stateful:
    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        self.config = config
        self.weights = weights
        self.ids_BT = ops.parameter([-1, -1], ov.Type.i64, name="input_ids")
        self.seen_BS = ops.parameter([-1, -1], ov.Type.i64, name="attention_mask")
        self.positions_BT = ops.parameter([-1, -1], ov.Type.i64, name="position_ids")
        self.beams_B = ops.parameter([-1], ov.Type.i32, name="beam_idx")
        self.sinks: list[ov.Node] = []

    def model(self) -> ov.Model:
        config = self.config
        x_BTD = self._embedded()
        rotation, mask = self._rotation(), self._mask()
        for index in range(config.layers):
            name = f"layers.{index}"
            x_BTD = ops.add(x_BTD, self._attention(index, self._norm(x_BTD, f"{name}.attention_norm"), rotation, mask))
            normed = self._norm(x_BTD, f"{name}.feed_forward_norm")
            gate = ops.swish(self._linear(normed, f"{name}.feed_forward.gate"))
            fed = ops.multiply(gate, self._linear(normed, f"{name}.feed_forward.up"))
            x_BTD = ops.add(x_BTD, self._linear(fed, f"{name}.feed_forward.down"))
        logits = ops.matmul(self._norm(x_BTD, "norm"), self._matrix("embedding"), False, True)
        logits.output(0).set_names({"logits"})
        parameters = [self.ids_BT, self.seen_BS, self.positions_BT, self.beams_B]
        for parameter in parameters:
            parameter.output(0).set_names({parameter.get_friendly_name()})
        return ov.Model([ops.result(logits)], self.sinks, parameters, config.name)

    def _embedded(self) -> ov.Node:
        ids = ops.convert(self.ids_BT, ov.Type.i32)
        values = ops.gather(ops.constant(self.weights["embedding.weight"]), ids, np.int64(0))
        scales = ops.gather(ops.constant(self.weights[f"embedding.weight{SCALE}"]), ids, np.int64(0))
        return ops.multiply(ops.convert(values, ov.Type.f32), scales)

    def _matrix(self, name: str) -> ov.Node:
        values = ops.constant(np.array(self.weights[f"{name}.weight"]))
        return ops.multiply(ops.convert(values, ov.Type.f32), ops.constant(self.weights[f"{name}.weight{SCALE}"]))

    def _linear(self, x: ov.Node, name: str) -> ov.Node:
        product = ops.matmul(x, self._matrix(name), False, True)
        bias = self.weights.get(f"{name}.bias")
        return product if bias is None else ops.add(product, ops.constant(np.array(bias)))

    def _norm(self, x: ov.Node, name: str) -> ov.Node:
        mean = ops.reduce_mean(ops.power(x, np.float32(2)), np.array([-1], np.int64), True)
        length = ops.sqrt(ops.add(mean, np.float32(self.config.norm_epsilon)))
        normed = ops.multiply(x, ops.divide(np.float32(1), length))
        return ops.multiply(ops.constant(np.array(self.weights[f"{name}.weight"])), normed)

    def _rotation(self) -> tuple[ov.Node, ov.Node]:
        config = self.config
        frequencies = config.rope_theta ** -(np.arange(0, config.head_width, 2) / config.head_width)
        positions = ops.unsqueeze(ops.convert(self.positions_BT, ov.Type.f32), np.array([1, 3], np.int64))
        half = ops.multiply(positions, ops.constant(frequencies.astype(np.float32)[None, None, None]))
        angles = ops.concat([half, half], -1)
        return ops.cos(angles), ops.sin(angles)

    def _mask(self) -> ov.Node:
        """B1TS, true where a token sees a column."""
        rows, columns = self._count(self.ids_BT, 1), self._count(self.seen_BS, 1)
        one = np.int64(1)
        at_S = ops.range(np.int64(0), columns, one, ov.Type.i64)
        at_T1 = ops.unsqueeze(ops.range(ops.subtract(columns, rows), columns, one, ov.Type.i64), one)
        causal = ops.unsqueeze(ops.less_equal(at_S, at_T1), np.array([0, 1], np.int64))
        seen = ops.unsqueeze(ops.not_equal(self.seen_BS, np.int64(0)), np.array([1, 2], np.int64))
        hidden = ops.convert(ops.logical_not(ops.logical_and(causal, seen)), ov.Type.f32)
        return ops.multiply(hidden, np.float32(-65504))

    def _count(self, node: ov.Node, axis: int) -> ov.Node:
        return ops.gather(ops.shape_of(node), np.int64(axis), np.int64(0))

    def _attention(self, index: int, x: ov.Node, rotation: tuple[ov.Node, ov.Node], mask: ov.Node) -> ov.Node:
        config, name = self.config, f"layers.{index}.attention"
        q = self._rotated(self._heads(self._linear(x, f"{name}.query"), config.heads), rotation)
        k = self._rotated(self._heads(self._linear(x, f"{name}.key"), config.kv_heads), rotation)
        v = self._heads(self._linear(x, f"{name}.value"), config.kv_heads)
        k, v = self._kept(k, f"key.{index}"), self._kept(v, f"value.{index}")
        scale = ops.constant(np.float32(config.head_width**-0.5))
        mixed = ops.scaled_dot_product_attention(q, self._repeated(k), self._repeated(v), mask, scale, causal=False)
        flat = ops.reshape(
            ops.transpose(mixed, np.array([0, 2, 1, 3], np.int64)),
            np.array([0, 0, config.heads * config.head_width], np.int64),
            special_zero=True,
        )
        return self._linear(flat, f"{name}.output")

    def _heads(self, x: ov.Node, heads: int) -> ov.Node:
        split = ops.reshape(x, np.array([0, 0, heads, self.config.head_width], np.int64), special_zero=True)
        return ops.transpose(split, np.array([0, 2, 1, 3], np.int64))

    def _rotated(self, x: ov.Node, rotation: tuple[ov.Node, ov.Node]) -> ov.Node:
        first, second = ops.split(x, np.int64(3), 2).outputs()
        turned = ops.concat([ops.multiply(second, np.float32(-1)), first], 3)
        return ops.add(ops.multiply(x, rotation[0]), ops.multiply(turned, rotation[1]))

    def _kept(self, new: ov.Node, name: str) -> ov.Node:
        """What was kept before, then the new ones, which are kept from now on."""
        config = self.config
        batch = ops.unsqueeze(self._count(self.ids_BT, 0), np.int64(0))
        sizes = ops.concat([batch, np.array([config.kv_heads, 0, config.head_width], np.int64)], 0)
        empty = ops.broadcast(np.float32(0), sizes)
        info = ov.op.util.VariableInfo()
        info.data_shape = ov.PartialShape([-1, config.kv_heads, -1, config.head_width])
        info.data_type, info.variable_id = ov.Type.f32, name
        variable = ov.op.util.Variable(info)
        kept = ov.op.read_value(empty, variable)
        before = ops.gather(kept, self.beams_B, np.int64(0))
        joined = ops.concat([before, new], 2)
        self.sinks.append(ov.op.assign(joined, variable))
        return joined

    def _repeated(self, x_BKSE: ov.Node) -> ov.Node:
        """Each key head for the query heads of its group."""
        config = self.config
        groups = config.heads // config.kv_heads
        wide = ops.unsqueeze(x_BKSE, np.int64(2))
        sizes = ops.concat(
            [
                ops.gather(ops.shape_of(x_BKSE), np.array([0, 1], np.int64), np.int64(0)),
                np.array([groups], np.int64),
                ops.gather(ops.shape_of(x_BKSE), np.array([2, 3], np.int64), np.int64(0)),
            ],
            0,
        )
        repeated = ops.broadcast(wide, sizes, "BIDIRECTIONAL")
        return ops.reshape(repeated, np.array([0, config.heads, -1, config.head_width], np.int64), special_zero=True)
