"""What is read, in which order, and what is not read again: rows of an engine that reads slowly."""

import pytest
from msgspec.structs import replace

from mercury_engine.api import Edit, Snippet
from mercury_engine.decode.costs import Costs
from mercury_engine.decode.reading import ReadingPace
from mercury_engine.model.config import TINY
from mercury_engine.model.torch_runtime import TorchRuntime
from mercury_training.models import create
from tests.engine.tiny import engine, final, gap

LONG = replace(TINY, context=2048, layers=1)
LINES = [f"value_{number} = {number} + offset\n" for number in range(120)]
NEAREST = 400
"""Tokens that the row of the nearest lines is shorter than."""


class SlowRuntime(TorchRuntime):
    """Each forward takes as long as its rows by its own clock."""

    def __init__(self, per_second):
        super().__init__(create(LONG, 0))
        self.per_second = per_second
        self.now = 0.0

    def forward(self, rows, cache):
        self.now += len(rows.ids_R) / self.per_second
        return super().forward(rows, cache)


class Reader:
    """A user of an engine that reads so many tokens a second."""

    def __init__(self, per_second=700):
        rows, runtime = (1, 32, 256), SlowRuntime(per_second)
        costs = Costs(rows, tuple(1000 * count / per_second for count in rows))
        self.engine = engine(runtime, pace=ReadingPace(costs, lambda: runtime.now))

    def reads(self, work):
        """The tokens that it takes to read."""
        before = dict(self.engine.report.prompts)
        work()
        after = self.engine.report.prompts
        return after["awaited"] + after["ahead"] - before["awaited"] - before["ahead"]

    def asks(self, line, head="value", **fields):
        """The tokens that an answer at the beginning of a line waits for."""
        return self.reads(lambda: final(self.engine, at(line, head, **fields)))

    def rests(self, line, head="value", **fields):
        """Those that are read meanwhile."""
        return self.reads(lambda: list(self.engine.warm(at(line, head, **fields))))


def at(line, head, lines=LINES, **fields):
    text = "".join([*lines[:line], head, "$0\n", *lines[line:]])
    return gap(text, effort="instant", **fields)


def test_answer_at_new_place_waits_for_the_nearest_lines_alone():
    reader = Reader()
    assert 100 < reader.asks(100) < NEAREST
    assert reader.asks(100, "value_1") < 10


def test_all_is_read_while_nobody_waits_and_then_asked_from():
    reader = Reader()
    reader.asks(100)
    assert reader.rests(100) > 1000
    assert reader.asks(100, "value_1") < 30
    assert reader.rests(100, "value_1") < 30


def test_reading_ahead_that_a_key_stops_goes_on_where_it_was():
    reader = Reader()
    reader.asks(100)
    whole = Reader().rests(100)
    first = reader.engine.warm(at(100, "value"))
    next(first)
    next(first)
    first.close()
    assert reader.asks(100, "value_1") < 10, "the key gets its answer from what was read"
    assert reader.rests(100, "value_1") < whole


def test_jump_waits_for_the_nearest_lines_and_the_way_back_for_nothing():
    reader = Reader()
    reader.rests(100)
    assert 100 < reader.asks(20) < NEAREST
    reader.rests(20)
    assert reader.asks(100) < 30
    assert reader.asks(20) < 30


def test_file_left_and_opened_again_is_not_read_again():
    reader = Reader()
    for path in ("a.py", "b.py"):
        reader.rests(100, path=path)
    assert reader.asks(100, path="a.py") < 30
    assert reader.rests(100, path="a.py") < 30


def test_two_editors_read_a_file_once():
    reader = Reader()
    reader.rests(100)
    assert reader.asks(100, session="other editor") < 30
    assert reader.rests(100, session="other editor") < 30


def test_switching_branches_and_back_reads_only_the_other_branch():
    reader = Reader()
    reader.rests(100)
    other = ["branch = 1\n", *LINES]
    reader.rests(101, lines=other)
    assert reader.asks(100) < 30


def test_few_new_edits_do_not_make_all_be_read_again():
    edits = [Edit("shapes.py", line, "a = 1", f"a = {line}") for line in range(6)]
    reader = Reader()
    reader.rests(100, edits=tuple(edits[:1]))
    assert reader.rests(100, edits=tuple(edits[:4])) < 30
    assert reader.rests(100, edits=tuple(edits[:5])) > 300


def test_new_snippets_are_read_while_nobody_waits():
    reader = Reader()
    snippets = (Snippet("other.py", "offset = 3\n" * 20),)
    reader.rests(100)
    assert reader.asks(100, "value_1", snippets=snippets) < 30
    assert reader.rests(100, "value_1", snippets=snippets) > 300


@pytest.mark.parametrize(("per_second", "read"), [(40, 400), (20_000, 2048)])
def test_row_is_as_long_as_the_machine_reads_at_once(per_second, read):
    assert read / 3 < Reader(per_second).asks(110) < read


def test_late_answer_says_how_much_is_unread():
    reader = Reader()
    lasts = [final(reader.engine, replace(at(100, head), deadline_ms=0)) for head in ("zebra(", "value")]
    assert [(last.step, last.unread > 100) for last in lasts] == [(0, True), (1, False)], "the second shows a copy"
