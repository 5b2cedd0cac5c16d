"""The settings of a training run."""

from pathlib import Path

import msgspec
import torch
from msgspec import Struct

from mercury_engine.model.config import CONFIG_FILE, TINY, ModelConfig, read_config
from mercury_training.models import SMALL
from mercury_training.rows.packing import RowShape
from mercury_training.train.losses import CROSS_ENTROPY, CanvasLoss
from mercury_training.train.optimizer import Rates
from mercury_training.train.schedule import Stage

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
ADAPTATION = Rates(muon=2e-3, adam=1e-4)
LOW_RANK = Rates(adam=1e-3)
"""Learning rates for weights that are already trained."""


class Recipe(Struct, frozen=True):
    """A model, the shape of its rows before and in the decay, how many clean tokens make an update, the loss, and how
    many rows measure it on held-out text."""

    config: ModelConfig
    shape: RowShape
    decay_shape: RowShape
    update: int
    rates: Rates = Rates()
    canvas_loss: CanvasLoss = CROSS_ENTROPY
    held_out: int = 32


RECIPES = {
    "small": Recipe(SMALL, RowShape(1024, 384), RowShape(2048, 768), 262_144),
    "tiny": Recipe(
        msgspec.structs.replace(TINY, vocabulary=16_384), RowShape(256, 96), RowShape(512, 192), 2048, held_out=2
    ),
}


class Start(Struct, frozen=True):
    """The starting point of a run: the newest checkpoint of its own folder, a checkpoint of another run, or the
    weights of a model, which stay as they are while a product of a `rank` beside each matrix learns, or the product of
    the `factors` of an earlier run."""

    resume: bool = False
    checkpoint: Path | None = None
    model: Path | None = None
    rank: int = 0
    factors: Path | None = None


class Hardware(Struct, frozen=True):
    """The hardware of the run. `micro` is the clean tokens of a micro-batch, None for as many as memory allows.
    Sharded, each of several processes holds a part of every weight."""

    device: str = "cpu"
    precision: str = "float32"
    compiled: bool = False
    sharded: bool = False
    micro: int | None = None
    workers: int = 0


class TrainSettings(Struct, frozen=True, kw_only=True):
    """The budget is `steps` if given, else `minutes`. The learning rates warm up for `warm_up` updates if given, else
    for a share of the budget. With `sampled_softmax`, losses before the end of the decay are taken over the tokens that
    occur and that many others, drawn anew for each update. All learning rates are multiplied by `lr_scale`."""

    data: Path
    out: Path
    recipe: Recipe
    stage: Stage = "whole"
    minutes: float = 10.0
    steps: int | None = None
    warm_up: int | None = None
    start: Start = Start()
    hardware: Hardware = Hardware()
    sampled_softmax: int | None = None
    lr_scale: float = 1.0
    seed: int = 0
    checkpoint_minutes: float = 5.0
    evaluate_minutes: float = 15.0

    @property
    def scratch(self) -> Path:
        return self.out / "scratch"

    @property
    def checkpoints(self) -> Path:
        return self.out / "checkpoints"


def recipe_for(model: Path, *, low_rank: bool) -> Recipe:
    """A recipe for an existing model: half of its context, all of it in the decay, at low rates."""
    config = read_config(model / CONFIG_FILE)
    half = RowShape(config.context // 2, 3 * config.context // 16)
    whole = RowShape(2 * half.clean, 2 * half.canvas)
    return Recipe(config, half, whole, 32 * half.clean, LOW_RANK if low_rank else ADAPTATION)
