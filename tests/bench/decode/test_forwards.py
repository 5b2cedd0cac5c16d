"""What is timed is what the engine does: the same rows, the same logits, moves as long as real ones."""

import json
import sys

import pytest

from bench.decode import command, forwards, growth
from bench.decode.forwards import rows
from bench.decode.keystroke import around_the_middle, moved_tokens
from mercury_engine.decode.canvas import Canvas, fuse, masked
from mercury_engine.tokens.prefix import HintedPrefix
from tests.engine.tiny import TOKENIZER, random_runtime

KEYS = (
    *("speedup_k1_s32", "speedup_k2_s32", "speedup_k4_s32", "keystroke_p50_ms", "engine_rss_mb", "cold_start_s"),
    *("machine", "threads", "shape", "precision", "keystroke_one_core_busy_ms", "line_move_adds_ms"),
    *("line_move_tokens", "growth"),
)


@pytest.mark.parametrize(("new", "canvas"), [(1, 16), (5, 16), (3, 8)])
def test_rows_of_pass_are_those_of_engine(new, canvas):
    timed = rows(random_runtime(), 10, new, canvas)
    real = fuse(
        10, HintedPrefix.without_hints(range(10 + new), range(10 + new)), new - 1, [Canvas(new - 1, masked(canvas))]
    ).rows
    assert list(timed.wanted) == real.wanted
    assert timed.positions_R.tolist() == real.positions_R.tolist()
    assert timed.drafting_R.tolist() == real.drafting_R.tolist()
    assert timed.mask_RC.tolist() == real.mask_RC.tolist()


def test_canvas_is_read_alone_without_its_last_slot():
    assert list(rows(random_runtime(), 10, 0, 4).wanted) == [0, 1, 2]


def test_cursor_moves_from_the_middle_line_up_and_down():
    row = {"path": "a.py", "language": "python", "prefix": "a\n\n", "middle": "bb\n", "suffix": "ccc\nd\n"}
    before = [asked.windows[0].text[: asked.spans[0].start] for asked in around_the_middle(row)]
    assert before == ["a\n\nbb", "a\n", "a\n\nbb\nccc"]


def test_move_by_line_encodes_some_tokens_and_not_the_file(capsys):
    found = moved_tokens(TOKENIZER, 2048)
    assert 0 < found["up"] < found["down"] < 300
    assert "tokens encoded by moving a line: up" in capsys.readouterr().out


@pytest.mark.slow
def test_last_line_has_every_figure(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(forwards, "ANSWERS", (32,))
    monkeypatch.setattr(growth, "GROWTH_CONTEXTS", (256, 512))
    monkeypatch.setattr(forwards, "opened_peers", lambda runtime, directory: {})
    monkeypatch.setattr(sys, "argv", ["decode", "--preset", "bootstrap", "--rounds", "1", "--plot", str(tmp_path)])
    command.main()
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [key for key in KEYS if key not in last] == []
    assert (tmp_path / "decode-growth.svg").exists()
