import numpy as np

from mercury_engine.tokens.layout import Budget, freeze, lay_out
from mercury_engine.tokens.vocabulary import EOM, HOLES
from mercury_training.rows.holes import HOLE_STRIDE, MODES, AnchoredRow
from mercury_training.rows.streams import canvas_slots, with_answers, without_modes
from tests.engine.tiny import TOKENIZER, gap
from tests.masks import canvas_mask
from tests.training.rows.test_holes import row_with_holes


def row_of(now):
    return AnchoredRow.of(lay_out(TOKENIZER, now, freeze(TOKENIZER, now, Budget()), Budget()))


def test_ends_behind_the_first_weigh_as_much_as_one_token():
    ids, weights = canvas_slots([70, 71, EOM], 8)
    assert ids.tolist() == [70, 71] + [EOM] * 6
    np.testing.assert_allclose(weights, [1, 1, 1] + [1 / 5] * 5)
    ids, weights = canvas_slots(list(range(70, 90)), 8)
    assert ids.tolist() == list(range(70, 78))
    assert weights.tolist() == [1] * 8


def test_row_with_its_answer_is_one_causal_stream():
    row = row_of(gap("a = $0\n"))
    stream = with_answers(row, [[70, 71, EOM]])
    total = len(row.ids) + 3
    assert stream.ids.tolist() == [*row.ids.tolist(), 70, 71, EOM]
    assert stream.positions.tolist() == list(range(total))
    assert stream.starts == (row.anchors[0].at,)
    assert canvas_mask(stream.blocks).tolist() == np.tri(total, dtype=bool).tolist()


def test_answers_of_several_holes_branch_off_at_the_first_anchor():
    row = row_with_holes("[[a]] = [[b]]\n")
    stream = with_answers(row, [[70, EOM], [71, 72, EOM]])
    base, first, second = len(row.ids), row.anchors[0].at, row.anchors[1].at
    assert stream.ids[base:].tolist() == [70, EOM, HOLES[1], 71, 72, EOM]
    at = int(row.positions[first])
    branch = [
        at + 1,
        at + 2,
        at + HOLE_STRIDE,
        at + HOLE_STRIDE + 1,
        at + HOLE_STRIDE + 2,
        at + HOLE_STRIDE + 3,
    ]
    assert stream.positions[base:].tolist() == branch
    assert stream.starts == (first, base + 2)
    seen = canvas_mask(stream.blocks)
    assert seen[base : base + 6, : first + 1].all()
    assert not seen[base : base + 6, second].any()
    assert seen[base:, base:].tolist() == np.tri(6, dtype=bool).tolist()


def test_without_modes_keeps_the_holes_in_place():
    for row in (row_of(gap("a = b$0\n")), row_with_holes("[[a]] = [[b]]\n")):
        bare = without_modes(row)
        removed = len(row.ids) - len(bare.ids)
        assert removed == len(row.anchors)
        assert not np.isin(bare.ids, MODES).any()
        for anchor, old in zip(bare.anchors, row.anchors, strict=True):
            assert bare.ids[anchor.at] == row.ids[old.at]
            assert bare.positions[anchor.at] == row.positions[old.at] - removed
