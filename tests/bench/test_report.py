from bench import plot, report
from bench.numbers import table
from bench.report import Run, draw, measured, page

QUALITY = {
    "n": 4,
    "shown": [0.5, 0.2, 0.8],
    "right_when_shown": [1.0, 0.3, 1.0],
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


def test_the_table_has_what_was_measured_with_its_command():
    found = table(FOUND)
    shown = "shown under the default bar; right when shown | 50% [20% 80%]; 100% [30% 100%]"
    assert f"| sets/fim, 4 rows, fake: {shown}" in found
    what = "ar on 4 rows of sets/fim, exact 50% [20% 80%]: time and passes ÷ ours"
    assert f"| {what} | 2.00 [1.50 2.50]; 4.0 | `python -m bench.quality` |" in found
    assert "initialize" not in found


def test_the_page_says_what_failed_and_escapes_what_it_shows():
    found = page(FOUND, ["calibration"])
    assert "load: no room" in found
    assert "fake &lt;1&gt;" in found
    assert '<img src="calibration.svg"' in found


def test_plots_are_drawn_of_what_is_there_and_old_ones_go(tmp_path):
    (tmp_path / "memory.svg").write_text("of an earlier report")
    draw(FOUND, tmp_path)
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {"latency-peers.svg", "quality-passes.svg", "calibration.svg", "numbers.md", "index.html"}


def measure(code: str) -> dict:
    return measured(Run("one", ("-c", code)))


def test_the_last_line_of_a_measurement_is_what_it_found():
    found = measure("print('a table'); print('{\"ms\": 3}')")
    assert found["ms"] == 3
    assert found["command"].startswith("python -c")


def test_a_measurement_that_fails_is_said_to_have_failed():
    assert "boom" in measure("raise SystemExit('boom')")["error"]
    assert "no JSON" in measure("print('done')")["error"]
    assert "no JSON" in measure("pass")["error"]


def test_a_measurement_that_hangs_is_given_up(monkeypatch):
    monkeypatch.setattr(report, "PATIENCE_SECONDS", 0.05)
    assert "not done" in measure("import time; time.sleep(60)")["error"]


def marks(drawn: str) -> int:
    return drawn.count("<circle")


def test_a_line_of_few_points_is_marked_and_one_of_many_is_not():
    assert marks(plot.draw("t", "x", "y", {"few": [(0, 0), (1, 1)]})) == 2
    assert marks(plot.draw("t", "x", "y", {"many": [(n, n) for n in range(1, 40)]})) == 0


def test_decades_stand_equally_far_apart():
    axis = plot.decades([1.0, 100.0])
    assert [axis.place(value) for value in (1, 10, 100)] == [0.0, 0.5, 1.0]
    assert axis.ticks == [1, 10, 100]
    assert plot.decades([0.0, 5.0]).place(0.0) == 0.0
    assert plot.decades([1.0]).ticks == [0.1, 1]


def test_an_axis_begins_at_zero_and_ends_at_a_round_number():
    assert plot.from_zero([0.3, 0.97]).ticks[-1] == 1.0
    assert plot.from_zero([1.0]).ticks == [0.0, 0.25, 0.5, 0.75, 1.0]
