"""Who sees whom in one forward: clean rows their past, a canvas its anchor's past, itself and its siblings."""

import numpy as np
import pytest

from mercury_engine.decode.canvas import Canvas, canvas_for, fuse, masked
from mercury_engine.tokens.prefix import HintedPrefix
from mercury_engine.tokens.vocabulary import MASK
from tests.engine.tiny import random_runtime

CACHED = [70, 71, 72]


def predictions(clean, canvases, first=0):
    """Logits of the clean rows and of every canvas, on top of three cached rows."""
    runtime = random_runtime()
    cache = runtime.cache()
    before = fuse(0, HintedPrefix.without_hints(CACHED, range(3)), 3)
    cache.append(runtime.forward(before.rows, cache), range(3))
    fused = fuse(3, HintedPrefix.without_hints([*CACHED, *clean], range(3 + len(clean))), first, canvases)
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


def test_siblings_see_each_other():
    plain = predictions([73, 74], [Canvas(0, masked(8)), Canvas(1, masked(8))])[1]
    for number in range(2):
        canvases = [Canvas(i, changed(masked(8), 3) if i == number else masked(8)) for i in range(2)]
        other = predictions([73, 74], canvases)[1]
        assert not same(plain[1 - number][1], other[1 - number][1])


def test_canvas_sees_what_stands_up_to_its_anchor_and_nothing_behind():
    _, (plain, behind) = predictions([73, 74], [Canvas(0, masked(8)), Canvas(1, masked(8))])
    _, (alone,) = predictions([73, 74], [Canvas(0, masked(8))])
    _, (moved,) = predictions([73, 99], [Canvas(0, masked(8))])
    assert same(alone, moved)
    assert not same(plain[1], alone[1])
    assert not same(behind[0], plain[0])


def test_clean_rows_see_no_canvas():
    plain, _ = predictions([73, 74], [])
    beside, _ = predictions([73, 74], [Canvas(0, masked(8)), Canvas(1, masked(16))])
    assert same(plain, beside)


def test_canvas_is_placed_behind_its_anchor():
    fused = fuse(3, HintedPrefix.without_hints([*CACHED, 73, 74], [0, 1, 2, 3, 68]), 1, [Canvas(1, masked(8))])
    assert fused.rows.positions_R.tolist() == [3, 68, *range(69, 77)]
    assert fused.rows.wanted == [1, *range(2, 9)]
    assert fused.rows.mask_RC.shape == (10, 13)


def test_predictions_can_be_read_only_if_asked_for():
    fused = fuse(0, HintedPrefix.without_hints([70, 71], range(2)), 1)
    with pytest.raises(AssertionError, match="were wanted"):
        fused.clean_row(np.zeros((1, 512), np.float32), 0)


@pytest.mark.parametrize(("slots", "size"), [(1, 8), (8, 8), (9, 16), (64, 64), (99, 64)])
def test_smallest_canvas_holds_the_slots(slots, size):
    assert canvas_for(slots) == size
    assert masked(size).tolist() == [MASK] * size
