import json

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from bench.next_edit.cases import Case, cases, of_row
from bench.next_edit.measure import (
    Local,
    Outcome,
    cost_of,
    engine_of,
    is_exact,
    likeness,
    net,
    score,
    touched,
)
from bench.next_edit.measure import outcome as outcome_of
from mercury_engine.api import Edit, EngineError
from mercury_engine.fake import FakeEngine
from mercury_ls.code.documents import Document
from mercury_ls.code.edits import TextEdit, difference
from mercury_ls.code.history import History
from mercury_ls.next_edit.ranking import Ranking
from mercury_training.corpus.shards import EditRow, Replacement, write_edits
from mercury_training.fit.rank_edits import LabelledEdit, due_chances
from tests.engine.test_opening import added

TEXT = "a = old(1)\nb = old(2)\nc = old(3)\n"
SECOND, THIRD = TextEdit(11, 22, "b = new(2)\n"), TextEdit(22, 33, "c = new(3)\n")


def made(history: History) -> tuple[Edit, ...]:
    """The edits without the lines around them."""
    return tuple(replace(edit, above="", below="") for edit in history.edits())


def changed(number: int, word: str = "new") -> TextEdit:
    start = 11 * number + 4
    return TextEdit(start, start + 3, word)


def test_model_is_named_as_the_setting_names_it(tmp_path):
    assert engine_of("none") is None
    assert engine_of("fake").engine.info().engine == "fake"
    assert engine_of(str(added(tmp_path))).engine.info().model == "tiny"
    with pytest.raises(EngineError, match="neither an installed model"):
        engine_of("missing")


def test_part_of_the_due_edit_and_nothing_else_is_exact():
    assert is_exact(TEXT, [changed(1)], [SECOND, THIRD])
    assert is_exact(TEXT, [changed(1), changed(2)], [SECOND, THIRD])
    assert not is_exact(TEXT, [changed(1), changed(0)], [SECOND, THIRD])
    assert not is_exact(TEXT, [changed(1, "newer")], [SECOND])
    assert not is_exact(TEXT, [], [SECOND])
    assert not is_exact(TEXT, [changed(1)], [])


def test_answer_is_compared_with_what_it_touches():
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


def test_score_needs_both_shows_and_silence():
    loud = [outcome("repeat", True, 100.0), outcome("none", True)]
    mute = [outcome("repeat", False), outcome("none", False)]
    good = [outcome("repeat", True, 100.0), outcome("none", False)]
    assert score(loud)["score"] == 0.0
    assert score(mute)["score"] == 0.0
    assert score(good)["score"] == 1.0
    assert score([outcome("repeat", True, 50.0), outcome("none", False)])["score"] == 0.5


def test_wrong_or_incomplete_edits_lower_the_net_score():
    right, partly, silent = outcome("repeat", True, 100.0), outcome("repeat", True, 50.0), outcome("repeat", False)
    assert net([right, silent]) == 0.5
    assert net([right, partly]) == 0.0
    assert net([right, silent, outcome("none", True)]) == 0.0
    assert net([partly, outcome("none", False)]) == -1.0


def row_of(*edits, file_now, file_before="a = old(1)\nb = old(2)\n", **others):
    """A row as it lies in a set; its edits are paths and diffs."""
    known = {"id": "one", "path": "a.py", "language": "python", "class": "repeat", "expected": [], "also_ok": []}
    made = [{"path": path, "diff": diff} for path, diff in edits]
    cursor = {"line": 0, "character": 10}
    return {**known, "file_before": file_before, "edits": made, "file_now": file_now, "cursor": cursor, **others}


def written(folder, row, times=1):
    path = folder / "rows.jsonl"
    path.write_text((json.dumps(row) + "\n") * times)
    return path


def test_row_of_history_becomes_a_document_with_its_edits(tmp_path):
    row = row_of(
        ("other.py", "--- a/other.py\n+++ b/other.py\n@@ -7 +7 @@\n-x = old(0)\n+x = new(0)\n"),
        ("a.py", "@@ -1,2 +1,2 @@\n-a = old(1)\n+a = new(1)\n b = old(2)\n"),
        file_now="a = new(1)\nb = old(2)\n",
        expected=[{"range": range_of(1, 2), "newText": "b = new(2)\n", "diff": ""}],
    )
    (found,) = cases(written(tmp_path, row))
    assert made(found.history) == (
        Edit("other.py", 6, "x = old(0)\n", "x = new(0)\n"),
        Edit("a.py", 0, "a = old(1)\n", "a = new(1)\n"),
    )
    assert found.expected == (TextEdit(11, 22, "b = new(2)\n"),)
    assert found.offset == 10
    assert len(list(cases(written(tmp_path, row, times=5), every=2))) == 3


def test_file_of_a_row_may_be_a_window_of_it(tmp_path):
    """An edit above it moves it, and the lines of the diffs count from the beginning of the file."""
    row = row_of(
        ("a.py", "@@ -3,0 +4,2 @@\n+import one\n+import two\n"),
        ("a.py", "@@ -43,2 +43,2 @@\n-a = old(1)\n+a = new(1)\n b = old(2)\n"),
        ("a.py", "@@ -90,1 +90,0 @@\n-z = old(9)\n"),
        file_now="a = new(1)\nb = old(2)\n",
        cursor={"line": -1, "character": 10},
    )
    (found,) = cases(written(tmp_path, row))
    assert made(found.history) == (
        Edit("elsewhere in a.py", 3, "", "import one\nimport two\n"),
        Edit("a.py", 0, "a = old(1)\n", "a = new(1)\n"),
        Edit("elsewhere in a.py", 89, "z = old(9)\n", ""),
    )
    with pytest.raises(ValueError, match="do not lead to file_now"):
        list(cases(written(tmp_path, row | {"file_now": "a = newer(1)\nb = old(2)\n"})))


def test_edits_of_what_is_not_there_stay_as_they_were_made(tmp_path):
    """Several of one file, each numbered as the file was when it was made: none runs into another."""
    row = row_of(
        ("a.py", "@@ -4,1 +4,3 @@\n-import first\n+import one\n+import two\n+import three\n"),
        ("a.py", "@@ -9,1 +9,1 @@\n-c = old(3)\n+c = new(3)\n"),
        ("a.py", "@@ -43,1 +43,2 @@\n-a = old(1)\n+\n+a = new(1)\n"),
        ("a.py", "@@ -46,1 +46,1 @@\n-x = old(7)\n+x = new(7)\n"),
        ("a.py", "@@ -60,1 +60,1 @@\n-y = old(8)\n+y = new(8)\n"),
        ("a.py", "@@ -59,0 +60,1 @@\n+\n"),
        ("b.py", "@@ -4,1 +4,2 @@\n-d = old(4)\n+d = new(4)\n+e = new(5)\n"),
        ("b.py", "@@ -7,1 +7,1 @@\n-f = old(6)\n+f = new(6)\n"),
        file_now="\na = new(1)\nb = old(2)\n",
        cursor={"line": 1, "character": 10},
    )
    (found,) = cases(written(tmp_path, row))
    assert made(found.history) == (
        Edit("elsewhere in a.py", 3, "import first\n", "import one\nimport two\nimport three\n"),
        Edit("elsewhere in a.py", 8, "c = old(3)\n", "c = new(3)\n"),
        Edit("a.py", 0, "a = old(1)\n", "\na = new(1)\n"),
        Edit("elsewhere in a.py", 44, "x = old(7)\n", "x = new(7)\n"),
        Edit("elsewhere in a.py", 59, "y = old(8)\n", "y = new(8)\n"),
        Edit("elsewhere in a.py", 58, "", "\n"),
        Edit("b.py", 3, "d = old(4)\n", "d = new(4)\ne = new(5)\n"),
        Edit("b.py", 6, "f = old(6)\n", "f = new(6)\n"),
    )


def test_window_of_history_knows_edits_beside_it():
    edits = (
        Edit("a.py", 3, "import first\n", "import one\nimport two\nimport three\n"),
        Edit("a.py", 8, "c = old(3)\n", "c = new(3)\n"),
        Edit("a.py", 42, "a = old(1)\n", "\na = new(1)\n"),
        Edit("a.py", 90, "y = old(8)\n", ""),
    )
    row = EditRow("r", "c", "MIT", "a.py", "python", "none", "\na = new(1)\nb\x0c = 2\n", 42, 1, edits, ())
    assert made(of_row(row).history) == (
        Edit("elsewhere in a.py", 3, "import first\n", "import one\nimport two\nimport three\n"),
        Edit("elsewhere in a.py", 8, "c = old(3)\n", "c = new(3)\n"),
        Edit("a.py", 0, "a = old(1)\n", "\na = new(1)\n"),
        Edit("elsewhere in a.py", 89, "y = old(8)\n", ""),
    )


def drawn_case() -> Case:
    history, before = History(), "a = old_name(1)\n\n\nb = old_name(2)\nc = old_name(3)\n\n\nd = old_name(4)\n"
    once = before.replace("old", "new", 1)
    now = once.replace("d = old", "d = new")
    history.record("a.py", before, difference(before, once), 0.0)
    history.record("a.py", once, difference(once, now), 9.0)
    snapshot = Document("file:///a.py", "a.py", "python", 1, now).snapshot()
    return Case("repeat", snapshot, 12, history, (TextEdit(18, 34, "b = new_name(2)\n"),), ())


def renamed_case() -> Case:
    history, before = History(), "def old_name(x):\n    return x\n\n\nb = old_name(2)\n"
    now = before.replace("old", "new", 1)
    history.record("a.py", before, difference(before, now), 0.0)
    snapshot = Document("file:///a.py", "a.py", "python", 1, now).snapshot()
    return Case("rename", snapshot, 12, history, (TextEdit(32, 48, "b = new_name(2)\n"),), ())


async def test_rules_answer_without_a_model_and_beside_one():
    for engine in (None, Local(FakeEngine())):
        assert (await outcome_of(renamed_case(), engine, 0.25)).shown


@pytest.mark.parametrize(
    ("expected", "stage"),
    [
        (TextEdit(18, 34, "b = new_name(2)\n"), "below the bar"),
        (TextEdit(18, 34, "b = other(2)\n"), "candidate with another text"),
        (TextEdit(16, 17, "import os\n"), "no candidate"),
    ],
)
async def test_row_says_where_its_edit_was_lost(expected, stage):
    case = msgspec.structs.replace(drawn_case(), expected=(expected,))
    assert (await outcome_of(case, None, 0.99)).lost == stage


def test_model_cost_is_counted_where_nothing_is_shown():
    silent = [replace(outcome("none", False), forwards=n, model_ms=10.0 * n) for n in (1, 3)]
    shown = replace(outcome("repeat", True), forwards=90, model_ms=900.0)
    assert cost_of([*silent]) == {"silent_forwards": 2.0, "silent_model_ms": 20.0}
    assert score([*silent, shown])["silent_forwards"] == 2.0


def range_of(first: int, stop: int) -> dict:
    return {"start": {"line": first, "character": 0}, "end": {"line": stop, "character": 0}}


def test_row_of_corpus_becomes_its_window_with_edits_made_again(tmp_path):
    edits = (Edit("a.py", 40, "a = old(1)\n", "a = new(1)\n"), Edit("b.py", 3, "old\n", "new\n"))
    window = "a = new(1)\nb = old(2)\nc = old(3)\n"
    expected = (Replacement(1, 2, "b = new(2)\n"), Replacement(2, 3, "c = new(3)\n"))
    row = EditRow("o/r", "0" * 40, "MIT", "a.py", "python", "repeat", window, 40, 0, edits, expected)
    path = tmp_path / "edits.jsonl.xz"
    write_edits(path, [row])
    (found,) = cases(path)
    assert made(found.history) == (
        Edit("a.py", 0, "a = old(1)\n", "a = new(1)\n"),
        Edit("b.py", 3, "old\n", "new\n"),
    )
    assert (found.expected, found.also_ok) == ((SECOND,), (THIRD,))


def test_ranking_reads_what_is_due_as_fit_writes_it():
    candidate = LabelledEdit(0, "repeat", "clone", {"likeness": 0.5}, True)
    due = {"bias": -0.3, "ranked": 0.7, "likeness": 1.1}
    (fitted,) = due_chances(due, [candidate], np.array([0.6]))
    assert Ranking({}, {}, 0.5, due).is_due(candidate.features, 0.6) == pytest.approx(fitted)
    assert Ranking({}, {}, 0.5).is_due(candidate.features, 0.6) == 1.0
