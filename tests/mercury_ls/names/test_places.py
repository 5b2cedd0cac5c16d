"""Receivers are found where members are written, and nowhere else."""

import pytest

from mercury_ls.code.documents import Document
from mercury_ls.names.places import asked, at_cursor, given, may_bind_behind, near, uses


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


def test_places_are_asked_about_in_the_text_as_it_would_be():
    snapshot, offset = opened("def f():\n    os.pa$0\n")
    ask = asked(snapshot, at_cursor(snapshot, offset)[0])
    assert (ask.text, ask.line, ask.column) == (snapshot.text, 2, 7)
    snapshot, offset = opened("def f(row):\n    x = $0\n")
    (place,) = near(snapshot, offset)
    ask = asked(snapshot, place)
    assert (ask.text, ask.line, ask.column) == ("def f(row):\n    row._\n    x = \n", 2, 8)


def test_uses_are_counted_but_for_the_one_that_is_being_written():
    snapshot, offset = opened("os.path\nos.path\nmy.os.sep\nos.se$0\nos.name\n")
    assert uses(snapshot.text, at_cursor(snapshot, offset)[0]) == {"path": 2, "name": 1}


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("x = load(a, $0\n", ("keyword", "load", "")),
        ("x = a.load(\n    (1, 2),\n    b$0\n", ("keyword", "a.load", "")),
        ('x = load("see (", a$0\n', ("keyword", "load", "")),
        ("import os$0\n", ("import", "", "os")),
        ("import os.pa$0\n", ("import", "os.", "pa")),
        ("from os$0\n", ("import", "", "os")),
        ("from os.path import join, di$0\n", ("import", "os.path", "di")),
        ("from os import (\n    sep,\n    pa$0\n)\n", ("import", "os", "pa")),
        ("from . import $0\n", ("import", ".", "")),
    ],
)
def test_arguments_and_imports(marked, expected):
    place = at_cursor(*opened(marked))[0]
    assert (place.role, place.receiver, place.typed) == expected


@pytest.mark.parametrize(
    "marked", ["def load($0\n", "if ($0\n", "x = [$0\n", "class A($0\n", "from os import sep\n$0\n"]
)
def test_brackets_that_are_no_call(marked):
    assert at_cursor(*opened(marked)) == []


@pytest.mark.parametrize(
    ("marked", "expected"),
    [("x = load(a, (b, c=1), d=2, e$0\n", (2, {"d"})), ('x = load("a, b", c=", d=", e$0\n', (1, {"c"}))],
)
def test_arguments_that_are_given_already(marked, expected):
    snapshot, offset = opened(marked)
    assert given(snapshot, at_cursor(snapshot, offset)[0], offset) == expected


def test_place_of_a_text_that_has_become_shorter_is_its_end():
    assert may_bind_behind("[x", 9)
    assert not may_bind_behind("x = 1", 99)
