import json

from bench.edit_candidates import picked, undamaged
from tests.training.small import edit_row


def test_classes_are_picked_one_by_one():
    rows = [edit_row(0, kind=kind) for _ in range(10) for kind in ("repeat", "none", "rename")]
    found = [each.kind for each in picked(rows, 5, {"repeat": 0.4, "rename": 2.0})]
    assert {kind: found.count(kind) for kind in found} == {"repeat": 5, "none": 2, "rename": 1}


def test_damaged_row_is_named_and_left_out(capsys):
    whole = {
        "id": "whole",
        "class": "none",
        "path": "a.py",
        "language": "python",
        "file_before": "x = 1\n",
        "file_now": "x = 1\n",
        "cursor": {"line": 0, "character": 0},
        "edits": [],
        "expected": [],
        "also_ok": [],
    }
    damaged = {**whole, "id": "damaged", "file_now": "y = 2\n"}
    found = list(undamaged(map(json.dumps, (whole, damaged))))
    assert [case.snapshot.text for case in found] == ["x = 1\n"]
    assert "left out: damaged" in capsys.readouterr().err
