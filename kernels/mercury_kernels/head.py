"""The last norm, the product with the vocabulary, and the choice of a token, in Triton: no logits in memory.

Shapes: N rows of a pass, W wanted rows, D width, V vocabulary, P parts of the vocabulary, U words of
32 tokens, C tokens of a choice.
"""

# Triton: a launch takes options of the compiler; inside a kernel Triton's types are not those of Python.
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false, reportOperatorIssue=false

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels.launch import begin_early, early_options
from mercury_kernels.linear import Weight, kind, lengths, parts_tile
from mercury_kernels.plan import row_tile_for
from mercury_kernels.stream import PART, Stream

OUT_TILE = 128
"""The tokens of a part of the vocabulary."""

RANKS = 4
"""The tokens of a choice."""


class Head(NamedTuple):
    """Turns a row of the stream into logits."""

    norm_D: Tensor
    weight: Weight
    epsilon: float


class HeadChoice(NamedTuple):
    """For each wanted row the likeliest of the allowed tokens, the lowest in a tie, then those that are likeliest in
    other parts of the vocabulary, and their probabilities. A row without a distribution has token -1 and NaN."""

    ids_CW: Tensor
    probability_CW: Tensor


@triton.jit(do_not_specialize=["wanted_rows"])
def choose_kernel(
    scaled_ptr,
    squares_ptr,
    weight_ptr,
    scales_ptr,
    wanted_ptr,
    allowed_ptr,
    best_ptr,
    highest_ptr,
    sums_ptr,
    logits_ptr,
    wanted_rows,
    inner,
    vocabulary,
    epsilon,
    INT8: tl.constexpr,
    ALLOWED: tl.constexpr,
    LOGITS: tl.constexpr,
    PARTS_TILE: tl.constexpr,
    PART: tl.constexpr,
    ROW_TILE: tl.constexpr,
    OUT_TILE: tl.constexpr,
    INNER_TILE: tl.constexpr,
    KIND: tl.constexpr,
    EARLY: tl.constexpr,
):
    """A part of the vocabulary for a tile of wanted rows: its logits, or a summary of them."""
    place = tl.program_id(0) * ROW_TILE + tl.arange(0, ROW_TILE)
    part = tl.program_id(1)
    token = part * OUT_TILE + tl.arange(0, OUT_TILE)
    is_token = token < vocabulary
    weight = weight_ptr + token[:, None].to(tl.int64) * inner
    if EARLY:
        begin_early()
    row = tl.load(wanted_ptr + place, mask=place < wanted_rows, other=-1)
    is_row = row >= 0
    values = tl.zeros([OUT_TILE, ROW_TILE], tl.float32)
    for start in range(0, inner, INNER_TILE):
        column = start + tl.arange(0, INNER_TILE)
        is_column = column < inner
        w = tl.load(weight + column[None, :], mask=is_token[:, None] & is_column[None, :], other=0)
        x = tl.load(
            scaled_ptr + row[:, None] * inner + column[None, :], mask=is_row[:, None] & is_column[None, :], other=0.0
        )
        x = tl.trans(x)
        values = tl.dot(w.to(KIND), x, values, input_precision="ieee")
    length = lengths(squares_ptr, row, is_row, inner, epsilon, PARTS_TILE, PART)
    values = values * length[None, :]
    if INT8:
        values = values * tl.load(scales_ptr + token, mask=is_token, other=0.0)[:, None]
    if LOGITS:
        inside = (place < wanted_rows)[None, :] & is_token[:, None]
        tl.store(logits_ptr + place[None, :].to(tl.int64) * vocabulary + token[:, None], values, mask=inside)
    else:
        permitted = is_token
        if ALLOWED:
            word = tl.load(allowed_ptr + token // 32, mask=is_token, other=0)
            permitted = permitted & (((word >> (token % 32)) & 1) != 0)
        values = tl.where(permitted[:, None], values, float("-inf"))
        broken = tl.max((values != values).to(tl.int32), 0)
        values = tl.where(values != values, float("-inf"), values)
        highest, at = tl.max(values, 0, return_indices=True, return_indices_tie_break_left=True)
        weights = tl.exp(values - tl.where(highest == float("-inf"), 0.0, highest)[None, :])
        highest = tl.where(broken != 0, float("nan"), highest)
        own = place * tl.num_programs(1) + part
        is_place = place < wanted_rows
        tl.store(best_ptr + own, part * OUT_TILE + at, mask=is_place)
        tl.store(highest_ptr + own, highest, mask=is_place)
        tl.store(sums_ptr + own, tl.sum(weights, 0), mask=is_place)


@triton.jit(do_not_specialize=["wanted_rows"])
def summary_kernel(
    best_ptr,
    highest_ptr,
    sums_ptr,
    ids_ptr,
    figures_ptr,
    wanted_rows,
    parts,
    PARTS_TILE: tl.constexpr,
    RANKS: tl.constexpr,
    EARLY: tl.constexpr,
):
    """The choice of one row from all parts of the vocabulary, then the best tokens of other parts."""
    if EARLY:
        begin_early()
    place = tl.program_id(0)
    part = tl.arange(0, PARTS_TILE)
    is_part = part < parts
    own = place * parts + part
    highest = tl.load(highest_ptr + own, mask=is_part, other=float("-inf"))
    broken = tl.max((highest != highest).to(tl.int32), 0) != 0
    highest = tl.where(highest != highest, float("-inf"), highest)
    top = tl.max(highest, 0)
    # neither a logit of infinity nor a row without an allowed token leaves a distribution
    broken = broken | (top == float("-inf")) | (top == float("inf"))
    top = tl.where(broken, 0.0, top)
    shrunk = tl.where(highest == float("-inf"), 0.0, tl.exp(tl.where(highest == float("-inf"), 0.0, highest - top)))
    total = tl.sum(shrunk * tl.load(sums_ptr + own, mask=is_part, other=0.0), 0)
    best = tl.load(best_ptr + own, mask=is_part, other=0)
    for rank in tl.static_range(RANKS):
        ranked, winner = tl.max(highest, 0, return_indices=True, return_indices_tie_break_left=True)
        token = tl.sum(tl.where(part == winner, best, 0), 0)
        share = tl.where(ranked == float("-inf"), 0.0, tl.exp(tl.where(ranked == float("-inf"), 0.0, ranked - top)))
        tl.store(ids_ptr + rank * wanted_rows + place, tl.where(broken, -1, token))
        tl.store(figures_ptr + (RANKS + rank) * wanted_rows + place, tl.where(broken, float("nan"), share / total))
        highest = tl.where(part == winner, float("-inf"), highest)


def choose(head: Head, stream: Stream, wanted_W: Tensor, allowed_U: Tensor | None = None) -> Tensor:
    """The choices for the rows `wanted_W`, to be unpacked by `chosen`; rows numbered -1 are padding. `allowed_U` has
    a bit for each token."""
    count, vocabulary, device = len(wanted_W), head.weight[0].shape[0], wanted_W.device
    number = triton.cdiv(vocabulary, OUT_TILE)
    best_WP = torch.empty(count, number, dtype=torch.int32, device=device)
    highest_WP, sums_WP = torch.empty(2, count, number, dtype=torch.float32, device=device)
    _launch(head, stream, wanted_W, allowed_U, (best_WP, highest_WP, sums_WP), None)
    figures_2CW = torch.empty(2, RANKS, count, dtype=torch.float32, device=device)
    summary_kernel[(count,)](
        best_WP,
        highest_WP,
        sums_WP,
        figures_2CW.view(torch.int32),
        figures_2CW,
        count,
        number,
        PARTS_TILE=triton.next_power_of_2(number),
        RANKS=RANKS,
        num_warps=4,
        **early_options(count, device),
    )
    return figures_2CW


def chosen(figures_2CW: Tensor) -> HeadChoice:
    """The result of `choose`, which comes in one piece because each copy to the host costs as much as a kernel."""
    return HeadChoice(figures_2CW[0].view(torch.int32), figures_2CW[1])


def logits(head: Head, stream: Stream, wanted_W: Tensor) -> Tensor:
    """The float32 logits themselves, from which `choose` would choose."""
    logits_WV = torch.empty(len(wanted_W), head.weight[0].shape[0], dtype=torch.float32, device=wanted_W.device)
    _launch(head, stream, wanted_W, None, (None, None, None), logits_WV)
    return logits_WV


def _launch(
    head: Head,
    stream: Stream,
    wanted_W: Tensor,
    allowed_U: Tensor | None,
    summaries_WP: tuple[Tensor | None, Tensor | None, Tensor | None],
    logits_WV: Tensor | None,
) -> None:
    weight_VD, scales_V = head.weight
    vocabulary, inner = weight_VD.shape
    row_tile = row_tile_for(len(wanted_W))
    choose_kernel[(triton.cdiv(len(wanted_W), row_tile), triton.cdiv(vocabulary, OUT_TILE))](
        *stream[1:],
        weight_VD,
        scales_V,
        wanted_W,
        allowed_U,
        *summaries_WP,
        logits_WV,
        len(wanted_W),
        inner,
        vocabulary,
        head.epsilon,
        INT8=scales_V is not None,
        ALLOWED=allowed_U is not None,
        LOGITS=logits_WV is not None,
        PARTS_TILE=parts_tile(inner),
        PART=PART,
        ROW_TILE=row_tile,
        OUT_TILE=OUT_TILE,
        INNER_TILE=min(64, max(16, triton.next_power_of_2(inner))),
        KIND=kind(head.norm_D.dtype),
        num_warps=4,
        num_stages=3,
        **early_options(len(wanted_W), wanted_W.device),
    )
