"""Who sees whom: the mask of a tree of blocks against its definition."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_training.rows.blocks import Block, visible_ranges
from tests.masks import canvas_mask


def slow_mask(blocks):
    """Who sees whom, one pair at a time."""
    rows = [(index, at) for index, block in enumerate(blocks) for at in range(block.size)]
    owner = [index for index, _ in rows]

    def sees(row, column):
        index, (theirs, _) = owner[row], rows[column]
        block, other = blocks[index], blocks[theirs]
        if index == theirs:
            return column <= row or not block.causal
        if block.group >= 0 and block.group == other.group:
            return True
        return block.parent >= 0 and (column == block.parent or sees(block.parent, column))

    return np.array([[sees(row, column) for column in range(len(rows))] for row in range(len(rows))])


@st.composite
def block_trees(draw):
    """A few causal blocks, then canvases on them, alone and in groups."""
    blocks, rows = [], 0
    for _ in range(draw(st.integers(1, 4))):
        blocks.append(Block(draw(st.integers(1, 4)), draw(st.integers(-1, rows - 1))))
        rows += blocks[-1].size
    sizes = st.lists(st.integers(1, 3), min_size=1, max_size=3)
    for group, canvases in enumerate(draw(st.lists(sizes, max_size=3))):
        for size in canvases:
            parent = draw(st.integers(0, rows - 1))
            blocks.append(Block(size, parent, causal=False, group=group if len(canvases) > 1 else -1))
    return blocks


@settings(max_examples=150)
@given(block_trees(), st.integers(0, 5))
def test_mask_says_who_sees_whom(blocks, cached):
    expected = slow_mask(blocks)
    assert canvas_mask(blocks).tolist() == expected.tolist()
    assert canvas_mask(blocks, cached).tolist() == expected[cached:].tolist()
    assert visible_ranges(blocks).shape[0] == len(expected)


def test_fused_keystroke_is_clean_rows_then_a_canvas_that_sees_them():
    seen = canvas_mask([Block(5), Block(2, parent=4), Block(3, parent=6, causal=False)], first_row=5)
    assert seen.astype(int).tolist() == [
        [1, 1, 1, 1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 1, 1, 1, 0, 0, 0],
        *[[1] * 10] * 3,
    ]
