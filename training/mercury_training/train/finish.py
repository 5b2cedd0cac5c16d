"""The output of a run: checkpoints on the way, and a model that the engine loads at the end."""

import shutil
from pathlib import Path

import msgspec

from mercury_engine.model import network
from mercury_engine.model.export import TOKENIZER_FILE
from mercury_training.rows.packing import Packed
from mercury_training.train import lora, processes, state
from mercury_training.train.journal import Journal
from mercury_training.train.settings import TrainSettings
from mercury_training.train.state import TrainState
from mercury_training.train.trainer import Trainer


def save_checkpoint(trainer: Trainer, reached: TrainState, folder: Path) -> None:
    """Save a checkpoint. All processes must call this: each may hold a part of the weights."""
    weights, moments = processes.gathered(trainer.weights), processes.gathered(trainer.optimizer.state())
    if processes.rank() == 0:
        state.write(folder, reached, weights, moments)


def save_model(trainer: Trainer, settings: TrainSettings, held_out: Packed, journal: Journal) -> None:
    """Save the last weights or their running mean, whichever predicts held-out rows better."""
    candidates = {"last": {n: w.data.clone() for n, w in trainer.weights.items()}, "mean": trainer.optimizer.mean}
    losses = {}
    for name, weights in candidates.items():
        trainer.load(weights)
        found = trainer.evaluate(held_out, settings.recipe.shape)
        losses[name] = found.clean + (found.canvas or 0)
        journal.note({"final": name, **msgspec.to_builtins(found)})
        journal.say(f"{name} weights, held out: {found}")
    (mean_is_better,) = processes.broadcast([losses["mean"] < losses["last"]], trainer.device)
    trainer.load(candidates["mean" if mean_is_better else "last"])
    learned = lora.merged(trainer.model)
    if processes.rank() == 0:
        network.save(learned, settings.out / "model")
        shutil.copy(settings.data / TOKENIZER_FILE, settings.out / "model")
        journal.plot()
