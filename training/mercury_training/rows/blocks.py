"""The attention mask of a forward, as a tree of blocks."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct


class Block(Struct, frozen=True):
    """Rows that see row `parent`, everything it sees, and each other: causally or bidirectionally.

    A tree of blocks describes the mask of every forward. Clean tokens are a causal root, a draft to verify hangs
    causally on the last clean row, a canvas hangs bidirectionally on its anchor, and packed documents are several
    roots. Adjacent canvases of one `group` are denoised together and see each other.
    """

    size: int
    parent: int = -1
    causal: bool = True
    group: int = -1


def visible_ranges(blocks: Sequence[Block]) -> np.ndarray:
    """The half-open ranges of columns that each row sees, int32 of shape (rows, ranges, 2); unused ones are empty.

    This is the attention mask in a form that a block-sparse kernel can evaluate.
    """
    starts = np.concatenate([[0], np.cumsum([block.size for block in blocks])]).astype(np.int32)
    owner = np.repeat(np.arange(len(blocks)), [block.size for block in blocks])
    depths: list[int] = []
    for block, start in zip(blocks, starts, strict=False):
        assert block.parent < start, "the parent of a block is an earlier row"
        depths.append(0 if block.parent < 0 else depths[owner[block.parent]] + 1)
    ranges = np.zeros((starts[-1], max(depths) + 1, 2), np.int32)
    for index, (block, depth) in enumerate(zip(blocks, depths, strict=True)):
        start, stop = starts[index], starts[index + 1]
        if block.parent >= 0:
            ranges[start:stop] = ranges[block.parent]
        first, last = _siblings(blocks, index)
        ranges[start:stop, depth, 0] = starts[first]
        ranges[start:stop, depth, 1] = np.arange(start + 1, stop + 1) if block.causal else starts[last + 1]
    return ranges


def slot_positions(anchor_position: int, size: int) -> np.ndarray:
    return np.arange(anchor_position + 1, anchor_position + 1 + size, dtype=np.int32)


def _siblings(blocks: Sequence[Block], index: int) -> tuple[int, int]:
    """The first and the last block of the canvas's group; the canvas itself if it has none."""
    first = last = index
    group = blocks[index].group
    while group >= 0 and first > 0 and blocks[first - 1].group == group:
        first -= 1
    while group >= 0 and last + 1 < len(blocks) and blocks[last + 1].group == group:
        last += 1
    return first, last
