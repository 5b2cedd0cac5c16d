"""The reference model: one stack that reads, drafts on a canvas and verifies; only the mask differs.

Shapes: B batch, T rows of this forward, S columns (cached rows, then these), D width, H query heads, K key heads, E
head width, F feed-forward width, V vocabulary, R rows whose logits are wanted.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from mercury_engine.model.config import Activation, ModelConfig

KeyValues = Sequence[tuple[Tensor, Tensor]]
"""For each layer the keys and values of some rows, BKTE; keys are normed and rotated."""

Attend = Callable[[Tensor, Tensor, Tensor, Any], Tensor]


def attend_dense(q_BHTE: Tensor, k_BKSE: Tensor, v_BKSE: Tensor, mask: Any) -> Tensor:
    """Attention under a boolean mask, TS or BTS, true where a row sees a column; causal without a mask."""
    rows, columns = q_BHTE.shape[2], k_BKSE.shape[2]
    if mask is None:
        mask = torch.ones(rows, columns, dtype=torch.bool, device=q_BHTE.device).tril(columns - rows)
    if mask.dim() == 3:
        mask = mask[:, None]
    return functional.scaled_dot_product_attention(q_BHTE, k_BKSE, v_BKSE, attn_mask=mask, enable_gqa=True)


class _Linear(nn.Linear):
    def reset_parameters(self) -> None:
        """Do nothing: whoever makes a model sets every weight, and random values take half a second."""


class _Embedding(nn.Embedding):
    def reset_parameters(self) -> None:
        """Do nothing, as for `_Linear`."""


class _Norm(nn.Module):
    """RMS norm, computed in float32 whatever the precision of the weights."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.epsilon)
        return scaled.to(x.dtype) * self.weight


def _norm(config: ModelConfig) -> nn.Module:
    return (nn.LayerNorm if config.layer_norm else _Norm)(config.width, config.norm_epsilon)


class _Attention(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.head_width = config.head_width
        queries, keys = config.heads * config.head_width, config.kv_heads * config.head_width
        self.query = _Linear(config.width, queries, bias=config.qkv_bias)
        self.key = _Linear(config.width, keys, bias=config.qkv_bias)
        self.value = _Linear(config.width, keys, bias=config.qkv_bias)
        self.output = _Linear(queries, config.width, bias=config.output_bias)
        self.query_norm = _Norm(config.head_width, config.norm_epsilon) if config.qk_norm else nn.Identity()
        self.key_norm = _Norm(config.head_width, config.norm_epsilon) if config.qk_norm else nn.Identity()

    def forward(
        self,
        x_BTD: Tensor,
        rotation: tuple[Tensor, Tensor],
        mask: object,
        cached: tuple[Tensor, Tensor] | None,
        attend: Attend,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        mixed_BTF, new = self.mixed(x_BTD, rotation, mask, cached, attend)
        return self.output(mixed_BTF), new

    def mixed(
        self,
        x_BTD: Tensor,
        rotation: tuple[Tensor, Tensor],
        mask: object,
        cached: tuple[Tensor, Tensor] | None,
        attend: Attend,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        q_BHTE = _rotate(self.query_norm(self._heads(self.query(x_BTD))), rotation)
        k_BKTE = _rotate(self.key_norm(self._heads(self.key(x_BTD))), rotation)
        v_BKTE = self._heads(self.value(x_BTD))
        k_BKSE, v_BKSE = k_BKTE, v_BKTE
        if cached is not None:
            k_BKSE = torch.cat([cached[0], k_BKTE], 2)
            v_BKSE = torch.cat([cached[1], v_BKTE], 2)
        mixed_BHTE = attend(q_BHTE, k_BKSE, v_BKSE, mask)
        return mixed_BHTE.transpose(1, 2).flatten(2), (k_BKTE, v_BKTE)

    def _heads(self, x_BTF: Tensor) -> Tensor:
        return x_BTF.unflatten(2, (-1, self.head_width)).transpose(1, 2)


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "silu": functional.silu,
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
}


class _FeedForward(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        bias = config.feed_forward_bias
        if config.gated:
            self.gate = _Linear(config.width, config.feed_forward, bias=bias)
        self.up = _Linear(config.width, config.feed_forward, bias=bias)
        self.down = _Linear(config.feed_forward, config.width, bias=bias)
        self.activated = ACTIVATIONS[config.activation]

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.down(self.hidden(x_BTD))

    def hidden(self, x_BTD: Tensor) -> Tensor:
        if not hasattr(self, "gate"):
            return self.activated(self.up(x_BTD))
        return self.activated(self.gate(x_BTD)) * self.up(x_BTD)


class _Layer(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention_norm = _norm(config)
        self.attention = _Attention(config)
        self.feed_forward_norm = _norm(config)
        self.feed_forward = _FeedForward(config)

    def forward(
        self,
        x_BTD: Tensor,
        rotation: tuple[Tensor, Tensor],
        mask: object,
        cached: tuple[Tensor, Tensor] | None,
        attend: Attend,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        mixed_BTD, new = self.attention(self.attention_norm(x_BTD), rotation, mask, cached, attend)
        x_BTD = x_BTD + mixed_BTD
        return x_BTD + self.feed_forward(self.feed_forward_norm(x_BTD)), new


class Model(nn.Module):
    """Weights are undefined until they are set."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = _Embedding(config.vocabulary, config.width)
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.layers))
        self.norm = _norm(config)
        if not config.tied:
            self.head = _Linear(config.width, config.vocabulary, bias=False)

    def forward(
        self,
        ids_BT: Tensor,
        positions_BT: Tensor,
        mask: object = None,
        cache: KeyValues | None = None,
        attend: Attend = attend_dense,
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Hidden rows, and the keys and values of exactly these rows: the caller keeps those that it accepts.

        `mask` is what `attend` takes; its columns are the cached rows, then these.
        """
        rotation = rotations(positions_BT, self.config)
        x_BTD = self.embedding(ids_BT)
        if self.config.embedding_scale != 1:
            x_BTD = x_BTD * self.config.embedding_scale
        fresh = []
        for index, layer in enumerate(self.layers):
            cached = None if cache is None else cache[index]
            x_BTD, new = layer(x_BTD, rotation, mask, cached, attend)
            fresh.append(new)
        return self.norm(x_BTD), fresh

    def logits(self, hidden_RD: Tensor) -> Tensor:
        """Float32 logits of the requested rows; row i predicts token i + 1."""
        weight_VD = self.embedding.weight if self.config.tied else self.head.weight
        return functional.linear(hidden_RD, weight_VD).float()


def rotations(positions_BT: Tensor, config: ModelConfig) -> tuple[Tensor, Tensor]:
    """Cosines and sines of each row's angles, B1TE, in float32; both halves of a head share them."""
    steps = torch.arange(0, config.head_width, 2, device=positions_BT.device, dtype=torch.float32)
    frequencies = config.rope_theta ** (-steps / config.head_width)
    if config.rope_frequencies:
        frequencies = torch.tensor(config.rope_frequencies, device=positions_BT.device, dtype=torch.float32)
    angles = positions_BT[:, None, :, None].float() * frequencies
    angles = torch.cat([angles, angles], -1)
    if config.rope_scale == 1:
        return angles.cos(), angles.sin()
    return angles.cos() * config.rope_scale, angles.sin() * config.rope_scale


def _rotate(x_BHTE: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    cosines, sines = rotation
    first, second = x_BHTE.float().chunk(2, -1)
    turned = torch.cat([-second, first], -1)
    return (x_BHTE.float() * cosines + turned * sines).to(x_BHTE.dtype)
