"""What a run teaches: the frozen model, the moments of what learns, and the loss."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from mercury_engine.model.export import dequantized, read
from mercury_training import models
from mercury_training.edits import frozen
from mercury_training.edits.examples import TaughtRow
from mercury_training.rows.packing import Packed, RowShape
from mercury_training.train import attention
from mercury_training.train.optimizer import Optimizer, Rates, clip

RATES = Rates(adam=4e-4, betas=(0.9, 0.99))
WARM_UP = 20
CLIP = 1.0


class Teacher:
    """Owns the model and its optimiser."""

    def __init__(self, folder: Path, rank: int, *, precision: torch.dtype | None = None) -> None:
        precision = precision or frozen.quickest()
        config, weights = read(folder)
        model = models.with_weights(config, dequantized(weights))
        self.model = frozen.freeze(model, rank, 0, precision)
        self._attends = torch.bfloat16 if precision == torch.bfloat16 else torch.float32
        self.weights = {frozen.LEARNED + name: weight for name, weight in frozen.factors(self.model).items()}
        self.optimizer = Optimizer({name: weight.data for name, weight in self.weights.items()}, RATES, torch.float32)

    def update(self, examples: Sequence[TaughtRow], rate: float = 1.0) -> tuple[float, float]:
        """One step; the mean loss and the norm of the gradient. Without a finite one the weights stay."""
        total = sum(float(example.packed.weights.sum()) for example in examples)
        for weight in self.weights.values():
            weight.grad = None
        loss = 0.0
        for example in examples:
            losses, weights = self._losses(example)
            share = (losses * weights).sum() / total
            share.backward()
            loss += float(share.detach())
        gradients = {name: weight.grad for name, weight in self.weights.items() if weight.grad is not None}
        norm = clip(gradients.values(), CLIP)
        if math.isfinite(norm):
            warm = min(1.0, (self.optimizer.steps + 1) / WARM_UP)
            self.optimizer.step(gradients, rate * warm)
        else:
            self.optimizer.skip()
        return loss, norm

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """With the running mean of what learns in its place: it is less noisy than the last weights, and what is judged
        and kept."""
        learning = {name: weight.detach().clone() for name, weight in self.weights.items()}
        self._set(self.optimizer.mean)
        try:
            yield
        finally:
            self._set(learning)

    @torch.no_grad()
    def _set(self, values: Mapping[str, Tensor]) -> None:
        for name, weight in self.weights.items():
            weight.copy_(values[name])

    @torch.no_grad()
    def held_out(self, examples: Sequence[TaughtRow]) -> float:
        """The mean cross entropy of a token of their answers."""
        return float(torch.cat([self._losses(example)[0] for example in examples]).mean())

    def hidden(self, packed: Packed, shape: RowShape) -> Tensor:
        """The hidden rows of one packed row."""
        config = self.model.config
        ranges = torch.from_numpy(packed.ranges)[None].long()
        mask = attention.tiles(ranges, shape.clean, config.heads, config.kv_heads, self._attends)
        ids, positions = (torch.from_numpy(array)[None].long() for array in (packed.ids, packed.positions))
        hidden_BTD, _ = self.model(ids, positions, mask, attend=_attend)
        return hidden_BTD[0]

    def logits(self, hidden_RD: Tensor) -> Tensor:
        return frozen.head(self.model).logits(hidden_RD)

    def _losses(self, example: TaughtRow) -> tuple[Tensor, Tensor]:
        """The cross entropy of every row that has a weight, and the weights."""
        weights = torch.from_numpy(example.packed.weights)
        weighed = weights.nonzero()[:, 0]
        targets = torch.from_numpy(example.packed.targets).long()[weighed]
        logits = self.logits(self.hidden(example.packed, example.shape)[weighed])
        return functional.cross_entropy(logits, targets, reduction="none"), weights[weighed]


def _attend(q_BHTE: Tensor, k_BKTE: Tensor, v_BKTE: Tensor, mask: tuple[attention.Tile, ...]) -> Tensor:
    """Attention in the precision of the mask."""
    q, k, v = (part.to(mask[0].bias.dtype) for part in (q_BHTE, k_BKTE, v_BKTE))
    return attention.attend_tiles(q, k, v, mask).to(q_BHTE.dtype)
