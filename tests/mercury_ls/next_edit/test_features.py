import pytest

from mercury_engine.api import Edit
from mercury_ls.code.documents import Document
from mercury_ls.next_edit.candidates import batches
from mercury_ls.next_edit.situation import Situation


def check(text: str, *edits: tuple[int, str, str], kind: str, name: str, expected: dict[int, float]) -> None:
    """What the feature says of the candidates of this kind, by their lines; the edits are (line, before, after)."""
    snapshot = Document("file:///a.py", "a.py", "python", 1, text).snapshot()
    situation = Situation(snapshot, len(text), [Edit("a.py", *edit) for edit in edits])
    told = {
        snapshot.line_of(each.start): each.features[name]
        for batch in batches(situation)
        for each in batch
        if each.kind == kind
    }
    assert told == pytest.approx(expected, abs=1e-3)


RENAMED = "new()\nold()\nold()\nnew()\nold()\n"
TWICE = ((0, "old()\n", "new()\n"), (3, "old()\n", "new()\n"))


def test_place_between_edited_ones_was_passed_by():
    check(RENAMED, *TWICE, kind="rename", name="skipped", expected={1: 1.0, 2: 1.0, 4: 0.0})


def test_line_edited_since_has_been_seen():
    edits = ((0, "a.old()\n", "a.new()\n"), (2, "a.old()\n", "a.old(1)\n"))
    check("a.new()\na.old()\na.old(1)\n", *edits, kind="rename", name="visited", expected={1: 0.0, 2: 1.0})


def test_lines_are_alike_by_the_words_of_their_names():
    text = "load(5, rows)\nload(3, rows)\nsave(3, columns)\n"
    edit = (0, "load(3, rows)\n", "load(5, rows)\n")
    check(text, edit, kind="clone", name="names alike", expected={1: 1.0, 2: 0.2})
