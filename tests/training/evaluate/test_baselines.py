"""The completer without a model says what stands in the file, and ends where a line or a block ends."""

import re
from pathlib import Path

import pytest

from mercury_engine.api import InfillRequest, Snippet, Span, Window
from mercury_training.evaluate.baselines import NgramEngine
from tests.cases import each_case


def check(marked, expected, mode="line", **fields):
    start = marked.index("$0")
    window = Window("shapes.py", "python", marked.replace("$0", "", 1))
    request = InfillRequest(session="", windows=(window,), spans=(Span(0, start, start, mode),), **fields)
    (draft,) = NgramEngine().infill(request)
    assert draft.final
    assert draft.spans[0].text == expected
    return draft.spans[0]


@each_case(Path(__file__).with_name("baselines.txt"))
def test_file_says_what_is_missing(case):
    before, missing, after = re.split("[«»]", case.drawn)
    check(f"{before}$0{after}", missing, case.key)


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
    assert check("a = 1\nqux$0\n", "").p_accept == 0.0
