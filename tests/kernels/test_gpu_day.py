"""The commands for a day with a GPU, rehearsed without one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from house import ROOT
from tests.scripts import check_script

SCRIPTS = ROOT / "kernels/gpu"


def call(script, **environment):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    known = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = ["sh", SCRIPTS / f"{script}.sh"]
    return subprocess.run(
        command, env=known | {"PATH": path} | environment, capture_output=True, text=True, timeout=600
    )


@pytest.mark.slow
@pytest.mark.parametrize("code", [0, 1])
def test_gpu_day_brings_everything_home_even_if_part_fails(tmp_path, code):
    """The benchmark is stood in for: its own tests run what it does."""
    fake, out = tmp_path / "python", tmp_path / "out"
    fake.write_text(f'#!/bin/sh\n[ "$1" = -c ] || {{ echo "$@"; echo "{{}}"; exit {code}; }}\n')
    fake.chmod(0o755)
    done = call("day", OUT=str(out), PYTHON=str(fake), BENCH_OPTIONS="--quick", CUDA_VISIBLE_DEVICES="")
    assert sorted(path.name for path in out.iterdir()) == ["bench.txt", "figures.json", "tests.txt"]
    assert done.returncode == code
    assert "finds no GPU" in (out / "tests.txt").read_text()
    assert f"-m bench.kernels --plot {out} --quick" in (out / "bench.txt").read_text()
    assert (out / "figures.json").read_text() == "{}\n"


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.sh")), ids=lambda path: path.name)
def test_commands_fit_and_say_how_they_are_called(script):
    check_script(script, "kernels/gpu")
