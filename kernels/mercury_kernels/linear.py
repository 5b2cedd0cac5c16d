"""Products with weights for a few rows, in Triton, fused with what precedes and follows them in a layer.

Weights are floats, or int8 with one scale per row of the weight. The norm before a product scales whole rows, so it
is applied after it: one pass over the weights computes both.

Shapes: N rows, D inputs, F outputs, H query heads, K key heads, E head width, S slots of the cache.
"""

# Triton: a launch takes options of the compiler that the kernel does not declare; kernels pass plain constants on.
# pyright: reportCallIssue=false, reportArgumentType=false

import torch
import triton
import triton.language as tl
from torch import Tensor

Weight = tuple[Tensor, Tensor | None]
"""A weight, FD, and the float32 scales of its rows if it is int8."""

Tiles = tuple[int, int, int, int]
"""Rows, outputs and inputs of a tile, and the warps that compute it."""


@triton.jit
def _multiplied(
    x_ptr,
    norm_ptr,
    weight_ptr,
    row,
    first_out,
    second_out,
    is_row,
    is_out,
    inner,
    PAIR: tl.constexpr,
    ROW_TILE: tl.constexpr,
    OUT_TILE: tl.constexpr,
    INNER_TILE: tl.constexpr,
    KIND: tl.constexpr,
):
    """The products of rows with the weights of these outputs. A pair is for normed rows: with the sums of squares of
    their inputs."""
    first = tl.zeros([ROW_TILE, OUT_TILE], tl.float32)
    second = tl.zeros([ROW_TILE, OUT_TILE], tl.float32)
    squares = tl.zeros([ROW_TILE], tl.float32)
    for start in range(0, inner, INNER_TILE):
        column = start + tl.arange(0, INNER_TILE)
        is_column = column < inner
        x = tl.load(
            x_ptr + row[:, None] * inner + column[None, :], mask=is_row[:, None] & is_column[None, :], other=0.0
        )
        if PAIR:
            wide = x.to(tl.float32)
            squares += tl.sum(wide * wide, 1)
            x = wide * tl.load(norm_ptr + column, mask=is_column, other=0.0).to(tl.float32)[None, :]
        x = x.to(KIND)
        is_inside = is_out[:, None] & is_column[None, :]
        w = tl.load(weight_ptr + first_out[:, None].to(tl.int64) * inner + column[None, :], mask=is_inside, other=0)
        first = tl.dot(x, tl.trans(w.to(KIND)), first, input_precision="ieee")
        if PAIR:
            u = tl.load(
                weight_ptr + second_out[:, None].to(tl.int64) * inner + column[None, :], mask=is_inside, other=0
            )
            second = tl.dot(x, tl.trans(u.to(KIND)), second, input_precision="ieee")
    return first, second, squares


@triton.jit
def _finished(values, row_scale, scales_ptr, bias_ptr, out, is_out, INT8: tl.constexpr, BIAS: tl.constexpr):
    """A product with the scales of its rows and outputs, and its bias."""
    values = values * row_scale[:, None]
    if INT8:
        values = values * tl.load(scales_ptr + out, mask=is_out, other=0.0)[None, :]
    if BIAS:
        values = values + tl.load(bias_ptr + out, mask=is_out, other=0.0).to(tl.float32)[None, :]
    return values


@triton.jit(do_not_specialize=["rows"])
def product_kernel(
    x_ptr,
    weight_ptr,
    scales_ptr,
    bias_ptr,
    stream_ptr,
    rows,
    inner,
    outer,
    INT8: tl.constexpr,
    BIAS: tl.constexpr,
    ROW_TILE: tl.constexpr,
    OUT_TILE: tl.constexpr,
    INNER_TILE: tl.constexpr,
    KIND: tl.constexpr,
):
    """stream += x @ weight.T + bias"""
    row = tl.program_id(0) * ROW_TILE + tl.arange(0, ROW_TILE)
    out = tl.program_id(1) * OUT_TILE + tl.arange(0, OUT_TILE)
    is_row, is_out = row < rows, out < outer
    values, _, _ = _multiplied(
        x_ptr, x_ptr, weight_ptr, row, out, out, is_row, is_out, inner, False, ROW_TILE, OUT_TILE, INNER_TILE, KIND
    )
    ones = tl.full([ROW_TILE], 1.0, tl.float32)
    values = _finished(values, ones, scales_ptr, bias_ptr, out, is_out, INT8, BIAS)
    place = stream_ptr + row[:, None] * outer + out[None, :]
    inside = is_row[:, None] & is_out[None, :]
    tl.store(place, tl.load(place, mask=inside, other=0.0) + values, mask=inside)


@triton.jit(do_not_specialize=["rows"])
def gated_kernel(
    stream_ptr,
    norm_ptr,
    weight_ptr,
    scales_ptr,
    bias_ptr,
    out_ptr,
    rows,
    inner,
    outer,
    epsilon,
    INT8: tl.constexpr,
    BIAS: tl.constexpr,
    ROW_TILE: tl.constexpr,
    OUT_TILE: tl.constexpr,
    INNER_TILE: tl.constexpr,
    KIND: tl.constexpr,
):
    """silu(gate) * up of the normed stream; the weight holds all rows of the gate, then all of up."""
    row = tl.program_id(0) * ROW_TILE + tl.arange(0, ROW_TILE)
    out = tl.program_id(1) * OUT_TILE + tl.arange(0, OUT_TILE)
    is_row, is_out = row < rows, out < outer
    up_out = out + outer
    gate, up, squares = _multiplied(
        stream_ptr,
        norm_ptr,
        weight_ptr,
        row,
        out,
        up_out,
        is_row,
        is_out,
        inner,
        True,
        ROW_TILE,
        OUT_TILE,
        INNER_TILE,
        KIND,
    )
    length = tl.rsqrt(squares / inner + epsilon)
    gate = _finished(gate, length, scales_ptr, bias_ptr, out, is_out, INT8, BIAS)
    up = _finished(up, length, scales_ptr, bias_ptr, up_out, is_out, INT8, BIAS)
    value = gate / (1 + tl.exp(-gate)) * up
    tl.store(
        out_ptr + row[:, None] * outer + out[None, :],
        value.to(out_ptr.dtype.element_ty),
        mask=is_row[:, None] & is_out[None, :],
    )


@triton.jit(do_not_specialize=["rows"])
def heads_kernel(
    stream_ptr,
    norm_ptr,
    weight_ptr,
    scales_ptr,
    bias_ptr,
    query_norm_ptr,
    key_norm_ptr,
    cosines_ptr,
    sines_ptr,
    positions_ptr,
    slots_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    rows,
    inner,
    epsilon,
    INT8: tl.constexpr,
    BIAS: tl.constexpr,
    HEAD_NORM: tl.constexpr,
    HEADS: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    HALF: tl.constexpr,
    HALF_TILE: tl.constexpr,
    ROW_TILE: tl.constexpr,
    INNER_TILE: tl.constexpr,
    KIND: tl.constexpr,
):
    """One head of some rows of the normed stream: normed and rotated if it is a query or a key, and written to the
    queries, or to the row's slot of the cache. The two halves of a head are a pair of products, so that it rotates in
    registers."""
    row = tl.program_id(0) * ROW_TILE + tl.arange(0, ROW_TILE)
    head = tl.program_id(1)
    dim = tl.arange(0, HALF_TILE)
    is_row, is_dim = row < rows, dim < HALF
    left_out, right_out = head * 2 * HALF + dim, head * 2 * HALF + HALF + dim
    first, second, squares = _multiplied(
        stream_ptr,
        norm_ptr,
        weight_ptr,
        row,
        left_out,
        right_out,
        is_row,
        is_dim,
        inner,
        True,
        ROW_TILE,
        HALF_TILE,
        INNER_TILE,
        KIND,
    )
    length = tl.rsqrt(squares / inner + epsilon)
    first = _finished(first, length, scales_ptr, bias_ptr, left_out, is_dim, INT8, BIAS)
    second = _finished(second, length, scales_ptr, bias_ptr, right_out, is_dim, INT8, BIAS)
    inside = is_row[:, None] & is_dim[None, :]
    if head < HEADS + KEY_HEADS:
        if HEAD_NORM:
            own = tl.rsqrt((tl.sum(first * first, 1) + tl.sum(second * second, 1)) / (2 * HALF) + epsilon)[:, None]
            if head < HEADS:
                left_norm = tl.load(query_norm_ptr + dim, mask=is_dim, other=0.0).to(tl.float32)
                right_norm = tl.load(query_norm_ptr + HALF + dim, mask=is_dim, other=0.0).to(tl.float32)
            else:
                left_norm = tl.load(key_norm_ptr + dim, mask=is_dim, other=0.0).to(tl.float32)
                right_norm = tl.load(key_norm_ptr + HALF + dim, mask=is_dim, other=0.0).to(tl.float32)
            first, second = first * own * left_norm[None, :], second * own * right_norm[None, :]
        position = tl.load(positions_ptr + row, mask=is_row, other=0)
        cosines = tl.load(cosines_ptr + position[:, None] * HALF + dim[None, :], mask=inside, other=0.0)
        sines = tl.load(sines_ptr + position[:, None] * HALF + dim[None, :], mask=inside, other=0.0)
        first, second = first * cosines - second * sines, second * cosines + first * sines
    first, second = first.to(q_ptr.dtype.element_ty), second.to(q_ptr.dtype.element_ty)
    slot = tl.load(slots_ptr + row, mask=is_row, other=-1).to(tl.int64)
    is_stored = inside & (slot >= 0)[:, None]
    if head < HEADS:
        query_ptr = q_ptr + (row * HEADS + head)[:, None] * 2 * HALF + dim[None, :]
        tl.store(query_ptr, first, mask=inside)
        tl.store(query_ptr + HALF, second, mask=inside)
    else:
        stored = (slot * KEY_HEADS + (head - HEADS) % KEY_HEADS)[:, None] * 2 * HALF + dim[None, :]
        if head < HEADS + KEY_HEADS:
            tl.store(k_ptr + stored, first, mask=is_stored)
            tl.store(k_ptr + stored + HALF, second, mask=is_stored)
        else:
            tl.store(v_ptr + stored, first, mask=is_stored)
            tl.store(v_ptr + stored + HALF, second, mask=is_stored)


def add_product(stream_NF: Tensor, x_ND: Tensor, weight: Weight, bias_F: Tensor | None = None) -> None:
    """Add the product to the float32 stream in place."""
    (rows, inner), outer = x_ND.shape, stream_NF.shape[1]
    row_tile, out_tile, inner_tile, warps = tiles(rows, inner, outer)
    product_kernel[(triton.cdiv(rows, row_tile), triton.cdiv(outer, out_tile))](
        x_ND,
        *weight,
        bias_F,
        stream_NF,
        rows,
        inner,
        outer,
        INT8=weight[1] is not None,
        BIAS=bias_F is not None,
        ROW_TILE=row_tile,
        OUT_TILE=out_tile,
        INNER_TILE=inner_tile,
        KIND=kind(x_ND.dtype),
        num_warps=warps,
        num_stages=STAGES,
    )


def gated(
    stream_ND: Tensor,
    norm_D: Tensor,
    weight: Weight,
    bias_F: Tensor | None,
    epsilon: float,
) -> Tensor:
    """The first half of a feed-forward layer, in the precision of the norm's weight."""
    (rows, inner), outer = stream_ND.shape, weight[0].shape[0] // 2
    row_tile, out_tile, inner_tile, warps = tiles(rows, inner, outer, pair=True)
    out_NF = torch.empty(rows, outer, dtype=norm_D.dtype, device=stream_ND.device)
    gated_kernel[(triton.cdiv(rows, row_tile), triton.cdiv(outer, out_tile))](
        stream_ND,
        norm_D,
        *weight,
        bias_F,
        out_NF,
        rows,
        inner,
        outer,
        epsilon,
        INT8=weight[1] is not None,
        BIAS=bias_F is not None,
        ROW_TILE=row_tile,
        OUT_TILE=out_tile,
        INNER_TILE=inner_tile,
        KIND=kind(norm_D.dtype),
        num_warps=warps,
        num_stages=STAGES,
    )
    return out_NF


def project_heads(
    stream_ND: Tensor,
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
    """The rotated queries, NHE. Keys and values go to each row's slot of the cache, nowhere if that is -1.

    `rotations` are the cosines and sines of each position, for one half of a head.
    """
    rows, inner = stream_ND.shape
    _, key_heads, width = k_SKE.shape
    outer = weight[0].shape[0]
    heads = outer // width - 2 * key_heads
    half_tile = max(16, triton.next_power_of_2(width // 2))
    row_tile, _, inner_tile, warps = tiles(rows, inner, outer, pair=True)
    q_NHE = torch.empty(rows, heads, width, dtype=norm_D.dtype, device=stream_ND.device)
    head_kernel_norms = head_norms or (None, None)
    heads_kernel[(triton.cdiv(rows, row_tile), heads + 2 * key_heads)](
        stream_ND,
        norm_D,
        *weight,
        bias_F,
        *head_kernel_norms,
        *rotations,
        positions_N,
        slots_N,
        q_NHE,
        k_SKE,
        v_SKE,
        rows,
        inner,
        epsilon,
        INT8=weight[1] is not None,
        BIAS=bias_F is not None,
        HEAD_NORM=head_norms is not None,
        HEADS=heads,
        KEY_HEADS=key_heads,
        HALF=width // 2,
        HALF_TILE=half_tile,
        ROW_TILE=row_tile,
        INNER_TILE=inner_tile,
        KIND=kind(norm_D.dtype),
        num_warps=warps,
        num_stages=STAGES,
    )
    return q_NHE


STAGES = 3
WIDE = 2048
"""From this many inputs on, weights stream for long enough that wide tiles fill the machine."""


def tiles(rows: int, inner: int, outer: int, *, pair: bool = False) -> Tiles:
    """Narrow tiles for narrow weights, so that every processor gets some of them."""
    row_tile = min(64, max(16, triton.next_power_of_2(rows)))
    if inner < WIDE:
        longest = 64 if pair and row_tile > 32 else 128
        return row_tile, 16, min(longest, max(16, triton.next_power_of_2(inner))), 4
    return row_tile, 32 if pair else 64, 64 if row_tile > 32 else 128, 4


def kind(dtype: torch.dtype) -> tl.dtype:
    return {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}[dtype]
