"""Which edits of the rules a model is asked about, and how its opinion changes the chances of all."""

import math

import pytest
from msgspec.structs import replace

from mercury_ls.code.documents import Document
from mercury_ls.code.history import History
from mercury_ls.next_edit import ranking
from mercury_ls.next_edit.candidates import Candidate
from mercury_ls.next_edit.kinds.replace import Replace
from mercury_ls.next_edit.opinion import bundles, judged, proposals
from tests.mercury_ls.next_edit.test_pipeline import asked_at

TEXT = "a, a\na\nc\n" + "a\n" * 6
QUESTION = asked_at(Document("file:///a.py", "/a.py", "python", 1, TEXT).snapshot(), 0, History())
RULE, OTHER = Replace(before="a", after="b"), Replace(before="c", after="d")
LIKELY, UNLIKELY = 4 * math.log(0.99), 4 * math.log(0.001)


def candidate(at: int, chance: float, rule=RULE, **fields) -> Candidate:
    return Candidate("file:///a.py", at, at + 1, rule.after, "replace", rule, {}, **{"p_edit": chance, **fields})


FIRST, BESIDE, SECOND, ELSE = candidate(0, 0.6), candidate(3, 0.5), candidate(5, 0.5), candidate(7, 0.4, OTHER)


def test_likeliest_are_proposed_but_not_what_is_certain_or_open():
    lines = [candidate(9 + 2 * number, 0.9 - number / 100) for number in range(6)]
    left_out = [candidate(0, 0.95, certain=True), replace(candidate(3, 0.95), text=None), candidate(5, 0.01)]
    assert bundles(QUESTION, [*left_out, *lines]) == [(line,) for line in lines[:2]]


def test_edits_of_one_line_are_one_proposal():
    unlikely = replace(BESIDE, p_edit=0.2)
    assert bundles(QUESTION, [FIRST, BESIDE, SECOND]) == [(FIRST, BESIDE), (SECOND,)]
    assert bundles(QUESTION, [FIRST, unlikely]) == [(FIRST,)]
    asked = proposals(QUESTION, [(FIRST, BESIDE), (SECOND,)]).proposals
    assert [(one.region.old, one.text) for one in asked] == [("a, a\n", "b, b\n"), ("a\n", "b\n")]


@pytest.mark.parametrize(("answer", "is_shown"), [(LIKELY, True), (UNLIKELY, False)])
def test_opinion_of_one_place_tells_of_others_of_its_rule(answer, is_shown):
    first, beside, second = judged([FIRST, BESIDE, SECOND], [(FIRST, BESIDE)], [answer])
    bar = ranking.load().bar
    assert [edit.p_edit >= bar for edit in (first, beside, second)] == [is_shown] * 3
    assert first.p_edit == beside.p_edit > second.p_edit


def test_edits_without_an_opinion_wait_for_those_with_one():
    unwritten = replace(candidate(9, 0.5, OTHER), text=None)
    assert judged([ELSE, unwritten], [(FIRST,), (ELSE,)], [LIKELY, None]) == [unwritten]


def test_opinion_weighs_the_chance_that_anything_is_due():
    hardly = replace(FIRST, p_due=0.3)
    (due,), (not_due,) = (judged([given], [(given,)], [LIKELY]) for given in (FIRST, hardly))
    assert not_due.p_edit < due.p_edit


def test_unlikely_and_overlong_lines_are_not_asked_about():
    long = TEXT.replace("c\n", f"c{'c' * 5000}\n")
    question = asked_at(Document("file:///a.py", "/a.py", "python", 1, long).snapshot(), 0, History())
    assert bundles(QUESTION, [candidate(5, 0.01)]) == []
    assert bundles(question, [SECOND, candidate(7, 0.9, OTHER)]) == []
