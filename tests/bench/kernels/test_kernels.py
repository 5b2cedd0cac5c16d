"""The benchmark of the kernels, as far as it goes without a GPU: cases that are right, lines that say what is not."""

import json
import math

import numpy as np
import pytest
import torch

pytest.importorskip("triton")

from bench.kernels import command
from bench.kernels.cases import cases
from bench.kernels.clock import H200, sets_beyond_cache
from bench.kernels.command import error_of, roofline, table
from bench.kernels.passes import cost, pass_bytes, random_network
from mercury_engine.model.config import TINY
from mercury_engine.model.gpu.runtime import GpuRuntime
from mercury_engine.model.gpu.step import Ways
from mercury_kernels.compiled import Shape

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SMALL = Shape(32, 2, 1, 16, 40, 100)
RIGHT = {
    "name": "k",
    "error": 1e-3,
    "floor_us": 2.0,
    "bytes": 8,
    "operations": 80,
    "us": {"ours": 4.0, "torch eager": 8.0},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_case_computes_what_it_should():
    found = list(cases(SMALL, 3, 70, DEVICE, lambda size: 2, torch.float32))
    assert len(found) == 6
    for case in found:
        assert list(case.ways)[:2] == ["ours", "torch eager"]
        if case.exact is not None:
            assert error_of(case) < 1e-4, case.name
        eager = case.ways["torch eager"](1)
        assert np.isfinite(eager.float().cpu().numpy()).all(), case.name
        assert H200.floor_us(case.bytes, case.operations) > 0


def test_the_lines_of_a_kernel():
    assert table(RIGHT) == [
        "k: floor 2.00 µs, error 1.0e-03",
        "    ours                       4.00 µs    50% of the limit    2.00 x",
        "    torch eager                8.00 µs    25% of the limit    1.00 x",
    ]


@pytest.mark.parametrize("error", [0.5, math.inf])
def test_what_is_wrong_has_no_speed_up(error):
    assert "x" not in table(RIGHT | {"error": error})[-1]
    assert "WRONG" in table(RIGHT | {"error": error})[-1]


def test_what_does_not_run_is_said():
    assert table(RIGHT | {"us": {"ours": 4.0, "flex, no mask": None}})[-1].split() == [
        "flex,",
        "no",
        "mask",
        "not",
        "here",
    ]


def test_the_roof_is_bandwidth_then_arithmetic():
    lines = roofline([RIGHT], H200)
    assert [round(10**y, 1) for _, y in lines["roof"]] == [4.3, 790.0, 790.0]
    assert lines["k"] == [(10.0, math.log10(80 / 4.0 / 1e6))]


def test_no_cache_holds_all_sets():
    assert [sets_beyond_cache(size) for size in (1 << 20, 100 << 20, 1 << 30)] == [128, 3, 1]


def test_a_million_tokens_cost_an_hour_over_its_tokens():
    assert cost(1e6, 3.6) == pytest.approx(0.001)


def test_without_a_gpu_only_floors_are_said(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("mercury_kernels.compiled.launches", lambda shape, rows: [])
    with pytest.raises(SystemExit) as ended:
        command.main(["--quick"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert "no kernel was run" in said
    last = json.loads(said.splitlines()[-1])
    assert last["gpu"] is None
    assert 15 < last["floors_us"]["quicksilver, a pass of 40 rows"] < 25


def test_whole_passes_are_driven_as_an_engine_drives_them():
    network = random_network(TINY, DEVICE, torch.float32)
    runtime = GpuRuntime(network, device=DEVICE, ways=Ways("torch", "torch"), batch=2)
    assert pass_bytes(network, 10) > 4 * TINY.vocabulary * TINY.width
    assert runtime.prepare(33, 10)().shape == (0, TINY.width)
