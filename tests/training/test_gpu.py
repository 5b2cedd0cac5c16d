"""The sequence of commands for a rented GPU, rehearsed on this machine with the smallest preset."""

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from mercury_engine.model.export import export
from mercury_training.train import command
from tests.scripts import check_script
from tests.training.small import write_corpus

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "training/gpu"


def call(script, *arguments, place, **environment):
    """One command on the machine: what it prints, and what it sends home."""
    out = place / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    known = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1", "OUT": str(out)}
    known |= {"PLACE": str(place / "there"), "TRIP": str(place / "trip"), "PRESET": "tiny", "PAUSE": "0.1"}
    done = subprocess.run(
        ["sh", SCRIPTS / f"{script}.sh", *map(str, arguments)],
        env=os.environ | known | environment,
        capture_output=True,
        text=True,
        timeout=600,
        cwd=place,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout, sorted(path.name for path in out.iterdir())


@pytest.mark.slow
def test_commands_for_gpu_bring_model_home(tmp_path):
    corpus = write_corpus(tmp_path / "corpus")
    (corpus / "manifest.json").write_text("{}")
    call("pack", corpus, place=tmp_path, MEBIBYTES="40")
    left = tmp_path / "there/smoke/checkpoints"
    left.mkdir(parents=True)
    (tmp_path / "there/ended").write_text("1\n")
    small = ["--device", "cpu", "--update", "1024", "--micro", "512"]
    call("begin", *small, place=tmp_path, MINUTES="0.05", FIRST_POLLS="0")
    said, files = call("wait", place=tmp_path, POLLS="3000")
    assert "ended" in said
    assert files == ["curve.svg", "log.jsonl", "run.log"]
    pieces = tmp_path / "pieces"
    pieces.mkdir()
    for number in itertools.count():
        said, files = call("send", number, place=tmp_path, PIECE="512K")
        assert len(files) <= 5
        for name in files:
            shutil.copy(tmp_path / "out" / name, pieces)
        if "no more" in said:
            break
        assert f"send {number + 1}" in said
    assert number == 2
    call("join", pieces, tmp_path / "home", place=tmp_path)
    model, start = tmp_path / "home/1-model", tmp_path / "home/2-start"
    assert {weight.dtype for weight in load_file(model / "model.safetensors").values()} == {torch.bfloat16}
    assert export(model, tmp_path / "int8").files
    call_on = ["--data", corpus, "--preset", "tiny", "--steps", "1", "--stage", "stable", "--start", start]
    command.main([*map(str, call_on), "--out", str(tmp_path / "longer"), *small])
    assert load_file(tmp_path / "longer/model/model.safetensors")


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.sh")), ids=lambda path: path.name)
def test_commands_fit_and_say_how_they_are_called(script):
    check_script(script, "training/gpu")
