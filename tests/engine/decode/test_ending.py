"""Where an inserted text ends: at code that is outside of it, and behind the first of several equal rounds."""

import pytest

from mercury_engine.decode.ending import indentation, inside, once


@pytest.mark.parametrize(
    ("text", "margin", "expected"),
    [
        ("a = 1\n    b = 2", 4, "a = 1\n    b = 2"),
        ("a = 1\n    b = 2\n\ndef f():\n    c", 4, "a = 1\n    b = 2"),
        ("a {\n        b\n    }\n}\n", 4, "a {\n        b\n    }"),
        ("a = 1\n", 4, "a = 1\n"),
        ("a = 1\n  ", 4, "a = 1\n  "),
        ("a\n\tb\n", 4, "a\n\tb\n"),
        ("\n}", 4, ""),
        ("a\nb", 0, "a\nb"),
        ("a\nb", -1, "a\nb"),
    ],
)
def test_less_indented_line_is_outside(text, margin, expected):
    assert inside(text, margin) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rtio" * 6, "rtio"),
        ("x = " + "rtio" * 9 + "rt", "x = rtio"),
        ("    use(one, two)\n" * 3, "    use(one, two)\n"),
        ("use(one)\nuse(two)\nuse(one)\nuse(two)\n", "use(one)\nuse(two)\nuse(one)\nuse(two)\n"),
        ("[0, 0, 0, 0]", "[0, 0, 0, 0]"),
        ("# " + "-" * 60, "# " + "-" * 60),
        ("a" + " " * 60, "a" + " " * 60),
        ("", ""),
    ],
)
def test_going_round_in_circles_says_it_once(text, expected):
    assert once(text) == expected


def test_tab_is_four_columns():
    assert [indentation(line) for line in ("a", "  a", "\ta", "", "   ")] == [0, 2, 4, 0, 3]
