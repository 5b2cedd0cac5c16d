"""Attention of packed rows under their mask: dense and tiled for the CPU, block-sparse for a GPU.

Shapes: B batch, T rows, H query heads, K key heads, E head width, N ranges of a row, C rows of a tile, S its columns;
Q blocks of rows, S blocks of columns in a block mask.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention.flex_attention import BlockMask, flex_attention

TILE = 128
BLOCK = 128
"""Rows and columns of a block of flex attention."""


class Tile(NamedTuple):
    """Some rows and the columns that they may see. `bias` is 0 where a row sees a column, else -inf; the query heads
    that share a key head are stacked in it."""

    rows: slice
    columns: slice
    bias: Tensor


def dense_mask(ranges_BTN2: Tensor) -> Tensor:
    """True where a row sees a column, BTT."""
    return _seen(ranges_BTN2, torch.arange(ranges_BTN2.shape[1], device=ranges_BTN2.device))


def tiles(
    ranges_BTN2: Tensor, clean: int, heads: int, kv_heads: int, dtype: torch.dtype, size: int = TILE
) -> tuple[Tile, ...]:
    """The dense mask without the upper half of its `clean` rows. Its shapes are those of every batch, so that a
    compiled model stays compiled."""
    rows_count = ranges_BTN2.shape[1]
    tiles = []
    for start in range(0, rows_count, size):
        rows = slice(start, min(start + size, rows_count))
        columns = slice(0, rows.stop if rows.stop <= clean else rows_count)
        seen_BCS = _seen(ranges_BTN2[:, rows], torch.arange(columns.stop))
        bias_BCS = torch.zeros(seen_BCS.shape, dtype=dtype).masked_fill_(~seen_BCS, float("-inf"))
        bias = bias_BCS.repeat(1, heads // kv_heads, 1).repeat_interleave(kv_heads, 0)
        tiles.append(Tile(rows, columns, bias))
    return tuple(tiles)


def attend_tiles(q_BHTE: Tensor, k_BKTE: Tensor, v_BKTE: Tensor, mask: tuple[Tile, ...]) -> Tensor:
    """Plain products in the inputs' precision: on a CPU two to three times as fast as the fused kernel with a mask."""
    kv_heads = k_BKTE.shape[1]
    keys, values = k_BKTE.flatten(0, 1), v_BKTE.flatten(0, 1)
    mixed = []
    for tile in mask:
        rows = q_BHTE[:, :, tile.rows].unflatten(1, (kv_heads, -1))
        queries = rows.flatten(2, 3).flatten(0, 1)
        scores = torch.baddbmm(tile.bias, queries, keys[:, tile.columns].mT, alpha=queries.shape[-1] ** -0.5)
        found = scores.softmax(-1) @ values[:, tile.columns]
        mixed.append(found.view_as(rows).flatten(1, 2))
    return torch.cat(mixed, 2)


def block_mask(ranges_BTN2: Tensor) -> BlockMask:
    """The mask for flex attention, computed without a dense one: a row's ranges do not overlap, so counting tells
    which blocks are seen in part and which as a whole."""
    rows = ranges_BTN2.shape[1]
    starts_S = torch.arange(0, rows, BLOCK, dtype=torch.int32, device=ranges_BTN2.device)
    first_BTN, stop_BTN = ranges_BTN2.int().unbind(-1)
    ends_BTNS = torch.minimum(stop_BTN[..., None], starts_S + BLOCK)
    seen_BTS = (ends_BTNS - torch.maximum(first_BTN[..., None], starts_S)).clamp_(min=0).sum(2)
    seen_BQS = functional.pad(seen_BTS, (0, 0, 0, -rows % BLOCK)).unflatten(1, (-1, BLOCK)).sum(2)
    whole_BQS = seen_BQS == BLOCK * BLOCK
    part_BQS = (seen_BQS > 0) & ~whole_BQS
    sees = _rule(first_BTN, stop_BTN)
    return BlockMask.from_kv_blocks(*_ordered(part_BQS), *_ordered(whole_BQS), BLOCK, sees, (rows, rows))


def attend_blocks(q_BHTE: Tensor, k_BKTE: Tensor, v_BKTE: Tensor, mask: BlockMask) -> Tensor:
    """For compiled models: uncompiled, it forms the whole score matrix."""
    return flex_attention(q_BHTE, k_BKTE, v_BKTE, block_mask=mask, enable_gqa=True)


def _rule(first_BTN: Tensor, stop_BTN: Tensor) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """A rule that is true where a row sees a column. Indexing these tensors with literals would not compile."""
    ranges = [(first_BTN[..., n].contiguous(), stop_BTN[..., n].contiguous()) for n in range(first_BTN.shape[2])]

    def sees(b: Tensor, h: Tensor, q: Tensor, column: Tensor) -> Tensor:
        visible = column < 0
        for first_BT, stop_BT in ranges:
            visible = visible | (column >= first_BT[b, q]) & (column < stop_BT[b, q])
        return visible

    return sees


def _ordered(dense_BQS: Tensor) -> tuple[Tensor, Tensor]:
    """The number of blocks that each block of rows sees, and their indices, seen ones first; the same for all heads."""
    dense_BHQS = dense_BQS[:, None].int()
    return dense_BHQS.sum(-1, dtype=torch.int32), dense_BHQS.argsort(dim=-1, descending=True, stable=True).int()


def _seen(ranges_BCN2: Tensor, columns_S: Tensor) -> Tensor:
    first, stop = ranges_BCN2[..., 0, None], ranges_BCN2[..., 1, None]
    return ((columns_S >= first) & (columns_S < stop)).any(2)
