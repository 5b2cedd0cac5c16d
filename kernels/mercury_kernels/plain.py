"""The launchers again in plain torch, for what a GPU does faster that way, and as a baseline for the kernels.

Shapes: as in `linear` and `attention`.
"""

import torch
from torch import Tensor
from torch.nn import functional

from mercury_kernels.attention import PAGE
from mercury_kernels.linear import Weight
from mercury_kernels.stream import Stream


def add_product(stream: Stream, x_ND: Tensor, weight: Weight, bias_F: Tensor | None, norm_F: Tensor) -> None:
    stream.values_ND.add_(functional.linear(x_ND, floats(weight, x_ND.dtype), bias_F))
    stream.rescale(norm_F)


def gated(stream: Stream, norm_D: Tensor, weight: Weight, bias_F: Tensor | None, epsilon: float) -> Tensor:
    normed_ND = normed(stream.values_ND, norm_D, epsilon)
    gate_NF, up_NF = functional.linear(normed_ND, floats(weight, norm_D.dtype), bias_F).chunk(2, 1)
    return functional.silu(gate_NF) * up_NF


def project_heads(
    stream: Stream,
    norm_D: Tensor,
    weight: Weight,
    bias_F: Tensor | None,
    head_norms: tuple[Tensor, Tensor] | None,
    rotations: tuple[Tensor, Tensor],
    positions_N: Tensor,
    slots_N: Tensor,
    k_SKE: Tensor,
    v_SKE: Tensor,
    epsilon: float,
) -> Tensor:
    _, key_heads, width = k_SKE.shape
    projected = functional.linear(normed(stream.values_ND, norm_D, epsilon), floats(weight, norm_D.dtype), bias_F)
    projected_NHE = projected.unflatten(1, (-1, width))
    heads = projected_NHE.shape[1] - 2 * key_heads
    q_NHE, k_NKE, v_NKE = projected_NHE.split([heads, key_heads, key_heads], 1)
    if head_norms is not None:
        q_NHE, k_NKE = normed(q_NHE, head_norms[0], epsilon), normed(k_NKE, head_norms[1], epsilon)
    turned = [part[positions_N.long(), None] for part in rotations]
    _keep(k_SKE, slots_N, _rotated(k_NKE, *turned))
    _keep(v_SKE, slots_N, v_NKE)
    return _rotated(q_NHE, *turned)


def attend(
    q_BTHE: Tensor,
    k_SKE: Tensor,
    v_SKE: Tensor,
    pages_BP: Tensor,
    lengths_B: Tensor,
    counts_B: Tensor,
    bits_BTW: Tensor,
    *,
    splits: int = 1,
) -> Tensor:
    """Torch's own attention over a copy of the pages, under a dense mask."""
    rows = q_BTHE.shape[1]
    seen_BTC = _visible(rows, pages_BP.shape[1] * PAGE, lengths_B, counts_B, bits_BTW)
    own_BC = torch.arange(seen_BTC.shape[2], device=q_BTHE.device) < (lengths_B + counts_B)[:, None]
    k_BKCE, v_BKCE = (
        _gathered(stored, pages_BP).masked_fill(~own_BC[..., None, None], 0).transpose(1, 2)
        for stored in (k_SKE, v_SKE)
    )
    mixed = functional.scaled_dot_product_attention(
        q_BTHE.transpose(1, 2), k_BKCE, v_BKCE, attn_mask=seen_BTC[:, None], enable_gqa=True
    )
    return torch.where(seen_BTC.any(2)[..., None, None], mixed.transpose(1, 2), 0)


def _gathered(stored_SKE: Tensor, pages_BP: Tensor) -> Tensor:
    """The columns of each sequence side by side, BCKE."""
    return stored_SKE.unflatten(0, (-1, PAGE))[pages_BP.long()].flatten(1, 2)


def _visible(rows: int, columns: int, lengths_B: Tensor, counts_B: Tensor, bits_BTW: Tensor) -> Tensor:
    """The dense mask, BTC."""
    column_C = torch.arange(columns, device=lengths_B.device, dtype=torch.int32)
    fresh_BC = column_C - lengths_B[:, None]
    word_B1C = (fresh_BC // 32).clamp(0, bits_BTW.shape[2] - 1)[:, None].long().expand(-1, rows, -1)
    bit_BTC = (bits_BTW.gather(2, word_B1C) >> (fresh_BC % 32)[:, None]) & 1
    is_fresh_BC = (fresh_BC >= 0) & (fresh_BC < counts_B[:, None])
    return (fresh_BC < 0)[:, None] | ((bit_BTC != 0) & is_fresh_BC[:, None])


def normed(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)).to(weight.dtype) * weight


def _rotated(x_NHE: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    first, second = x_NHE.float().chunk(2, -1)
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], -1).to(x_NHE.dtype)


def _keep(stored_SKE: Tensor, slots_N: Tensor, values_NKE: Tensor) -> None:
    """Keep rows without asking which have a slot, for which the host would have to wait."""
    slots_N = slots_N.long()
    chosen_N = torch.where(slots_N < 0, slots_N.argmax(), torch.arange(len(slots_N), device=slots_N.device))
    # Rows without a slot repeat what the row with the highest slot writes: nothing depends on which is last.
    stored_SKE[slots_N[chosen_N].clamp(min=0)] = torch.where(
        (slots_N.max() >= 0), values_NKE[chosen_N], stored_SKE[slots_N[chosen_N].clamp(min=0)]
    )


def floats(weight: Weight, dtype: torch.dtype) -> Tensor:
    values, scales = weight
    return values if scales is None else (values * scales[:, None]).to(dtype)
