"""A search for next edits that takes too long ends, and says so."""

from itertools import count

import pytest

from mercury_ls.code.documents import Document
from mercury_ls.code.edits import difference
from mercury_ls.code.history import History
from mercury_ls.next_edit.pipeline import _in_turns
from mercury_ls.next_edit.search import candidates_after
from mercury_ls.next_edit.situation import Situation
from tests.counted import calls


def endless(steps: list[int]):
    for step in count():
        steps.append(step)
        yield


async def test_search_without_end_ends():
    steps: list[int] = []
    assert await _in_turns(endless(steps), "late", count().__next__, most=20) == "late"
    assert 5 < len(steps) < 50


async def test_search_in_time_gives_its_value():
    def work():
        yield
        return "in time"

    assert await _in_turns(work(), "late", count().__next__, most=20) == "in time"


@pytest.mark.parametrize(("path", "line"), [("a.py", "x." * 100 + "x"), ("a.cpp", ", ".join(["x: x"] * 100))])
def test_names_that_stand_on_a_line_a_hundred_times_are_judged_in_bounded_work(path, line):
    """Each looks around it from the root of a deep tree, and may mean each of the others."""
    old = f"def x(): pass\n{line}\n"
    new = old.replace("x", "other", 1)
    history = History()
    history.record(path, old, difference(old, new), 0.0)
    situation = Situation(Document("", path, "", 1, new).snapshot(), 9, history.edits())
    assert calls(lambda: candidates_after(situation)) < 400_000
