"""Next edits at the end of a file in real Neovims: shown, made, undone, written, with and without a last line end."""

import pytest

from tests.editors.nvim.test_next_edit import edit, offered, reach, shows
from tests.editors.nvim.test_next_edit import editor as editor

pytestmark = [pytest.mark.editor, pytest.mark.slow]


def check(editor, before: str, edits: list[dict], shown: list[list], after: str, options: str = "fixeol") -> None:
    """The edits look like this, are made by one key, make this file when it is written, and are undone by one key."""
    made = after.removesuffix("\n") if before.endswith("\n") or options == "fixeol" else after
    editor.command(f"set {options}")
    offered(editor, *edits, text="-" + before)
    shows(editor, *shown)
    editor.keys("<Tab>")
    editor.until(lambda: editor.text == made, f"the text {made!r}")
    editor.command("write")
    assert (editor.folder / "area.py").read_text() == after
    editor.keys("u")
    reach(editor, before)


TWO, OPEN = "one\ntwo\n", "one\ntwo"
THREE = edit(2, 0, 0, "three\n")


@pytest.mark.parametrize(
    ("before", "edits", "shown", "after"),
    [
        # added behind the last
        (TWO, [THREE], [["+", 1, "three"]], "one\ntwo\nthree\n"),
        (TWO, [edit(2, 0, 0, "three")], [["+", 1, "three"]], "one\ntwo\nthree\n"),
        (TWO, [edit(2, 0, 0, "3\n4\n")], [["+", 1, "3"], ["+", 1, "4"]], "one\ntwo\n3\n4\n"),
        (TWO, [edit(2, 0, 0, "\n")], [["+", 1, ""]], "one\ntwo\n\n"),
        (TWO, [edit(2, 0, 0, "3\n"), edit(2, 0, 0, "4\n")], [["+", 1, "3"], ["+", 1, "4"]], "one\ntwo\n3\n4\n"),
        ("\n", [edit(0, 0, 0, "one\n")], [["+", 0, "one"], ["+", 0, ""]], "one\n\n"),
        ("\n", [edit(1, 0, 0, "one\n")], [["+", 0, "one"]], "\none\n"),
        # removed
        (TWO, [edit(1, 0, 0, "", to=2)], [["-", 1, "two"]], "one\n"),
        (TWO, [edit(0, 3, 0, "\n", to=2)], [["-", 1, "two"]], "one\n"),
        (TWO, [edit(0, 3, 3, "", to=1)], [["-", 1, "two"]], "one\n"),
        (TWO, [edit(0, 0, 0, "", to=2)], [["-", 0, "one"], ["-", 1, "two"], ["+", 1, ""]], "\n"),
        ("one\n\n", [edit(1, 0, 0, "", to=2)], [["-", 1, ""]], "one\n"),
        ("one\n2\n3\n", [edit(1, 0, 0, "", to=3)], [["-", 1, "2"], ["-", 2, "3"]], "one\n"),
        ("one\n2\n3\n", [edit(1, 0, 0, "", to=2), edit(2, 0, 0, "", to=3)], [["-", 1, "2"], ["-", 2, "3"]], "one\n"),
        # changed
        (TWO, [edit(1, 0, 0, "2\n", to=2)], [["-", 1, "two"], ["+", 1, "2"]], "one\n2\n"),
        (TWO, [edit(1, 0, 0, "\n", to=2)], [["-", 1, "two"], ["+", 1, ""]], "one\n\n"),
        (TWO, [edit(1, 1, 0, "\n", to=2)], [["-", 1, "wo"], ["+", 1, ""]], "one\nt\n"),
        (TWO, [edit(1, 0, 0, "2\n3\n", to=2)], [["-", 1, "two"], ["+", 1, "2"], ["+", 1, "3"]], "one\n2\n3\n"),
        (TWO, [edit(1, 0, 3, "2"), THREE], [["-", 1, "two"], ["+", 1, "2"], ["+", 1, "three"]], "one\n2\nthree\n"),
        ("\n", [edit(0, 0, 0, "one\n", to=1)], [["+", 0, "one"]], "one\n"),
    ],
)
def test_last_lines_are_added_removed_and_changed(editor, before, edits, shown, after):
    check(editor, before, edits, shown, after)


@pytest.mark.parametrize(("options", "end"), [("fixeol", "\n"), ("nofixeol", "")])
@pytest.mark.parametrize(
    ("edits", "shown", "after"),
    [
        ([edit(1, 3, 3, "\nthree")], [["+", 1, "three"]], "one\ntwo\nthree"),
        ([THREE], [["+", 1, "three"]], "one\ntwo\nthree"),
        ([edit(0, 3, 3, "", to=1)], [["-", 1, "two"]], "one"),
        ([edit(1, 0, 0, "", to=2)], [["-", 1, "two"]], "one"),
        ([edit(1, 0, 3, "2")], [["-", 1, "two"], ["+", 1, "2"]], "one\n2"),
    ],
)
def test_last_line_gets_an_end_only_where_editor_adds_it(editor, edits, shown, after, options, end):
    check(editor, OPEN, edits, shown, after + end, options)


@pytest.mark.parametrize(("options", "more"), [("fixeol", []), ("nofixeol", [["+", 1, ""]])])
@pytest.mark.parametrize(
    ("edits", "shown", "after"),
    [
        ([edit(1, 3, 3, "\n3\n")], [["+", 1, "3"]], "one\ntwo\n3\n"),
        ([edit(1, 0, 3, "2\n")], [["-", 1, "two"], ["+", 1, "2"]], "one\n2\n"),
        ([edit(1, 0, 3, "")], [["-", 1, "two"]], "one\n"),
    ],
)
def test_last_line_end_from_edit_is_not_added_twice(editor, edits, shown, after, options, more):
    check(editor, OPEN, edits, shown + more, after, options)


def test_parts_at_the_end_are_taken_one_by_one(editor):
    offered(editor, THREE, edit(1, 0, 3, "2"), text="-" + TWO)
    shows(editor, ["-", 1, "two"], ["+", 1, "2"], ["+", 1, "three"])
    editor.keys("g<Tab>")
    reach(editor, "one\ntwo\nthree\n")
    shows(editor, ["-", 1, "two"], ["+", 1, "2"])
    editor.keys("g<Tab>")
    reach(editor, "one\n2\nthree\n")


@pytest.mark.parametrize("first", [0, 1])
def test_neighbours_are_made_in_any_order_without_touching_each_other(editor, first):
    neighbours = [edit(0, 0, 3, "1111"), edit(0, 3, 7, " + 2")]
    offered(editor, neighbours[first], neighbours[1 - first], text="-one-two\nend\n")
    shows(editor, ["-", 0, "one"], ["+", 0, "1111"], ["-", 0, "-two"], ["+", 0, " + 2"])
    editor.keys("<Tab>")
    reach(editor, "1111 + 2\nend\n")


def test_end_of_file_in_another_buffer_is_kept_too(editor):
    editor.open("one\n", "other.py")
    editor.attached()
    editor.command("set hidden")
    added = {**edit(1, 0, 0, "two\n"), "file": "other.py"}
    offered(editor, edit(1, 0, 0, "", to=2), added, text="-" + TWO)
    shows(editor, ["-", 1, "two"], ["?", 0, "  next edit: 2 edits (<Tab>)"])
    editor.keys("<Tab>")
    assert editor.page.splitlines()[1:] == ["area.py", "✓    2 - two", "other.py", "✓    2 + two"]
    editor.keys("<Tab>")
    reach(editor, "one\n")
    editor.command("wall")
    assert (editor.folder / "area.py").read_text() == "one\n"
    assert (editor.folder / "other.py").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    ("text", "due", "shown", "after"),
    [
        ("one\n" + "\n" * 80, edit(81, 0, 0, "two\n"), ["+", 80, "two"], "one\n" + "\n" * 80 + "two\n"),
        ("one\n" + "\n" * 79 + "two\n", edit(80, 0, 0, "", to=81), ["-", 80, "two"], "one\n" + "\n" * 79),
    ],
)
def test_edit_of_the_last_line_is_jumped_to(editor, text, due, shown, after):
    offered(editor, due, text=f"-{text}")
    shows(editor, ["?", 0, "  ↓ next edit: line 81 (<Tab>)"], shown)
    editor.keys("<Tab>")
    editor.until(lambda: editor.cursor == [81, 0], "the jump")
    editor.keys("<Tab>")
    reach(editor, after)
