"""The loss: cross entropy of every row that predicts something, how far canvas rows differ from the rows that read the
same place, and the entropy of canvas rows that are right already.

Shapes: R rows, D width, V vocabulary, S tokens sampled from it, C rows of a chunk.
"""

import math

import numpy as np
import torch
from msgspec import Struct
from torch import Tensor
from torch.nn import functional

CERTAINTY = 0.05
"""The weight, in the decay, of the mean entropy of correctly predicted canvas slots."""

WHOLE = 1024
"""Sampled vocabularies are multiples of this, so that a compiled loss seldom meets a new shape."""

LOGITS = {"cpu": 1 << 21, "cuda": 1 << 27}
"""The number of logits computed at once: what fits into a CPU's cache, and what keeps a GPU busy."""


class CanvasLoss(Struct, frozen=True, forbid_unknown_fields=True):
    """The loss of canvas rows: the weight of all of them together, where the clean rows together weigh 1, and the
    share of it that is the distance to the reading (one minus the chance that verification accepts a token drawn from
    the draft). The rest is cross entropy."""

    weight: float = 0.5
    reading: float = 0.0

    def of(self, cross_entropy: float, agreement: float) -> float:
        """The mean loss of canvas rows with these means, without its weight."""
        return (1 - self.reading) * cross_entropy + self.reading * (1 - agreement)


CROSS_ENTROPY = CanvasLoss()


class Totals(Struct, frozen=True):
    """The weights of a whole step, over all its micro-batches and processes."""

    clean: float
    canvas: float


def row_weights(weights_BT: Tensor, clean: int, totals: Totals, canvas: float) -> Tensor:
    """Weights whose sum over a step is the mean over clean rows plus `canvas` times the mean over canvas rows."""
    scaled = weights_BT.clone()
    scaled[:, :clean] /= max(1.0, totals.clean)
    scaled[:, clean:] *= canvas / max(1.0, totals.canvas)
    return scaled


def entropy_weights(weights_BT: Tensor, clean: int, totals: Totals) -> Tensor:
    """The weight of each row's entropy if the row is right: in proportion to its loss, and 0 for clean rows."""
    weights = weights_BT * (CERTAINTY / max(1.0, totals.canvas))
    weights[:, :clean] = 0
    return weights


class SampledVocabulary(Struct, frozen=True):
    """Tokens that stand for the whole vocabulary: their ids, the correction to each logit, and the positions of the
    targets among them."""

    ids_S: Tensor
    shift_S: Tensor
    targets_R: Tensor


def sample_vocabulary(
    vocabulary: int, targets_R: Tensor, negatives: int, draw: np.random.Generator
) -> SampledVocabulary:
    """Sampled softmax: every target, and at least that many of the other tokens, each of which stands for several.

    The sum of exponentials over the sample is on average the sum over the vocabulary (Bengio & Senécal 2008).
    """
    present = torch.unique(targets_R)
    absent = np.setdiff1d(np.arange(vocabulary), present.numpy(), assume_unique=True)
    negatives += -(len(present) + negatives) % WHOLE
    drawn = draw.choice(absent, min(negatives, len(absent)), replace=False)
    shift_S = torch.zeros(len(present) + len(drawn))
    shift_S[len(present) :] = math.log(max(1, len(absent)) / max(1, len(drawn)))
    ids_S = torch.cat([present, torch.from_numpy(drawn)])
    return SampledVocabulary(ids_S, shift_S, torch.searchsorted(present, targets_R))


def linear_cross_entropy(
    hidden_RD: Tensor,
    weight_VD: Tensor,
    targets_R: Tensor,
    weights_R: Tensor,
    entropy_weights_R: Tensor | None = None,
    compiled: bool = False,
    shift_V: Tensor | None = None,
    readers_N: Tensor | None = None,
    reading: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The weighted sum, and without gradients each row's cross entropy, whether it is right, and its agreement with
    the reading.

    The last N rows are drafts: `readers_N` are the rows that read the same place, -1 where none does and the target is
    certain. `reading` is the share of the total variation between the two in the loss of a draft, the agreement one
    minus it; readings get no gradient. Logits exist one chunk of rows at a time: gradients are formed in the forward
    and scaled in the backward.
    """
    rows = hidden_RD, weight_VD, targets_R, weights_R, entropy_weights_R
    return _LinearCrossEntropy.apply(*rows, compiled, shift_V, readers_N, reading)


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx,
        hidden_RD,
        weight_VD,
        targets_R,
        weights_R,
        entropy_weights_R,
        compiled,
        shift_V,
        readers_N,
        reading,
    ):
        step = torch.compile(_chunk, dynamic=False) if compiled else _chunk
        draft_step = torch.compile(_draft_chunk, dynamic=False) if compiled else _draft_chunk
        total = torch.zeros((), device=hidden_RD.device)
        hidden_gradient_RD = torch.empty_like(hidden_RD)
        weight_gradient_VD = torch.zeros_like(weight_VD, dtype=torch.float32)
        agreements_R = torch.zeros(len(targets_R), device=hidden_RD.device)
        losses, rights = [], []

        def logits_of(rows):
            return functional.linear(hidden_RD[rows], weight_VD, shift_V)

        readers_N = targets_R[:0] if readers_N is None else readers_N
        drafts = len(targets_R) - len(readers_N)
        for rows in _chunks(drafts, len(targets_R), LOGITS[hidden_RD.device.type] // len(weight_VD)):
            logits_CV = logits_of(rows)
            if rows.start < drafts:
                entropy_weights_C = None if entropy_weights_R is None else entropy_weights_R[rows]
                loss, gradient_CV, losses_C, right_C = step(
                    logits_CV, targets_R[rows], weights_R[rows], entropy_weights_C
                )
            else:
                readers_C = readers_N[rows.start - drafts : rows.stop - drafts]
                read_CV, known_C = logits_of(readers_C.clamp(min=0)), readers_C >= 0
                loss, gradient_CV, losses_C, right_C, agreements_R[rows] = draft_step(
                    logits_CV, read_CV, known_C, targets_R[rows], weights_R[rows], reading
                )
            total += loss
            hidden_gradient_RD[rows] = gradient_CV @ weight_VD
            weight_gradient_VD += gradient_CV.T @ hidden_RD[rows]
            losses.append(losses_C)
            rights.append(right_C)
        ctx.save_for_backward(hidden_gradient_RD, weight_gradient_VD.to(weight_VD.dtype))
        outputs = total, torch.cat(losses), torch.cat(rights), agreements_R
        ctx.mark_non_differentiable(*outputs[1:])
        return outputs

    @staticmethod
    def backward(ctx, *grad_outputs):
        scale = grad_outputs[0]
        hidden_gradient_RD, weight_gradient_VD = ctx.saved_tensors
        return hidden_gradient_RD * scale, weight_gradient_VD * scale, *[None] * 7


def _chunks(drafts: int, stop: int, most: int) -> list[slice]:
    """Rows before and behind the first draft, in chunks of the largest power of two up to `most`: a compiled step
    then seldom meets another size."""
    size = 1 << (max(1, most).bit_length() - 1)
    starts = [*range(0, drafts, size), *range(drafts, stop, size)]
    return [slice(start, min(start + size, drafts if start < drafts else stop)) for start in starts]


def _chunk(
    logits_CV: Tensor, targets_C: Tensor, weights_C: Tensor, entropy_weights_C: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A chunk's loss, its gradient for the logits in their precision, and each row's loss and correctness.

    Few passes over the logits: they, and not the products around them, take most of the time on a CPU.
    """
    logs_CV = logits_CV.float().log_softmax(-1)
    losses_C = -logs_CV.gather(-1, targets_C[:, None])[:, 0]
    right_C = losses_C == -logs_CV.amax(-1)
    loss = (losses_C * weights_C).sum()
    if entropy_weights_C is None:
        gradient_CV = logs_CV.exp_().mul_(weights_C[:, None])
    else:
        certain_C = entropy_weights_C * right_C
        chances_CV = logs_CV.exp()
        entropy_C = -(chances_CV * logs_CV).sum(-1)
        loss = loss + (entropy_C * certain_C).sum()
        gradient_CV = chances_CV * (weights_C - certain_C * entropy_C)[:, None]
        gradient_CV -= chances_CV * logs_CV * certain_C[:, None]
    gradient_CV.scatter_add_(-1, targets_C[:, None], -weights_C[:, None])
    return loss, gradient_CV.to(logits_CV.dtype), losses_C, right_C


def _draft_chunk(
    logits_CV: Tensor, read_CV: Tensor, known_C: Tensor, targets_C: Tensor, weights_C: Tensor, reading: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The same for drafts, and their agreement with the logits `read_CV`, or with the target where none are known.

    The agreement is the sum over the vocabulary of the smaller of the two chances. Raising a logit raises it where the
    draft's chance is the smaller one, at the expense of all such chances.
    """
    targets_CV = (torch.arange(logits_CV.shape[1], device=logits_CV.device) == targets_C[:, None]).float()
    logs_CV = logits_CV.float().log_softmax(-1)
    chances_CV = logs_CV.exp()
    expected_CV = torch.where(known_C[:, None], read_CV.float().softmax(-1), targets_CV)
    losses_C = -logs_CV.gather(-1, targets_C[:, None])[:, 0]
    right_C = losses_C == -logs_CV.amax(-1)
    agreement_C = torch.minimum(chances_CV, expected_CV).sum(-1)
    lacking_CV = chances_CV < expected_CV
    lacking_C = (chances_CV * lacking_CV).sum(-1)
    loss = (weights_C * ((1 - reading) * losses_C + reading * (1 - agreement_C))).sum()
    gradient_CV = (1 - reading) * (chances_CV - targets_CV)
    gradient_CV = gradient_CV + reading * chances_CV * (lacking_C[:, None] - lacking_CV.float())
    return loss, (gradient_CV * weights_C[:, None]).to(logits_CV.dtype), losses_C, right_C, agreement_C
