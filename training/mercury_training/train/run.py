"""The loop of a training run: updates until the budget is used up, with checkpoints and held-out losses in between."""

import math
import signal
import time
from collections.abc import Mapping
from contextlib import closing

import msgspec
import numpy as np
import torch

from mercury_training.errors import TrainingError
from mercury_training.rows import loader
from mercury_training.rows.packing import Packed
from mercury_training.train import processes
from mercury_training.train.finish import save_checkpoint, save_factors, save_model
from mercury_training.train.journal import Journal
from mercury_training.train.schedule import Phase, phase_at
from mercury_training.train.settings import Recipe, TrainSettings
from mercury_training.train.start import make_trainer, restore
from mercury_training.train.state import TrainState
from mercury_training.train.trainer import Trainer

SKIPPED = 10
"""Updates in a row without a finite gradient after which a run gives up."""
CPU_MICRO_TOKENS = 2048
MEMORY_SHARE = 0.6
"""The share of a GPU's memory for the activations of one micro-batch."""


class Progress:
    """Owns the progress of a run: its state, its clock, and whether it has been asked to end.

    The clock runs from `began`: loading belongs to the run. While entered, SIGTERM asks the run to end instead of
    ending the process.
    """

    def __init__(self, settings: TrainSettings, state: TrainState, began: float) -> None:
        self.settings, self.state = settings, state
        self._began = began - state.seconds
        self._asked_to_end = False

    def __enter__(self) -> "Progress":
        self._before = signal.signal(signal.SIGTERM, self._end)
        return self

    def __exit__(self, *error: object) -> None:
        signal.signal(signal.SIGTERM, self._before)

    def share(self) -> float:
        """The share of the budget that is used up, the same in all processes; 1 when asked to end."""
        if self.settings.steps is not None:
            share = self.state.stage_steps / self.settings.steps
        else:
            share = self.seconds() / (60 * self.settings.minutes)
        share, ending = self.broadcast(share, self._asked_to_end)
        return 1.0 if ending else min(1.0, share)

    def phase(self, share: float) -> Phase:
        settings, recipe = self.settings, self.settings.recipe
        return phase_at(
            share,
            settings.stage,
            recipe.shape,
            recipe.decay_shape,
            warm=self.state.warm,
            warmed_up=None if settings.warm_up is None else (self.state.stage_steps + 1) / max(1, settings.warm_up),
            lr_scale=settings.lr_scale,
            sampled_softmax=settings.sampled_softmax,
        )

    def broadcast(self, *values: float) -> list[float]:
        """The values of the first process, in all of them."""
        return processes.broadcast(values, torch.device(self.settings.hardware.device))

    def seconds(self) -> float:
        return time.monotonic() - self._began

    def wait_while_paused(self) -> None:
        """Wait; this time does not count as the run's."""
        began = time.monotonic()
        while (self.settings.out / "PAUSE").exists() and not self._asked_to_end:
            time.sleep(2)
        self._began += time.monotonic() - began

    def advance(self, rows: int, positions: int) -> None:
        self.state = msgspec.structs.replace(
            self.state,
            step=self.state.step + 1,
            stage_steps=self.state.stage_steps + 1,
            row=self.state.row + rows,
            positions=self.state.positions + positions,
            seconds=self.seconds(),
        )

    def _end(self, signum: int, frame: object) -> None:
        self._asked_to_end = True


class _Timer:
    """Remembers when something was last done."""

    def __init__(self, minutes: float) -> None:
        self._seconds, self._last = 60 * minutes, time.monotonic()

    def is_due(self) -> bool:
        if time.monotonic() - self._last < self._seconds:
            return False
        self._last = time.monotonic()
        return True


def run(settings: TrainSettings) -> TrainState:
    """Train until the budget is used up or the run is asked to end; return its final state."""
    began = time.monotonic()
    settings.out.mkdir(parents=True, exist_ok=True)
    trainer = make_trainer(settings)
    state = restore(trainer, settings)
    recipe = settings.recipe
    held_out = loader.held_out(settings.data, settings.scratch, recipe.shape, recipe.held_out)
    micro = settings.hardware.micro or _fitting_micro(trainer, held_out, recipe)
    journal = _journal(trainer, settings, state, micro)
    rank, world = processes.rank(), processes.world()
    batches = loader.Batches(
        settings.data, settings.scratch, settings.seed, settings.hardware.workers, rank=rank, world=world
    )
    if state.warm:
        losses = trainer.evaluate(held_out, recipe.shape)
        journal.note({"begun": True, **msgspec.to_builtins(losses)})
        journal.say(f"as it begins, held out: {losses}")
    with Progress(settings, state, began) as progress, closing(batches):
        _train(trainer, progress, batches, held_out, micro, journal)
    _save(trainer, progress)
    save_model(trainer, settings, held_out, journal)
    return progress.state


def _journal(trainer: Trainer, settings: TrainSettings, state: TrainState, micro: int) -> Journal:
    journal = Journal(settings.out, silent=processes.rank() > 0)
    parameters = sum(weight.numel() for weight in trainer.weights.values())
    journal.note({"settings": msgspec.to_builtins(settings, enc_hook=str), "parameters": parameters, "micro": micro})
    journal.say(
        f"{parameters / 1e6:.1f} M parameters, micro-batches of {processes.world()} × {micro} clean tokens, from step "
        f"{state.step}"
    )
    return journal


def _train(
    trainer: Trainer,
    progress: Progress,
    batches: loader.Batches,
    held_out: Packed,
    micro: int,
    journal: Journal,
) -> None:
    """Train. All processes save and evaluate when the first one does: it may need their parts."""
    settings = progress.settings
    saving, evaluating = _Timer(settings.checkpoint_minutes), _Timer(settings.evaluate_minutes)
    skipped = 0
    while (share := progress.share()) < 1:
        progress.wait_while_paused()
        phase = progress.phase(share)
        if settings.stage == "whole" and phase.decaying:
            _keep_undecayed(trainer, progress)
        entry = {"progress": round(share, 5), **_update(trainer, progress, batches, phase, micro)}
        skipped = 0 if entry["norm"] is not None else skipped + 1
        if skipped == SKIPPED:
            raise TrainingError(
                f"{settings.out}: {SKIPPED} updates in a row had no finite gradient; the newest checkpoint is from "
                "before them: continue from it with --resume and lower rates, or with --precision float32"
            )
        evaluate, save = progress.broadcast(evaluating.is_due(), saving.is_due())
        if evaluate:
            losses = msgspec.to_builtins(trainer.evaluate(held_out, settings.recipe.shape))
            entry |= {f"held_out_{name}": value for name, value in losses.items()}
        journal.step(entry)
        if save:
            _save(trainer, progress)
            journal.plot()


def _update(
    trainer: Trainer, progress: Progress, batches: loader.Batches, phase: Phase, micro: int
) -> dict[str, float | None]:
    """One update, as a line for the log."""
    settings, began, world = progress.settings, time.monotonic(), processes.world()
    micro_rows = max(1, micro // phase.shape.clean)
    count = max(1, settings.recipe.update // (micro_rows * phase.shape.clean * world))
    micro_batches = batches.take(count, micro_rows, phase.shape, progress.state.row)
    draw = np.random.default_rng([settings.seed, progress.state.step, processes.rank()])
    losses, norm = trainer.step(micro_batches, phase, draw)
    rows = count * micro_rows * world
    positions = rows * phase.seen.rows
    progress.advance(rows, positions)
    return {
        "step": progress.state.step,
        "positions": progress.state.positions,
        "seconds": round(progress.state.seconds, 2),
        "factor": round(phase.rate, 5),
        **_finite(msgspec.to_builtins(losses) | {"norm": round(norm, 4)}),
        "speed": round(positions / (time.monotonic() - began), 1),
    }


def _finite(losses: Mapping[str, float | None]) -> dict[str, float | None]:
    """The value, or None for infinity and NaN, which JSON lacks."""
    return {name: value if value is not None and math.isfinite(value) else None for name, value in losses.items()}


def _save(trainer: Trainer, progress: Progress) -> None:
    save_checkpoint(trainer, progress.state, progress.settings.checkpoints / f"{progress.state.step:08d}")
    save_factors(trainer, progress.settings.out)


def _keep_undecayed(trainer: Trainer, progress: Progress) -> None:
    """Save the state from which a longer run can continue, once."""
    folder = progress.settings.out / "pre-decay"
    (missing,) = progress.broadcast(not folder.exists())
    if missing:
        save_checkpoint(trainer, progress.state, folder)


def _fitting_micro(trainer: Trainer, batch: Packed, recipe: Recipe) -> int:
    """Clean tokens of a micro-batch: few on a CPU; on a GPU, a power of two of rows that fits its memory."""
    limit = max(recipe.decay_shape.clean, recipe.update // processes.world())
    if trainer.device.type != "cuda":
        return min(limit, CPU_MICRO_TOKENS)
    used = trainer.footprint(batch, recipe.shape)
    free, _ = torch.cuda.mem_get_info(trainer.device)
    rows = processes.all_reduce_min(max(1, int(MEMORY_SHARE * free / used)), trainer.device)
    fitting = 1 << (rows.bit_length() - 1)
    return max(recipe.decay_shape.clean, min(limit, fitting * recipe.shape.clean))
