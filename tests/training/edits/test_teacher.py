"""What learns beside frozen int8 matrices, and that a run goes on where it was."""

import msgspec
import numpy as np
import pytest
import torch

from mercury_engine.model import openvino_runtime, provenance
from mercury_engine.model.adapter import SPECIAL
from mercury_engine.model.config import TINY
from mercury_engine.model.runtime import Rows
from mercury_engine.tokens.vocabulary import SPECIALS
from mercury_training import jsonl, models
from mercury_training.edits import checkpoint, frozen, run, ship
from mercury_training.edits.checkpoint import RunState
from mercury_training.edits.commits import Commit
from mercury_training.edits.examples import Examples
from mercury_training.edits.teacher import Teacher
from mercury_training.errors import TrainingError
from tests.training.edits.test_rows import AFTER, BEFORE, commit
from tests.training.small import GOLDEN, TOKENIZER

CONFIG = msgspec.structs.replace(TINY, vocabulary=TOKENIZER.vocabulary, tied=True)
PRECISIONS = (torch.int8, torch.bfloat16)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    models.save(models.create(CONFIG, 0), folder)
    (folder / "tokenizer.json").write_bytes(GOLDEN.read_bytes())
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    for name in ("train", "held_out"):
        commits = [
            commit(BEFORE.replace("area", word), AFTER.replace("surface", word + "_of")) for word in ("ab", "cd")
        ]
        jsonl.write(data / f"{name}.jsonl", commits)
    return data


def examples(data, count=4):
    source = Examples(jsonl.JsonTable(data / "train.jsonl", Commit), TOKENIZER, 0)
    return [source.numbered(number) for number in range(count)]


def hidden(model):
    ids = torch.arange(70, 90)[None]
    with torch.no_grad():
        return model(ids, torch.arange(20)[None])[0]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_frozen_model_reads_nearly_as_before(folder, precision):
    plain = hidden(models.load(folder, torch.float32))
    rounded = hidden(frozen.freeze(models.load(folder, torch.float32), 4, 0, precision))
    assert (rounded - plain).norm() < 0.05 * plain.norm()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_gradients_through_rounded_products_are_those_of_plain_ones(precision):
    torch.manual_seed(0)
    linear = torch.nn.Linear(64, 48)
    layer = frozen.FrozenLinear(linear, 0, torch.Generator(), precision)
    x, y = (torch.randn(5, 64, requires_grad=True) for _ in range(2))
    y.data.copy_(x.data)
    layer(x).square().sum().backward()
    linear(y).square().sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    assert (x.grad - y.grad).norm() < 0.03 * y.grad.norm()


def test_special_tokens_have_vectors_of_their_own():
    model = models.create(CONFIG, 0)
    with torch.no_grad():
        model.embedding.weight[: len(SPECIALS)] = model.embedding.weight[: len(SPECIALS)].mean(0)
    special = frozen.freeze(model, 4, 0, torch.int8).embedding.special
    distances = torch.cdist(special, special) + torch.eye(len(SPECIALS))
    assert distances.min() > 0.01 * special.norm(dim=1).mean()


def test_loss_and_gradient_are_nearly_the_same_in_both_precisions(folder, data):
    teachers = [Teacher(folder, 4, precision=precision) for precision in PRECISIONS]
    (loss, norm), (other_loss, other_norm) = (teacher.update(examples(data)) for teacher in teachers)
    assert other_loss == pytest.approx(loss, rel=0.02)
    assert other_norm == pytest.approx(norm, rel=0.1)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_updates_lower_the_loss_of_what_they_learn(folder, data, precision):
    teacher = Teacher(folder, 4, precision=precision)
    batch = examples(data)
    losses = [teacher.update(batch, rate=50)[0] for _ in range(16)]
    assert losses[-1] < 0.9 * losses[0]


def test_run_goes_on_where_it_was(folder, data, tmp_path):
    batch, rest = examples(data, 2), examples(data, 4)[2:]
    first, other = (Teacher(folder, 4) for _ in range(2))
    first.update(batch)
    checkpoint.save(first, RunState(updates=1, tokens=9, steps=1), tmp_path)
    progress = checkpoint.restore(other, tmp_path, None)
    assert (progress.updates, progress.tokens) == (1, 9)
    assert first.update(rest) == other.update(rest)
    for name, weight in first.weights.items():
        torch.testing.assert_close(weight, other.weights[name], atol=0, rtol=0)


def test_mean_of_what_was_learned_is_kept_and_learning_goes_on_from_the_last(folder, data, tmp_path):
    teacher = Teacher(folder, 4)
    for _ in range(3):
        teacher.update(examples(data, 2), rate=50)
    before = {name: weight.detach().clone() for name, weight in teacher.weights.items()}
    checkpoint.save(teacher, RunState(updates=3, steps=3), tmp_path)
    for name, weight in teacher.weights.items():
        torch.testing.assert_close(weight, before[name], atol=0, rtol=0)
    checkpoint.attach(teacher, tmp_path / checkpoint.FACTORS_FILE)
    kept, mean = (weights[frozen.LEARNED + SPECIAL] for weights in (teacher.weights, teacher.optimizer.mean))
    torch.testing.assert_close(kept, mean, atol=1e-3, rtol=1e-3)
    assert not torch.equal(kept, before[frozen.LEARNED + SPECIAL])


def test_factors_are_few_bits_and_lead_to_nearly_the_same_model(folder, data, tmp_path):
    first, other = (Teacher(folder, 4) for _ in range(2))
    for _ in range(5):
        first.update(examples(data), rate=50)
    checkpoint.save(first, RunState(updates=5), tmp_path)
    start = tmp_path / checkpoint.FACTORS_FILE
    assert checkpoint.restore(other, tmp_path / "new", start).updates == 5
    with first.averaged():
        learned = hidden(first.model)
    again = hidden(other.model)
    assert (again - learned).norm() < 0.05 * learned.norm()


def test_shipped_model_reads_for_edits_nearly_as_the_taught_one(folder, data, tmp_path):
    teacher = Teacher(folder, 4)
    for _ in range(5):
        teacher.update(examples(data), rate=50)
    checkpoint.save(teacher, RunState(updates=5), tmp_path)
    ship.main([str(folder), str(tmp_path / checkpoint.FACTORS_FILE), str(tmp_path / "shipped")])
    shipped = openvino_runtime.load(tmp_path / "shipped", threads=1)
    ids = np.arange(20, 90, dtype=np.int32)
    rows = Rows(ids, np.arange(len(ids), dtype=np.int32))
    edits, before = (shipped.forward(rows, shipped.cache(edits=kind)).logits_WV for kind in (True, False))
    with teacher.averaged(), torch.no_grad():
        hidden_BTD, _ = teacher.model(torch.from_numpy(ids)[None].long(), torch.arange(len(ids))[None])
        taught = teacher.logits(hidden_BTD[0]).numpy()
    assert np.linalg.norm(edits - taught) < 0.2 * np.linalg.norm(before - taught)
    (step,) = provenance.steps(tmp_path / "shipped")
    assert step.wrote == step.read["model"] | {"adapter.safetensors": step.read["factors"]["factors.safetensors"]}
    with pytest.raises(TrainingError, match="exists already; name a new folder"):
        ship.ship(folder, tmp_path / checkpoint.FACTORS_FILE, tmp_path / "shipped")


def test_factors_of_another_model_are_refused(folder, tmp_path):
    checkpoint.save(Teacher(folder, 2), RunState(), tmp_path)
    with pytest.raises(TrainingError, match="is not a factor of this model"):
        checkpoint.restore(Teacher(folder, 4), tmp_path / "new", tmp_path / checkpoint.FACTORS_FILE)


def test_command_trains_logs_and_draws(folder, data, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "HELD_OUT", 1)
    arguments = ["--model", folder, "--data", data, "--out", tmp_path, "--rank", 2, "--updates", 2]
    run.main([*map(str, arguments), "--threads", "1"])
    entries = list(jsonl.read(tmp_path / run.LOG_FILE, dict))
    assert set(entries[0]) == {"update", "tokens", "answer"}
    assert [entry["updates"] for entry in entries[1:]] == [1, 2]
    assert np.isfinite(entries[0]["answer"])
    assert (tmp_path / run.CURVE_FILE).exists()
