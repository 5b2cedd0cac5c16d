"""Attention of a few rows over a paged cache and over each other, in Triton: reading, drafting and verifying alike.

Shapes: B sequences, T rows of each, H query heads, K key heads, E head width, S slots of the cache, P pages of a
sequence, W words of 32 rows, a whole number of pages.
"""

# Triton: a launch takes options of the compiler that the kernel does not declare; its ranges are not those of Python.
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

import torch
import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels.launch import begin_early, counters, early_options, is_last

PAGE = 64
"""The number of slots in a page, and of columns in a tile."""

LARGEST_TILE = 64
SMALLEST_TILE = 16

WIDTH_OF_FOUR_WARPS = 64

PROGRAMS_A_PROCESSOR = 2
MOST_SPLITS = 32

LOG2_E = 1.4426950408889634


@triton.jit
def _mixed_in(mixed, weight, highest, q, k, v, visible, scale):
    """The online softmax after one more tile of columns: values mixed so far, their weight, and the highest score."""
    scores = tl.where(visible, tl.dot(q, tl.trans(k), input_precision="ieee") * scale, float("-inf"))
    raised = tl.maximum(highest, tl.max(scores, 1))
    # A row that has seen nothing yet has no highest score to subtract.
    base = tl.where(raised == float("-inf"), 0.0, raised)
    shrunk = tl.exp2(highest - base)
    weights = tl.exp2(scores - base[:, None])
    mixed = tl.dot(weights.to(v.dtype), v, mixed * shrunk[:, None], input_precision="ieee")
    return mixed, weight * shrunk + tl.sum(weights, 1), raised


@triton.jit(do_not_specialize=["rows", "most_pages", "words"])
def attend_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    pages_ptr,
    lengths_ptr,
    counts_ptr,
    bits_ptr,
    parts_ptr,
    log_sums_ptr,
    arrivals_ptr,
    out_ptr,
    rows,
    most_pages,
    words,
    scale,
    SPLIT: tl.constexpr,
    GROUP: tl.constexpr,
    KEY_HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    WIDTH_TILE: tl.constexpr,
    ROW_TILE: tl.constexpr,
    PAGE: tl.constexpr,
    EARLY: tl.constexpr,
):
    """One tile of rows, with all query heads of one key head packed into it, over a part of the columns. The last of
    the programs that share a tile puts their parts together.

    Columns are the cached rows, which every row sees, then those of this pass, of which `bits` says who sees whom.
    Memory behind the last column of a tile was never written, and zero times NaN is NaN: loads are masked.
    """
    tiles = tl.cdiv(rows * GROUP, ROW_TILE)
    sequence = tl.program_id(0) // tiles
    key_head, split = tl.program_id(1), tl.program_id(2)
    packed = (tl.program_id(0) % tiles) * ROW_TILE + tl.arange(0, ROW_TILE)
    row = packed // GROUP
    head = key_head * GROUP + packed % GROUP
    is_row = row < rows
    at = sequence * rows + row
    dims = tl.arange(0, WIDTH_TILE)
    is_dim = dims < WIDTH
    heads = KEY_HEADS * GROUP
    length, count = tl.load(lengths_ptr + sequence), tl.load(counts_ptr + sequence)
    own_pages = pages_ptr + sequence * most_pages
    cached_tiles = tl.cdiv(length, PAGE)
    all_tiles = cached_tiles + tl.cdiv(count, PAGE)
    share = tl.cdiv(all_tiles, tl.num_programs(2))
    first, last = split * share, tl.minimum((split + 1) * share, all_tiles)
    inside = tl.arange(0, PAGE)
    if EARLY:
        begin_early()
    q = tl.load(
        q_ptr + (at * heads + head)[:, None] * WIDTH + dims[None, :], mask=is_row[:, None] & is_dim[None, :], other=0.0
    )
    highest = tl.full([ROW_TILE], float("-inf"), tl.float32)
    weight = tl.zeros([ROW_TILE], tl.float32)
    mixed = tl.zeros([ROW_TILE, WIDTH_TILE], tl.float32)
    for tile in range(first, tl.minimum(last, cached_tiles)):
        is_column = tile * PAGE + inside < length
        slot = tl.load(own_pages + tile).to(tl.int64) * PAGE + inside
        stored = (slot * KEY_HEADS + key_head)[:, None] * WIDTH + dims[None, :]
        is_inside = is_column[:, None] & is_dim[None, :]
        k = tl.load(k_ptr + stored, mask=is_inside, other=0.0)
        v = tl.load(v_ptr + stored, mask=is_inside, other=0.0)
        mixed, weight, highest = _mixed_in(mixed, weight, highest, q, k, v, is_column[None, :], scale)
    for tile in range(tl.maximum(first, cached_tiles), last):
        fresh = (tile - cached_tiles) * PAGE + inside
        is_column = fresh < count
        column = length + fresh
        page = tl.load(own_pages + column // PAGE, mask=is_column, other=0).to(tl.int64)
        stored = ((page * PAGE + column % PAGE) * KEY_HEADS + key_head)[:, None] * WIDTH + dims[None, :]
        is_inside = is_column[:, None] & is_dim[None, :]
        k = tl.load(k_ptr + stored, mask=is_inside, other=0.0)
        v = tl.load(v_ptr + stored, mask=is_inside, other=0.0)
        word = (tile - cached_tiles) * (PAGE // 32)
        low = tl.load(bits_ptr + at * words + word, mask=is_row, other=0)
        high = tl.load(bits_ptr + at * words + word + 1, mask=is_row, other=0)
        visible = tl.where(inside[None, :] < 32, low[:, None], high[:, None])
        visible = (((visible >> (inside[None, :] % 32)) & 1) != 0) & is_column[None, :]
        mixed, weight, highest = _mixed_in(mixed, weight, highest, q, k, v, visible, scale)
    mixed = mixed / tl.where(weight == 0, 1.0, weight)[:, None]
    heads_of_all = tl.num_programs(0) // tiles * rows * heads
    place, inside_of_all = at * heads + head, is_row[:, None] & is_dim[None, :]
    if SPLIT:
        part = parts_ptr + place[:, None] * WIDTH + dims[None, :]
        tl.store(part + split * heads_of_all * WIDTH, mixed, mask=inside_of_all)
        tl.store(log_sums_ptr + split * heads_of_all + place, highest + tl.log2(weight), mask=is_row)
        if not is_last(arrivals_ptr + tl.program_id(0) * KEY_HEADS + key_head, tl.num_programs(2)):
            return
        highest = tl.full([ROW_TILE], float("-inf"), tl.float32)
        weight = tl.zeros([ROW_TILE], tl.float32)
        mixed = tl.zeros([ROW_TILE, WIDTH_TILE], tl.float32)
        for other in tl.range(0, tl.num_programs(2), loop_unroll_factor=4):
            own = tl.load(part + other * heads_of_all * WIDTH, mask=inside_of_all, other=0.0, cache_modifier=".cg")
            log_sum = tl.load(
                log_sums_ptr + other * heads_of_all + place, mask=is_row, other=float("-inf"), cache_modifier=".cg"
            )
            raised = tl.maximum(highest, log_sum)
            base = tl.where(raised == float("-inf"), 0.0, raised)
            shrunk, added = tl.exp2(highest - base), tl.exp2(log_sum - base)
            mixed = mixed * shrunk[:, None] + own * added[:, None]
            weight, highest = weight * shrunk + added, raised
        mixed = mixed / tl.where(weight == 0, 1.0, weight)[:, None]
    tl.store(out_ptr + place[:, None] * WIDTH + dims[None, :], mixed.to(out_ptr.dtype.element_ty), mask=inside_of_all)


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
    """Each row sees its sequence's first `lengths_B` columns, and of the `counts_B` behind them those whose bit is set.

    Column c of sequence b is in slot `pages_BP[b, c // PAGE] * PAGE + c % PAGE`. Rows that see nothing become zero.
    """
    batch, rows, heads, width = q_BTHE.shape
    key_heads = k_SKE.shape[1]
    group, tile = heads // key_heads, row_tile(rows * (heads // key_heads))
    out, parts, log_sums = torch.empty_like(q_BTHE), None, None
    if splits > 1:
        parts = torch.empty(splits, *q_BTHE.shape, dtype=torch.float32, device=q_BTHE.device)
        log_sums = torch.empty(splits, batch, rows, heads, dtype=torch.float32, device=q_BTHE.device)
    width_tile = max(16, triton.next_power_of_2(width))
    attend_kernel[(batch * triton.cdiv(rows * group, tile), key_heads, splits)](
        q_BTHE,
        k_SKE,
        v_SKE,
        pages_BP,
        lengths_B,
        counts_B,
        bits_BTW,
        parts,
        log_sums,
        counters(q_BTHE.device) if splits > 1 else None,
        out,
        rows,
        pages_BP.shape[1],
        bits_BTW.shape[2],
        width**-0.5 * LOG2_E,
        SPLIT=splits > 1,
        GROUP=group,
        KEY_HEADS=key_heads,
        WIDTH=width,
        WIDTH_TILE=width_tile,
        ROW_TILE=tile,
        PAGE=PAGE,
        num_warps=8 if width_tile > WIDTH_OF_FOUR_WARPS else 4,
        num_stages=2,
        **early_options(batch * rows, q_BTHE.device),
    )
    return out


def row_tile(packed: int) -> int:
    """The rows that one program computes together: all of them, if they fit into a tile."""
    return min(LARGEST_TILE, max(SMALLEST_TILE, triton.next_power_of_2(packed)))


def splits_for(programs: int, columns: int, processors: int) -> int:
    """The number of parts into which the columns are split so that every processor has work, and each part at least
    two pages."""
    splits = -(-processors * PROGRAMS_A_PROCESSOR // programs)
    return max(1, min(splits, MOST_SPLITS, -(-columns // (2 * PAGE))))
