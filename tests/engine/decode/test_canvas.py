"""Who sees whom in one forward: clean rows their past, a canvas its anchor's past, itself and its siblings."""

import numpy as np
import pytest

from mercury_engine.decode.canvas import Canvas, canvas_for, fuse, masked
from mercury_engine.decode.tree import DraftTree
from mercury_engine.tokens.vocabulary import MASK
from tests.engine.tiny import random_runtime

CACHED = [70, 71, 72]


def predictions(clean, canvases, first=0):
    """Logits of the clean rows and of every canvas, on top of three cached rows."""
    runtime = random_runtime()
    cache = runtime.cache()
    before = fuse(0, np.array(CACHED), 3)
    cache.append(runtime.forward(before.rows, cache), range(3))
    fused = fuse(3, np.array([*CACHED, *clean]), first, canvases)
    logits = runtime.forward(fused.rows, cache).logits_WV
    slots = [fused.slots(logits, number) for number in range(len(canvases))]
    return [fused.clean_row(logits, row) for row in range(first, len(clean))], slots


def changed(inputs, slot):
    inputs = inputs.copy()
    inputs[slot] = 90
    return inputs


def same(one, other):
    return np.allclose(one, other, rtol=0, atol=1e-4)


def test_slots_see_all_slots_of_their_canvas_but_the_anchor_sees_none():
    _, (plain,) = predictions([73], [Canvas(0, masked(8))])
    _, (other,) = predictions([73], [Canvas(0, changed(masked(8), 7))])
    assert same(plain[0], other[0])
    assert not any(same(plain[slot], other[slot]) for slot in range(1, 8))


def test_canvases_do_not_see_each_other():
    plain = predictions([73, 74], [Canvas(0, masked(8)), Canvas(1, masked(8))])[1]
    for number in range(2):
        canvases = [Canvas(i, changed(masked(8), 3) if i == number else masked(8)) for i in range(2)]
        other = predictions([73, 74], canvases)[1]
        assert same(plain[1 - number][1], other[1 - number][1])


def test_canvas_sees_what_stands_up_to_its_anchor_and_nothing_behind():
    _, (plain, behind) = predictions([73, 74], [Canvas(0, masked(8)), Canvas(1, masked(8))])
    _, (alone,) = predictions([73, 74], [Canvas(0, masked(8))])
    _, (moved,) = predictions([73, 99], [Canvas(0, masked(8))])
    assert same(alone, moved)
    assert same(plain, alone)
    assert not same(behind[0], plain[0])


def test_clean_rows_see_no_canvas():
    plain, _ = predictions([73, 74], [])
    beside, _ = predictions([73, 74], [Canvas(0, masked(8)), Canvas(1, masked(16))])
    assert same(plain, beside)


TREE = DraftTree((73, 80, 74, 75, 81), (-1, -1, 0, 2, 1), ((),) * 5, (1.0,) * 5)
"""The last token is followed by 73, 74, 75 or by 80, 81."""


def drafted(draft, anchors=(), size=4):
    """Logits behind one token that is not cached, of all tokens of a draft, and of canvases behind some of them."""
    runtime = random_runtime()
    cache = runtime.cache()
    before = fuse(0, np.array(CACHED), 3)
    cache.append(runtime.forward(before.rows, cache), range(3))
    canvases = [Canvas(anchor, masked(size)) for anchor in anchors]
    fused = fuse(3, np.array([*CACHED, 90]), 0, canvases, draft=draft)
    logits = runtime.forward(fused.rows, cache).logits_WV
    slots = [fused.slots(logits, number) for number in range(len(canvases))]
    return [fused.clean_row(logits, row) for row in range(fused.clean)], slots


def test_tokens_of_a_tree_see_the_path_to_them_alone():
    behind, slots = drafted(TREE, anchors=[0, 3, 5])
    for path in ([0, 2, 3], [1, 4]):
        ids = [TREE.ids[number] for number in path]
        alone, (own,) = drafted(DraftTree.chain(ids), anchors=[len(ids)])
        for number, row in zip(path, alone[1:], strict=True):
            assert same(behind[1 + number], row)
        if path == [1, 4]:
            assert all(map(same, slots[2], own))
    _, (own,) = drafted(DraftTree.chain([73, 74]), anchors=[2])
    assert all(map(same, slots[1], own))


def test_tokens_of_a_tree_are_placed_by_their_depth():
    fused = fuse(1, np.array([70, 71]), 0, [Canvas(5, masked(4))], draft=TREE)
    assert fused.rows.ids_R.tolist()[:6] == [71, *TREE.ids]
    assert fused.rows.positions_R.tolist() == [1, 2, 2, 3, 4, 3, 4, 5, 6, 7]
    assert fused.rows.wanted == list(range(9))


def test_canvas_is_placed_behind_its_anchor():
    fused = fuse(3, np.array([*CACHED, 73, 74]), 1, [Canvas(1, masked(8))])
    assert fused.rows.positions_R.tolist() == [3, 4, *range(5, 13)]
    assert fused.rows.wanted == [1, *range(2, 9)]
    assert fused.rows.mask_RC.shape == (10, 13)


def test_predictions_can_be_read_only_if_asked_for():
    fused = fuse(0, np.array([70, 71]), 1)
    with pytest.raises(AssertionError, match="were wanted"):
        fused.clean_row(np.zeros((1, 512), np.float32), 0)


@pytest.mark.parametrize(("slots", "size"), [(1, 3), (3, 3), (4, 7), (9, 15), (63, 63), (99, 63)])
def test_smallest_canvas_holds_the_slots(slots, size):
    assert canvas_for(slots) == size
    assert masked(size).tolist() == [MASK] * size
