"""The completer without a model says what stands in the file, and ends where a line or a block ends."""

import pytest

from mercury_engine.api import InfillRequest, Snippet, Span, Window
from mercury_training.evaluate.baselines import NgramEngine


def check(marked, expected, mode="line", **fields):
    start = marked.index("$0")
    window = Window("shapes.py", "python", marked.replace("$0", "", 1))
    request = InfillRequest(session="", windows=(window,), spans=(Span(0, start, start, mode),), **fields)
    (draft,) = NgramEngine().infill(request)
    assert draft.final
    assert draft.spans[0].text == expected
    return draft.spans[0]


def test_line_is_continued_as_it_was():
    check("self.width = width\nself.height = height\nself.width =$0\n", " width")


def test_most_frequent_continuation_wins():
    check("a = 1\na = 2\na = 2\na =$0\n", " 2")


def test_longer_context_wins_over_frequent_one():
    check("x.add(1)\ny.add(2)\ny.add(2)\nx.add($0\n", "1)")


def test_unknown_beginning_says_nothing():
    assert check("a = 1\nqux$0\n", "").p_accept == 0.0


def test_text_does_not_join_across_the_span():
    check("foo$0bar\nfoo", "")


def test_rest_of_line_is_not_repeated():
    check("f(alpha)\nf(beta)\nf(beta)\nf($0)\n", "beta")


def test_block_ends_where_its_indentation_does():
    known = "def a():\n    x = 1\n    return x\n\nprint()\n"
    check(f"{known}def a():\n    $0", "x = 1\n    return x", "block")


def test_whole_line_comes_with_its_indentation():
    check("    def a():\n        return 1\n    def b():\n$0\n", "        return 1")


def test_snippets_are_learned_from():
    check("area =$0\n", " width * height", snippets=(Snippet("other.py", "area = width * height\n"),))


def test_answer_stays_within_its_budget():
    start = len(text := "a a a a a a a a ")
    request = InfillRequest(session="", windows=(Window("x", "text", text),), spans=(Span(0, start, start, "line", 4),))
    (draft,) = NgramEngine().infill(request)
    assert len(draft.spans[0].confidence) == 4
    assert not draft.spans[0].complete


def test_confidence_is_the_share_that_agrees():
    assert check("p x.a\nq x.b\nr x.b\ns x.b\nt x.$0\n", "b").p_accept == pytest.approx(0.75)
