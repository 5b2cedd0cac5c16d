"""Which errors of other language servers came with the user's edits."""

import pytest

from mercury_ls.code.diagnostics import FileDiagnostic, Reports
from mercury_ls.code.documents import Document

MISSING = "Argument missing"


def check(*steps, edits=lambda mark: 0, expected):
    """Each step is a text, in which the errors are lines that end with `!`, and the mark of the history by then."""
    reports = Reports()
    for version, (text, mark) in enumerate(steps):
        snapshot = Document("file:///a.py", "a.py", "python", version, text).snapshot()
        starts = [snapshot.line_start(n) for n in range(snapshot.line_count) if snapshot.line(n).rstrip().endswith("!")]
        reports.take(snapshot, tuple(FileDiagnostic(start, start + 1, MISSING) for start in starts), mark)
    fresh = reports.fresh(snapshot, edits)
    assert [snapshot.line(snapshot.line_of(error.start)).rstrip() for error in fresh] == expected
    return reports, snapshot


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([("a\nb!\n", 0)], []),
        ([("a\nb!\n", 0), ("a!\nb!\n", 0)], []),
        ([("a\nb!\n", 0), ("x\na!\nb!\n", 1)], ["a!"]),
        ([("a\n", 3), ("a!\n", 3)], []),
        ([("a\n", 3), ("a!\n", 4), ("b\na!\n", 5)], ["a!"]),
        ([("a!\n", 0), ("a\n", 1), ("a!\n", 2)], []),
        ([("a\n", 0), ("a!\n", 1), ("a\n", 2)], []),
        ([("a!\nb\n", 0), ("A!\nb\n", 1)], []),
    ],
    ids=[
        *("first", "no edit", "new beside old", "server that starts late", "stays new", "old one comes back"),
        *("mended", "its line is edited"),
    ],
)
def test_errors_that_came_with_edits(steps, expected):
    check(*steps, expected=expected)


def test_later_edits_make_it_old():
    check(("a\n", 0), ("a!\n", 1), edits=lambda mark: 4, expected=[])


def test_errors_of_another_version_are_out_of_date():
    reports, _ = check(("a\n", 0), ("a!\n", 1), expected=["a!"])
    other = Document("file:///a.py", "a.py", "python", 9, "a!\n").snapshot()
    assert reports.fresh(other, lambda mark: 0) == ()


def test_error_where_the_user_has_been_is_left_alone():
    reports, snapshot = check(("a\nb\n", 0), ("a!\nb!\n", 1), expected=["a!", "b!"])
    reports.forget(snapshot, 0)
    assert [error.start for error in reports.fresh(snapshot, lambda mark: 0)] == [3]


def test_warning_breaks_nothing():
    reports, snapshot = check(("a\n", 0), ("b\n", 1), expected=[])
    reports.take(snapshot, (FileDiagnostic(0, 1, "unused", "warning"),), 2)
    assert reports.fresh(snapshot, lambda mark: 0) == ()
