"""The output of a run: checkpoints on the way, and a model that the engine loads at the end."""

import shutil
from pathlib import Path

import msgspec

from mercury_engine.model import provenance
from mercury_engine.model.export import TOKENIZER_FILE
from mercury_training import models
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


def save_factors(trainer: Trainer, out: Path) -> None:
    """Save the low-rank factors alone, if there are any, as a file for `--factors` and `merge`."""
    factors = processes.gathered(lora.factors(trainer.model))
    if factors and processes.rank() == 0:
        lora.save(factors, out / lora.FACTORS_FILE)


def save_model(trainer: Trainer, settings: TrainSettings, held_out: Packed, journal: Journal) -> None:
    """Save the last weights or their running mean, whichever predicts held-out rows better."""
    candidates = {"last": {n: w.data.clone() for n, w in trainer.weights.items()}, "mean": trainer.optimizer.mean}
    losses = {}
    for name, weights in candidates.items():
        trainer.load(weights)
        found = trainer.evaluate(held_out, settings.recipe.shape)
        losses[name] = found.clean + settings.recipe.canvas_loss.of(found.canvas or 0, found.agreement or 0)
        journal.note({"final": name, **msgspec.to_builtins(found)})
        journal.say(f"{name} weights, held out: {found}")
    (mean_is_better,) = processes.broadcast([losses["mean"] < losses["last"]], trainer.device)
    trainer.load(candidates["mean" if mean_is_better else "last"])
    save_factors(trainer, settings.out)
    learned = lora.merged(trainer.model)
    if processes.rank() == 0:
        models.save(learned, settings.out / "model")
        shutil.copy(settings.data / TOKENIZER_FILE, settings.out / "model")
        start, corpus = settings.start, settings.data / "manifest.json"
        given = {"model": start.model, "factors": start.factors, "start": start.checkpoint, "corpus": corpus}
        read = {purpose: path for purpose, path in given.items() if path}
        provenance.note("mercury_training.train", settings.out / "model", read)
        journal.plot()
