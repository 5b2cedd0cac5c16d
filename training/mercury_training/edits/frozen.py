"""A model whose matrices stay as they are, while low-rank products beside them learn.

    model = freeze(models.load(folder, torch.float32), rank=32, seed=0)
    factors(model)            # what learns, by the names of the weights: the contents of a checkpoint
    attach(model, factors)    # as it was

Frozen matrices need no gradient of their own, and no float32. On a CPU with AMX their products, and those beside them,
are quickest in bfloat16; on one with VNNI alone those in int8, in the forward and in the backward, are three times as
fast as float32 ones: rows of both sides are scaled to their largest number and rounded. The model that ships computes
in int8, too. Each special token also learns a vector of its own, at full rank, for those that no text has used share
one.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch import _int_mm as int8_product  # pyright: ignore[reportPrivateImportUsage]
from torch.nn import functional

from mercury_engine.model.adapter import DOWN, SPECIAL, UP
from mercury_engine.model.network import Model
from mercury_engine.tokens.vocabulary import SPECIALS
from mercury_training.errors import TrainingError

LEARNING = ("query", "key", "value", "output", "down")
"""The matrices with a product beside them."""
LEARNED = "learned/"
"""Before the names of what learns, in optimisers and states."""
TINY = 1e-12
QUICK_ROWS = 512
"""Of a product in bfloat16: with 1,000 to 1,152 rows of 4,864 numbers oneDNN is half as fast."""


def quickest() -> torch.dtype:
    """The precision in which this processor multiplies with frozen matrices: int8, or bfloat16 if it has AMX."""
    return torch.bfloat16 if torch.cpu._is_amx_tile_supported() else torch.int8  # pyright: ignore[reportPrivateUsage]


class _Rounded(torch.autograd.Function):
    """x @ weight.T, where weight is int8 with a scale for each output. It is kept twice, since a product with a
    transposed matrix takes up to four tenths longer."""

    @staticmethod
    def forward(ctx, x_RI: Tensor, weight_OI: Tensor, weight_IO: Tensor, scale_O: Tensor) -> Tensor:
        ctx.save_for_backward(weight_OI, scale_O)
        rounded_RI, scale_R1 = _rounded(x_RI)
        return int8_product(rounded_RI, weight_IO).float() * scale_R1 * scale_O

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        weight_OI, scale_O = ctx.saved_tensors
        rounded_RO, scale_R1 = _rounded(gradients[0] * scale_O)
        return int8_product(rounded_RO, weight_OI).float() * scale_R1, None, None, None


def _rounded(x_RI: Tensor) -> tuple[Tensor, Tensor]:
    scale_R1 = x_RI.abs().amax(-1, keepdim=True).clamp_min(TINY) / 127
    return (x_RI / scale_R1).round().to(torch.int8), scale_R1


class _Int8Matrix(nn.Module):
    """A matrix without gradients in int8; products beside it stay in float32."""

    beside = torch.float32

    def __init__(self, weight_OI: Tensor) -> None:
        super().__init__()
        rounded_OI, scale_O1 = _rounded(weight_OI)
        self.register_buffer("rounded", rounded_OI)
        self.register_buffer("transposed", rounded_OI.t().contiguous())
        self.register_buffer("scale", scale_O1[:, 0])

    def forward(self, x_RI: Tensor) -> Tensor:
        return _Rounded.apply(x_RI, self.rounded, self.transposed, self.scale)


class _Bfloat16Matrix(nn.Module):
    """A matrix without gradients in bfloat16, as are products beside it and all that passes between matrices."""

    beside = torch.bfloat16

    def __init__(self, weight_OI: Tensor) -> None:
        super().__init__()
        self.weight: Tensor
        self.register_buffer("weight", weight_OI.bfloat16())

    def forward(self, x_RI: Tensor) -> Tensor:
        parts = [functional.linear(part, self.weight) for part in x_RI.bfloat16().split(QUICK_ROWS)]
        return torch.cat(parts) if len(parts) > 1 else parts[0]


_MATRICES = {torch.int8: _Int8Matrix, torch.bfloat16: _Bfloat16Matrix}


class FrozenLinear(nn.Module):
    """A linear layer that does not learn, with a product of low rank beside it that does if `rank` is not 0."""

    def __init__(self, linear: nn.Linear, rank: int, generator: torch.Generator, precision: torch.dtype) -> None:
        super().__init__()
        outputs, inputs = linear.weight.shape
        self.matrix = _MATRICES[precision](linear.weight.detach().float())
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach().float())
        self.up = nn.Parameter(torch.zeros(outputs, rank)) if rank else None
        self.down = None
        if rank:
            self.down = nn.Parameter(torch.randn(rank, inputs, generator=generator) / math.sqrt(inputs))

    def forward(self, x_BTI: Tensor) -> Tensor:
        x_RI = x_BTI.flatten(0, -2)
        y_RO = self.matrix(x_RI)
        if self.bias is not None:
            y_RO = y_RO + self.bias.to(y_RO.dtype)
        if self.up is not None and self.down is not None:
            beside = self.matrix.beside
            low_RK = functional.linear(x_RI.to(beside), self.down.to(beside))
            y_RO = y_RO + functional.linear(low_RK, self.up.to(beside))
        return y_RO.unflatten(0, x_BTI.shape[:-1])


class FrozenEmbedding(nn.Module):
    """An embedding, also the head, of which only the special tokens' vectors learn."""

    def __init__(self, embedding: nn.Embedding, precision: torch.dtype) -> None:
        super().__init__()
        self.precision = precision
        self.weight: Tensor
        self.register_buffer("weight", embedding.weight.detach().to(precision))
        self.special = nn.Parameter(embedding.weight[: len(SPECIALS)].detach().float().clone())

    def forward(self, ids_BT: Tensor) -> Tensor:
        text_BTD = functional.embedding(ids_BT, self.weight)
        special_BTD = functional.embedding(ids_BT.clamp(max=len(SPECIALS) - 1), self.special)
        return torch.where((ids_BT < len(SPECIALS))[..., None], special_BTD, text_BTD).to(self.precision)

    def logits(self, hidden_RD: Tensor) -> Tensor:
        special_RS = functional.linear(hidden_RD.float(), self.special)
        text_RV = functional.linear(hidden_RD.to(self.precision), self.weight[len(SPECIALS) :])
        return torch.cat([special_RS, text_RV.float()], 1)


def freeze(model: Model, rank: int, seed: int, precision: torch.dtype) -> Model:
    """The same model, changed in place; only products and special tokens need gradients."""
    generator = torch.Generator().manual_seed(seed)
    model.requires_grad_(False)
    for module in list(model.layers.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, FrozenLinear(child, rank if name in LEARNING else 0, generator, precision))
    beside = _MATRICES[precision].beside
    for weight in model.layers.parameters():
        if not weight.requires_grad:
            weight.data = weight.data.to(beside)
    embedding = FrozenEmbedding(model.embedding, beside)
    model.embedding = embedding  # pyright: ignore[reportAttributeAccessIssue]
    _separate(embedding.special.data)
    return model


def head(model: Model) -> FrozenEmbedding:
    """The embedding of a frozen model, which is also its head."""
    embedding: nn.Module = model.embedding
    assert isinstance(embedding, FrozenEmbedding), "freeze the model first"
    return embedding


def _separate(special_SD: Tensor) -> None:
    """Give special tokens that share a vector, the mean of all, vectors of their own around it."""
    shared = (special_SD[:, None] == special_SD[None]).all(-1).sum(1) > 1
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(special_SD.shape, generator=generator)
    size = special_SD.norm(dim=1, keepdim=True)
    special_SD += noise / noise.norm(dim=1, keepdim=True) * size * 0.3 * shared[:, None]


def factors(model: Model) -> dict[str, nn.Parameter]:
    """What learns, by the names of the weights."""
    learned = {SPECIAL: head(model).special}
    for path, module in model.named_modules():
        if isinstance(module, FrozenLinear) and module.up is not None and module.down is not None:
            learned[f"{path}.weight{UP}"] = module.up
            learned[f"{path}.weight{DOWN}"] = module.down
    return learned


@torch.no_grad()
def attach(model: Model, saved: Mapping[str, Tensor]) -> None:
    """Set what learns as it was saved."""
    learned = factors(model)
    for name in learned.keys() | saved.keys():
        if name not in learned or name not in saved or learned[name].shape != saved[name].shape:
            raise TrainingError(f"{name} is not a factor of this model; name a checkpoint of a run on it")
        learned[name].copy_(saved[name])
