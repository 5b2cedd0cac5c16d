"""Canvases hang where they should and hide what they should."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.api import Gap
from mercury_engine.tokens.layout import Budget, freeze, lay_out
from mercury_engine.tokens.vocabulary import CANVASES, EOM, MASK, REGION
from mercury_training.rows import corruption
from mercury_training.rows.corruption import (
    FOLLOWING,
    SIZES,
    VISIBLE,
    CanvasSlots,
    answer_canvases,
    drafted,
    hidden,
    pair,
    text_canvases,
)
from mercury_training.rows.examples import answered
from mercury_training.rows.holes import AnchoredRow, Hole, answer_ids, lay_out_holes
from tests.training.small import TOKENIZER

VOCABULARY = TOKENIZER.vocabulary
SLOTS = st.integers(0, 1000).map(lambda seed: np.random.default_rng(seed).integers(64, VOCABULARY, 16).astype(np.int32))


def example(ranges, answers, text="a = b\nc = d + e\nf = g\n"):
    cursor, budget = ranges[0][0], Budget()
    gap = Gap(session="", path="a.py", language="python", before=text[:cursor], after=text[cursor:])
    frozen = freeze(TOKENIZER, gap, budget)
    holes = [Hole(start, stop, REGION) for start, stop in ranges]
    is_gap = len(holes) == 1 and holes[0].start == holes[0].end
    laid_out = AnchoredRow.of(lay_out(TOKENIZER, gap, frozen, budget)) if is_gap else None
    row = laid_out or lay_out_holes(TOKENIZER, text, holes, frozen, budget)
    pairs = zip(row.anchors, answers, strict=True)
    return answered(row, tuple(tuple(answer_ids(TOKENIZER, anchor.part, text)) for anchor, text in pairs))


ONE = example([(10, 10)], ["self.width * 2 + 1\n    return count"])
TWO = example([(4, 5), (10, 11)], ["width", "scale(2)"])


def drawn(found, count=200, room=128):
    return [
        canvas
        for seed in range(count)
        for canvas in answer_canvases(found, room, VOCABULARY, np.random.default_rng(seed), seed)
    ]


@settings(max_examples=60)
@given(SLOTS, st.integers(0, 99))
def test_complementary_masks_hide_every_slot_once(slots, seed):
    first, second = pair(slots, np.random.default_rng(seed))
    assert ((first == MASK) ^ (second == MASK)).all()
    assert (first == MASK).any()
    assert (second == MASK).any()
    assert (np.where(first == MASK, second, first) == slots).all()


def test_draft_is_wrong_in_places_and_keeps_its_size():
    draw = np.random.default_rng(0)
    slots = np.arange(100, 132, dtype=np.int32)
    found = [drafted(slots, VOCABULARY, draw) for _ in range(100)]
    assert all(len(inputs) == 32 for inputs in found)
    right = np.mean([(inputs == slots).mean() for inputs in found])
    assert 0.2 < right < 0.8
    assert 0 < np.mean([((inputs != slots) & (inputs != MASK)).mean() for inputs in found]) < 0.5


def test_slots_that_the_input_shows_weigh_little():
    slots = np.arange(100, 108, dtype=np.int32)
    inputs = slots.copy()
    inputs[[2, 5]] = MASK, 300
    canvas = hidden(CanvasSlots(0, slots, np.ones(8, np.float32), 1, 8), inputs)
    weights = np.full(8, VISIBLE)
    weights[[1, 4]] = 1
    weights[7] = 0
    assert np.allclose(canvas.weights, weights * FOLLOWING ** np.arange(8))
    assert canvas.targets[:7].tolist() == slots[1:].tolist()


def test_canvas_hangs_on_the_row_that_predicts_its_first_slot():
    for found in (ONE, TWO):
        ids = found.stream.ids
        for canvas in drawn(found):
            assert len(canvas.inputs) in SIZES
            if canvas.parent in (*found.anchors, *found.stream.starts):
                firsts = [answer[1] for answer in found.answers]
                assert canvas.targets[0] in firsts
            else:
                after = np.append(ids[canvas.parent + 2 :], [EOM] * 64)
                end = int(np.argmax(canvas.targets == EOM))
                assert canvas.targets[:end].tolist() == after[:end].tolist()


def test_holes_are_drafted_together_in_groups():
    found = [canvas for canvas in drawn(TWO) if canvas.group >= 0]
    groups = {}
    for canvas in found:
        groups.setdefault(canvas.group, []).append(canvas)
    assert len(groups) > 100
    assert all(tuple(canvas.parent for canvas in group) == TWO.anchors for group in groups.values())
    assert all(canvas.group == -1 for canvas in drawn(ONE))


def test_most_canvases_are_all_masked_and_some_begin_from_the_old_text():
    found = drawn(TWO, 400)
    assert 0.65 < np.mean([(canvas.inputs == MASK).all() for canvas in found]) < 0.9
    olds = [list(draft[:1]) for draft in TWO.drafts]
    assert any(canvas.inputs[0] in np.ravel(olds) for canvas in found)


def test_canvases_of_every_size_that_is_drafted_on_are_learned_with_one_slot_more():
    assert SIZES.keys() == {size + 1 for size in CANVASES}
    assert {len(canvas.inputs) for canvas in drawn(ONE, 1000)} == SIZES.keys()
    assert sum(SIZES.values()) == pytest.approx(1)


def test_canvases_in_text_have_no_end(monkeypatch):
    monkeypatch.setattr(corruption, "ALL_MASKED", 0.5)
    starts = np.zeros(ONE.base, np.int64)
    starts[5] = 12
    for seed in range(50):
        for canvas in text_canvases(ONE, starts, 64, VOCABULARY, np.random.default_rng(seed)):
            assert canvas.parent == 5
            size = len(canvas.inputs)
            assert size in (4, 8)
            assert canvas.targets[: size - 1].tolist() == ONE.stream.ids[7 : 6 + size].tolist()


def test_corruption_makes_nothing_where_there_is_no_room():
    assert answer_canvases(ONE, 3, VOCABULARY, np.random.default_rng(0), 0) == []
    assert text_canvases(ONE, np.full(9, 99), 3, VOCABULARY, np.random.default_rng(0)) == []
    for seed in range(50):
        found = answer_canvases(TWO, 20, VOCABULARY, np.random.default_rng(seed), 0)
        assert sum(len(canvas.inputs) for canvas in found) <= 20
