"""A search for next edits that takes too long ends, and says so."""

from itertools import count

from mercury_ls.next_edit.pipeline import _in_turns


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
