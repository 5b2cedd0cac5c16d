"""Runs: exact resumption, several processes, stages, and a model that learns ten lines by heart."""

import json
import os
import signal
import subprocess
import sys

import msgspec
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from mercury_engine.api import InfillRequest, Span, Window
from mercury_engine.config import TINY, ModelConfig
from mercury_engine.layout import (
    EOM,
    MASK,
    Block,
    answer_ids,
    budget_for,
    canvas_mask,
    filled_text,
    freeze,
    lay_out,
    slot_positions,
    until_end,
    with_answers,
)
from mercury_engine.model import load
from mercury_training import train
from mercury_training.examples import Example
from mercury_training.optimizer import Rates
from mercury_training.rows import Shape, pack, stack
from mercury_training.schedule import has_canvases, is_decaying, rate_factor
from mercury_training.state import StateError
from mercury_training.train import Recipe, Settings, run
from mercury_training.trainer import Trainer
from tests.training.small import TOKENIZER, write_corpus

SMALLEST = ModelConfig(
    name="smallest",
    width=16,
    layers=1,
    heads=2,
    kv_heads=1,
    head_width=8,
    feed_forward=32,
    vocabulary=TOKENIZER.vocabulary,
    context=512,
    role_scalars=True,
)
RECIPE = Recipe(SMALLEST, Shape(256, 64), Shape(512, 128), 1024)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"))


def settings(corpus, out, **changed):
    return Settings(data=corpus, out=out, recipe=RECIPE, **{"steps": 8, "micro": 256} | changed)


def entries(out):
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def steps(out):
    return [entry for entry in entries(out) if "step" in entry]


def weights(out):
    return load_file(out / "model/model.safetensors")


def newest(out):
    return load_file(sorted((out / "checkpoints").iterdir())[-1] / "weights.safetensors")


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("options", [{}, {"precision": "bfloat16"}, {"negatives": 50}])
def test_a_resumed_run_is_the_uninterrupted_run_to_the_bit(corpus, tmp_path, options, monkeypatch):
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    run(settings(corpus, whole, **options))
    with monkeypatch.context() as patched:
        patched.setattr(train.Session, "progress", ending_at(3))
        run(settings(corpus, halves, **options))
    assert [entry["step"] for entry in steps(halves)] == [1, 2, 3]
    run(settings(corpus, halves, resume=True, **options))
    assert [entry["clean"] for entry in steps(halves)] == [entry["clean"] for entry in steps(whole)]
    assert same(newest(whole), newest(halves))
    assert same(weights(whole), weights(halves))


def ending_at(step):
    progress = train.Session.progress
    return lambda session: 1.0 if session.place.step == step else progress(session)


def test_a_run_reads_first_then_drafts_and_decays(corpus, tmp_path):
    run(settings(corpus, tmp_path, steps=12))
    found = steps(tmp_path)
    assert [entry["canvas"] is None for entry in found] == [True] * 3 + [False] * 9
    assert found[5]["factor"] == 1
    assert found[-1]["factor"] < 0.4
    assert (tmp_path / "pre-decay/weights.safetensors").exists()
    assert found[-1]["clean"] < found[0]["clean"]
    load(tmp_path / "model")
    assert (tmp_path / "model/tokenizer.json").exists()
    assert (tmp_path / "curve.svg").read_text().count("<polyline") == 4


def test_a_stable_run_is_gone_on_with_and_decayed_later(corpus, tmp_path):
    stable, decayed = tmp_path / "stable", tmp_path / "decayed"
    place = run(settings(corpus, stable, stage="stable", steps=4))
    assert steps(stable)[-1]["factor"] == 1
    checkpoint = stable / "checkpoints" / f"{place.step:08d}"
    run(settings(corpus, decayed, stage="decay", steps=4, start=checkpoint))
    found = steps(decayed)
    assert [entry["factor"] for entry in found] == [1, 0.75, 0.5, 0.25]
    assert found[0]["step"] == 5
    assert all(entry["canvas"] for entry in found)


def test_weights_alone_are_enough_to_go_on_from(corpus, tmp_path):
    place = run(settings(corpus, tmp_path / "first", stage="stable", steps=2))
    checkpoint = tmp_path / "first/checkpoints" / f"{place.step:08d}"
    (checkpoint / "optimizer.safetensors").unlink()
    run(settings(corpus, tmp_path / "second", stage="stable", steps=3, start=checkpoint))
    found = steps(tmp_path / "second")
    assert found[-1]["clean"] < steps(tmp_path / "first")[0]["clean"]
    assert all(entry["canvas"] for entry in found)


def test_a_run_is_not_begun_over_another_nor_resumed_from_nothing(corpus, tmp_path):
    run(settings(corpus, tmp_path, steps=1))
    with pytest.raises(StateError, match="--resume"):
        run(settings(corpus, tmp_path, steps=1))
    with pytest.raises(StateError, match="leave out --resume"):
        run(settings(corpus, tmp_path / "new", resume=True))


def test_only_two_checkpoints_are_kept(corpus, tmp_path):
    run(settings(corpus, tmp_path, steps=4, checkpoint_minutes=0, evaluate_minutes=0))
    assert [path.name for path in sorted((tmp_path / "checkpoints").iterdir())] == ["00000003", "00000004"]
    assert all("held_out_clean" in entry for entry in steps(tmp_path))


def test_a_budget_in_minutes_ends_the_schedule_in_time(corpus, tmp_path):
    place = run(settings(corpus, tmp_path, steps=None, minutes=1 / 60))
    assert place.seconds >= 1
    assert [entry["progress"] for entry in steps(tmp_path)] == sorted(e["progress"] for e in steps(tmp_path))
    assert steps(tmp_path)[-1]["seconds"] == pytest.approx(place.seconds, abs=0.01)


def test_a_paused_run_waits_and_a_terminated_one_ends_with_a_checkpoint(corpus, tmp_path, monkeypatch):
    (tmp_path / "PAUSE").touch()
    waits = []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(train.time, "sleep", wait)
    before = signal.getsignal(signal.SIGTERM)
    place = run(settings(corpus, tmp_path))
    assert len(waits) == 3
    assert place.step == 1
    assert (tmp_path / "checkpoints/00000001").exists()
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow
def test_two_processes_take_the_steps_of_one(corpus, tmp_path):
    """The command line under torchrun, with the gloo backend."""
    alone, together = tmp_path / "alone", tmp_path / "together"
    arguments = ["--data", str(corpus), "--preset", "small", "--steps", "6", "--device", "cpu", "--no-compile"]
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "from mercury_training import train; from tests.training import test_train\n"
        "train.RECIPES['small'] = test_train.RECIPE\n"
        "train.main()\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    launch += ["--local-addr", "127.0.0.1", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for command in (
        [sys.executable, script, *arguments, "--micro", "256", "--out", alone],
        [*launch, script, *arguments, "--micro", "256", "--out", together],
    ):
        subprocess.run(list(map(str, command)), check=True, env=environment, capture_output=True, timeout=300)
    one, two = steps(alone), steps(together)
    assert len(one) == len(two) == 6
    assert [e["positions"] for e in one] == [e["positions"] for e in two]
    for name in ("clean", "canvas", "norm"):
        found = [[entry[name] or 0 for entry in side] for side in (one, two)]
        np.testing.assert_allclose(found[0], found[1], rtol=2e-3)


def test_the_schedule():
    assert rate_factor(0.01, "whole") == 0.5
    assert rate_factor(0.5, "whole") == rate_factor(0.9, "stable") == rate_factor(0.0, "decay") == 1
    assert rate_factor(0.875, "whole") == 0.5
    assert rate_factor(1.0, "whole") == rate_factor(1.0, "decay") == 0
    assert [has_canvases(p, "whole") for p in (0.1, 0.2)] == [False, True]
    assert has_canvases(0, "decay")
    assert has_canvases(0, "stable", warm=True)
    assert is_decaying(0.8, "whole")
    assert not is_decaying(0.8, "stable")


TEN_LINES = """\
def mean(values):
    total = 0.0
    for value in values:
        total += value
    return total / len(values)

def spread(values):
    middle = mean(values)
    squares = [(value - middle) ** 2 for value in values]
    return mean(squares) ** 0.5
"""
CUTS = [("0.0", "line"), ("in values:", "line"), ("return total / len(values)", "line"), ("mean(values)\n", "block")]
CUTS += [("(value - middle) ** 2", "line"), ("return mean(squares) ** 0.5", "line"), ("ddle = mean(", "line")]


UPDATES = 130


def cut(missing, mode):
    """The request for a missing piece (its last occurrence), its row, and the answer's tokens."""
    start = TEN_LINES.rindex(missing)
    text = TEN_LINES[:start] + TEN_LINES[start + len(missing) :]
    request = InfillRequest(
        session="", windows=(Window("stats.py", "python", text),), spans=(Span(0, start, start, mode),)
    )
    budget = budget_for(512)
    row = lay_out(TOKENIZER, request, freeze(TOKENIZER, request, budget), budget)
    return row, answer_ids(TOKENIZER, row.holes[0], missing)


def learned(row, answer):
    anchor = row.holes[0].anchor
    return Example(with_answers(row, [answer]), len(row.ids), (anchor,), (tuple(answer),), ((),))


def logits(model, ids, positions, mask=None):
    hidden, _ = model(torch.tensor([list(ids)]).long(), torch.tensor([list(positions)]).long(), mask)
    return model.logits(hidden[0])


def read_on(model, row):
    """Greedy, one token after the other."""
    ids, positions, found = row.ids.tolist(), row.positions.tolist(), []
    while len(found) < 40 and (not found or found[-1] != EOM):
        found.append(int(logits(model, ids, positions)[-1].argmax()))
        ids.append(found[-1])
        positions.append(positions[-1] + 1)
    return found


def draft(model, row, size=32):
    """One pass over a canvas of masks: the anchor's row predicts slot 0, row j slot j + 1."""
    anchor = row.holes[0].anchor
    ids = [*row.ids, *[MASK] * size]
    positions = [*row.positions, *slot_positions(int(row.positions[anchor]), size)]
    mask = torch.from_numpy(canvas_mask([Block(len(row.ids)), Block(size, anchor, causal=False)]))
    return logits(model, ids, positions, mask).argmax(-1)[anchor:-1].tolist()


@pytest.mark.slow
def test_ten_lines_are_learned_by_heart_and_filled_in_by_reading_and_by_drafting():
    config = msgspec.structs.replace(TINY, vocabulary=TOKENIZER.vocabulary)
    trainer = Trainer(config, Rates(), seed=0)
    shape, draw = Shape(1280, 384), np.random.default_rng(0)
    pieces = [cut(missing, mode) for missing, mode in CUTS]
    known = [learned(row, answer) for row, answer in pieces]
    for step in range(UPDATES):
        batch = stack([pack(known, shape, TOKENIZER.vocabulary, draw)])
        figures, _ = trainer.step([batch], shape, min(1.0, 2 * (1 - step / UPDATES)), certainty=False)
    assert figures.clean < 0.1
    assert figures.right > 0.8
    with torch.no_grad():
        for (row, answer), (missing, _) in zip(pieces, CUTS, strict=True):
            assert read_on(trainer.model, row) == answer
            drafted = until_end(draft(trainer.model, row))[0]
            assert filled_text(TOKENIZER, row.holes[0], drafted) == missing
