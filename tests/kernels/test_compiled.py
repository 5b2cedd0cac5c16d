"""Kernels compiled for real GPUs without one, in a process of its own: the interpreter compiles nothing."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("triton")

from house import ROOT
from mercury_kernels.compiled import CAPABILITIES, Compiled

ATTENTIONS = ["attend_kernel", "attend_kernel"]
"""With all columns in one program, and split; a layer has one of them."""

LAYER = ["heads_kernel", *ATTENTIONS, "product_kernel", "gated_kernel", "product_kernel"]
HEAD = ["choose_kernel", "summary_kernel", "choose_kernel"]
FINE = Compiled("kernel", "shape", 8, 86, 99 << 10, 128, 0, 128, 0.1)


@pytest.mark.slow
def test_kernels_keep_within_the_limits_of_a_gpu():
    """All GPUs and shapes: `python -m mercury_kernels.compiled`."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = str(ROOT / "kernels")
    command = [sys.executable, "-m", "mercury_kernels.compiled", "--capability", "86"]
    done = subprocess.run(
        [*command, "--shape", "quicksilver", "--rows", "8"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *found, last = done.stdout.splitlines()
    assert [json.loads(line)["kernel"] for line in found] == ["begin_kernel", *LAYER, *HEAD]
    assert last == f"{len(found)} compiled, all within the limits of their GPUs"


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({}, ""),
        ({"shared": (99 << 10) + 1}, "bytes of shared memory"),
        ({"capability": 90, "shared": 200 << 10}, ""),
        ({"registers": 255, "threads": 512}, "255 registers in 512 threads"),
        ({"stack": 96}, "96 bytes of registers spilled"),
        ({"stack": 8}, ""),
    ],
)
def test_complaint_names_the_exceeded_limit(changed, complaint):
    assert FINE._replace(**changed).complaint.endswith(complaint)


def test_gpus_of_six_kinds_are_compiled_for():
    assert sorted(CAPABILITIES) == [80, 86, 89, 90, 100, 120]
