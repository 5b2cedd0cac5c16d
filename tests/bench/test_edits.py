"""Moments within commits: what is done, what is due, and whether an answer is right."""

import asyncio

from bench.edits import Moment, Verdict, at_line, figures, moments, verdict
from mercury_ls.code.edits import applied
from tests.training.edits.test_rows import commit

BEFORE = "def area(w, h):\n    return w * h\n\n\n\n\nprint(area(2, 3))\n\n\n\n\nprint(area(4, 5))\n"


def moment(before: str, after: str) -> Moment:
    return next(moments([commit(before, after)]))


def check(before: str, after: str, **expected: bool) -> None:
    answer = asyncio.run(verdict(moment(before, after), None))
    given = {name: getattr(answer, name) for name in ("due", "shown", "right", "partly", "wrong")}
    assert {name for name, holds in given.items() if holds} == set(expected)


def test_all_that_is_due_leads_to_the_text_after_the_commit():
    after = BEFORE.replace("area", "surface")
    now = moment(BEFORE, after)
    for path, file in now.files.items():
        assert file.text != BEFORE
        assert applied(file.text, now.due[path]) == after


def test_rename_that_the_commit_makes_is_right():
    check(BEFORE, BEFORE.replace("area", "surface"), due=True, shown=True, right=True)


def test_nothing_to_learn_is_silence():
    check(BEFORE, BEFORE.replace("w * h", "w * h * 2").replace("2, 3", "8, 9").replace("4, 5", "6, 7"), due=True)


def test_user_has_gone_to_the_first_line_that_is_due():
    now = moment(BEFORE, BEFORE.replace("w * h", "w * h * 2").replace("2, 3", "8, 9").replace("4, 5", "6, 7"))
    (first, *_), asked = now.due["a.py"], at_line(now, "hand")
    blanks = asked.files["a.py"].text[first.start : asked.offset]
    assert asked.asked == "hand"
    assert blanks == " " * len(blanks)


def test_figures_count_what_is_wrong_against_what_is_right():
    right, wrong, silent = Verdict(True, True, True), Verdict(True, True), Verdict(True)
    told = figures([right, right, wrong, silent, Verdict(False), Verdict(False, True)])
    assert (told["right"], told["wrong"], told["shown there"], told["net"]) == (2, 2, 1, 0)
