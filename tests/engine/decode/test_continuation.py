"""Long answers among several: the request that goes on with them, and what comes of it."""

import pytest
from msgspec.structs import replace

from mercury_engine.api import Span
from mercury_engine.decode.continuation import continued, left_to_rewrite
from mercury_engine.decode.search import LOW_TOKENS
from mercury_engine.model.torch_runtime import TorchRuntime
from mercury_engine.tokens.layout import freeze, lay_out
from mercury_engine.tokens.vocabulary import HOLE_STRIDE
from tests.engine.tiny import BUDGET, TOKENIZER, engine, final, random_runtime, request


def marked(asked):
    text = asked.windows[0].text
    for span in sorted(asked.spans, key=lambda span: -span.start):
        text = f"{text[: span.start]}[[{text[span.start : span.end]}]]{text[span.end :]}"
    return text


def check(before, said, left, after):
    assert marked(continued(request(before, mode="edit"), said, left)) == after


def test_whole_answers_are_written_in_and_the_others_go_on():
    check("a [[b]] c [[d]] e\n", ["BB", "DDD"], [None, ""], "a BB c DDD[[]] e\n")
    check("a [[one two three]] c [[d]]\n", ["ONE ", "DD"], ["two three", None], "a ONE [[two three]] c DD\n")
    check("[[a]][[b]]\n[[c]]", ["A", "B", "C"], ["x", None, "y"], "A[[x]]B\nC[[y]]")


def test_spans_keep_their_order_and_other_windows_stay():
    asked = request("a b c\n[[d]]", mode="edit")
    swapped = replace(asked, spans=(asked.spans[0], Span(0, 2, 3, "edit")), windows=asked.windows * 2)
    found = continued(swapped, ["DD", "BBB"], ["e", "f"])
    assert found.windows[1] == asked.windows[0]
    assert [found.windows[0].text[span.start : span.end] for span in found.spans] == ["e", "f"]
    assert found.windows[0].text == "a BBBf c\nDDe"


def left_of(old, said, before=""):
    asked = request(f"{before}[[{old}]]\n", mode="edit")
    row = lay_out(TOKENIZER, asked, freeze(TOKENIZER, asked, BUDGET), BUDGET)
    return left_to_rewrite(TOKENIZER, row.holes[0], old, TOKENIZER.encode(row.holes[0].part + said))


@pytest.mark.parametrize(
    ("old", "said", "left"),
    [
        ("a = 1\nb = 2\nc = 3\n", "a = 1\n", "b = 2\nc = 3\n"),
        ("a = 1\nb = 2\nc = 3\n", "x = 1\nb =", " 2\nc = 3\n"),
        ("a = 1\n", "a = 1\n", ""),
        ("", "anything", ""),
        ("é = 1\n", "", "é = 1\n"),
    ],
)
def test_old_text_not_yet_reached_is_kept(old, said, left):
    assert left_of(old, said) == left
    assert left_of(old, said, before="wor") == left or old == ""


LONG = "".join(f"first_{i} = {i}\n" for i in range(10))
TWO = f"[[{LONG}]]middle()\n[[]]\n"


def long_answers(answering, **fields):
    return list(answering.infill(request(TWO, mode="edit", effort="medium", **fields)))


@pytest.mark.slow
def test_answers_go_on_behind_the_next_anchor_up_to_their_budget():
    budget = 2 * HOLE_STRIDE
    *_, short = long_answers(engine(random_runtime()), budget=HOLE_STRIDE - 1)
    *before, last = long_answers(engine(random_runtime()), budget=budget)
    (_, one), (_, other) = short.spans, last.spans
    assert len(one.confidence) == HOLE_STRIDE - 1
    assert len(other.confidence) == budget or other.complete
    assert other.text.startswith(one.text)
    assert [draft.final for draft in before] == [False] * len(before)
    assert [draft.step for draft in (*before, last)] == list(range(1, len(before) + 2))


@pytest.mark.slow
def test_continuation_equals_request_with_the_text_written_in():
    """Insertions, whose continuation can be asked for by hand."""
    texts, budget = "def a():[[]]\n\n\ndef b():[[]]\n", 100
    whole = final(engine(random_runtime()), request(texts, mode="block", effort="medium", budget=budget))
    first = final(engine(random_runtime()), request(texts, mode="block", effort="medium", budget=HOLE_STRIDE - 1))
    assert not any(filled.complete for filled in first.spans)
    by_hand = continued(
        request(texts, mode="block", effort="medium", budget=budget - HOLE_STRIDE + 1),
        [filled.text for filled in first.spans],
        ["", ""],
    )
    second = final(engine(random_runtime()), by_hand)
    for found, start, end in zip(whole.spans, first.spans, second.spans, strict=True):
        assert found.text == start.text + end.text
        assert found.confidence == pytest.approx((*start.confidence, *end.confidence), abs=1e-3)


@pytest.mark.slow
def test_continuation_may_be_left_at_each_draft_and_shared():
    asked = request(TWO, mode="edit", effort="medium", budget=100)
    expected = final(engine(random_runtime()), asked)
    answering = engine(TorchRuntime(random_runtime().model, batch=2))
    for drafts in range(2, 40, 6):
        leaving = answering.infill(replace(asked, session="leaves"))
        for _ in range(drafts):
            next(leaving, None)
        leaving.close()
    sharing = [answering.infill(replace(asked, session=name)) for name in "ab"]
    for drafting in sharing:
        next(drafting)
    for drafting in sharing:
        *_, last = drafting
        assert [filled.text for filled in last.spans] == [filled.text for filled in expected.spans]


@pytest.mark.slow
def test_answer_that_ended_for_another_reason_stays_as_it_is():
    """*low* says little where text is inserted, and rewrites a text as a whole."""
    short, long = (
        final(engine(random_runtime()), request(TWO, mode="edit", effort="low", budget=budget))
        for budget in (HOLE_STRIDE - 1, 2 * HOLE_STRIDE)
    )
    assert short.spans[1] == long.spans[1]
    assert len(short.spans[1].confidence) == LOW_TOKENS


def test_instant_answer_is_one_draft_however_long_it_is():
    assert len(list(engine(random_runtime()).infill(request(TWO, mode="edit", effort="instant", budget=200)))) <= 2
