"""What somebody types of a session, and how many keys a perfect model would save."""

from hypothesis import given
from hypothesis import strategies as st

from bench.oracle.typist import Hunk, Task, hunks, ideal, keys, tasks

LINES = st.lists(st.sampled_from(["a = 1\n", "b = 2\n", "    c = 3\n", "\n", "d"]), max_size=12).map("".join)


def test_new_line_is_one_key_with_its_indentation():
    assert keys("\n    x =\n\n  1") == ["\n    ", "x", " ", "=", "\n\n  ", "1"]


def test_ideal_is_enter_and_one_key_for_each_line():
    assert ideal("\n    total = 0\n\n    x") == len("total = 0") - 1
    assert len(keys("\n    total = 0")) - ideal("\n    total = 0") == 2


def test_comments_do_not_count():
    assert ideal('\n    # Why.\n    """What."""') == 0


def test_new_lines_are_typed_at_the_end_of_the_line_above():
    assert hunks("a\nd\n", "a\nb\nc\nd\n") == ("a\nd\n", (Hunk(1, "\nb\nc"),))


def test_new_file_is_typed_from_its_beginning():
    assert hunks("", "a\nb\n") == ("", (Hunk(0, "a\nb\n"),))


@given(LINES, LINES)
def test_start_and_hunks_are_the_last_text(first, last):
    start, found = hunks(first, last)
    assert Task("x.py", "python", start, found).final == last


def test_sessions_have_enough_to_type():
    typed = tasks(60)
    assert len(typed) >= 3
    assert all(task.text.count(hunk.text) == 0 for task in typed for hunk in task.hunks)
    assert 150 <= sum(len(keys(hunk.text)) for task in typed for hunk in task.hunks) <= 180
