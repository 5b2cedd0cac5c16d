import json

from bench.edit_cases import Case, cases
from bench.next_edit import Outcome, is_exact, likeness, score, touched
from mercury_engine.api import Edit
from mercury_ls.documents import Change, Document
from mercury_ls.history import History
from mercury_training.shards import EditRow, Replacement, write_edits

TEXT = "a = old(1)\nb = old(2)\nc = old(3)\n"
SECOND, THIRD = Change(11, 22, "b = new(2)\n"), Change(22, 33, "c = new(3)\n")


def changed(number: int, word: str = "new") -> Change:
    start = 11 * number + 4
    return Change(start, start + 3, word)


def test_some_of_what_is_due_and_nothing_else_is_exact():
    assert is_exact(TEXT, [changed(1)], [SECOND, THIRD])
    assert is_exact(TEXT, [changed(1), changed(2)], [SECOND, THIRD])
    assert not is_exact(TEXT, [changed(1), changed(0)], [SECOND, THIRD])
    assert not is_exact(TEXT, [changed(1, "newer")], [SECOND])
    assert not is_exact(TEXT, [], [SECOND])
    assert not is_exact(TEXT, [changed(1)], [])


def test_an_answer_is_compared_with_what_it_touches():
    assert touched(TEXT, [changed(2)], [SECOND, THIRD]) == [SECOND, THIRD]
    assert touched(TEXT, [changed(0)], [THIRD]) == []


def case(expected=(SECOND,), also_ok=(THIRD,)) -> Case:
    snapshot = Document("file:///a.py", "a.py", "python", 1, TEXT).snapshot()
    return Case("repeat", snapshot, 0, History(), expected, also_ok)


def test_delta_chrf_is_whole_for_the_edit_itself_and_nothing_for_silence():
    assert likeness(case(), [changed(1)]) == 100.0
    assert likeness(case(), [changed(1), changed(2)]) == 100.0
    assert likeness(case(), []) == 0.0
    assert 0.0 < likeness(case(), [changed(1, "newer")]) < 100.0


def outcome(kind: str, shown: bool, delta: float = 0.0) -> Outcome:
    return Outcome(kind, shown, delta == 100.0, shown, 1 if shown else 0, delta, 0.5, 1.0)


def test_the_score_needs_both_shows_and_silence():
    loud = [outcome("repeat", True, 100.0), outcome("none", True)]
    mute = [outcome("repeat", False), outcome("none", False)]
    good = [outcome("repeat", True, 100.0), outcome("none", False)]
    assert score(loud)["score"] == 0.0
    assert score(mute)["score"] == 0.0
    assert score(good)["score"] == 1.0
    assert score([outcome("repeat", True, 50.0), outcome("none", False)])["score"] == 0.5


def test_a_row_of_history_becomes_a_document_with_its_edits(tmp_path):
    row = {
        "id": "one",
        "path": "a.py",
        "language": "python",
        "class": "repeat",
        "file_before": "a = old(1)\nb = old(2)\n",
        "edits": [
            {"path": "other.py", "diff": "--- a/other.py\n+++ b/other.py\n@@ -7 +7 @@\n-x = old(0)\n+x = new(0)\n"},
            {"path": "a.py", "diff": "@@ -1,2 +1,2 @@\n-a = old(1)\n+a = new(1)\n b = old(2)\n"},
        ],
        "file_now": "a = new(1)\nb = old(2)\n",
        "cursor": {"line": 0, "character": 10},
        "expected": [{"range": range_of(1, 2), "newText": "b = new(2)\n", "diff": ""}],
        "also_ok": [],
    }
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n")
    (found,) = cases(path)
    assert found.history.edits() == (
        Edit("other.py", 6, "x = old(0)", "x = new(0)"),
        Edit("a.py", 0, "a = old(1)\n", "a = new(1)\n"),
    )
    assert found.expected == (Change(11, 22, "b = new(2)\n"),)
    assert found.offset == 10


def range_of(first: int, stop: int) -> dict:
    return {"start": {"line": first, "character": 0}, "end": {"line": stop, "character": 0}}


def test_a_row_of_a_corpus_becomes_its_window_with_the_edits_made_again(tmp_path):
    edits = (Edit("a.py", 40, "a = old(1)\n", "a = new(1)\n"), Edit("b.py", 3, "old\n", "new\n"))
    window = "a = new(1)\nb = old(2)\nc = old(3)\n"
    expected = (Replacement(1, 2, "b = new(2)\n"), Replacement(2, 3, "c = new(3)\n"))
    row = EditRow("o/r", "0" * 40, "MIT", "a.py", "python", "repeat", window, 40, 0, edits, expected)
    path = tmp_path / "edits.jsonl.xz"
    write_edits(path, [row])
    (found,) = cases(path)
    assert found.history.edits() == (
        Edit("a.py", 0, "a = old(1)\n", "a = new(1)\n"),
        Edit("b.py", 3, "old\n", "new\n"),
    )
    assert (found.expected, found.also_ok) == ((SECOND,), (THIRD,))
