"""The attention mask of a forward, and rows with their answers written in, as training reads them."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.tokens.layout import Hole, LayoutRow
from mercury_engine.tokens.vocabulary import EOM, HOLE_STRIDE, MODES


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


class Stream(Struct, frozen=True, eq=False):
    """A row with its answers written in, for training; row `starts[i]` predicts the first token of answer i."""

    ids: np.ndarray
    positions: np.ndarray
    blocks: tuple[Block, ...]
    starts: tuple[int, ...]


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


def canvas_mask(blocks: Sequence[Block], first_row: int = 0) -> np.ndarray:
    """True where a row sees a column, for the rows from `first_row` on: the earlier ones are cached."""
    columns = np.arange(sum(block.size for block in blocks), dtype=np.int32)
    ranges = visible_ranges(blocks)[first_row:, :, :, None]
    return np.any((columns >= ranges[:, :, 0]) & (columns < ranges[:, :, 1]), axis=1)


def canvas_slots(answer: Sequence[int], size: int) -> tuple[np.ndarray, np.ndarray]:
    """The targets of a canvas, and the weight of each in the loss.

    `answer` is the rest of the answer with its `<eom>`. Every slot behind it is `<eom>` too, and all of these together
    weigh as much as one token. An answer that does not fit has no end here: the next canvas continues it.
    """
    ids = np.full(size, EOM, np.int32)
    ids[: len(answer)] = answer[:size]
    ends = ids == EOM
    return ids, np.where(ends, 1 / max(1, ends.sum()), 1).astype(np.float32)


def slot_positions(anchor_position: int, size: int) -> np.ndarray:
    return np.arange(anchor_position + 1, anchor_position + 1 + size, dtype=np.int32)


def with_answers(row: LayoutRow, answers: Sequence[Sequence[int]]) -> Stream:
    """The row in the order of plain autoregression: each anchor followed by its answer, hole after hole.

    With a single hole the answer continues the row. With several, the row ends with all anchors side by side, as
    drafting needs them; the answers branch off at the first anchor, and the later anchors are repeated in the
    branch, where they see the answers before them. Positions are the same in both.
    """
    base, first = len(row.ids), row.holes[0].anchor
    ids, positions, starts = [*answers[0]], [*_following(row, first, answers[0])], [first]
    for hole, answer in zip(row.holes[1:], answers[1:], strict=True):
        starts.append(base + len(ids))
        ids += [int(row.ids[hole.anchor]), *answer]
        positions += [int(row.positions[hole.anchor]), *_following(row, hole.anchor, answer)]
    blocks = (Block(base), Block(len(ids), parent=first))
    return Stream(
        np.concatenate([row.ids, np.array(ids, np.int32)]),
        np.concatenate([row.positions, np.array(positions, np.int32)]),
        blocks,
        tuple(starts),
    )


def without_modes(row: LayoutRow) -> LayoutRow:
    """The row without its mode tokens, as in a fifth of the training rows."""
    is_text = ~np.isin(row.ids, MODES)
    moved = np.cumsum(~is_text)
    holes = tuple(Hole(hole.anchor - int(moved[hole.anchor]), hole.part, hole.old) for hole in row.holes)
    return LayoutRow(row.ids[is_text], row.positions[is_text] - moved[is_text].astype(np.int32), holes, row.unread)


def _following(row: LayoutRow, anchor: int, answer: Sequence[int]) -> list[int]:
    assert len(row.holes) == 1 or len(answer) < HOLE_STRIDE, "an answer among several fits between two anchors"
    return slot_positions(int(row.positions[anchor]), len(answer)).tolist()


def _siblings(blocks: Sequence[Block], index: int) -> tuple[int, int]:
    """The first and the last block of the canvas's group; the canvas itself if it has none."""
    first = last = index
    group = blocks[index].group
    while group >= 0 and first > 0 and blocks[first - 1].group == group:
        first -= 1
    while group >= 0 and last + 1 < len(blocks) and blocks[last + 1].group == group:
        last += 1
    return first, last
