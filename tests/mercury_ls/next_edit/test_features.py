import pytest

from mercury_engine.api import Edit
from mercury_ls.code.documents import Document
from mercury_ls.next_edit.candidates import find


def check(text: str, *edits: tuple[int, str, str], kind: str, name: str, expected: dict[int, float]) -> None:
    """What the feature says of the candidates of this kind, by their lines; the edits are (line, before, after)."""
    snapshot = Document("file:///a.py", "a.py", "python", 1, text).snapshot()
    found = find(snapshot, len(text), [Edit("a.py", *edit) for edit in edits])
    told = {snapshot.line_of(each.start): each.features[name] for each in found if each.kind == kind}
    assert told == pytest.approx(expected, abs=1e-3)


RENAMED = "new()\nold()\nold()\nnew()\nold()\n"
TWICE = ((0, "old()\n", "new()\n"), (3, "old()\n", "new()\n"))


def test_a_place_between_edited_ones_was_passed_by():
    check(RENAMED, *TWICE, kind="rename", name="skipped", expected={1: 1.0, 2: 1.0, 4: 0.0})


def test_edits_and_questions_are_told_apart_by_other_features():
    snapshot = Document("file:///a.py", "a.py", "python", 1, RENAMED).snapshot()
    found = find(snapshot, 0, [Edit("a.py", *edit) for edit in TWICE])
    edits, questions = ({name for e in found if (e.text is None) == asked for name in e.features} for asked in (0, 1))
    assert edits
    assert questions
    assert not edits & questions


def test_places_count_from_the_edit_on():
    text = "new()\n" + "old()\n" * 3
    check(text, (0, "old()\n", "new()\n"), kind="rename", name="rank", expected={1: 0.0, 2: 1.0, 3: 1.585})


def test_a_line_that_was_edited_since_has_been_seen():
    edits = ((0, "old()\n", "new()\n"), (2, "old()\n", "old(1)\n"))
    check("new()\nold()\nold(1)\n", *edits, kind="rename", name="visited", expected={1: 0.0, 2: 1.0})


def test_a_name_that_stays_in_the_edited_line_is_not_gone():
    edit = (0, "path = join(path, part)\n", "target = join(path, part)\n")
    check("target = join(path, part)\nshow(path)\n", edit, kind="rename", name="kept", expected={1: 1.0})


def test_calls_are_kin_and_members_are_not():
    text = "new(1)\nold(2)\nold + 1\n"
    check(text, (0, "old(1)\n", "new(1)\n"), kind="rename", name="kin", expected={1: 1.0, 2: 1 / 3})


def test_lines_are_alike_by_the_words_of_their_names():
    text = "load(5, rows)\nload(3, rows)\nsave(3, columns)\n"
    edit = (0, "load(3, rows)\n", "load(5, rows)\n")
    check(text, edit, kind="clone", name="names alike", expected={1: 1.0})


def test_the_pieces_of_an_edit_are_counted():
    text = "b(two, one)\na(two)\n"
    check(text, (0, "a(one)\n", "b(two, one)\n"), kind="rename", name="pieces", expected={1: 1.0})
