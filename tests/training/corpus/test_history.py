"""A commit becomes edits in an order a person could have made them in, and every row leads where the commit led."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.api import Edit
from mercury_training.corpus.collection import FilteredFile
from mercury_training.corpus.history import (
    Change,
    CommitHunk,
    commit_rows,
    edit_rows,
    hunks_between,
    in_plausible_order,
)
from mercury_training.corpus.shards import EditRow, Replacement
from mercury_training.corpus.sources import CorpusSource
from mercury_training.corpus.synthetic import lines_of
from tests.repositories import committed

LINES = st.lists(st.sampled_from([f"{name} = {value}\n" for name in "abc" for value in "123"]), max_size=30)


def make(path: str, **fields) -> EditRow:
    return EditRow("some/where", "0" * 40, "MIT", path, "python", **fields)


def rows_of(path: str, before: str, after: str, seed: int = 0) -> list[EditRow]:
    old = lines_of(before)
    change = Change("0" * 40, {path: old}, hunks_between(path, old, lines_of(after)))
    return list(commit_rows(change, make, random.Random(seed)))


def repository(folder, path: str, states: list[str]) -> CorpusSource:
    """A commit for each state of one file."""
    *_, last = [committed(folder, {path: text}) for text in states]
    return CorpusSource("some/where", "git", str(folder), last)


def replaced(lines: list[str], changes) -> list[str]:
    """Line ranges replaced from the last to the first."""
    lines = list(lines)
    for first, stop, new in sorted(changes, key=lambda change: -change[0]):
        lines[first:stop] = new
    return lines


BEFORE = "def area(w, h):\n    return w * h\n\n\na = area(1, 2)\nb = area(3, 4)\nc = 5\nd = area(5, 6)\n"
AFTER = BEFORE.replace("area", "surface")


@given(LINES, LINES)
@settings(max_examples=80)
def test_hunks_turn_one_text_into_the_other(before, after):
    hunks = hunks_between("a.py", before, after)
    assert replaced(before, [(hunk.first, hunk.stop, hunk.new) for hunk in hunks]) == after
    assert all(hunk.old == tuple(before[hunk.first : hunk.stop]) for hunk in hunks)


@given(LINES, LINES, st.integers(0, 99))
@settings(max_examples=60)
def test_doing_what_a_row_expects_completes_the_commit(before, after, seed):
    hunks = hunks_between("a.py", before, after)
    if not hunks:
        return
    for row in rows_of("a.py", "".join(before), "".join(after), seed):
        window = lines_of(row.window)
        done = replaced(window, [(found.first, found.stop, lines_of(found.text)) for found in row.expected])
        assert done == after, "the window holds the whole file, so all that is left is expected"
        assert bool(row.expected) == (row.kind != "none")


def test_row_tells_what_was_done_and_where_cursor_was_left():
    rows = {len(row.edits): row for row in rows_of("a.py", BEFORE, AFTER)}
    row = rows[1]
    assert row.edits == (Edit("a.py", 0, "def area(w, h):\n", "def surface(w, h):\n"),)
    assert row.cursor == 0
    assert row.expected == (
        Replacement(4, 6, "a = surface(1, 2)\nb = surface(3, 4)\n"),
        Replacement(7, 8, "d = surface(5, 6)\n"),
    )
    assert row.expected[row.next].first == 4
    assert row.kind == "propagate"
    assert rows[3].kind == "none"


def test_same_substitution_again_is_a_repeat():
    before = "".join(f"{name} = old_name({name})\nkeep()\n" for name in ("one", "two", "six"))
    rows = rows_of("a.py", before, before.replace("old_name", "new_name"))
    assert {row.kind for row in rows if row.edits} == {"repeat", "none"}


def test_window_moves_with_edits_before_it():
    before = "".join(f"line_{number} = {number}\n" for number in range(200))
    after = before.replace("line_10 =", "extra = 0\nline_ten =").replace("line_150 =", "line_other =")
    (row,) = (row for row in rows_of("a.py", before, after) if row.kind != "none" and row.edits)
    assert row.window == "".join(lines_of(after.replace("line_other =", "line_150 ="))[row.first_line :][:48])
    (expected,) = row.expected
    assert lines_of(row.window)[expected.first] == "line_150 = 150\n"
    assert row.cursor == -1


def test_definitions_come_before_their_uses_and_tests_last():
    use = CommitHunk("app.py", 3, 4, ("run()\n",), ("run(limit=LIMIT)\n",))
    test = CommitHunk("tests/test_app.py", 0, 0, (), ("assert LIMIT\n",))
    definition = CommitHunk("settings.py", 9, 9, (), ("LIMIT = 4\n",))
    assert in_plausible_order([test, use, definition]) == [definition, use, test]


def test_form_feed_ends_no_line():
    assert lines_of("a\x0cb\u2028c\nd") == ["a\x0cb\u2028c\n", "d"]


def test_commit_to_file_that_held_a_secret_is_left_out(tmp_path):
    """Its window would show it, whatever the commit changed."""
    secret = "token = 'ghp_" + "a1B2" * 9 + "'\n"
    plain = "".join(f"line_{number} = {number}\n" for number in range(9))
    texts = [FilteredFile("a.py", "python", "MIT", plain, b"", b"")]
    found = []
    for number, first in enumerate((secret, "token = ''\n")):
        states = [first + plain, first + plain.replace("5", "6"), plain]
        found.append(list(edit_rows(repository(tmp_path / str(number), "a.py", states), texts, 9)))
    assert found[0] == []
    assert found[1]
