"""The completer without a model says what stands in the file, and ends where a line or a block ends."""

import re
from pathlib import Path

import pytest

from mercury_engine.api import Gap, Snippet
from mercury_training.evaluate.baselines import NgramEngine
from tests.cases import each_case


def gap(marked, **fields):
    before, _, after = marked.partition("$0")
    return Gap(session="", path="shapes.py", language="python", before=before, after=after, **fields)


def check(marked, expected, **fields):
    (draft,) = NgramEngine().fill(gap(marked, **fields))
    assert draft.final
    assert draft.text == expected
    return draft


@each_case(Path(__file__).with_name("baselines.txt"))
def test_file_says_what_is_missing(case):
    before, missing, after = re.split("[«»]", case.drawn)
    check(f"{before}$0{after}", missing, block=case.key == "block")


def test_snippets_are_learned_from():
    check("area =$0\n", " width * height", snippets=(Snippet("other.py", "area = width * height\n"),))


def test_answer_stays_within_its_budget():
    (draft,) = NgramEngine().fill(gap("a a a a a a a a $0", most_tokens=4))
    assert len(draft.confidence) == 4
    assert not draft.complete


def test_confidence_is_the_share_that_agrees():
    assert check("p x.a\nq x.b\nr x.b\ns x.b\nt x.$0\n", "b").p_accept == pytest.approx(0.75)
    assert check("a = 1\nqux$0\n", "").p_accept == 0.0
