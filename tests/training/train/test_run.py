"""Runs: exact resumption, several processes, stages, and a model that learns ten lines by heart."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from mercury_engine.api import Gap
from mercury_engine.model.config import TINY, ModelConfig
from mercury_engine.model.export import export
from mercury_engine.tokens.layout import budget_for, filled_text, freeze, lay_out, until_end
from mercury_engine.tokens.vocabulary import EOM, MASK
from mercury_training.errors import TrainingError
from mercury_training.models import create, load, save
from mercury_training.rows import loader
from mercury_training.rows.blocks import Block, slot_positions
from mercury_training.rows.examples import answered
from mercury_training.rows.holes import AnchoredRow, answer_ids
from mercury_training.rows.packing import RowShape, pack, stack
from mercury_training.train import command, state, trainer
from mercury_training.train import run as train
from mercury_training.train.losses import CanvasLoss
from mercury_training.train.optimizer import Rates
from mercury_training.train.run import run
from mercury_training.train.schedule import Phase, phase_at, rate_factor
from mercury_training.train.settings import Hardware, Recipe, Start, TrainSettings
from mercury_training.train.trainer import Trainer
from tests.masks import canvas_mask
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
)
RECIPE = Recipe(SMALLEST, RowShape(256, 64), RowShape(512, 128), 1024, held_out=4)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"))


def settings(corpus, out, *, hardware=None, start=None, **changed):
    return TrainSettings(
        data=corpus,
        out=out,
        hardware=Hardware(**{"micro": 256} | (hardware or {})),
        start=Start(**start or {}),
        **{"recipe": RECIPE, "steps": 8} | changed,
    )


RESUME = {"resume": True}


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


@pytest.mark.parametrize("changed", [{}, {"hardware": {"precision": "bfloat16"}}, {"sampled_softmax": 50}])
def test_resumed_run_equals_uninterrupted_run_to_the_bit(corpus, tmp_path, changed, monkeypatch):
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    run(settings(corpus, whole, **changed))
    with monkeypatch.context() as patched:
        patched.setattr(train.Progress, "share", ending_at(3))
        run(settings(corpus, halves, **changed))
    assert [entry["step"] for entry in steps(halves)] == [1, 2, 3]
    run(settings(corpus, halves, start=RESUME, **changed))
    assert [entry["clean"] for entry in steps(halves)] == [entry["clean"] for entry in steps(whole)]
    assert same(newest(whole), newest(halves))
    assert same(weights(whole), weights(halves))


def ending_at(step):
    share = train.Progress.share
    return lambda progress: 1.0 if progress.state.step == step else share(progress)


def test_run_reads_first_then_drafts_and_decays(corpus, tmp_path):
    run(settings(corpus, tmp_path, steps=12))
    found = steps(tmp_path)
    assert [entry["canvas"] is None for entry in found] == [True] * 3 + [False] * 9
    assert found[5]["factor"] == 1
    assert found[-1]["factor"] < 0.4
    assert (tmp_path / "pre-decay/weights.safetensors").exists()
    assert found[-1]["clean"] < found[0]["clean"]
    load(tmp_path / "model")
    assert (tmp_path / "model/tokenizer.json").exists()
    assert (tmp_path / "curve.svg").read_text().count('fill="none" stroke="#') == 2


def test_stable_run_is_continued_and_decayed_later(corpus, tmp_path):
    stable, decayed = tmp_path / "stable", tmp_path / "decayed"
    found = run(settings(corpus, stable, stage="stable", steps=4))
    assert steps(stable)[-1]["factor"] == 1
    checkpoint = stable / "checkpoints" / f"{found.step:08d}"
    run(settings(corpus, decayed, stage="decay", steps=4, start={"checkpoint": checkpoint}))
    found = steps(decayed)
    assert [entry["factor"] for entry in found] == [1, 0.75, 0.5, 0.25]
    assert found[0]["step"] == 5
    assert all(entry["canvas"] for entry in found)


def test_weights_alone_are_enough_to_go_on_from(corpus, tmp_path):
    found = run(settings(corpus, tmp_path / "first", stage="stable", steps=2))
    checkpoint = tmp_path / "first/checkpoints" / f"{found.step:08d}"
    (checkpoint / "optimizer.safetensors").unlink()
    run(settings(corpus, tmp_path / "second", stage="stable", steps=3, start={"checkpoint": checkpoint}))
    found = steps(tmp_path / "second")
    assert found[-1]["clean"] < steps(tmp_path / "first")[0]["clean"]
    assert all(entry["canvas"] for entry in found)


def test_shipped_model_is_enough_to_continue_from(corpus, tmp_path):
    run(settings(corpus, tmp_path / "first", stage="stable", steps=4))
    shipped = tmp_path / "shipped"
    export(tmp_path / "first/model", shipped)
    run(settings(corpus, tmp_path / "second", stage="stable", steps=1, start={"checkpoint": shipped}))
    assert steps(tmp_path / "second")[0]["clean"] < steps(tmp_path / "first")[0]["clean"]
    other = msgspec.structs.replace(RECIPE, config=msgspec.structs.replace(SMALLEST, layers=2))
    with pytest.raises(TrainingError, match="shape"):
        run(settings(corpus, tmp_path / "third", recipe=other, start={"checkpoint": shipped}))


def test_run_is_neither_begun_over_another_nor_resumed_from_nothing(corpus, tmp_path):
    run(settings(corpus, tmp_path, steps=1))
    with pytest.raises(TrainingError, match="--resume"):
        run(settings(corpus, tmp_path, steps=1))
    with pytest.raises(TrainingError, match="leave out --resume"):
        run(settings(corpus, tmp_path / "new", start=RESUME))


def test_checkpoints_kept_are_the_last_two(corpus, tmp_path):
    run(settings(corpus, tmp_path, steps=4, checkpoint_minutes=0, evaluate_minutes=0))
    assert [path.name for path in sorted((tmp_path / "checkpoints").iterdir())] == ["00000003", "00000004"]
    assert all("held_out_clean" in entry for entry in steps(tmp_path))


def test_run_continues_behind_a_truncated_log_line(corpus, tmp_path):
    run(settings(corpus, tmp_path, steps=2, stage="stable"))
    log = tmp_path / "log.jsonl"
    log.write_text(log.read_text() + '{"step": 3, "posi')
    run(settings(corpus, tmp_path, steps=4, stage="stable", start=RESUME))
    assert [entry["step"] for entry in steps(tmp_path)] == [1, 2, 3, 4]
    assert "</svg>" in (tmp_path / "curve.svg").read_text()


def test_full_disk_leaves_checkpoint_before_and_run_that_goes_on(corpus, tmp_path, monkeypatch):
    run(settings(corpus, tmp_path, steps=2, stage="stable"))

    def half(tensors, path):
        path.write_bytes(b"half")
        raise SafetensorError("No space left on device")

    with monkeypatch.context() as full:
        full.setattr(state, "save_file", half)
        with pytest.raises(TrainingError, match=r"00000004: .*No space.*--resume"):
            run(settings(corpus, tmp_path, steps=4, stage="stable", start=RESUME))
    run(settings(corpus, tmp_path, steps=3, stage="stable", start=RESUME))
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["00000002", "00000003"]


def test_damaged_checkpoint_is_named(corpus, tmp_path):
    run(settings(corpus, tmp_path, steps=2, stage="stable"))
    (tmp_path / "checkpoints/00000002/optimizer.safetensors").write_bytes(b"half")
    with pytest.raises(TrainingError, match=r"00000002: damaged .* from the previous checkpoint"):
        run(settings(corpus, tmp_path, steps=3, stage="stable", start=RESUME))


def test_mistakes_of_the_user_are_reported_in_one_line(tmp_path):
    with pytest.raises(SystemExit, match=r"mercury_training\.train: .*nowhere/train\.index: cannot be read"):
        command.main(["--data", str(tmp_path / "nowhere"), "--preset", "tiny", "--steps", "1", "--out", str(tmp_path)])


def test_budget_in_minutes_ends_schedule_in_time(corpus, tmp_path):
    found = run(settings(corpus, tmp_path, steps=None, minutes=1 / 60))
    assert found.seconds >= 0.99
    assert [entry["progress"] for entry in steps(tmp_path)] == sorted(e["progress"] for e in steps(tmp_path))
    assert steps(tmp_path)[-1]["seconds"] == pytest.approx(found.seconds, abs=0.01)


def test_paused_run_waits_and_terminated_one_ends_with_checkpoint(corpus, tmp_path, monkeypatch):
    (tmp_path / "PAUSE").touch()
    waits = []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(train.time, "sleep", wait)
    before = signal.getsignal(signal.SIGTERM)
    found = run(settings(corpus, tmp_path))
    assert len(waits) == 3
    assert found.step == 1
    assert (tmp_path / "checkpoints/00000001").exists()
    assert signal.getsignal(signal.SIGTERM) is before


def without_a_norm(monkeypatch, *numbers):
    """The gradients of these updates are no numbers."""
    seen, clip = iter(range(1, 1000)), trainer.clip

    def clipped(gradients, *limits, **how):
        gradients = list(gradients)
        if next(seen) in numbers:
            gradients[0].fill_(float("nan"))
        return clip(gradients, *limits, **how)

    monkeypatch.setattr(trainer, "clip", clipped)


def test_update_without_finite_gradient_is_left_out(corpus, tmp_path, monkeypatch):
    without_a_norm(monkeypatch, 3)
    run(settings(corpus, tmp_path))
    assert [entry["norm"] is None for entry in steps(tmp_path)] == [number == 3 for number in range(1, 9)]
    assert all(torch.isfinite(weight).all() for weight in [*weights(tmp_path).values(), *newest(tmp_path).values()])
    assert "</svg>" in (tmp_path / "curve.svg").read_text()


def test_diverged_run_keeps_its_last_good_checkpoint(corpus, tmp_path, monkeypatch):
    run(settings(corpus, tmp_path, steps=2, stage="stable"))
    without_a_norm(monkeypatch, *range(1, 100))
    with pytest.raises(TrainingError, match="continue from it with --resume"):
        run(settings(corpus, tmp_path, steps=100, stage="stable", start=RESUME))
    assert [folder.name for folder in (tmp_path / "checkpoints").iterdir()] == ["00000002"]


UNEVEN = msgspec.structs.replace(RECIPE, config=msgspec.structs.replace(SMALLEST, layers=2, feed_forward=33))
"""33 rows are not divided evenly."""


def under_torchrun(folder, body):
    """Two processes that know of each other, over gloo; `command` is there, with the recipe above."""
    script = folder / "script.py"
    script.write_text(
        "import sys; sys.path.insert(0, '.')\n"
        "from torch import distributed; from mercury_training.train import command\n"
        "from tests.training.train import test_run as test_train\n"
        f"command.RECIPES['uneven'] = test_train.UNEVEN\n{body}"
    )
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    launch += ["--local-addr", "127.0.0.1", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", script]
    done = subprocess.run(list(map(str, launch)), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]


def options(corpus, out, *more):
    fixed = ["--data", corpus, "--device", "cpu", "--no-compile", "--micro", 256, "--update", 1024, "--out", out]
    return [str(part) for part in (*fixed, *more)]


def same_steps(first, second, tolerance):
    assert len(first) == len(second)
    assert [e["positions"] for e in first] == [e["positions"] for e in second]
    for name in ("clean", "canvas", "norm"):
        found = [[entry[name] or 0 for entry in side] for side in (first, second)]
        np.testing.assert_allclose(found[0], found[1], rtol=tolerance)


@pytest.fixture(scope="module")
def shared(corpus, tmp_path_factory):
    """Runs of two processes, each with whole weights or with parts of them, by name."""
    folder = tmp_path_factory.mktemp("shared")
    uneven, thin = ["--preset", "uneven", "--steps"], ["--model", folder / "whole/model", "--lora", 4, "--steps", 2]
    stable = ["--shard", "--stage", "stable", *uneven]
    runs = {"parts": [*uneven, 6, "--shard"], "thin": thin, "thin-parts": [*thin, "--shard"]}
    runs |= {"through": [*stable, 4], "halves": [*stable, 2]}
    commands = [options(corpus, folder / name, *more) for name, more in runs.items()]
    commands += [options(corpus, folder / "halves", *stable, 4, "--resume")]
    under_torchrun(
        folder,
        "end, distributed.destroy_process_group = distributed.destroy_process_group, lambda: None\n"
        f"command.main({options(corpus, folder / 'whole', *uneven, 6)})\n"
        f"for line in {commands}:\n"
        "    command.run(command.settings_of(command._parser().parse_args(line)))\n"
        "end()\n",
    )
    return folder


@pytest.mark.slow
def test_two_processes_take_the_steps_of_one(corpus, shared, tmp_path):
    run(settings(corpus, tmp_path, recipe=UNEVEN, steps=6))
    assert len(steps(tmp_path)) == 6
    same_steps(steps(tmp_path), steps(shared / "whole"), 2e-3)


@pytest.mark.slow
def test_weights_in_parts_learn_as_whole_ones_do(shared):
    same_steps(steps(shared / "whole"), steps(shared / "parts"), 1e-4)
    for first, second in (("whole", "parts"), ("thin", "thin-parts")):
        torch.testing.assert_close(weights(shared / first), weights(shared / second), atol=1e-4, rtol=1e-3)
    assert not same(weights(shared / "whole"), weights(shared / "thin"))


@pytest.mark.slow
def test_run_in_parts_resumes_to_the_bit_with_any_number_of_processes(corpus, shared, tmp_path):
    assert same(newest(shared / "through"), newest(shared / "halves"))
    shutil.copytree(shared / "halves/checkpoints/00000002", tmp_path / "checkpoints/00000002")
    alone = settings(corpus, tmp_path, recipe=UNEVEN, stage="stable", steps=4, start=RESUME)
    assert run(alone).step == 4
    torch.testing.assert_close(newest(shared / "through"), newest(tmp_path), atol=1e-4, rtol=1e-3)


def test_single_process_has_nobody_to_share_weights_with(corpus, tmp_path):
    with pytest.raises(SystemExit, match="torchrun"):
        command.main(options(corpus, tmp_path, "--preset", "tiny", "--shard"))


def test_memory_measurement_leaves_no_gradients(corpus, tmp_path, monkeypatch):
    for name in ("reset_peak_memory_stats", "memory_allocated", "max_memory_allocated"):
        monkeypatch.setattr(torch.cuda, name, lambda device: 0)
    trainer = Trainer(SMALLEST, Rates(), precision=torch.bfloat16)
    rows = loader.held_out(corpus, tmp_path, RECIPE.shape, 1)
    assert trainer.footprint(rows, RECIPE.shape) == 0
    assert all(weight.grad is None for weight in trainer.computing.parameters())


@pytest.mark.parametrize(("free", "tokens"), [(50, 512), (200, 1024), (500, 2048), (10_000, 4096)])
def test_micro_batch_of_gpu_is_largest_power_of_two_that_fits(free, tokens, monkeypatch):
    """A row takes 30 bytes, and six tenths of what is free are for rows; one row of the decay is the least."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 1 << 20))
    trainer = SimpleNamespace(device=torch.device("cuda"), footprint=lambda batch, shape: 30)
    recipe = msgspec.structs.replace(RECIPE, update=4096)
    assert train._fitting_micro(trainer, None, recipe) == tokens


def phase(progress, stage="whole", **changed):
    return phase_at(progress, stage, RECIPE.shape, RECIPE.decay_shape, **changed)


def test_schedule_warms_up_and_decays():
    assert rate_factor(0.01, "whole") == 0.5
    assert rate_factor(0.5, "whole") == rate_factor(0.9, "stable") == rate_factor(0.0, "decay") == 1
    assert rate_factor(0.875, "whole") == 0.5
    assert rate_factor(1.0, "whole") == rate_factor(1.0, "decay") == 0
    assert phase(0.1) == Phase(RECIPE.shape, 1.0, canvases=False)
    assert phase(0.1).seen == RowShape(256, 0)
    assert phase(0.2, lr_scale=0.5) == Phase(RECIPE.shape, 0.5)
    assert phase(0.0, "decay") == Phase(RECIPE.decay_shape, 1.0, decaying=True)
    assert phase(0.8).shape == RECIPE.decay_shape
    assert phase(0.8, "stable", warm=True).shape == RECIPE.shape
    assert phase(0, "stable", warm=True).canvases


def test_warm_up_counts_updates_if_told():
    assert [rate_factor(0.5, "whole", share) for share in (0.25, 1.0, 3.0)] == [0.25, 1, 1]
    assert rate_factor(0.0, "stable", 1.0) == 1
    assert rate_factor(0.875, "whole", 0.5) == 0.25
    assert phase(0.5, warmed_up=0.5).rate == 0.5


def test_first_updates_warm_up_and_factors_are_kept(corpus, tmp_path):
    recipe = msgspec.structs.replace(RECIPE, canvas_loss=CanvasLoss(2.0, 0.9))
    save(create(SMALLEST, 0), tmp_path / "model")
    shutil.copy(corpus / "tokenizer.json", tmp_path / "model")
    told = {"recipe": recipe, "steps": 4, "warm_up": 2}
    run(settings(corpus, tmp_path / "first", start={"model": tmp_path / "model", "rank": 2}, **told))
    assert [entry["factor"] for entry in steps(tmp_path / "first")] == [0.5, 1, 1, 1]
    assert all(0 < entry["agreement"] < 1 for entry in steps(tmp_path / "first"))
    start = {"model": tmp_path / "model", "factors": tmp_path / "first/factors.safetensors"}
    run(settings(corpus, tmp_path / "second", start=start, **told | {"steps": 1}))
    (begun,) = (entry for entry in entries(tmp_path / "second") if "begun" in entry)
    ended = [entry for entry in entries(tmp_path / "first") if "final" in entry]
    assert min(abs(begun["clean"] - entry["clean"]) for entry in ended) < 1e-3


def test_options_of_a_run_are_its_settings(tmp_path):
    save(create(SMALLEST, 0), tmp_path)
    options = ["--data", "corpus", "--out", "run", "--model", str(tmp_path), "--factors", "f.safetensors"]
    options += ["--shape", "512", "256", "--rate", "4e-4", "--warm-up", "20", "--update", "4096"]
    options += ["--canvas-weight", "2", "--reading", ".9"]
    found = command.settings_of(command._parser().parse_args(options))
    recipe = found.recipe
    assert recipe.shape == recipe.decay_shape == RowShape(512, 256)
    assert (recipe.rates.adam, recipe.update, found.warm_up) == (4e-4, 4096, 20)
    assert recipe.canvas_loss == CanvasLoss(2.0, 0.9)
    assert found.start == Start(model=tmp_path, factors=Path("f.safetensors"))
    with pytest.raises(TrainingError, match="add --model"):
        command.settings_of(command._parser().parse_args([*options[:4], "--preset", "tiny", *options[6:8]]))


def test_end_of_decay_is_over_the_whole_vocabulary():
    found = [phase(progress, sampled_softmax=50) for progress in (0.5, 0.8, 0.95)]
    assert [each.sampled_softmax for each in found] == [50, 50, None]
    assert [each.certainty for each in found] == [False, False, True]


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
CUTS = [("0.0", False), ("mean(values)\n", True), ("(value - middle) ** 2", False), ("ddle = mean(", False)]
UPDATES = 160


def cut(missing, block):
    """The row of a gap for a missing piece (its last occurrence), and the answer's tokens."""
    before, _, after = TEN_LINES.rpartition(missing)
    gap = Gap(session="", path="stats.py", language="python", before=before, after=after, block=block)
    budget = budget_for(512)
    row = lay_out(TOKENIZER, gap, freeze(TOKENIZER, gap, budget), budget)
    return row, answer_ids(TOKENIZER, row.part, missing)


def logits(model, ids, positions, mask=None):
    ids, positions = torch.tensor([list(ids)]).long(), torch.tensor([list(positions)]).long()
    hidden, _ = model(ids, positions, mask)
    return model.logits(hidden[0])


def read_on(model, row):
    """Greedy, one token after the other."""
    ids, positions, found = row.ids.tolist(), list(range(len(row.ids))), []
    while len(found) < 40 and (not found or found[-1] != EOM):
        found.append(int(logits(model, ids, positions)[-1].argmax()))
        ids.append(found[-1])
        positions.append(positions[-1] + 1)
    return found


def draft(model, row, size=32):
    """One pass over a canvas of masks: the anchor's row predicts slot 0, row j slot j + 1."""
    anchor = len(row.ids) - 1
    ids = [*row.ids, *[MASK] * size]
    positions = [*range(len(row.ids)), *slot_positions(anchor, size)]
    mask = torch.from_numpy(canvas_mask([Block(len(row.ids)), Block(size, anchor, causal=False)]))
    return logits(model, ids, positions, mask).argmax(-1)[anchor:-1].tolist()


@pytest.mark.slow
def test_ten_lines_are_learned_by_heart_and_filled_in_both_ways():
    config = msgspec.structs.replace(TINY, vocabulary=TOKENIZER.vocabulary)
    trainer = Trainer(config, Rates(), seed=0)
    shape, draw = RowShape(704, 192), np.random.default_rng(0)
    pieces = [cut(missing, block) for missing, block in CUTS]
    known = [answered(AnchoredRow.of(row), (tuple(answer),)) for row, answer in pieces]
    for step in range(UPDATES):
        batch = stack([pack(known, shape, TOKENIZER.vocabulary, draw)])
        losses, _ = trainer.step([batch], Phase(shape, min(1.0, 2 * (1 - step / UPDATES))))
    assert losses.clean < 0.1
    assert losses.right > 0.8
    with torch.no_grad():
        for (row, answer), (missing, _) in zip(pieces, CUTS, strict=True):
            assert read_on(trainer.model, row) == answer
            drafted = until_end(draft(trainer.model, row))[0]
            assert filled_text(TOKENIZER, row.part, drafted) == missing
