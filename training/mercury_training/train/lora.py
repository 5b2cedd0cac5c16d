"""LoRA: every matrix stays as it is, and the product of two low-rank factors beside it learns (Hu and others, 2021).

model = lora.attach(model, rank=8, seed=0)      # only the factors need gradients
lora.factors(model)                             # the factors, by the names of the weights
lora.save(lora.factors(model), path)            # in four bits
model = lora.continued(model, path)             # attached as they were
lora.merged(model)                              # a plain model again
"""

import math
import os
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.utils import parametrize

from mercury_engine.model.adapter import DOWN, UP, factors_in
from mercury_engine.model.config import ModelError
from mercury_engine.model.export import SCALE
from mercury_engine.model.network import Model
from mercury_engine.model.quantize import quantize, quantize_groups
from mercury_training.errors import TrainingError
from mercury_training.train.processes import whole

FACTORS_FILE = "factors.safetensors"
GROUP = 32


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


def save(adapters: Mapping[str, Tensor], path: Path) -> None:
    """Write factors in four bits, in groups of 32, all or nothing; in eight where rows are no groups."""
    partial, quantized = path.with_name(f"{path.name}.partial"), {}
    for name, factor in adapters.items():
        values = factor.float().cpu().numpy()
        pair = quantize(values) if values.shape[1] % GROUP else quantize_groups(values, GROUP)
        quantized[name], quantized[name + SCALE] = map(torch.from_numpy, pair)
    try:
        save_file(quantized, partial)
        os.replace(partial, path)
    except (OSError, SafetensorError) as error:
        raise TrainingError(f"{path}: cannot be written ({error}); make room") from error


def read(path: Path) -> dict[str, Tensor]:
    try:
        stored = factors_in(path, f"name a {FACTORS_FILE} of a run")
    except ModelError as error:
        raise TrainingError(f"{path.name} holds no factors: {error}") from error
    return {name: torch.from_numpy(factor) for name, factor in stored.items()}


@torch.no_grad()
def continued(model: Model, path: Path) -> Model:
    """The same model with the factors of a file attached."""
    saved = read(path)
    ranks = {factor.shape[-1] for name, factor in saved.items() if name.endswith(UP) and factor.dim() == 2}
    if len(ranks) != 1:
        raise TrainingError(f"{path}: holds no factors of one rank; name a {FACTORS_FILE} of a run")
    attached = factors(attach(model, ranks.pop(), 0))
    for name in attached.keys() | saved.keys():
        if name not in attached or name not in saved or attached[name].shape != saved[name].shape:
            raise TrainingError(f"{path}: {name} is not that of this model; name the factors of a run on it")
        attached[name].copy_(saved[name])
    return model


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
