"""Proposals are read side by side, and one that is likely right begins the answer."""

import numpy as np
import pytest

from mercury_engine.api import Proposed
from mercury_engine.decode.choice import Chooser
from mercury_engine.decode.proposals import Drafted, drafted, side_by_side, taken
from mercury_engine.model.config import TINY
from mercury_engine.tokens.layout import freeze, lay_out
from mercury_engine.tokens.prefix import HintBuilder
from tests.engine.tiny import BUDGET, TOKENIZER, engine, final, random_runtime, request

SURE, UNLIKELY = 0.999999, 0.01


def answered(*proposals, marked="return $0\n", mode="line", **fields):
    asked = request(marked, mode=mode, proposals=tuple(Proposed(*each) for each in proposals), **fields)
    return final(engine(random_runtime()), asked).spans[0]


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
def test_an_answer_begins_with_the_likeliest_proposal(effort):
    found = answered(("self.width", SURE - 0.1), ("self.height", SURE), effort=effort)
    assert found.text.startswith("self.height")


def test_an_unlikely_proposal_leaves_the_model_alone():
    assert answered(("self.width", UNLIKELY)).text == answered().text


def test_sketches_and_rewrites_get_none():
    assert answered(("self.width", SURE), effort="instant") == answered(effort="instant")
    assert answered(("self.width", SURE), marked="[[return]]\n") == answered(marked="[[return]]\n")


def test_how_likely_it_is_right_is_how_likely_it_is_accepted():
    found = answered(("self.width", SURE))
    assert found.p_accept == pytest.approx(np.prod(found.confidence), rel=1e-6)


@pytest.mark.parametrize(
    ("mode", "texts", "expected"),
    [
        ("line", ("th)\n", "th)"), ["width)"]),
        ("block", ("th)\n    x", "  "), ["width)\n    x", "wid"]),
        ("line", tuple(f"th{number}" for number in range(9)), [f"width{number}" for number in range(6)]),
        ("line", ("th" * 99,), []),
    ],
)
def test_proposals_spell_the_part_of_a_word_and_end_with_the_line(mode, texts, expected):
    asked = request("f(wid$0\n", mode=mode, proposals=tuple(map(Proposed, texts)))
    assert [TOKENIZER.decode(each.ids) for each in drafted(TOKENIZER, asked, "wid")] == expected


def test_drafts_side_by_side_are_judged_as_each_alone():
    asked, runtime = request("return $0\n"), random_runtime()
    row = lay_out(TOKENIZER, asked, freeze(TOKENIZER, asked, BUDGET), BUDGET)
    builder, chooser = HintBuilder.of(row, TOKENIZER, hints=TINY.hints), Chooser(TOKENIZER, TINY.vocabulary)
    prefix = builder.build(row.ids, row.positions)
    drafts = [Drafted(tuple(TOKENIZER.encode(text)), SURE) for text in ("self.width", "self.height()", "x")]

    def judged(some):
        rows = side_by_side([each.ids for each in some], prefix, 0, builder)
        return taken(some, runtime.forward(rows, runtime.cache()).logits_WV, b"", chooser)

    alone = max((judged([each]) for each in drafts), key=lambda each: each.right)
    together = judged(drafts)
    assert together.ids == alone.ids
    assert together.right == pytest.approx(alone.right, abs=1e-4)
