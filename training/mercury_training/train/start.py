"""The start of a run: from nothing, from a model, from its own newest checkpoint, or from one of another run."""

from pathlib import Path

import msgspec
import torch
from torch import Tensor

from mercury_engine.model.config import CONFIG_FILE, ModelConfig
from mercury_engine.model.export import TOKENIZER_FILE, dequantized, read
from mercury_engine.model.network import Model
from mercury_training import models
from mercury_training.errors import TrainingError
from mercury_training.train import lora, state
from mercury_training.train.settings import PRECISIONS, TrainSettings
from mercury_training.train.state import TrainState
from mercury_training.train.trainer import Trainer


def make_trainer(settings: TrainSettings) -> Trainer:
    recipe, hardware = settings.recipe, settings.hardware
    return Trainer(
        recipe.config,
        recipe.rates,
        seed=settings.seed,
        device=hardware.device,
        precision=PRECISIONS[hardware.precision],
        compiled=hardware.compiled,
        sharded=hardware.sharded,
        model=_model(settings),
        canvas_loss=recipe.canvas_loss,
    )


def restore(trainer: Trainer, settings: TrainSettings) -> TrainState:
    """Load the checkpoint that the run continues, with its moments if it has any, and return its state."""
    start = settings.start
    folder = state.latest(settings.checkpoints) if start.resume else start.checkpoint
    if folder is None:
        if settings.checkpoints.exists():
            raise TrainingError(f"{settings.out}: already holds a run; add --resume, or name another --out")
        return TrainState(stage=settings.stage, warm=start.model is not None)
    is_model = not start.resume and (folder / CONFIG_FILE).exists()
    loaded, weights, moments = _exported(folder, settings.recipe.config) if is_model else state.read(folder)
    trainer.load(weights)
    if moments:
        trainer.optimizer.restore(moments, loaded.step)
    else:
        trainer.optimizer.begin()
    if start.resume and loaded.stage == settings.stage:
        return loaded
    return msgspec.structs.replace(loaded, stage=settings.stage, seconds=0.0, stage_steps=0, warm=True)


def _exported(folder: Path, config: ModelConfig) -> tuple[TrainState, dict[str, Tensor], dict[str, Tensor]]:
    """The weights of a model folder, int8 or float, without any moments."""
    theirs, weights = read(folder)
    if theirs != config:
        raise TrainingError(f"{folder}: is not of the preset's shape; continue it with --model")
    return TrainState("stable"), {name: torch.tensor(weight) for name, weight in dequantized(weights).items()}, {}


def _model(settings: TrainSettings) -> Model | None:
    """The model whose training continues, with gradients for the part of it that learns."""
    folder, rank = settings.start.model, settings.start.rank
    if folder is None:
        return None
    if (folder / TOKENIZER_FILE).read_bytes() != (settings.data / TOKENIZER_FILE).read_bytes():
        raise TrainingError(
            f"{settings.data}: its vocabulary is not that of {folder}; recode it with "
            "`python -m mercury_training.adapt --corpus`"
        )
    model = models.load(folder, torch.float32).train().requires_grad_(True)
    if settings.start.factors is not None:
        return lora.continued(model, settings.start.factors)
    return lora.attach(model, rank, settings.seed) if rank else model
