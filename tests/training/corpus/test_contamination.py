"""Three lines in common with an evaluation row are enough, and three lines that mean nothing are not."""

import gzip
import json

import pytest

from mercury_training.corpus.contamination import EvaluationRuns, code_runs
from mercury_training.errors import TrainingError

ANSWER = "def spread(values):\n    low, high = min(values), max(values)\n    return (high - low) / len(values)\n"


def evaluation(tmp_path, row: dict) -> EvaluationRuns:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n")
    return EvaluationRuns([path])


def test_copied_run_is_found_however_it_is_indented(tmp_path):
    rows = evaluation(tmp_path, {"prefix": "import os\n\n", "middle": ANSWER, "suffix": ""})
    assert not rows.touches("class A:\n    pass\n")
    assert rows.touched == set()
    assert rows.touches("class A:\n" + "".join(f"    {line}\n" for line in ANSWER.splitlines()))
    assert rows.touched == {0}
    assert rows.rows == 1


def test_blank_lines_and_comments_between_do_not_hide_a_run(tmp_path):
    rows = evaluation(tmp_path, {"prefix": ANSWER, "middle": "", "suffix": ""})
    assert rows.touches(ANSWER.replace("\n", "\n\n    # why\n"))


def test_imports_comments_and_brackets_are_no_runs():
    trivial = "import os\nimport sys\nfrom typing import Any\n# a\n# b\n# c\n)\n]\n}\n" * 9
    assert list(code_runs(trivial)) == []
    assert len(set(code_runs(ANSWER))) == 1
    assert list(code_runs("a = 1\nb = 2\nc = 3\n")) == []


def test_next_edit_rows_and_packed_problem_files_are_read_too(tmp_path):
    edit = {"file_before": "x = 1\n", "file_now": ANSWER, "expected": [{"newText": "y = 2\n"}]}
    assert evaluation(tmp_path, edit).touches(ANSWER)
    packed = tmp_path / "problems.jsonl.gz"
    head, _, rest = ANSWER.partition("\n")
    with gzip.open(packed, "wt") as lines:
        lines.write(json.dumps({"prompt": head + "\n", "canonical_solution": rest}) + "\n")
        lines.write(json.dumps({"prompt": head + "\n", "canonical_solution": "", "suffix": rest}) + "\n")
    rows = EvaluationRuns([packed])
    assert rows.touches(ANSWER)
    assert rows.touched == {0, 1}


def test_documents_opened_in_a_session_count_and_its_keystrokes_do_not(tmp_path):
    session = tmp_path / "session.jsonl"
    events = [{"ev": "header"}, {"ev": "open", "text": ANSWER}, {"ev": "change", "c": []}]
    session.write_text("".join(json.dumps(event) + "\n" for event in events))
    rows = EvaluationRuns([session])
    assert rows.touches(ANSWER)
    assert rows.rows == 1


def test_file_without_evaluation_rows_is_refused(tmp_path):
    with pytest.raises(TrainingError, match=r"rows\.jsonl: a row with \['question'\]"):
        evaluation(tmp_path, {"question": "?"})
