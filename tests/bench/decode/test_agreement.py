"""Agreement is counted row by row and token by token, and a difference is seen."""

import shutil
from pathlib import Path

import pytest

import bench.decode.agreement
from bench.decode.agreement import agreeing_rows, agreement, matching_tokens, prefix_of
from mercury_engine.decode.policy import Report
from mercury_engine.model.export import export
from mercury_engine.model.network import save
from tests.engine.tiny import TOKENIZER, random_runtime

ROWS = [
    {"path": "a.py", "language": "python", "kind": kind, "prefix": "total = price * count\ntotal = ", "suffix": "\n"}
    for kind in ("single_line", "multi_line")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny model as it would ship."""
    source = tmp_path_factory.mktemp("source")
    save(random_runtime().model, source)
    shutil.copy(Path(__file__).parents[2] / "engine" / "golden" / "tokenizer.json", source)
    export(source, source / "int8")
    return source / "int8"


class Saying:
    def __init__(self, decode):
        self.decode = decode
        self.report = Report(accepted={"copy": 3})


def test_runtime_agrees_with_itself_and_not_with_another():
    row = prefix_of(random_runtime(), TOKENIZER, ROWS[0])
    agreed, count = agreeing_rows(random_runtime(), random_runtime(), row)
    assert agreed == count == len(row)
    assert agreeing_rows(random_runtime(), random_runtime(1), row)[0] < count / 2


@pytest.mark.slow
def test_shipped_weights_are_compared_with_their_own_values(folder, capsys):
    found = agreement(folder, ROWS)
    assert found["openvino_as_torch"] > 0.5
    assert found["verified_as_ar"] == 1.0
    assert set(found["accepted"]) >= {"canvas", "copy"}
    assert found["compared_rows"] > found["verified_tokens"] > 0
    assert "rows of code" in capsys.readouterr().out


@pytest.mark.slow
def test_tokens_behind_the_first_difference_do_not_count(folder, monkeypatch):
    saying = {"policy": [70, 71, 99, 73], "ar": [70, 71, 72, 73]}
    monkeypatch.setattr(bench.decode.agreement, "open_engine", lambda folder, decode, **_: Saying(decode))
    monkeypatch.setattr(bench.decode.agreement, "answer_tokens", lambda engine, asked, tokenizer: saying[engine.decode])
    assert matching_tokens(folder, ROWS) == (4, 8, {"copy": 3})
