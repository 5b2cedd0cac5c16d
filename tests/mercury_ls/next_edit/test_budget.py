"""A search for next edits that takes too long ends, and says so."""

from itertools import count

import pytest

from mercury_ls.code.documents import Document
from mercury_ls.code.edits import difference
from mercury_ls.code.history import History
from mercury_ls.next_edit.candidates import Candidate, distinct
from mercury_ls.next_edit.cost import Cost
from mercury_ls.next_edit.kinds.rename.rule import Rename
from mercury_ls.next_edit.search import searching
from mercury_ls.next_edit.situation import Situation
from tests.counted import calls


def endless(steps: list[int]):
    for step in count():
        steps.append(step)
        yield


async def test_search_without_end_ends():
    steps: list[int] = []
    cost = Cost(20, count().__next__)
    assert await cost.in_turns(endless(steps), "late") == "late"
    assert 5 < len(steps) < 50
    assert await cost.in_turns(endless(steps), "late too") == "late too"
    assert len(steps) < 50


async def test_search_in_time_gives_its_value():
    def work():
        yield
        return "in time"

    assert await Cost(20, count().__next__).in_turns(work(), "late") == "in time"


@pytest.mark.parametrize(("path", "line"), [("a.py", "x." * 100 + "x"), ("a.cpp", ", ".join(["x: x"] * 100))])
def test_names_that_stand_on_a_line_a_hundred_times_are_judged_in_bounded_work(path, line):
    """Each looks around it from the root of a deep tree, and may mean each of the others."""
    old = f"def x(): pass\n{line}\n"
    new = old.replace("x", "other", 1)
    history = History()
    history.record(path, old, difference(old, new), 0.0)
    situation = Situation(Document("", path, "", 1, new).snapshot(), 9, history.edits())
    assert calls(lambda: [*searching(situation)]) < 400_000


def test_thousand_places_are_told_apart_in_bounded_work():
    rule = Rename(before="a", after="b")
    places = [Candidate("a.py", at, at + 1, "b", "rename", rule, {}, 0.9, bound=True) for at in range(0, 3000, 3)]
    doubled = [*places, *places]
    assert calls(lambda: distinct(doubled)) < 100_000
    assert distinct(doubled) == tuple(places)
