"""Thin matrices begin as nothing, are all that learns, and become part of the weights when they are merged."""

import msgspec
import pytest
import torch
from safetensors.torch import load_file, save_file

from mercury_engine.model.config import TINY
from mercury_engine.model.quantize import LARGEST
from mercury_training import merge
from mercury_training.errors import TrainingError
from mercury_training.models import create, load, save
from mercury_training.rows.packing import RowShape, stack
from mercury_training.train import lora
from mercury_training.train.losses import CanvasLoss
from mercury_training.train.optimizer import Rates, is_hidden_matrix
from mercury_training.train.schedule import Phase
from mercury_training.train.trainer import Trainer
from tests.training.small import GOLDEN, TOKENIZER, open_rows, write_corpus

CONFIG = msgspec.structs.replace(TINY, vocabulary=TOKENIZER.vocabulary)
SHAPE = RowShape(128, 48)
IDS = torch.arange(20)[None]


def logits(model):
    with torch.no_grad():
        return model.logits(model(IDS, IDS)[0][0])


def learnt(precision=torch.float32):
    model = lora.attach(create(CONFIG, 0), 4, seed=1)
    return Trainer(CONFIG, Rates(adam=0.02), precision=precision, model=model)


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    rows = open_rows(write_corpus(tmp_path_factory.mktemp("corpus")))
    return [stack([rows.packed(number, SHAPE)]) for number in range(2)]


def test_model_says_the_same_with_untrained_products():
    plain = create(CONFIG, 0)
    torch.testing.assert_close(logits(lora.attach(create(CONFIG, 0), 4, seed=1)), logits(plain), atol=0, rtol=0)


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_products_alone_learn(batch, precision):
    trainer = learnt(precision)
    before = create(CONFIG, 0).state_dict()
    losses = [trainer.step(batch, Phase(SHAPE, 1.0))[0].clean for _ in range(6)]
    assert losses[-1] < losses[0] - 0.05
    assert all(lora.is_factor(name) for name in trainer.weights)
    for name, weight in trainer.model.named_parameters():
        if not lora.is_factor(name):
            plain = name.replace("parametrizations.weight.original", "weight")
            assert torch.equal(weight, before[plain]), name


def test_merged_products_are_part_of_the_weights(batch):
    trainer = learnt()
    trainer.step(batch, Phase(SHAPE, 1.0))
    merged = lora.merged(trainer.model)
    torch.testing.assert_close(logits(merged), logits(trainer.model))
    factors, weights = lora.factors(trainer.model), create(CONFIG, 0).state_dict()
    assert merged.state_dict().keys() == weights.keys()
    for name, weight in merged.state_dict().items():
        if name + lora.UP in factors:
            weights[name] += factors[name + lora.UP] @ factors[name + lora.DOWN]
        torch.testing.assert_close(weight, weights[name], atol=1e-6, rtol=1e-5)
    assert not torch.equal(logits(merged), logits(create(CONFIG, 0)))


@pytest.fixture(scope="module")
def kept(batch, tmp_path_factory):
    """A model, the factors that a few updates gave it, and the trainer that made them."""
    folder = tmp_path_factory.mktemp("kept")
    save(create(CONFIG, 0), folder / "model")
    (folder / "model/tokenizer.json").write_bytes(GOLDEN.read_bytes())
    trainer = learnt()
    for _ in range(3):
        trainer.step(batch, Phase(SHAPE, 1.0))
    lora.save(lora.factors(trainer.model), folder / "factors.safetensors")
    return folder, trainer


def test_kept_factors_are_continued_as_they_were(kept):
    folder, trainer = kept
    found = lora.factors(lora.continued(create(CONFIG, 0), folder / "factors.safetensors"))
    for name, factor in lora.factors(trainer.model).items():
        a_step = factor.abs().amax(1, keepdim=True) / (8 if factor.shape[1] % lora.GROUP == 0 else 2 * LARGEST)
        assert ((found[name] - factor).abs() <= a_step * 1.001 + 1e-12).all(), name


def test_factors_of_eight_bits_are_read_if_they_have_their_scales(tmp_path):
    factors = {"up": torch.tensor([[1, -2, 127]], dtype=torch.int8), "up.scale": torch.tensor([[0.5]])}
    save_file(factors, tmp_path / "factors.safetensors")
    assert lora.read(tmp_path / "factors.safetensors")["up"].tolist() == [[0.5, -1, 63.5]]
    save_file({"up": factors["up"]}, tmp_path / "factors.safetensors")
    with pytest.raises(TrainingError, match="up has no scales for its rows"):
        lora.read(tmp_path / "factors.safetensors")


def test_continuing_from_factors_and_merging_them_give_the_same_losses(kept, batch, tmp_path):
    folder, _ = kept
    merge.main([str(folder / "model"), str(folder / "factors.safetensors"), str(tmp_path)])
    assert (tmp_path / "tokenizer.json").exists()
    told = {"canvas_loss": CanvasLoss(2.0, 0.9)}
    continued = lora.continued(load(folder / "model", torch.float32), folder / "factors.safetensors")
    models = continued, load(tmp_path)
    found = [Trainer(CONFIG, Rates(), model=model, **told).evaluate(batch[0], SHAPE) for model in models]
    assert msgspec.structs.astuple(found[0]) == pytest.approx(msgspec.structs.astuple(found[1]), rel=1e-5)
    assert found[0].clean < Trainer(CONFIG, Rates(), model=create(CONFIG, 0)).evaluate(batch[0], SHAPE).clean - 0.02


def test_factors_of_another_model_are_refused(kept, tmp_path):
    folder, _ = kept
    factors = load_file(folder / "factors.safetensors")
    name = next(iter(factors))
    for wrong in (factors | {name: torch.zeros(1, 4)}, factors | {"head.weight.up": torch.zeros(1, 4)}, {}):
        save_file(wrong, tmp_path / "other.safetensors")
        with pytest.raises(TrainingError, match=r"other\.safetensors: .*; name"):
            lora.continued(create(CONFIG, 0), tmp_path / "other.safetensors")
    with pytest.raises(TrainingError, match="holds no factors"):
        lora.continued(create(CONFIG, 0), tmp_path / "missing.safetensors")


def test_model_without_products_is_merged_as_it_is():
    plain = create(CONFIG, 0)
    assert lora.factors(plain) == {}
    torch.testing.assert_close(logits(lora.merged(plain)), logits(plain), atol=0, rtol=0)


def test_thin_matrices_are_not_made_orthogonal():
    model = lora.attach(create(CONFIG, 0), 4, seed=0)
    factors = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    assert len(factors) == 2 * (1 + 7 * CONFIG.layers)
    assert not any(is_hidden_matrix(name, weight) for name, weight in factors.items())
