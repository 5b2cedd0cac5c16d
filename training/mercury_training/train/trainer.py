"""One step: micro-batches to gradients, summed over processes, to new weights; the same on CPU and GPU.

Weights, gradients and moments are float32. A cast copy of the model computes in any other precision, so that the
precision of every tensor is visible in its dtype. Sharded weights have no such copy: they are cast while they are
gathered for a layer.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from msgspec import Struct
from torch import Tensor

from mercury_engine.model.config import ModelConfig
from mercury_engine.model.network import Model, attend_dense
from mercury_training import models
from mercury_training.rows.packing import Packed, RowShape
from mercury_training.train import attention, processes
from mercury_training.train.losses import (
    CROSS_ENTROPY,
    CanvasLoss,
    Totals,
    entropy_weights,
    linear_cross_entropy,
    row_weights,
    sample_vocabulary,
)
from mercury_training.train.optimizer import Optimizer, Rates, clip
from mercury_training.train.schedule import Phase

CLIP = 1.0


class Losses(Struct, frozen=True):
    """Mean cross entropies, the share of canvas slots that are right, and the mean agreement of canvases with the
    reading; None if there were no canvases, or if the agreement is not in the loss."""

    clean: float
    canvas: float | None = None
    right: float | None = None
    agreement: float | None = None


class _Computation(Struct, frozen=True):
    """A way to run the model: the forward, the function that makes a mask of ranges and the number of clean rows, and
    the attention under that mask."""

    forward: Callable
    mask: Callable[[Tensor, int], object]
    attend: Callable


class Trainer:
    """Owns the weights and their optimiser, and the copy of the model that computes.

    Trains `model` if one is given; its weights that need no gradient stay as they are. If `sharded`, each of several
    processes holds a part of every weight, else all of them.
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
        canvas_loss: CanvasLoss = CROSS_ENTROPY,
    ) -> None:
        self.config, self.device, self.precision = config, torch.device(device), precision
        self.canvas_loss = canvas_loss
        self.compiled, self.sharded = compiled, sharded
        self.model = self._placed(model or models.create(config, seed))
        self.weights = {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}
        self.optimizer = Optimizer({name: w.data for name, w in self.weights.items()}, rates, precision)
        cast = precision != torch.float32 and not sharded
        self.computing = copy.deepcopy(self.model).to(precision) if cast else self.model
        self._plain = _Computation(self.computing, lambda ranges, clean: attention.dense_mask(ranges), attend_dense)
        self._fast = self._computation()

    def step(
        self, batches: Sequence[Packed], phase: Phase, draw: np.random.Generator | None = None
    ) -> tuple[Losses, float]:
        """Make one update; `draw` draws the tokens of a sampled softmax. Return the losses and the norm of the
        gradient; if that is not finite, the weights stay as they are."""
        totals = self._totals(batches, phase.seen)
        for weight in self.weights.values():
            weight.grad = None
        sums = torch.zeros(6, device=self.device)
        for batch in batches:
            loss, counted = self._loss(self._fast, batch, phase, totals, draw)
            loss.backward()
            sums += counted
            self._gather()
        gradients = {name: _gradient(weight) for name, weight in self.weights.items()}
        processes.all_reduce([sums] if self.sharded else [*gradients.values(), sums])
        norm = clip(gradients.values(), CLIP, sharded=self.sharded)
        if not math.isfinite(norm):
            self.optimizer.skip()
            return self._losses(sums), norm
        self.optimizer.step(gradients, phase.rate)
        self._cast()
        return self._losses(sums), norm

    @torch.no_grad()
    def evaluate(self, batch: Packed, shape: RowShape) -> Losses:
        """The losses row by row, whatever the size of the batch."""
        sums = torch.zeros(6, device=self.device)
        for row in range(len(batch.ids)):
            sums += self._loss(self._plain, _only(batch, row), Phase(shape, 0.0), Totals(1, 1))[1]
        processes.release(self.model)
        return self._losses(sums)

    def footprint(self, batch: Packed, shape: RowShape) -> int:
        """Bytes of GPU memory that the batch's first row takes uncompiled; compiled, rows take less."""
        torch.cuda.reset_peak_memory_stats(self.device)
        before = torch.cuda.memory_allocated(self.device)
        phase = Phase(shape, 0.0, decaying=True)
        self._loss(self._plain, _only(batch, 0), phase, Totals(1, 1))[0].backward()
        self.computing.zero_grad()
        return torch.cuda.max_memory_allocated(self.device) - before

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Restore from whole weights, or from weights that are sharded as these are."""
        for name, weight in self.weights.items():
            processes.local(weight).copy_(processes.part(weights[name], weight))
        self._cast()

    def _placed(self, model: Model) -> Model:
        if self.sharded:
            return processes.shard(model, self.device, self.precision, compiled=self.compiled)
        return model.to(self.device)

    def _loss(
        self,
        computation: _Computation,
        batch: Packed,
        phase: Phase,
        totals: Totals,
        draw: np.random.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        """A micro-batch's share of the step's loss, and the sums for `Losses`."""
        shape, share = phase.seen, self.canvas_loss.reading
        ids, positions, ranges, targets, readers, weights = self._tensors(batch, shape)
        mask = computation.mask(ranges, shape.clean)
        hidden_BTD, _ = computation.forward(ids, positions, mask, attend=computation.attend)
        scaled = row_weights(weights, shape.clean, totals, self.canvas_loss.weight)
        certain = entropy_weights(weights, shape.clean, totals) if phase.certainty and not share else None
        head = self.computing.embedding if self.config.tied else self.computing.head
        hidden_RD, targets_R = _in_order(hidden_BTD, shape.clean), _in_order(targets, shape.clean)
        sample = None
        if phase.sampled_softmax is not None:
            assert draw is not None, "a sampled softmax draws its tokens"
            sample = sample_vocabulary(self.config.vocabulary, targets_R, phase.sampled_softmax, draw)
        loss, losses, right, agreements = linear_cross_entropy(
            hidden_RD,
            head.weight if sample is None else head.weight[sample.ids_S],
            targets_R if sample is None else sample.targets_R,
            _in_order(scaled, shape.clean),
            None if certain is None else _in_order(certain, shape.clean),
            compiled=self.compiled,
            shift_V=None if sample is None else sample.shift_S.to(head.weight.dtype),
            readers_N=readers.flatten() if share else None,
            reading=share,
        )
        ordered = _in_order(weights, shape.clean)
        return loss, _sums(ordered, losses, right, agreements, weights[:, : shape.clean].numel())

    def _computation(self) -> _Computation:
        at_once = self.compiled and not self.sharded
        forward = torch.compile(self.computing, dynamic=False) if at_once else self.computing
        if self.device.type == "cuda":
            return _Computation(forward, lambda ranges, clean: attention.block_mask(ranges), attention.attend_blocks)
        heads, kv_heads = self.config.heads, self.config.kv_heads
        tiles = partial(attention.tiles, heads=heads, kv_heads=kv_heads, dtype=self.precision)
        return _Computation(forward, tiles, attention.attend_tiles)

    def _tensors(self, batch: Packed, shape: RowShape) -> list[Tensor]:
        arrays = (batch.ids, batch.positions, batch.ranges, batch.targets)
        readers = _in_batch(batch.readers[:, : shape.canvas], shape.clean)
        numbers = [self._sent(array).long() for array in (*(array[:, : shape.rows] for array in arrays), readers)]
        return [*numbers, self._sent(batch.weights[:, : shape.rows])]

    def _sent(self, array: np.ndarray) -> Tensor:
        """The batch on the device. A GPU copies from pinned memory by itself, while the program goes on."""
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        if self.device.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self.device, non_blocking=True)

    @torch.no_grad()
    def _cast(self) -> None:
        """Copy the weights as they are now into the computing copy."""
        if self.computing is self.model:
            return
        for name, weight in self._computing():
            weight.copy_(self.weights[name])

    def _gather(self) -> None:
        """Sum the gradients of the computing copy in float32."""
        if self.computing is self.model:
            return
        for name, weight in self._computing():
            gradient, mine = _gradient(weight).float(), self.weights[name]
            mine.grad = gradient if mine.grad is None else mine.grad.add_(gradient)
            weight.grad = None

    def _computing(self) -> Iterator[tuple[str, Tensor]]:
        """The weights that learn, in the computing copy."""
        return ((name, weight) for name, weight in self.computing.named_parameters() if name in self.weights)

    def _losses(self, sums: Tensor) -> Losses:
        clean, clean_weight, canvas, canvas_weight, right, agreeing = sums.tolist()
        if not canvas_weight:
            return Losses(clean / clean_weight)
        agreement = agreeing / canvas_weight if self.canvas_loss.reading else None
        return Losses(clean / clean_weight, canvas / canvas_weight, right / canvas_weight, agreement)

    def _totals(self, batches: Sequence[Packed], shape: RowShape) -> Totals:
        clean = sum(float(batch.weights[:, : shape.clean].sum()) for batch in batches)
        canvas = sum(float(batch.weights[:, shape.clean : shape.rows].sum()) for batch in batches)
        sums = torch.tensor([clean, canvas], device=self.device)
        processes.all_reduce([sums])
        return Totals(*sums.tolist())


def _gradient(weight: Tensor) -> Tensor:
    assert weight.grad is not None, "the loss depends on every weight that learns"
    return weight.grad


def _only(batch: Packed, row: int) -> Packed:
    return Packed(*(getattr(batch, name)[row : row + 1] for name in Packed.__struct_fields__))


def _in_batch(readers_BN: np.ndarray, clean: int) -> np.ndarray:
    """The readers as numbers of rows among the clean rows of the whole batch."""
    return np.where(readers_BN < 0, -1, readers_BN + clean * np.arange(len(readers_BN))[:, None])


def _in_order(rows_BT: Tensor, clean: int) -> Tensor:
    """The clean rows of the whole batch, then its canvas rows."""
    return torch.cat([rows_BT[:, :clean].flatten(0, 1), rows_BT[:, clean:].flatten(0, 1)])


def _sums(weights_R: Tensor, losses_R: Tensor, right_R: Tensor, agreements_R: Tensor, clean: int) -> Tensor:
    """Clean loss and weight, canvas loss and weight, and the right and the agreeing share of the latter."""
    weighed, drafts = weights_R * losses_R, weights_R[clean:]
    return torch.stack(
        [
            weighed[:clean].sum(),
            weights_R[:clean].sum(),
            weighed[clean:].sum(),
            drafts.sum(),
            (drafts * right_R[clean:]).sum(),
            (drafts * agreements_R[clean:]).sum(),
        ]
    )
