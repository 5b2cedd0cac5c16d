"""A model's weights as the kernels take them: matrices with the same input are one.

Shapes: D width, F outputs, V vocabulary.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercury_engine.model.config import ModelConfig
from mercury_engine.model.export import SCALE, Weights, plain
from mercury_engine.model.network import rotations
from mercury_kernels.head import Head
from mercury_kernels.linear import Weight

BEYOND = 1024
"""Positions beyond the context for which angles are precomputed: anchors are spaced apart."""


class Layer(NamedTuple):
    norm: Tensor
    heads: Weight
    heads_bias: Tensor | None
    head_norms: tuple[Tensor, Tensor] | None
    output: Weight
    output_bias: Tensor | None
    fed_norm: Tensor
    gated: Weight
    gated_bias: Tensor | None
    down: Weight
    down_bias: Tensor | None


class Network(NamedTuple):
    config: ModelConfig
    table_VD: Tensor
    layers: tuple[Layer, ...]
    head: Head
    rotations: tuple[Tensor, Tensor]


def is_served(config: ModelConfig) -> bool:
    """True if there are kernels for such a model."""
    return config.gated and config.activation == "silu" and not config.layer_norm


def prepared(config: ModelConfig, weights: Weights, *, device: str, dtype: torch.dtype) -> Network:
    """Prepare the weights: int8 matrices stay int8; those of four bits become floats."""

    def floats(name: str) -> Tensor:
        return torch.tensor(plain(weights, name)).to(device=device, dtype=dtype)

    def joined(*names: str) -> Weight:
        if all(weights[name].dtype == np.int8 for name in names):
            scales = np.concatenate([weights[name + SCALE][:, 0] for name in names]).astype(np.float32)
            rows = torch.cat([torch.tensor(weights[name]).to(device) for name in names])
            return rows, torch.tensor(scales, device=device)
        return torch.cat([floats(name) for name in names]), None

    def biases(*names: str) -> Tensor | None:
        if f"{names[0]}.bias" not in weights:
            return None
        return torch.cat([floats(f"{name}.bias") for name in names])

    def layer(at: str) -> Layer:
        parts = [f"{at}.attention.{part}" for part in ("query", "key", "value")]
        halves = [f"{at}.feed_forward.{part}" for part in ("gate", "up")]
        norms = [f"{at}.attention.{part}_norm.weight" for part in ("query", "key")]
        return Layer(
            floats(f"{at}.attention_norm.weight"),
            joined(*(f"{part}.weight" for part in parts)),
            biases(*parts),
            (floats(norms[0]), floats(norms[1])) if norms[0] in weights else None,
            joined(f"{at}.attention.output.weight"),
            biases(f"{at}.attention.output"),
            floats(f"{at}.feed_forward_norm.weight"),
            joined(*(f"{half}.weight" for half in halves)),
            biases(*halves),
            joined(f"{at}.feed_forward.down.weight"),
            biases(f"{at}.feed_forward.down"),
        )

    head = "embedding.weight" if config.tied else "head.weight"
    positions = torch.arange(config.context + BEYOND, device=device)
    cosines, sines = (
        part[0, 0, :, : config.head_width // 2].contiguous() for part in rotations(positions[None], config)
    )
    return Network(
        config,
        _table(config, weights, device).to(dtype),
        tuple(layer(f"layers.{number}") for number in range(config.layers)),
        Head(floats("norm.weight"), joined(head), config.norm_epsilon),
        (cosines, sines),
    )


def _table(config: ModelConfig, weights: Weights, device: str) -> Tensor:
    return torch.tensor(plain(weights, "embedding.weight")).to(device).float() * config.embedding_scale
