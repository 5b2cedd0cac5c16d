"""Thin matrices begin as nothing, are all that learns, and become part of the weights when they are merged."""

import msgspec
import pytest
import torch

from mercury_engine.model.adapter import adapted
from mercury_engine.model.config import TINY
from mercury_engine.model.network import create
from mercury_training.rows.packing import RowShape, stack
from mercury_training.train import lora
from mercury_training.train.optimizer import Rates, is_hidden_matrix
from mercury_training.train.schedule import Phase
from mercury_training.train.trainer import Trainer
from tests.training.small import TOKENIZER, open_rows, write_corpus

CONFIG = msgspec.structs.replace(TINY, vocabulary=TOKENIZER.vocabulary)
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
    return [stack([rows.packed(number, RowShape(128, 48))]) for number in range(2)]


def test_model_says_the_same_with_untrained_products():
    plain = create(CONFIG, 0)
    torch.testing.assert_close(logits(lora.attach(create(CONFIG, 0), 4, seed=1)), logits(plain), atol=0, rtol=0)


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_products_alone_learn(batch, precision):
    trainer = learnt(precision)
    before = create(CONFIG, 0).state_dict()
    losses = [trainer.step(batch, Phase(RowShape(128, 48), 1.0))[0].clean for _ in range(6)]
    assert losses[-1] < losses[0] - 0.05
    assert all(lora.is_factor(name) for name in trainer.weights)
    for name, weight in trainer.model.named_parameters():
        if not lora.is_factor(name):
            plain = name.replace("parametrizations.weight.original", "weight")
            assert torch.equal(weight, before[plain]), name


def test_merging_and_adding_as_an_adapter_come_to_the_same(batch):
    trainer = learnt()
    trainer.step(batch, Phase(RowShape(128, 48), 1.0))
    merged = lora.merged(trainer.model)
    torch.testing.assert_close(logits(merged), logits(trainer.model))
    factors = {name: factor.numpy() for name, factor in lora.factors(trainer.model).items()}
    weights = {name: weight.numpy() for name, weight in create(CONFIG, 0).state_dict().items()}
    added = adapted(weights, factors)
    assert merged.state_dict().keys() == added.keys()
    for name, weight in merged.state_dict().items():
        torch.testing.assert_close(weight, torch.tensor(added[name]), atol=1e-6, rtol=1e-5)
    assert not torch.equal(logits(merged), logits(create(CONFIG, 0)))


def test_model_without_products_is_merged_as_it_is():
    plain = create(CONFIG, 0)
    assert lora.factors(plain) == {}
    torch.testing.assert_close(logits(lora.merged(plain)), logits(plain), atol=0, rtol=0)


def test_thin_matrices_are_not_made_orthogonal():
    model = lora.attach(create(CONFIG, 0), 4, seed=0)
    factors = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    assert len(factors) == 2 * (3 + 7 * CONFIG.layers)
    assert not any(is_hidden_matrix(name, weight) for name, weight in factors.items())
