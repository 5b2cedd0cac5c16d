"""Muon for the hidden matrices, AdamW for everything else, clipping, and the running mean of the weights.

Weights, gradients and moments are float32; `newton_schulz` runs in the given precision. If weights are sharded, every
process steps its own part; the matrices that Muon orthogonalises are gathered for that, one shape at a time.
"""

import math
from collections.abc import Iterable, Mapping

import torch
from msgspec import Struct
from torch import Tensor
from torch import _foreach_lerp_ as lerp_all  # pyright: ignore[reportPrivateImportUsage]
from torch import _foreach_mul_ as scale_all  # pyright: ignore[reportPrivateImportUsage]
from torch import _foreach_norm as norms  # pyright: ignore[reportPrivateImportUsage]

from mercury_training.train.lora import is_factor
from mercury_training.train.processes import global_norm, local, part, whole, wrapped

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Coefficients of the quintic that drives singular values towards 1 in five steps (Jordan 2024)."""

STEPS = 5
EMA = 0.995


class Rates(Struct, frozen=True):
    """Peak learning rates, momenta and weight decay."""

    muon: float = 0.02
    adam: float = 3e-3
    momentum: float = 0.95
    betas: tuple[float, float] = (0.9, 0.95)
    epsilon: float = 1e-10
    muon_decay: float = 0.01
    adam_decay: float = 0.01


class Optimizer:
    """Owns the moments, and steps the weights in place. Momentum is Nesterov's, decay is decoupled."""

    def __init__(self, weights: Mapping[str, Tensor], rates: Rates, precision: torch.dtype) -> None:
        self.rates, self.precision = rates, precision
        self._given = dict(weights)
        self._weights = {name: local(weight) for name, weight in weights.items()}
        self._matrices = {name: weight for name, weight in weights.items() if is_hidden_matrix(name, weight)}
        self._others = [name for name in weights if name not in self._matrices]
        self.begin()

    def begin(self) -> None:
        """Forget all moments; the running mean begins with the weights as they are."""
        self.steps = 0
        self._momentum = {name: torch.zeros_like(self._weights[name]) for name in self._matrices}
        self._first = {name: torch.zeros_like(self._weights[name]) for name in self._others}
        self._second = {name: torch.zeros_like(self._weights[name]) for name in self._others}
        self._mean = {name: weight.clone() for name, weight in self._weights.items()}

    @property
    def mean(self) -> dict[str, Tensor]:
        """The running mean of the weights."""
        return self._wrapped(self._mean)

    @torch.no_grad()
    def step(self, gradients: Mapping[str, Tensor], factor: float) -> None:
        """One update with all rates times `factor`, of gradients divided as the weights are."""
        self.steps += 1
        local_gradients = {name: local(gradient) for name, gradient in gradients.items()}
        self._muon(local_gradients, factor)
        for name in self._others:
            self._adam(name, local_gradients[name], factor)
        share = 1 - min(EMA, self.steps / (self.steps + 10))
        lerp_all(list(self._mean.values()), [self._weights[name] for name in self._mean], share)

    def skip(self) -> None:
        """Count an update that could not be made: a resumed run counts it, too."""
        self.steps += 1

    def state(self) -> dict[str, Tensor]:
        groups = {"momentum": self._momentum, "first": self._first, "second": self._second, "mean": self._mean}
        return {f"{group}/{name}": m for group, moments in groups.items() for name, m in self._wrapped(moments).items()}

    @torch.no_grad()
    def restore(self, state: Mapping[str, Tensor], steps: int) -> None:
        """Restore from whole moments."""
        self.steps = steps
        for name, moment in self.state().items():
            local(moment).copy_(part(state[name], moment))

    def _muon(self, gradients: Mapping[str, Tensor], factor: float) -> None:
        rate, momentum = self.rates.muon * factor, self.rates.momentum
        for names in _by_shape(self._matrices):
            updates = []
            for name in names:
                moment = self._momentum[name].lerp_(gradients[name], 1 - momentum)
                updates.append(whole(wrapped(gradients[name].lerp(moment, momentum), self._given[name])))
            orthogonal = newton_schulz(torch.stack(updates).to(self.precision)).float()
            scale = math.sqrt(max(1, orthogonal.shape[1] / orthogonal.shape[2]))
            for name, update in zip(names, orthogonal, strict=True):
                weight = self._weights[name].mul_(1 - rate * self.rates.muon_decay)
                weight.sub_(part(update, self._given[name]), alpha=rate * scale)

    def _adam(self, name: str, gradient: Tensor, factor: float) -> None:
        weight, rate = self._weights[name], self.rates.adam * factor
        (kept_first, kept_second), steps = self.rates.betas, self.steps
        first = self._first[name].lerp_(gradient, 1 - kept_first)
        second = self._second[name].lerp_(gradient.square(), 1 - kept_second)
        scale = (second / (1 - kept_second**steps)).sqrt_().add_(self.rates.epsilon)
        if weight.dim() > 1:
            weight.mul_(1 - rate * self.rates.adam_decay)
        weight.addcdiv_(first, scale, value=-rate / (1 - kept_first**steps))

    def _wrapped(self, moments: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: wrapped(moment, self._given[name]) for name, moment in moments.items()}


def is_hidden_matrix(name: str, weight: Tensor) -> bool:
    return weight.dim() == 2 and name.startswith("layers.") and not is_factor(name)


def newton_schulz(updates_NRC: Tensor) -> Tensor:
    """Matrices with the singular vectors of the given ones and singular values near 1, several of a shape at once."""
    wide = updates_NRC.mT if updates_NRC.shape[1] > updates_NRC.shape[2] else updates_NRC
    x = wide / (wide.norm(dim=(1, 2), keepdim=True) + 1e-7)
    a, b, c = COEFFICIENTS
    for _ in range(STEPS):
        product = x @ x.mT
        x = a * x + (b * product + c * product @ product) @ x
    return x.mT if updates_NRC.shape[1] > updates_NRC.shape[2] else x


def clip(gradients: Iterable[Tensor], limit: float, *, sharded: bool = False) -> float:
    """Scale all gradients so that their global norm is at most `limit`; return their norm before."""
    local_gradients = [local(gradient) for gradient in gradients]
    local_norm = torch.linalg.vector_norm(torch.stack(norms(local_gradients)))
    norm = float(global_norm(local_norm) if sharded else local_norm)
    scale_all(local_gradients, min(1.0, limit / (norm + 1e-6)))
    return norm


def _by_shape(weights: Mapping[str, Tensor]) -> list[list[str]]:
    shapes: dict[torch.Size, list[str]] = {}
    for name, weight in weights.items():
        shapes.setdefault(weight.shape, []).append(name)
    return list(shapes.values())
