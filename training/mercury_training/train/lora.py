"""LoRA: every matrix stays as it is, and the product of two low-rank factors beside it learns (Hu and others, 2021).

model = lora.attach(model, rank=8, seed=0)      # only the factors need gradients
lora.factors(model)                             # the factors, by the names of the weights: the contents of an adapter
lora.merged(model)                              # a plain model again
"""

import math
from operator import attrgetter

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from mercury_engine.model.adapter import DOWN, UP
from mercury_engine.model.network import Model
from mercury_training.train.processes import whole


class _Product(nn.Module):
    """Starts as no change: `up` is zero, `down` random."""

    def __init__(self, weight: Tensor, rank: int, generator: torch.Generator) -> None:
        super().__init__()
        outputs, inputs = weight.shape
        down = torch.randn(rank, inputs, generator=generator) / math.sqrt(inputs)
        self.up = nn.Parameter(weight.new_zeros(outputs, rank))
        self.down = nn.Parameter(down.to(weight))

    def forward(self, weight: Tensor) -> Tensor:
        return weight + self.up @ self.down


def attach(model: Model, rank: int, seed: int) -> Model:
    """The same model; only the factors beside every matrix need gradients."""
    generator = torch.Generator().manual_seed(seed)
    model.requires_grad_(False)
    for module in _with_matrices(model):
        parametrize.register_parametrization(module, "weight", _Product(module.weight, rank, generator))
    return model


def factors(model: Model) -> dict[str, Tensor]:
    """The factors by the names of their weights; empty if none are attached."""
    adapters = {}
    for name, weight in model.named_parameters():
        if is_factor(name):
            path, _, factor = name.rpartition(".")
            adapters[path.replace(WITHIN, ".weight") + {"up": UP, "down": DOWN}[factor]] = weight.detach()
    return adapters


WITHIN = ".parametrizations.weight.0"


def is_factor(name: str) -> bool:
    """True if a parameter of this name is a low-rank factor."""
    return WITHIN in name


def merged(model: Model) -> Model:
    """A copy with the products added to the weights; whole even if the model is sharded."""
    plain = Model(model.config)
    weights = {name: whole(attrgetter(name)(model).detach()).clone() for name in plain.state_dict()}
    plain.load_state_dict(weights, assign=True)
    return plain


def _with_matrices(model: Model) -> list[nn.Linear | nn.Embedding]:
    return [module for module in model.modules() if isinstance(module, nn.Linear | nn.Embedding)]
