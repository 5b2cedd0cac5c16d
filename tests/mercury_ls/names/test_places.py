"""Receivers are found where members are written, and nowhere else."""

import pytest

from mercury_ls.code.documents import Document
from mercury_ls.names.places import asked, at_cursor, near, uses


def opened(marked):
    text, offset = marked.replace("$0", ""), marked.index("$0")
    return Document("file:///a.py", "/a.py", "python", 1, text).snapshot(), offset


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("x = response.$0\n", ("response", "", True)),
        ("x = a.b.he$0\n", ("a.b", "he", True)),
        ("x = load(a).he$0\n", ("x = load(a)", "he", False)),
        ("x = rows[0].$0\n", ("x = rows[0]", "", False)),
        ('"a".$0\n', ('"a"', "", False)),
        ("def f(self):\n    self.$0\n", ("self", "", True)),
    ],
)
def test_receiver_is_what_stands_before_the_dot(marked, expected):
    place = at_cursor(*opened(marked))[0]
    assert (place.receiver, place.typed, place.simple) == expected


@pytest.mark.parametrize(
    "marked", ["x = 1.$0\n", "x = 1_0.$0", "# see os.$0\n", "'os.$0'\n", "x = $0\n", "..$0", "x$0"]
)
def test_places_without_a_member(marked):
    assert at_cursor(*opened(marked)) == []


def test_place_belongs_to_its_function():
    assert at_cursor(*opened("import os\nos.$0\n"))[0].scope == ""
    assert at_cursor(*opened("import os\nasync def f():\n    os.$0\n"))[0].scope == "async def f():"


FUNCTION = """\
def f(path, other):
    self.a.b()
    for row in rows:
        out.write(row)
    with open(path) as file:
        $0
"""


def test_nearest_receivers_come_first():
    found = near(*opened(FUNCTION))
    assert [place.receiver for place in found] == ["out", "self.a", "file", "path", "row", "rows", "other"]


NESTED = """\
def package(self, rows):
    def formatted(row):
        row = row.copy()
        $0
"""


def test_receivers_of_the_functions_around_come_after_those_of_the_own():
    assert [place.receiver for place in near(*opened(NESTED))] == ["row", "rows", "self"]


def test_places_are_asked_about_in_the_text_as_it_would_be():
    snapshot, offset = opened("def f():\n    os.pa$0\n")
    ask = asked(snapshot, at_cursor(snapshot, offset)[0])
    assert (ask.text, ask.line, ask.column) == (snapshot.text, 2, 7)
    snapshot, offset = opened("def f(row):\n    x = $0\n")
    (place,) = near(snapshot, offset)
    ask = asked(snapshot, place)
    assert (ask.text, ask.line, ask.column) == ("def f(row):\n    row._\n    x = \n", 2, 8)


def test_used_members_are_all_but_the_one_that_is_being_written():
    snapshot, offset = opened("os.path\nos.path\nmy.os.sep\nos.se$0\nos.name\n")
    assert uses(snapshot.text, at_cursor(snapshot, offset)[0]) == ["path", "path", "name"]
