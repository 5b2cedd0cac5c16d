"""A row of history, written as the development set does, leads from the file before to the file now."""

import re

import msgspec
import pytest

from mercury_engine.api import Edit
from mercury_training.corpus.shards import EditRow, Replacement
from mercury_training.rows.next_edit_rows import class_of, next_edit_row

WINDOW = "one\nTWO\nthree\nfour\nFIVE\nnew\nsix\nseven\n"
ROW = EditRow(
    repository="team/words",
    commit="abc",
    licence="MIT",
    path="words.txt",
    language="python",
    kind="repeat",
    window=WINDOW,
    first_line=100,
    cursor=5,
    edits=(
        Edit("words.txt", 101, "two\n", "TWO\n"),
        Edit("words.txt", 104, "five\n", "FIVE\nnew\n"),
    ),
    expected=(Replacement(6, 7, "SIX\n"), Replacement(7, 8, "SEVEN\n")),
    next=1,
)
HUNK = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@\n")


def patched(lines, diff, first_line=0):
    """The lines with a one-hunk unified diff applied, its counts checked."""
    header, old_start, old_size, new_start, new_size, body = HUNK.split(diff)
    assert header.startswith("--- a/words.txt\n+++ b/words.txt\n")
    marked = body.splitlines(keepends=True)
    old = [line[1:] for line in marked if line[0] in " -"]
    new = [line[1:] for line in marked if line[0] in " +"]
    assert (len(old), len(new)) == (int(old_size), int(new_size))
    assert old_start == new_start or not (old and new)
    at = int(old_start) - bool(old) - first_line
    assert lines[at : at + len(old)] == old
    return [*lines[:at], *new, *lines[at + len(old) :]]


def test_edits_lead_from_old_text_to_current():
    row = next_edit_row(ROW)
    lines = row["file_before"].splitlines(keepends=True)
    assert lines == ["one\n", "two\n", "three\n", "four\n", "five\n", "six\n", "seven\n"]
    for edit in row["edits"]:
        assert edit["path"] == "words.txt"
        lines = patched(lines, edit["diff"], first_line=100)
    assert "".join(lines) == row["file_now"] == WINDOW


def test_expected_edit_applies_to_the_file_as_it_is():
    row = next_edit_row(ROW)
    now = row["file_now"].splitlines(keepends=True)
    (expected,), (also,) = row["expected"], row["also_ok"]
    assert (expected["newText"], also["newText"]) == ("SEVEN\n", "SIX\n")
    for hunk in (expected, also):
        first, last = hunk["range"]["start"]["line"], hunk["range"]["end"]["line"]
        assert patched(now, hunk["diff"]) == [*now[:first], hunk["newText"], *now[last:]]
    assert row["cursor"] == {"line": 5, "character": 3}


def test_silence_expects_nothing():
    row = next_edit_row(msgspec.structs.replace(ROW, kind="none", expected=()))
    assert (row["class"], row["expected"], row["also_ok"]) == ("none", [], [])


def test_edits_elsewhere_keep_their_place_and_move_the_window():
    above = Edit("words.txt", 3, "a\n", "b\nc\n")
    other = Edit("other.txt", 7, "", "x\n")
    shifted = [msgspec.structs.replace(edit, line=edit.line - 1) for edit in ROW.edits]
    row = next_edit_row(msgspec.structs.replace(ROW, edits=(shifted[0], above, ROW.edits[1], other)))
    assert row["file_before"].splitlines()[1] == "two"
    assert row["edits"][1]["diff"] == "--- a/words.txt\n+++ b/words.txt\n@@ -4,1 +4,2 @@\n-a\n+b\n+c\n"
    assert row["edits"][3]["diff"] == "--- a/other.txt\n+++ b/other.txt\n@@ -7,0 +8,1 @@\n+x\n"


def test_edit_across_window_border_gives_no_row():
    across = Edit("words.txt", 99, "x\ny\n", "zero\none\n")
    assert next_edit_row(msgspec.structs.replace(ROW, edits=(*ROW.edits, across))) is None


@pytest.mark.parametrize(("text", "name"), [("SIX\n", "repeat"), ("", "repeat_delete")])
def test_repeated_deletions_are_a_class_of_their_own(text, name):
    assert class_of(msgspec.structs.replace(ROW, expected=(Replacement(6, 7, text),), next=0)) == name


def test_row_has_the_same_name_every_time():
    assert (
        next_edit_row(ROW)["id"]
        == next_edit_row(ROW)["id"]
        != next_edit_row(msgspec.structs.replace(ROW, next=0))["id"]
    )


def test_form_feed_ends_no_line():
    """Numbers of lines count line feeds alone."""
    window = "one\x0c\ntwo\n\x0c\nTHREE\nfour\n"
    edits = (Edit("words.txt", 103, "three\n", "THREE\n"),)
    row = next_edit_row(
        msgspec.structs.replace(ROW, window=window, edits=edits, expected=(Replacement(4, 5, "4\n"),), next=0)
    )
    assert row["file_before"] == window.replace("THREE", "three")
    assert "-four\n+4\n" in row["expected"][0]["diff"]
