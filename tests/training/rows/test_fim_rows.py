"""Rows are read from where they lie, asked without the answer, and checked by running them."""

import gzip
import json

import msgspec
import pytest

from mercury_training.errors import TrainingError
from mercury_training.rows.fim_rows import HUMANEVAL, gap, read_humaneval, read_rows
from tests.repositories import committed, git
from tests.training.small import fim_row

ROW = fim_row()
PROBLEM = {
    "task_id": "SingleLineInfilling/HumanEval/0/L0",
    "entry_point": "double",
    "prompt": "def double(x):\n",
    "suffix": "    return y\n",
    "canonical_solution": "    y = 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(3) == 6\n",
}


def test_rows_are_read(tmp_path):
    path = tmp_path / "fim.jsonl"
    path.write_bytes(msgspec.json.encode(ROW) + b"\n")
    assert read_rows(path) == [ROW]


def test_bad_row_is_named(tmp_path):
    path = tmp_path / "fim.jsonl"
    path.write_bytes(msgspec.json.encode(ROW) + b'\n{"id": "2"}\n')
    with pytest.raises(TrainingError, match=r"fim\.jsonl:2: .*format"):
        read_rows(path)


@pytest.mark.parametrize(("kind", "block"), [("single_line", False), ("multi_line", True), ("random_span", True)])
def test_gap_is_where_the_middle_was(kind, block):
    asked = gap(msgspec.structs.replace(ROW, kind=kind), "session", "low")
    assert (asked.before, asked.after, asked.block) == (ROW.prefix, ROW.suffix, block)


def written(folder):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / HUMANEVAL["single-line"][0]
    path.write_bytes(gzip.compress(json.dumps(PROBLEM).encode() + b"\n"))
    return path


def test_humaneval_is_read_from_its_file_its_folder_or_a_clone(tmp_path):
    path = written(tmp_path / "clone" / "data")
    (row,) = read_humaneval(path, "single-line")
    assert read_humaneval(path.parent, "single-line") == read_humaneval(path.parent.parent, "single-line") == [row]
    committed(tmp_path / "clone", {})
    git(tmp_path, "clone", "-q", "--bare", "clone", "bare")
    assert read_humaneval(tmp_path / "bare", "single-line") == [row]
    with pytest.raises(TrainingError, match="clone of openai/human-eval-infilling"):
        read_humaneval(tmp_path, "single-line")


def test_whole_line_is_asked_for_on_empty_line(tmp_path):
    (row,) = read_humaneval(written(tmp_path), "single-line")
    assert row.middle == "    y = 2 * x"
    assert row.suffix == "\n    return y\n"
    assert row.prefix + row.middle + row.suffix == PROBLEM["prompt"] + PROBLEM["canonical_solution"] + PROBLEM["suffix"]
