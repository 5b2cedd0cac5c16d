"""Products with weights for a few rows, in Triton, fused with what precedes and follows them in a layer.

Weights are floats, or int8 with one scale per row of the weight. The norm before a product scales whole rows, so it
is applied after it; its weight was applied by the product before, which leaves the stream as it is read here. A tile
has outputs as rows and rows as columns, so that it is as narrow as there are rows, and int8 weights become floats in
registers.

Shapes: N rows, D inputs, F outputs, H query heads, K key heads, E head width, S slots of the cache.
"""

# Triton: a launch takes options of the compiler that the kernel does not declare; kernels pass plain constants on.
# pyright: reportCallIssue=false, reportArgumentType=false

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels.launch import begin_early, counters, early_options, is_last, processors
from mercury_kernels.plan import Plan, plan_for
from mercury_kernels.stream import PART, Stream

Weight = tuple[Tensor, Tensor | None]
"""A weight, FD, and the float32 scales of its rows if it is int8."""


@triton.jit
def _multiplied(
    x_ptr,
    weight_ptr,
    parts_ptr,
    arrivals_ptr,
    out,
    is_out,
    row,
    is_row,
    inner,
    SPLIT: tl.constexpr,
    OUT_TILE: tl.constexpr,
    ROW_TILE: tl.constexpr,
    INNER_TILE: tl.constexpr,
    KIND: tl.constexpr,
    EARLY: tl.constexpr,
):
    """The products of a tile of weights with a tile of rows, and whether this program has them: of those that share
    the inputs, the last one."""
    split, splits = tl.program_id(2), tl.num_programs(2)
    blocks = tl.cdiv(inner, INNER_TILE)
    first, last = split * blocks // splits, (split + 1) * blocks // splits
    inside = tl.arange(0, INNER_TILE)
    weight = weight_ptr + out[:, None].to(tl.int64) * inner
    if EARLY:
        begin_early()
    values = tl.zeros([OUT_TILE, ROW_TILE], tl.float32)
    for block in range(first, last):
        column = block * INNER_TILE + inside
        is_column = column < inner
        w = tl.load(weight + column[None, :], mask=is_out[:, None] & is_column[None, :], other=0)
        x = tl.load(
            x_ptr + row[:, None] * inner + column[None, :], mask=is_row[:, None] & is_column[None, :], other=0.0
        )
        values = tl.dot(w.to(KIND), tl.trans(x), values, input_precision="ieee")
    complete = True
    if SPLIT:
        tile = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
        inside_tile = tl.arange(0, OUT_TILE)[:, None] * ROW_TILE + tl.arange(0, ROW_TILE)[None, :]
        parts = parts_ptr + tile * splits * (OUT_TILE * ROW_TILE) + inside_tile
        tl.store(parts + split * (OUT_TILE * ROW_TILE), values)
        complete = is_last(arrivals_ptr + tile, splits)
        if complete:
            values = tl.zeros([OUT_TILE, ROW_TILE], tl.float32)
            for other in range(splits):
                values += tl.load(parts + other * (OUT_TILE * ROW_TILE), cache_modifier=".cg")
    return values, complete


@triton.jit
def lengths(squares_ptr, row, is_row, width, epsilon, PARTS_TILE: tl.constexpr, PART: tl.constexpr):
    """What the norm multiplies rows of this width with."""
    part = tl.arange(0, PARTS_TILE)
    parts = tl.cdiv(width, PART)
    inside = is_row[:, None] & (part < parts)[None, :]
    squares = tl.load(squares_ptr + row[:, None] * parts + part[None, :], mask=inside, other=0.0)
    return tl.rsqrt(tl.sum(squares, 1) / width + epsilon)


@triton.jit
def _finished(values, scales_ptr, bias_ptr, out, is_out, INT8: tl.constexpr, BIAS: tl.constexpr):
    """A product with the scales of its outputs, and its bias."""
    if INT8:
        values = values * tl.load(scales_ptr + out, mask=is_out, other=0.0)[:, None]
    if BIAS:
        values = values + tl.load(bias_ptr + out, mask=is_out, other=0.0).to(tl.float32)[:, None]
    return values


@triton.jit
def _halves(values, HALF_TILE: tl.constexpr, ROW_TILE: tl.constexpr):
    """The two halves of a tile of outputs."""
    return values.reshape(2, HALF_TILE, ROW_TILE).permute(1, 2, 0).split()


@triton.jit(do_not_specialize=["rows"])
def product_kernel(
    x_ptr,
    weight_ptr,
    scales_ptr,
    bias_ptr,
    parts_ptr,
    arrivals_ptr,
    norm_ptr,
    values_ptr,
    scaled_ptr,
    squares_ptr,
    rows,
    inner,
    outer,
    INT8: tl.constexpr,
    BIAS: tl.constexpr,
    PART: tl.constexpr,
    SPLIT: tl.constexpr,
    OUT_TILE: tl.constexpr,
    ROW_TILE: tl.constexpr,
    INNER_TILE: tl.constexpr,
    KIND: tl.constexpr,
    EARLY: tl.constexpr,
):
    """stream += x @ weight.T + bias, and what the next product reads of it."""
    row = tl.program_id(0) * ROW_TILE + tl.arange(0, ROW_TILE)
    out = tl.program_id(1) * OUT_TILE + tl.arange(0, OUT_TILE)
    is_row, is_out = row < rows, out < outer
    values, complete = _multiplied(
        x_ptr,
        weight_ptr,
        parts_ptr,
        arrivals_ptr,
        out,
        is_out,
        row,
        is_row,
        inner,
        SPLIT,
        OUT_TILE,
        ROW_TILE,
        INNER_TILE,
        KIND,
        EARLY,
    )
    if not complete:
        return
    place, inside = row[None, :] * outer + out[:, None], is_row[None, :] & is_out[:, None]
    values = _finished(values, scales_ptr, bias_ptr, out, is_out, INT8, BIAS)
    values += tl.load(values_ptr + place, mask=inside, other=0.0)
    tl.store(values_ptr + place, values, mask=inside)
    scaled = values * tl.load(norm_ptr + out, mask=is_out, other=0.0).to(tl.float32)[:, None]
    tl.store(scaled_ptr + place, scaled.to(scaled_ptr.dtype.element_ty), mask=inside)
    squares = tl.sum((values * values).reshape(OUT_TILE // PART, PART, ROW_TILE), 1)
    part, parts = tl.program_id(1) * (OUT_TILE // PART) + tl.arange(0, OUT_TILE // PART), tl.cdiv(outer, PART)
    tl.store(
        squares_ptr + row[None, :] * parts + part[:, None], squares, mask=is_row[None, :] & (part < parts)[:, None]
    )


@triton.jit(do_not_specialize=["rows"])
def gated_kernel(
    scaled_ptr,
    squares_ptr,
    weight_ptr,
    scales_ptr,
    bias_ptr,
    parts_ptr,
    arrivals_ptr,
    out_ptr,
    rows,
    inner,
    outer,
    epsilon,
    INT8: tl.constexpr,
    BIAS: tl.constexpr,
    PARTS_TILE: tl.constexpr,
    PART: tl.constexpr,
    SPLIT: tl.constexpr,
    OUT_TILE: tl.constexpr,
    ROW_TILE: tl.constexpr,
    INNER_TILE: tl.constexpr,
    KIND: tl.constexpr,
    EARLY: tl.constexpr,
):
    """silu(gate) * up of the normed stream; the weight holds all rows of the gate, then all of up, and a tile as many
    of each."""
    HALF_TILE: tl.constexpr = OUT_TILE // 2
    row = tl.program_id(0) * ROW_TILE + tl.arange(0, ROW_TILE)
    at = tl.arange(0, OUT_TILE)
    own = tl.program_id(1) * HALF_TILE + at % HALF_TILE
    out = own + at // HALF_TILE * outer
    is_row, is_out = row < rows, own < outer
    values, complete = _multiplied(
        scaled_ptr,
        weight_ptr,
        parts_ptr,
        arrivals_ptr,
        out,
        is_out,
        row,
        is_row,
        inner,
        SPLIT,
        OUT_TILE,
        ROW_TILE,
        INNER_TILE,
        KIND,
        EARLY,
    )
    if not complete:
        return
    values = values * lengths(squares_ptr, row, is_row, inner, epsilon, PARTS_TILE, PART)[None, :]
    gate, up = _halves(_finished(values, scales_ptr, bias_ptr, out, is_out, INT8, BIAS), HALF_TILE, ROW_TILE)
    value = gate / (1 + tl.exp(-gate)) * up
    fed = tl.program_id(1) * HALF_TILE + tl.arange(0, HALF_TILE)
    tl.store(
        out_ptr + row[None, :] * outer + fed[:, None],
        value.to(out_ptr.dtype.element_ty),
        mask=is_row[None, :] & (fed < outer)[:, None],
    )


@triton.jit(do_not_specialize=["rows"])
def heads_kernel(
    scaled_ptr,
    squares_ptr,
    weight_ptr,
    scales_ptr,
    bias_ptr,
    parts_ptr,
    arrivals_ptr,
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
    PARTS_TILE: tl.constexpr,
    PART: tl.constexpr,
    SPLIT: tl.constexpr,
    OUT_TILE: tl.constexpr,
    ROW_TILE: tl.constexpr,
    INNER_TILE: tl.constexpr,
    KIND: tl.constexpr,
    EARLY: tl.constexpr,
):
    """One head of some rows of the normed stream: normed and rotated if it is a query or a key, and written to the
    queries, or to the row's slot of the cache. A tile has the two halves of a head, so that it rotates in registers."""
    HALF_TILE: tl.constexpr = OUT_TILE // 2
    row = tl.program_id(0) * ROW_TILE + tl.arange(0, ROW_TILE)
    head = tl.program_id(1)
    at = tl.arange(0, OUT_TILE)
    out = head * 2 * HALF + at // HALF_TILE * HALF + at % HALF_TILE
    is_row, is_out = row < rows, at % HALF_TILE < HALF
    values, complete = _multiplied(
        scaled_ptr,
        weight_ptr,
        parts_ptr,
        arrivals_ptr,
        out,
        is_out,
        row,
        is_row,
        inner,
        SPLIT,
        OUT_TILE,
        ROW_TILE,
        INNER_TILE,
        KIND,
        EARLY,
    )
    if not complete:
        return
    values = values * lengths(squares_ptr, row, is_row, inner, epsilon, PARTS_TILE, PART)[None, :]
    first, second = _halves(_finished(values, scales_ptr, bias_ptr, out, is_out, INT8, BIAS), HALF_TILE, ROW_TILE)
    dim = tl.arange(0, HALF_TILE)
    is_dim = dim < HALF
    inside = is_dim[:, None] & is_row[None, :]
    if head < HEADS + KEY_HEADS:
        if HEAD_NORM:
            own = tl.rsqrt((tl.sum(first * first, 0) + tl.sum(second * second, 0)) / (2 * HALF) + epsilon)[None, :]
            head_norm_ptr = query_norm_ptr if head < HEADS else key_norm_ptr
            left_norm = tl.load(head_norm_ptr + dim, mask=is_dim, other=0.0).to(tl.float32)
            right_norm = tl.load(head_norm_ptr + HALF + dim, mask=is_dim, other=0.0).to(tl.float32)
            first, second = first * own * left_norm[:, None], second * own * right_norm[:, None]
        position = tl.load(positions_ptr + row, mask=is_row, other=0)
        cosines = tl.load(cosines_ptr + position[None, :] * HALF + dim[:, None], mask=inside, other=0.0)
        sines = tl.load(sines_ptr + position[None, :] * HALF + dim[:, None], mask=inside, other=0.0)
        first, second = first * cosines - second * sines, second * cosines + first * sines
    first, second = first.to(q_ptr.dtype.element_ty), second.to(q_ptr.dtype.element_ty)
    slot = tl.load(slots_ptr + row, mask=is_row, other=-1).to(tl.int64)
    is_stored = inside & (slot >= 0)[None, :]
    if head < HEADS:
        query_ptr = q_ptr + (row * HEADS + head)[None, :] * 2 * HALF + dim[:, None]
        tl.store(query_ptr, first, mask=inside)
        tl.store(query_ptr + HALF, second, mask=inside)
    else:
        stored = (slot * KEY_HEADS + (head - HEADS) % KEY_HEADS)[None, :] * 2 * HALF + dim[:, None]
        if head < HEADS + KEY_HEADS:
            tl.store(k_ptr + stored, first, mask=is_stored)
            tl.store(k_ptr + stored + HALF, second, mask=is_stored)
        else:
            tl.store(v_ptr + stored, first, mask=is_stored)
            tl.store(v_ptr + stored + HALF, second, mask=is_stored)


def add_product(
    stream: Stream,
    x_ND: Tensor,
    weight: Weight,
    bias_F: Tensor | None,
    norm_F: Tensor,
    *,
    plan: Plan | None = None,
) -> None:
    """Add the product to the stream in place, and prepare that for a product behind the norm."""
    (rows, inner), outer = x_ND.shape, stream.values_ND.shape[1]
    plan = plan or plan_for("product", rows, inner, outer, *_sizes(weight, norm_F))
    grid = plan.grid(rows, outer)
    product_kernel[grid](
        x_ND,
        *weight,
        bias_F,
        *_shared(plan, grid, norm_F.device),
        norm_F,
        *stream,
        rows,
        inner,
        outer,
        **_options(plan, rows, weight, bias_F, norm_F),
    )


def gated(
    stream: Stream, norm_D: Tensor, weight: Weight, bias_F: Tensor | None, epsilon: float, *, plan: Plan | None = None
) -> Tensor:
    """The first half of a feed-forward layer, in the precision of the norm's weight."""
    (rows, inner), outer = stream.scaled_ND.shape, weight[0].shape[0] // 2
    plan = plan or plan_for("gated", rows, inner, 2 * outer, *_sizes(weight, norm_D))
    grid = plan.grid(rows, 2 * outer)
    out_NF = torch.empty(rows, outer, dtype=norm_D.dtype, device=norm_D.device)
    gated_kernel[grid](
        *stream[1:],
        *weight,
        bias_F,
        *_shared(plan, grid, norm_D.device),
        out_NF,
        rows,
        inner,
        outer,
        epsilon,
        PARTS_TILE=parts_tile(inner),
        **_options(plan, rows, weight, bias_F, norm_D),
    )
    return out_NF


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
    *,
    plan: Plan | None = None,
) -> Tensor:
    """The rotated queries, NHE. Keys and values go to each row's slot of the cache, nowhere if that is -1.

    `rotations` are the cosines and sines of each position, for one half of a head.
    """
    rows, inner = stream.scaled_ND.shape
    _, key_heads, width = k_SKE.shape
    outer = weight[0].shape[0]
    heads = outer // width - 2 * key_heads
    plan = plan or plan_for("heads", rows, inner, outer, *_sizes(weight, norm_D), width)
    grid = (triton.cdiv(rows, plan.row_tile), heads + 2 * key_heads, plan.splits)
    q_NHE = torch.empty(rows, heads, width, dtype=norm_D.dtype, device=norm_D.device)
    heads_kernel[grid](
        *stream[1:],
        *weight,
        bias_F,
        *_shared(plan, grid, norm_D.device),
        *(head_norms or (None, None)),
        *rotations,
        positions_N,
        slots_N,
        q_NHE,
        k_SKE,
        v_SKE,
        rows,
        inner,
        epsilon,
        HEAD_NORM=head_norms is not None,
        HEADS=heads,
        KEY_HEADS=key_heads,
        HALF=width // 2,
        PARTS_TILE=parts_tile(inner),
        **_options(plan, rows, weight, bias_F, norm_D),
    )
    return q_NHE


def _shared(plan: Plan, grid: tuple[int, int, int], device: torch.device) -> tuple[Tensor | None, Tensor | None]:
    """What programs that share a tile leave for the last of them: products, and how many have arrived."""
    row_tiles, out_tiles, splits = grid
    if splits == 1:
        return None, None
    size = row_tiles * out_tiles * splits * plan.out_tile * plan.row_tile
    return torch.empty(size, dtype=torch.float32, device=device), counters(device)


def _sizes(weight: Weight, norm_D: Tensor) -> tuple[int, int, int]:
    """The bytes of a weight and of an input, and the processors."""
    return weight[0].itemsize, norm_D.itemsize, processors(norm_D.device)


def _options(plan: Plan, rows: int, weight: Weight, bias_F: Tensor | None, norm_D: Tensor) -> dict[str, Any]:
    return {
        "INT8": weight[1] is not None,
        "BIAS": bias_F is not None,
        "PART": PART,
        "SPLIT": plan.splits > 1,
        "OUT_TILE": plan.out_tile,
        "ROW_TILE": plan.row_tile,
        "INNER_TILE": plan.inner_tile,
        "KIND": kind(norm_D.dtype),
        "num_warps": plan.warps,
        "num_stages": plan.stages,
        **early_options(rows, norm_D.device),
    }


def parts_tile(width: int) -> int:
    """The size of a tile with the squares of all parts of a row."""
    return triton.next_power_of_2(triton.cdiv(width, PART))


def kind(dtype: torch.dtype) -> tl.dtype:
    return {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}[dtype]
