"""Several holes in a text: what they spell, where their anchors stand, and who sees whom."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.tokens.layout import Budget, LayoutError, budget_for, filled_text, freeze
from mercury_engine.tokens.vocabulary import HOLES, OLD, PART, REGION
from mercury_training.rows.blocks import Block
from mercury_training.rows.holes import HOLE_STRIDE, Hole, lay_out_holes
from tests.engine.tiny import TOKENIZER, gap
from tests.engine.tokens.test_layout import code, lines
from tests.masks import canvas_mask

BUDGET = Budget()


def row_with_holes(marked, budget=BUDGET):
    """Of a text with `[[old]]` for each hole."""
    holes, text = [], marked
    while "[[" in text:
        start, end = text.index("[["), text.index("]]") - 2
        text = text.replace("[[", "", 1).replace("]]", "", 1)
        holes.append(Hole(start, end, REGION))
    first = holes[0].start
    frozen = freeze(TOKENIZER, gap(f"{text[:first]}$0{text[first:]}"), budget)
    return lay_out_holes(TOKENIZER, text, holes, frozen, budget)


@settings(max_examples=150)
@given(st.lists(st.tuples(code.map("".join), code.map("".join)), min_size=1, max_size=8), lines)
def test_holes_spell_the_text_around_them(pieces, tail):
    marked = "".join(f"{text}[[{old}x]]" for text, old in pieces) + tail
    row = row_with_holes(marked)
    spelled, inside = b"", False
    for token in row.ids[: row.anchors[0].at].tolist():
        inside = (inside and token != OLD) or token == PART
        if not inside and token not in HOLES:
            spelled += TOKENIZER.token_bytes[token]
    assert spelled.decode() == "shapes.py" + marked.replace("[[", "").replace("]]", "")
    for anchor, (_, old) in zip(row.anchors, pieces, strict=True):
        assert filled_text(TOKENIZER, anchor.part, anchor.old) == old + "x"


def test_anchors_stand_a_stride_apart_behind_everything_else():
    row = row_with_holes("[[a]] = [[b]] + [[c]]\n")
    end = len(row.ids) - 3
    assert row.ids[end:].tolist() == list(HOLES[:3])
    assert row.positions.tolist() == [*range(end), end, end + HOLE_STRIDE, end + 2 * HOLE_STRIDE]
    assert [anchor.at for anchor in row.anchors] == [end, end + 1, end + 2]


def test_canvases_drafted_together_see_their_own_past_and_each_other():
    row = row_with_holes("[[a]] = [[b]]\n")
    first, second = (anchor.at for anchor in row.anchors)
    canvases = [Block(size, anchor, causal=False, group=0) for size, anchor in ((8, first), (16, second))]
    seen = canvas_mask([Block(len(row.ids)), *canvases], len(row.ids))
    assert seen[:, len(row.ids) :].all()
    assert seen[:, : first + 1].all()
    assert not seen[:8, second].any()
    assert seen[8:, second].all()


@pytest.mark.parametrize("context", [256, 512, 1024, 2048, 4096])
def test_rows_leave_room_for_the_answers(context):
    marked = "x = 1\n" * 300 + "[[a]] = 1\n[[b]] = 2\n" + "y = 2\n" * 300
    row = row_with_holes(marked, budget_for(context))
    assert row.positions[-1] + HOLE_STRIDE <= context


def test_holes_too_far_apart_do_not_fit():
    with pytest.raises(LayoutError, match="do not fit the model's 2048"):
        row_with_holes("[[a]] = 1\n" + "x = 1\n" * 2000 + "[[b]] = 2\n")
