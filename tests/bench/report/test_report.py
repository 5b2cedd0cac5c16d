import argparse
import json
from pathlib import Path

import pytest

from bench.report import command, numbers, plots
from bench.report.command import Measurement, measured, runs
from bench.report.numbers import BEGIN, END, FIGURES, PAGE, parts, section, table, write
from bench.report.plots import draw, drawn
from mercury_training import plot

QUALITY = {
    "n": 4,
    "shown": [0.5, 0.2, 0.8],
    "right_when_shown": [1.0, 0.3, 1.0],
    "begins_when_shown": [0.9, 0.25, 1.0],
    "exact": [0.5, 0.2, 0.8],
    "pass_at_1": None,
    "ece": 0.1,
    "passes": 2.0,
    "characters_per_pass": 9.5,
    "by_kind": {"single_line": {"exact": [0.5, 0.2, 0.8]}},
    "reliability": [
        {"count": 2, "confidence": 0.2, "accuracy": 0.0},
        {"count": 2, "confidence": 0.8, "accuracy": 1.0},
    ],
    "milliseconds": {"p0": 5.0, "p50": 8.0, "p100": 20.0},
    "similarity_after_passes": [0.2, 0.6],
}
PEER = QUALITY | {"times_our_time": [2.0, 1.5, 2.5], "times_our_passes": 4.0}
FOUND = {
    "quality": {
        "command": "python -m bench.quality",
        "engine": "fake",
        "model": "fake <1>",
        "machine": "x",
        "fim": {"sets/fim": {"fake": QUALITY}},
        "next_edit": {},
    },
    "peers": {"command": "python -m bench.quality --peers ar", "fim": {"sets/fim": {"fake": QUALITY, "ar": PEER}}},
    "load": {"command": "python -m bench.load", "error": "no room"},
}


def test_table_has_what_was_measured_with_its_command():
    found = table(FOUND)
    shown = "shown by default; of those exact, beginning right"
    shares = "50% [20% 80%]; 100% [30% 100%]; 90% [25% 100%]"
    assert f"| sets/fim, 4 rows, fake: {shown} | {shares}" in found
    what = "the same engine, token by token, on 4 rows of sets/fim, exact 50% [20% 80%]: time, passes relative to ours"
    assert f"| {what} | 2.00 [1.50 2.50]; 4.0 | `python -m bench.quality` |" in found
    assert "initialize" not in found


LEVELS = {
    f"{name}_p{p}_ms": 3.0 * p for name in ("inline", "model", "cold", "cached", "next_edit") for p in (50, 90, 99)
}
REPLAY = LEVELS | {
    "command": "python -m bench.replay x.jsonl --speed 2",
    "client": "neovim-0.12",
    "inline_requests": 40,
    "inline_answers": 5,
    "model_answers": 20,
    "type_through_share": 0.255,
    "shown": 9,
    "line_exact_share": 0.1,
    "kept_after_30_s_share": None,
    "characters_saved_share": 0.02,
}


def test_replay_is_reported_quiet_and_with_a_busy_core():
    found = table({"replay": REPLAY, "replay_busy": REPLAY | {"inline_p50_ms": None}})
    asked = "40 requests while typing, as neovim-0.12 sends them"
    latency = "latency of the 5 suggestions shown by the model, p50, p90, p99"
    assert f"| {asked}: {latency} | 150, 270, 297 ms | `python -m bench.replay` |" in found
    assert "| of what is shown, typed through without asking the model: share; latency | 26%; 150.0, " in found
    assert (
        "with one core busy: latency of 5 shown by the model; of all 20 answers | none, 270, 297 ms; 150, 270" in found
    )
    assert "of 9 shown" not in found


def test_crowd_is_reported_beside_one_editor_alone():
    alone = {"p90_ms": 50.0, "p90_ratio": 1.0, "starved": 0, "lost": 0}
    crowds = {"1": alone, "8": {"p90_ms": 120.0, "p90_ratio": 2.4, "starved": 0, "lost": 0}}
    found = table({"load": {"command": "python -m bench.load x.jsonl", "crowds": crowds}})
    assert "| 1, 8 editors at once: latency of the model's answers, p90 | 50, 120 ms |" in found
    assert "| 8 editors: p90 relative to one editor; editors starved; requests lost | 2.4; 0; 0 |" in found


def test_latency_and_verdicts_are_reported_with_their_commands():
    steps = {name: {"p50_ms": 40.0, "p90_ms": 90.0, "shown": 0.5} for name in numbers.VISITED}
    visits = {"command": "python -m bench.latency --files 2", "files": 2, "steps": steps, "engine_mb": [600.0, 500.0]}
    changes = {"command": "python -m bench.judged a", "renamed": {"complete": 3, "wrong": 0, "silent": 1}}
    found = table({"latency": visits, "judged": changes})
    step = "a jump of 100 lines (2 files): first answer, p50, p90; something shown | 40, 90 ms; 50%"
    assert f"| {step} | `python -m bench.latency` |" in found
    verdicts = "4 names changed in this project, judged by basedpyright | 3 complete, 1 silent"
    assert f"| {verdicts} | `python -m bench.judged` |" in found


def test_llama_is_reported_beside_our_own_pace():
    rounds = {"q read, tokens/s": [700.0, 900.0, 800.0], "llama.cpp read, tokens/s": [300.0], "q 8 rows, ms": [30.0]}
    steps = {name: {"p50_ms": 1500.0, "p90_ms": 2100.0} for name in numbers.VISITED}
    found = table(
        {
            "pace": {"command": "python -m bench.pace q", "rounds": rounds},
            "latency_llama": {"command": "python -m bench.latency --model x.gguf", "files": 2, "steps": steps},
        }
    )
    assert "| reading 512 tokens, tokens a second, medians of 3 rounds | ours 800.0; llama.cpp 300.0 |" in found
    assert "back to the file before (2 files), llama.cpp with the base, asked as llama.vim asks" in found
    assert "| 1500, 2100 ms | `python -m bench.latency` |" in found
    assert "a pass of one row" not in found


def test_plots_are_drawn_of_what_is_there_and_old_ones_go(tmp_path):
    (tmp_path / "memory.svg").write_text("of an earlier report")
    draw(FOUND, tmp_path)
    names = {"latency-peers.svg", "quality-passes.svg", "calibration.svg"}
    assert {path.name for path in tmp_path.iterdir()} == drawn(FOUND).keys() == names


def test_suggestions_while_typing_are_drawn_level_by_level():
    found = {"replay": {"levels": {"inline": [1.0, 2.0, 9.0], "cold": []}}}
    assert plots.typing(found) == {"suggestion": [(1.0, 0.0), (2.0, 0.5), (9.0, 1.0)]}


def test_memory_is_drawn_for_sessions_of_the_largest_crowd_and_for_rows():
    line = [[0.0, 100.0], [1.0, 110.0]]
    found = {
        "replay": {"engine_memory_mb": line},
        "load": {"crowds": {"1": {"engine_memory_mb": line}, "8": {"engine_memory_mb": line}}},
        "quality": {"memory_mb": []},
    }
    assert list(plots.memory(found)) == ["engine, sessions replayed", "engine, 8 editors"]


def test_numbers_go_between_their_marks_and_nothing_else_is_touched(tmp_path):
    page = tmp_path / "README.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write(page, FOUND)
    assert parts(page.read_text()) == (f"before\n{BEGIN}\n", section(FOUND), f"{END}\nafter\n")
    assert "old" not in page.read_text()


def test_page_without_place_for_numbers_is_refused(tmp_path):
    page = tmp_path / "README.md"
    page.write_text("nothing")
    with pytest.raises(ValueError, match="have no place"):
        write(page, FOUND)


def test_page_says_what_was_measured():
    assert parts(PAGE.read_text(encoding="utf-8"))[1] == section(json.loads(FIGURES.read_bytes()))


@pytest.mark.parametrize("quick", [True, False])
def test_measurements_belong_to_the_table_and_read_committed_files(quick):
    sets = {"fim": [Path("bench/sets/fim.jsonl")], "next_edit": [Path("bench/sets/next_edit.jsonl")]}
    beside = {"llama": Path("llama/bin"), "base": "base.gguf", "peers": "base"}
    planned = list(runs(argparse.Namespace(quick=quick, engine="fake", out=Path("out"), **sets, **beside)))
    assert [run.name for run in planned] == [
        *("server", "latency", "latency_llama", "replay", "replay_busy", "load", "judged", "peers", "quality"),
    ]
    assert planned[2].arguments[-4:] == ("--model", "base.gguf", "--llama-server", "llama/bin/llama-server")
    assert "copy,ngram,base" in planned[-2].arguments
    named = [part for run in planned for part in run.arguments if part.endswith(".jsonl")]
    assert all(Path(name).exists() for name in named)


def measure(code: str) -> dict:
    return measured(Measurement("one", ("-c", code)))


def test_last_line_of_measurement_is_its_result():
    found = measure("print('a table'); print('{\"ms\": 3}')")
    assert found["ms"] == 3
    assert found["command"].startswith("python -c")


def test_failed_measurement_is_reported_as_failed():
    assert "boom" in measure("raise SystemExit('boom')")["error"]
    assert "no JSON" in measure("print('done')")["error"]
    assert "no JSON" in measure("pass")["error"]


def test_hanging_measurement_is_given_up(monkeypatch):
    monkeypatch.setattr(command, "PATIENCE_SECONDS", 0.05)
    assert "not done" in measure("import time; time.sleep(60)")["error"]


def marks(drawn: str) -> int:
    return drawn.count("<circle")


def test_line_of_few_points_is_marked_and_one_of_many_is_not():
    assert marks(plot.draw("t", "x", "y", {"few": [(0, 0), (1, 1)]})) == 2
    assert marks(plot.draw("t", "x", "y", {"many": [(n, n) for n in range(1, 40)]})) == 0


def test_decades_stand_equally_far_apart():
    axis = plot.decades([1.0, 100.0])
    assert [axis.place(value) for value in (1, 10, 100)] == [0.0, 0.5, 1.0]
    assert axis.ticks == [1, 10, 100]
    assert plot.decades([0.0, 5.0]).place(0.0) == 0.0
    assert plot.decades([1.0]).ticks == [0.1, 1]


def test_axis_begins_at_zero_and_ends_at_round_number():
    assert plot.from_zero([0.3, 0.97]).ticks[-1] == 1.0
    assert plot.from_zero([1.0]).ticks == [0.0, 0.25, 0.5, 0.75, 1.0]
