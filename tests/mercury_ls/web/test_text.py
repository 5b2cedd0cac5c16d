import pytest

from mercury_engine.api import Edit, Snippet
from mercury_ls.web.text import LONGEST_TEXT, MOST_OTHERS, Text, bounded, language_of, near, recorded

NOW = "import os\n\n\ndef total(items):\n    return sum(items)\n"


def check(edits, expected, text=NOW):
    given = tuple(Edit(*edit) for edit in edits)
    found = recorded(Text("a.py", text, 0, edits=given), 1000.0)
    assert made(found) == expected


def made(history):
    """The edits without the lines around them."""
    return [(edit.path, edit.line, edit.before, edit.after) for edit in history.edits()]


@pytest.mark.parametrize(
    "edit",
    [
        ("a.py", 3, "def total(xs):\n", "def total(items):\n"),
        ("a.py", 0, "", "import os\n"),
        ("other.py", 7, "x = 1\n", "x = 2\n"),
    ],
)
def test_edit_is_in_history_as_it_was_made(edit):
    check([edit], [edit])


def test_edits_of_one_file_are_taken_back_newest_first():
    first = ("a.py", 4, "    return add(items)\n", "    return sum(xs)\n")
    second = ("a.py", 4, "    return sum(xs)\n", "    return sum(items)\n")
    third = ("a.py", 3, "def total(xs):\n", "def total(items):\n")
    found = recorded(Text("a.py", NOW, 0, edits=tuple(Edit(*each) for each in (first, second, third))), 1000.0)
    assert made(found)[-1] == third
    assert "add(items)" in found.edits()[0].before


@pytest.mark.parametrize(
    ("edit", "above", "below"),
    [
        (("a.py", 3, "def total(xs):\n", "def total(items):\n"), "import os\n\n\n", "    return sum(items)\n"),
        (("other.py", 7, "x = 1\n", "x = 2\n"), "", ""),
        (("other.py", 7, "x = 1\n", "x = 2\n", "a\n\n", "b\n"), "a\n\n", "b\n"),
        (("other.py", 0, "", "x = 2\n", "", "b\n"), "", "b\n"),
    ],
)
def test_lines_around_edit_are_the_known_ones(edit, above, below):
    (found,) = recorded(Text("a.py", NOW, 0, edits=(Edit(*edit),)), 1000.0).edits()
    assert (found.line, found.above, found.below) == (edit[1], above, below)


def test_edit_in_part_of_file_is_found_only_where_it_stands_once():
    check(
        [("a.py", 90, "def total(xs):\n", "def total(items):\n")],
        [("a.py", 3, "def total(xs):\n", "def total(items):\n")],
    )


@pytest.mark.parametrize(
    "edit",
    [
        ("a.py", 4, "    pass\n", ""),
        ("a.py", 4, "    pass\n", "    return max(items)\n"),
        ("a.py", 1 << 40, "a\n", "b\n"),
    ],
)
def test_empty_edit_is_left_out(edit):
    check([edit], [])


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (Text("", "", 0), ""),
        (Text("a.rs", "", 0, "", (Snippet("b.py", ""),)), ""),
        (Text("", "", 0, "lua", (Snippet("b.py", ""),)), "lua"),
        (Text("", "", 0, "", (Snippet("b.py", ""), Snippet("c.go", ""), Snippet("d.py", ""))), "python"),
        (Text("", "", 0, "", (Snippet("README", ""),)), ""),
    ],
)
def test_language_of_unknown_file_is_that_of_those_around_it(text, language):
    assert language_of(text) == language


def test_impossible_path_is_shortened_and_cleaned():
    found = bounded(Text("a\0b.py", "", 0, others=(Snippet("x" * 5000 + ".py", ""),)))
    assert found.path == "ab.py"
    assert len(found.others[0].path) == 1000
    assert found.others[0].path.endswith(".py")


def test_other_files_are_read_only_as_far_as_useful():
    others = (Snippet("a.py", "a"), Snippet("b.py", "b" * LONGEST_TEXT), Snippet("c.py", "c"))
    assert bounded(Text("x.py", "", 0, others=others)).others == others[:1]
    many = tuple(Snippet(f"{n}.py", "") for n in range(MOST_OTHERS + 1))
    assert bounded(Text("x.py", "", 0, others=many)).others == many[1:]


@pytest.mark.parametrize("line", ["x = 1\n", "x" * 100])
def test_long_text_is_read_around_the_cursor(line):
    whole = line * (LONGEST_TEXT * 4 // len(line))
    cursor = len(whole) // 2
    found = near(Text("a.py", whole, cursor))
    assert LONGEST_TEXT // 2 < len(found.text) <= LONGEST_TEXT
    assert found.text[: found.cursor] == whole[cursor - found.cursor : cursor]
    assert whole[cursor:].startswith(found.text[found.cursor :])
    assert near(Text("a.py", "short", 2)) == Text("a.py", "short", 2)


def test_cursor_within_line_break_stands_before_it():
    assert [bounded(Text("x.py", "\r\nb", cursor)).cursor for cursor in range(4)] == [0, 0, 2, 3]
