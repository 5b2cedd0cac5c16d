"""One step: micro-batches to gradients, summed over processes, to new weights; the same for CPU and GPU.

Weights, gradients and moments are float32. What is computed in another precision is computed by a cast copy of the
model, so that the precision of every tensor can be read off its dtype. Where the weights are in parts, there is no such
copy: what is gathered for a layer is cast on the way.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from msgspec import Struct
from torch import Tensor

from mercury_engine.model import network as models
from mercury_engine.model.config import ModelConfig
from mercury_engine.model.network import Model
from mercury_training.rows.packing import Packed, Shape
from mercury_training.train import attention, processes
from mercury_training.train.losses import Totals, certainties, linear_cross_entropy, part_of, weigh
from mercury_training.train.optimizer import Optimizer, Rates, clip

__all__ = ["Figures", "Negatives", "Trainer"]

CLIP = 1.0


class Figures(Struct, frozen=True):
    """Mean cross entropies, and the share of canvas slots that are right; None where nothing was drafted."""

    clean: float
    canvas: float | None = None
    right: float | None = None


class Negatives(Struct, frozen=True):
    """How many tokens besides the targets a loss is taken over, and what draws them."""

    count: int
    draw: np.random.Generator


class Computation(Struct, frozen=True):
    """A way to run the model: the forward, what makes its mask of ranges and the number of clean rows, and what
    attends under that mask."""

    forward: Callable
    mask: Callable[[Tensor, int], object]
    attend: Callable


class Trainer:
    """Owns the weights and their optimiser, and the copy of the model that computes.

    Goes on from `model` where one is given; weights of it that need no gradient stay as they are. `sharded`, each of
    several processes holds a part of every weight; else each holds all of them.
    """

    def __init__(
        self,
        config: ModelConfig,
        rates: Rates,
        *,
        seed: int = 0,
        device: str = "cpu",
        precision: torch.dtype = torch.float32,
        compiled: bool = False,
        sharded: bool = False,
        model: Model | None = None,
    ) -> None:
        self.config, self.device, self.precision = config, torch.device(device), precision
        self.compiled, self.sharded = compiled, sharded
        self.model = self._placed(model or models.create(config, seed))
        self.weights = {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}
        self.optimizer = Optimizer({name: w.data for name, w in self.weights.items()}, rates, precision)
        cast = precision != torch.float32 and not sharded
        self.computing = copy.deepcopy(self.model).to(precision) if cast else self.model
        self._plain = Computation(
            self.computing, lambda ranges, clean: attention.dense_mask(ranges), attention.attend_dense
        )
        self._fast = self._computation()

    def step(
        self,
        batches: Sequence[Packed],
        shape: Shape,
        factor: float,
        *,
        certainty: bool,
        negatives: Negatives | None = None,
    ) -> tuple[Figures, float]:
        """One update. Rows beyond the shape are left out. Returns what was seen and the gradient's norm; where that is
        no number, nothing is learned."""
        totals = self._totals(batches, shape)
        for weight in self.weights.values():
            weight.grad = None
        sums = torch.zeros(5, device=self.device)
        for batch in batches:
            loss, seen = self._loss(self._fast, batch, shape, totals, certainty=certainty, negatives=negatives)
            loss.backward()
            sums += seen
            self._gather()
        gradients = {name: weight.grad for name, weight in self.weights.items()}
        processes.sum_up([sums] if self.sharded else [*gradients.values(), sums])
        norm = clip(gradients.values(), CLIP, sharded=self.sharded)
        if not math.isfinite(norm):
            self.optimizer.skip()
            return _figures(sums), norm
        self.optimizer.step(gradients, factor)
        self._cast()
        return _figures(sums), norm

    @torch.no_grad()
    def evaluate(self, batch: Packed, shape: Shape) -> Figures:
        """Row by row, whatever the batch's size."""
        sums = torch.zeros(5, device=self.device)
        for row in range(len(batch.ids)):
            sums += self._loss(self._plain, _only(batch, row), shape, Totals(1, 1))[1]
        processes.release(self.model)
        return _figures(sums)

    def footprint(self, batch: Packed, shape: Shape) -> int:
        """Bytes of GPU memory that the batch's first row takes, uncompiled: compiled rows take less."""
        torch.cuda.reset_peak_memory_stats(self.device)
        before = torch.cuda.memory_allocated(self.device)
        self._loss(self._plain, _only(batch, 0), shape, Totals(1, 1), certainty=True)[0].backward()
        self.computing.zero_grad()
        return torch.cuda.max_memory_allocated(self.device) - before

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """From whole weights, or from some that are divided as these are."""
        for name, weight in self.weights.items():
            processes.local(weight).copy_(processes.part(weights[name], weight))
        self._cast()

    def _placed(self, model: Model) -> Model:
        if self.sharded:
            return processes.shard(model, self.device, self.precision, compiled=self.compiled)
        return model.to(self.device)

    def _loss(
        self,
        by: Computation,
        batch: Packed,
        shape: Shape,
        totals: Totals,
        *,
        certainty: bool = False,
        negatives: Negatives | None = None,
    ) -> tuple[Tensor, Tensor]:
        """A micro-batch's share of the step's loss, and sums for `Figures`."""
        ids, hints, positions, ranges, targets, weights = self._tensors(batch, shape)
        drafting = None
        if self.config.role_scalars:
            drafting = (torch.arange(shape.rows, device=self.device) >= shape.clean).expand(ids.shape)
        hints = hints if self.config.hints else None
        mask = by.mask(ranges, shape.clean)
        hidden_BTD, _ = by.forward(ids, positions, mask, drafting_BT=drafting, attend=by.attend, hints_BTH=hints)
        scaled = weigh(weights, shape.clean, totals)
        head = self.computing.embedding if self.config.tied else self.computing.head
        hints_RH, trusted_RH = None, None
        if hints is not None:
            hints_RH = hints.flatten(0, 1)
            trusted_RH = self.computing.trusted(hidden_BTD.flatten(0, 1), hints_RH)
        part = None
        if negatives is not None:
            part = part_of(self.config.vocabulary, targets.flatten(), negatives.count, negatives.draw, hints_RH)
            hints_RH = part.hints_RH
        loss, losses, right = linear_cross_entropy(
            hidden_BTD.flatten(0, 1),
            head.weight if part is None else head.weight[part.ids_P],
            targets.flatten() if part is None else part.targets_R,
            scaled.flatten(),
            certainties(scaled, shape.clean).flatten() if certainty else None,
            self.config.softcap,
            compiled=self.compiled,
            shift_V=None if part is None else part.shift_P.to(head.weight.dtype),
            hints_RH=hints_RH,
            trusted_RH=trusted_RH,
        )
        return loss, _sums(weights, losses.view_as(weights), right.view_as(weights), shape.clean)

    def _computation(self) -> Computation:
        at_once = self.compiled and not self.sharded
        forward = torch.compile(self.computing, dynamic=False) if at_once else self.computing
        if self.device.type == "cuda":
            return Computation(forward, lambda ranges, clean: attention.block_mask(ranges), attention.attend_blocks)
        heads, kv_heads = self.config.heads, self.config.kv_heads
        tiles = partial(attention.tiles, heads=heads, kv_heads=kv_heads, dtype=self.precision)
        return Computation(forward, tiles, attention.attend_tiles)

    def _tensors(self, batch: Packed, shape: Shape) -> list[Tensor]:
        arrays = (batch.ids, batch.hints, batch.positions, batch.ranges, batch.targets, batch.weights)
        *numbers, weights = (self._sent(array[:, : shape.rows]) for array in arrays)
        return [*(found.long() for found in numbers), weights]

    def _sent(self, array: np.ndarray) -> Tensor:
        """On the device. A GPU fetches from pinned memory by itself; from any other it would have to be done first."""
        found = torch.from_numpy(np.ascontiguousarray(array))
        if self.device.type == "cuda":
            found = found.pin_memory()
        return found.to(self.device, non_blocking=True)

    @torch.no_grad()
    def _cast(self) -> None:
        """The weights as they are now go into the computing copy."""
        if self.computing is self.model:
            return
        for name, weight in self._computing():
            weight.copy_(self.weights[name])

    def _gather(self) -> None:
        """The gradients of the computing copy are summed in float32."""
        if self.computing is self.model:
            return
        for name, weight in self._computing():
            gradient, mine = weight.grad.float(), self.weights[name]
            mine.grad = gradient if mine.grad is None else mine.grad.add_(gradient)
            weight.grad = None

    def _computing(self) -> Iterator[tuple[str, Tensor]]:
        """What learns, as the copy that computes has it."""
        return ((name, weight) for name, weight in self.computing.named_parameters() if name in self.weights)

    def _totals(self, batches: Sequence[Packed], shape: Shape) -> Totals:
        clean = sum(float(batch.weights[:, : shape.clean].sum()) for batch in batches)
        canvas = sum(float(batch.weights[:, shape.clean : shape.rows].sum()) for batch in batches)
        found = torch.tensor([clean, canvas], device=self.device)
        processes.sum_up([found])
        return Totals(*found.tolist())


def _only(batch: Packed, row: int) -> Packed:
    return Packed(*(getattr(batch, name)[row : row + 1] for name in Packed.__struct_fields__))


def _sums(weights_BT: Tensor, losses_BT: Tensor, right_BT: Tensor, clean: int) -> Tensor:
    """Clean loss and weight, canvas loss and weight, and the weight of the right canvas slots."""
    weighed, drafts = weights_BT * losses_BT, weights_BT[:, clean:]
    return torch.stack(
        [
            weighed[:, :clean].sum(),
            weights_BT[:, :clean].sum(),
            weighed[:, clean:].sum(),
            drafts.sum(),
            (drafts * right_BT[:, clean:]).sum(),
        ]
    )


def _figures(sums: Tensor) -> Figures:
    clean, clean_weight, canvas, canvas_weight, right = sums.tolist()
    if not canvas_weight:
        return Figures(clean / clean_weight)
    return Figures(clean / clean_weight, canvas / canvas_weight, right / canvas_weight)
