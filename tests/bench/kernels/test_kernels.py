"""The benchmark of the kernels, as far as it goes without a GPU: cases that are right, lines that say what is not."""

import json
import math

import pytest
import torch
from msgspec.structs import replace

pytest.importorskip("triton")

from bench.kernels import command, passes
from bench.kernels.cases import Case, cases
from bench.kernels.clock import H200, sets_beyond_cache
from bench.kernels.command import TOLERANCE, error_of, roofline, table
from bench.kernels.passes import cost, difference, random_network
from mercury_engine.model.config import TINY
from mercury_engine.model.gpu.runtime import GpuRuntime
from mercury_engine.model.gpu.step import PRODUCTS, Backends
from mercury_kernels.compiled import SHAPES, KernelShape
from mercury_kernels.head import RANKS

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MODEL = replace(TINY, layers=1, vocabulary=320)
SMALL = KernelShape(32, 2, 1, 16, 40, 100)
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
def test_kernel_cases_compute_what_they_should():
    found = list(cases(SMALL, 3, 70, DEVICE, lambda size: 2, torch.float32))
    assert len(found) == 7
    for case in found:
        assert list(case.ways)[:2] == ["ours", "torch eager"]
        assert error_of(case) < 1e-4, case.name
        assert error_of(case._replace(ways={"ours": case.ways["torch eager"]})) < 1e-4, case.name
        assert H200.floor_us(case.bytes, case.operations) > 0


@pytest.mark.skipif(DEVICE == "cpu", reason="the interpreter computes wrongly in bfloat16")
@pytest.mark.parametrize("rows", [1, 8, 40, 72, 264])
@pytest.mark.parametrize("name", [*passes.MODELS])
def test_kernels_are_right_at_the_sizes_of_real_models(name, rows):
    if name == "dream-7b" and torch.cuda.get_device_properties(0).total_memory < 16 << 30:
        pytest.skip("its vocabulary in double precision takes 4 GB")
    for case in cases(SHAPES[name], rows, 1024, DEVICE, lambda size: 1):
        assert error_of(case) <= TOLERANCE, case.name


def test_kernel_that_does_not_run_is_wrong():
    def fails(number):
        raise RuntimeError("out of resources")

    case = Case("k", 1, 1, {"ours": fails}, lambda: torch.ones(1))
    assert error_of(case) == math.inf


def test_compiled_shapes_are_those_of_models():
    for name, config in passes.MODELS.items():
        heads = config.heads, config.kv_heads, config.head_width
        expected = config.width, *heads, config.feed_forward, config.vocabulary
        assert SHAPES[name][:-1] == (*expected, config.qk_norm, config.qkv_bias)


def test_table_lists_kernel_with_time_limit_and_speed_up():
    assert table(RIGHT) == [
        "k: floor 2.00 µs, error 1.0e-03",
        "    ours                       4.00 µs    50% of the limit    2.00 x",
        "    torch eager                8.00 µs    25% of the limit    1.00 x",
    ]


@pytest.mark.parametrize("error", [0.5, math.inf])
def test_wrong_kernel_has_no_speed_up(error):
    assert "x" not in table(RIGHT | {"error": error})[-1]
    assert "WRONG" in table(RIGHT | {"error": error})[-1]


def test_kernel_that_does_not_run_is_reported():
    assert table(RIGHT | {"us": {"ours": 4.0, "flex, no mask": None}})[-1].split() == [
        "flex,",
        "no",
        "mask",
        "not",
        "here",
    ]


def test_roofline_is_bandwidth_then_arithmetic():
    lines = roofline([RIGHT], H200)
    assert [round(10**y, 1) for _, y in lines["roof"]] == [4.3, 790.0, 790.0]
    assert lines["k"] == [(10.0, math.log10(80 / 4.0 / 1e6))]


def test_sets_together_exceed_any_cache():
    assert [sets_beyond_cache(size) for size in (1 << 20, 100 << 20, 1 << 30)] == [128, 3, 1]


def test_million_tokens_cost_hour_over_its_tokens():
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
    assert 180 < last["floors_us"]["quicksilver, a pass of 40 rows"] < 200


def runtime_of(network, **options):
    return GpuRuntime(network, **{"device": DEVICE, "backends": Backends("torch", "torch"), "batch": 2} | options)


def test_passes_are_compared_with_those_of_torch(monkeypatch):
    monkeypatch.setattr(passes, "CANVAS", 4)
    network = random_network(MODEL, DEVICE, torch.float32)
    assert difference(runtime_of(network), 10) == 0
    monkeypatch.setitem(PRODUCTS, "triton", PRODUCTS["torch"]._replace(add_product=lambda *given: None))
    assert difference(runtime_of(network, backends=Backends("triton", "torch")), 10) > passes.TOLERANCE


@pytest.fixture
def measured(monkeypatch, capsys):
    """The whole command as on a GPU, with a tiny model, torch as the backend and clocks that stand still."""

    def measure(wrong=0.0):
        given = {
            "GpuRuntime": runtime_of,
            "CANVAS": 4,
            "MODELS": {"quicksilver": MODEL},
            "random_network": lambda config, device, int8=False: random_network(config, DEVICE, torch.float32),
            "median_ms": lambda once, rounds=0: once() or 1.0,
            "replayed_us": lambda start: float(start().shape[1]),
            "difference": lambda runtime, columns: wrong,
            "served": lambda folder, sessions: {"tokens_a_second": 1.0, "sessions": 1, "seconds": 1},
        }
        for name, value in given.items():
            monkeypatch.setattr(passes, name, value)
        monkeypatch.setattr("mercury_engine.model.gpu.runtime.GpuRuntime", runtime_of)
        monkeypatch.setattr("bench.kernels.clock.measured_limits", lambda: H200)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(command, "measured", lambda name, limits, quick: [RIGHT])
        monkeypatch.setattr(
            "mercury_kernels.head.choose", lambda head, stream, wanted, *given: torch.zeros(2, RANKS, len(wanted))
        )
        monkeypatch.setattr(command, "CONTEXT", 10)
        monkeypatch.setattr(command, "SESSIONS", 3)
        monkeypatch.setattr(command, "PASSES", (1, 4))
        with pytest.raises(SystemExit) as ended:
            command.main(["--quick"])
        said = capsys.readouterr().out
        return ended.value.code, said, json.loads(said.splitlines()[-1])

    return measure


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_whole_passes_are_driven_as_an_engine_drives_them(measured):
    code, said, figures = measured()
    (found,) = figures["passes"]
    assert code == 0, said
    assert list(found["pass_us"].values()) == list(found["int8_pass_us"].values()) == [MODEL.width] * 2
    assert min(found["answer_9_ms"], found["tokens_a_second"], found["dollars_a_million"]) > 0
    assert [each["name"] for each in figures["kernels"]] == ["k"]


def test_passes_that_are_wrong_have_no_times(measured):
    code, said, figures = measured(wrong=math.nan)
    assert code == "wrong: quicksilver"
    assert "WRONG: no times" in said
    assert "pass_us" not in figures["passes"][0]


def test_measurements_are_reported_even_if_time_is_up(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(command, "floors", interrupted)
    with pytest.raises(KeyboardInterrupt):
        command.main(["--quick"])
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["rows"] == command.ROWS
