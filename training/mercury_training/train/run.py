"""A training run: `python -m mercury_training.train --data CORPUS --preset quicksilver --minutes 25 --out DIR`.

Runs on a CPU, on a GPU, or on several under torchrun, where gradients are summed and every process holds the whole
model or, with --shard, a part of every weight. A file PAUSE in the run's folder holds it; SIGTERM ends it with a
checkpoint, and --resume goes on.
"""

import argparse
import math
import os
import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import get_args

import msgspec
import numpy as np
import torch
import torch.distributed as distributed
from msgspec import Struct

from mercury_engine.model import network as models
from mercury_engine.model.config import BOOTSTRAP, QUICKSILVER, TINY, ModelConfig, read_config
from mercury_training.errors import TrainingError, reported
from mercury_training.rows import loader
from mercury_training.rows.packing import Packed, Shape
from mercury_training.train import lora, processes, schedule, state
from mercury_training.train.journal import Journal
from mercury_training.train.optimizer import Rates
from mercury_training.train.schedule import Stage
from mercury_training.train.state import Place
from mercury_training.train.trainer import Negatives, Trainer

__all__ = ["RECIPES", "Recipe", "Settings", "main", "run"]

TOKENIZER = "tokenizer.json"
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
ADAPTATION = Rates(muon=2e-3, adam=1e-4)
LOW_RANK = Rates(adam=1e-3)
"""For weights that know much already."""

SKIPPED = 10
"""Updates in a row that cannot be made before a run gives up."""
HELD_OUT_ROWS = 32
CPU_MICRO_TOKENS = 2048
MEMORY_SHARE = 0.6
"""Of a GPU's memory, for the activations of one micro-batch."""


class Recipe(Struct, frozen=True):
    """A model, how its rows are shaped, before the decay and in it, and how many clean tokens make an update."""

    config: ModelConfig
    shape: Shape
    decay_shape: Shape
    update: int
    rates: Rates = Rates()


RECIPES = {
    "quicksilver": Recipe(QUICKSILVER, Shape(1024, 384), Shape(2048, 768), 262_144),
    "bootstrap": Recipe(BOOTSTRAP, Shape(512, 192), Shape(1024, 384), 8192),
    "tiny": Recipe(msgspec.structs.replace(TINY, vocabulary=16_384), Shape(256, 96), Shape(512, 192), 2048),
}


class Settings(Struct, frozen=True, kw_only=True):
    """A run as it was asked for. The budget is `steps` where that is given, else `minutes`; `start` is a checkpoint
    of another run to go on from, `micro` the clean tokens of a micro-batch. With `negatives` a loss before the end of
    the decay is taken over the tokens that occur and so many others, drawn for each update. All rates are times
    `height`. `model` is a folder whose weights are gone on from; with a `rank` they stay, and a product of that rank
    beside each matrix learns. `sharded`, each of several processes holds a part of every weight."""

    data: Path
    out: Path
    recipe: Recipe
    stage: Stage = "whole"
    minutes: float = 10.0
    steps: int | None = None
    resume: bool = False
    start: Path | None = None
    model: Path | None = None
    rank: int = 0
    device: str = "cpu"
    precision: str = "float32"
    compiled: bool = False
    sharded: bool = False
    micro: int | None = None
    workers: int = 0
    negatives: int | None = None
    height: float = 1.0
    seed: int = 0
    checkpoint_minutes: float = 5.0
    evaluate_minutes: float = 15.0

    @property
    def scratch(self) -> Path:
        return self.out / "scratch"


class Session:
    """Owns what a run needs beside its trainer: the place it stands at, its clock, and whether it is to end.

    While entered, SIGTERM asks the run to end, instead of ending the process.
    """

    def __init__(self, settings: Settings, place: Place, micro: int, rank: int, world: int) -> None:
        self.settings, self.place, self.micro = settings, place, micro
        self.rank, self.world = rank, world
        self._began = time.monotonic() - place.seconds
        self._asked_to_end = False

    def __enter__(self) -> "Session":
        self._before = signal.signal(signal.SIGTERM, self._end)
        return self

    def __exit__(self, *error: object) -> None:
        signal.signal(signal.SIGTERM, self._before)

    def progress(self) -> float:
        """The share of the budget that is used up, the same in all processes; 1 when told to end."""
        if self.settings.steps is not None:
            progress = self.place.stage_steps / self.settings.steps
        else:
            progress = self.seconds() / (60 * self.settings.minutes)
        progress, ending = self.agreed(progress, self._asked_to_end)
        return 1.0 if ending else min(1.0, progress)

    def agreed(self, *values: float) -> list[float]:
        """What the first process says, in all of them."""
        return processes.agreed(values, torch.device(self.settings.device))

    def seconds(self) -> float:
        return time.monotonic() - self._began

    def wait_while_paused(self) -> None:
        """Time that passes here is not the run's."""
        began = time.monotonic()
        while (self.settings.out / "PAUSE").exists() and not self._asked_to_end:
            time.sleep(2)
        self._began += time.monotonic() - began

    def advance(self, rows: int, positions: int) -> None:
        self.place = msgspec.structs.replace(
            self.place,
            step=self.place.step + 1,
            stage_steps=self.place.stage_steps + 1,
            row=self.place.row + rows,
            positions=self.place.positions + positions,
            seconds=self.seconds(),
        )

    def _end(self, signum: int, frame: object) -> None:
        self._asked_to_end = True


class Interval:
    """Owns when something was done last."""

    def __init__(self, minutes: float) -> None:
        self._seconds, self._last = 60 * minutes, time.monotonic()

    def is_over(self) -> bool:
        if time.monotonic() - self._last < self._seconds:
            return False
        self._last = time.monotonic()
        return True


def run(settings: Settings, rank: int = 0, world: int = 1) -> Place:
    """Train until the budget is used up or the run is told to end; returns where it stands then."""
    settings.out.mkdir(parents=True, exist_ok=True)
    recipe = settings.recipe
    trainer = Trainer(
        recipe.config,
        recipe.rates,
        seed=settings.seed,
        device=settings.device,
        precision=PRECISIONS[settings.precision],
        compiled=settings.compiled,
        sharded=settings.sharded,
        model=_given(settings),
    )
    place = _begin(trainer, settings)
    held_out = loader.held_out(settings.data, settings.scratch, recipe.shape, HELD_OUT_ROWS)
    micro = settings.micro or _fitting_micro(trainer, held_out, recipe, world)
    journal = Journal(settings.out, silent=rank > 0)
    parameters = sum(weight.numel() for weight in trainer.weights.values())
    journal.note({"settings": msgspec.to_builtins(settings, enc_hook=str), "parameters": parameters, "micro": micro})
    journal.say(f"{parameters / 1e6:.1f} M parameters, {world} × {micro} clean tokens at once, from step {place.step}")
    batches = loader.Batches(settings.data, settings.scratch, settings.seed, settings.workers, rank, world)
    with Session(settings, place, micro, rank, world) as session, closing(batches):
        _train(trainer, session, batches, held_out, journal)
    _save(trainer, session.place, settings.out / "checkpoints" / f"{session.place.step:08d}")
    _finish(trainer, settings, held_out, journal)
    return session.place


def _train(trainer: Trainer, session: Session, batches: loader.Batches, held_out: Packed, journal: Journal) -> None:
    """All processes save and judge when the first one does: it may need their parts."""
    settings = session.settings
    saving, judging = Interval(settings.checkpoint_minutes), Interval(settings.evaluate_minutes)
    skipped = 0
    while (progress := session.progress()) < 1:
        session.wait_while_paused()
        if settings.stage == "whole" and schedule.is_decaying(progress, "whole"):
            _keep_undecayed(trainer, session)
        entry = _step(trainer, session, batches, progress)
        skipped = 0 if entry["norm"] is not None else skipped + 1
        if skipped == SKIPPED:
            raise TrainingError(
                f"{settings.out}: the gradients of {SKIPPED} updates in a row were no numbers; the newest checkpoint "
                "is from before them: go on from it with --resume and lower rates, or --precision float32"
            )
        judge, save = session.agreed(judging.is_over(), saving.is_over())
        if judge:
            seen = msgspec.to_builtins(trainer.evaluate(held_out, settings.recipe.shape))
            entry |= {f"held_out_{name}": value for name, value in seen.items()}
        journal.step(entry)
        if save:
            _save(trainer, session.place, settings.out / "checkpoints" / f"{session.place.step:08d}")
            journal.plot()


def _step(trainer: Trainer, session: Session, batches: loader.Batches, progress: float) -> dict:
    """One update at this progress, as a line for the log."""
    recipe, stage, began = session.settings.recipe, session.settings.stage, time.monotonic()
    decaying = schedule.is_decaying(progress, stage)
    shape = recipe.decay_shape if decaying else recipe.shape
    micro_rows = max(1, session.micro // shape.clean)
    count = max(1, recipe.update // (micro_rows * shape.clean * session.world))
    found = batches.take(count, micro_rows, shape, session.place.row)
    seen_shape = shape if schedule.has_canvases(progress, stage, warm=session.place.warm) else Shape(shape.clean, 0)
    factor = schedule.rate_factor(progress, stage) * session.settings.height
    negatives = None
    if session.settings.negatives and not schedule.is_ending(progress, stage):
        negatives = _negatives(session)
    figures, norm = trainer.step(
        found, seen_shape, factor, certainty=decaying and negatives is None, negatives=negatives
    )
    rows = count * micro_rows * session.world
    session.advance(rows, rows * seen_shape.rows)
    return {
        "step": session.place.step,
        "positions": session.place.positions,
        "seconds": round(session.place.seconds, 2),
        "progress": round(progress, 5),
        "factor": round(factor, 5),
        **_numbers(msgspec.to_builtins(figures) | {"norm": round(norm, 4)}),
        "speed": round(rows * seen_shape.rows / (time.monotonic() - began), 1),
    }


def _numbers(found: dict[str, float | None]) -> dict[str, float | None]:
    """What is no number has no place in the log."""
    return {name: value if value is not None and math.isfinite(value) else None for name, value in found.items()}


def _negatives(session: Session) -> Negatives:
    draw = np.random.default_rng([session.settings.seed, session.place.step, session.rank])
    return Negatives(session.settings.negatives, draw)


def _given(settings: Settings) -> models.Model | None:
    """The model to go on from, with what of it is to learn."""
    if settings.model is None:
        return None
    if (settings.model / TOKENIZER).read_bytes() != (settings.data / TOKENIZER).read_bytes():
        raise TrainingError(
            f"{settings.data}: its vocabulary is not that of {settings.model}; write it anew with "
            "`python -m mercury_training.adapt --corpus`"
        )
    model = models.load(settings.model, torch.float32).train().requires_grad_(True)
    return lora.attach(model, settings.rank, settings.seed) if settings.rank else model


def _begin(trainer: Trainer, settings: Settings) -> Place:
    """From nothing, from this run's newest checkpoint, or from one of another run, with or without its moments."""
    if not settings.resume and settings.start is None:
        if (settings.out / "checkpoints").exists():
            raise TrainingError(f"{settings.out}: holds a run already; add --resume, or name another --out")
        return Place(stage=settings.stage, warm=settings.model is not None)
    folder = state.latest(settings.out) if settings.resume else settings.start
    place, weights, moments = state.read(folder)
    trainer.load(state.grown(weights, trainer.weights))
    if moments:
        trainer.optimizer.restore(state.grown(moments, trainer.optimizer.state()), place.step)
    else:
        trainer.optimizer.begin()
    if settings.resume and place.stage == settings.stage:
        return place
    return msgspec.structs.replace(place, stage=settings.stage, seconds=0.0, stage_steps=0, warm=True)


def _save(trainer: Trainer, place: Place, folder: Path) -> None:
    weights, moments = processes.gathered(trainer.weights), processes.gathered(trainer.optimizer.state())
    if processes.rank() == 0:
        state.write(folder, place, weights, moments)


def _keep_undecayed(trainer: Trainer, session: Session) -> None:
    """What a longer run goes on from, saved once."""
    folder = session.settings.out / "pre-decay"
    (missing,) = session.agreed(not folder.exists())
    if missing:
        _save(trainer, session.place, folder)


def _finish(trainer: Trainer, settings: Settings, held_out: Packed, journal: Journal) -> None:
    """Leave the better of the last weights and their running mean as a model that the engine loads."""
    shape = settings.recipe.shape
    candidates = {"last": {n: w.data.clone() for n, w in trainer.weights.items()}, "mean": trainer.optimizer.mean}
    losses = {}
    for name, weights in candidates.items():
        trainer.load(weights)
        figures = trainer.evaluate(held_out, shape)
        losses[name] = figures.clean + (figures.canvas or 0)
        journal.note({"final": name, **msgspec.to_builtins(figures)})
        journal.say(f"{name} weights, held out: {figures}")
    (mean_is_better,) = processes.agreed([losses["mean"] < losses["last"]], trainer.device)
    trainer.load(candidates["mean" if mean_is_better else "last"])
    learned = lora.merged(trainer.model)
    if processes.rank() == 0:
        models.save(learned, settings.out / "model")
        shutil.copy(settings.data / TOKENIZER, settings.out / "model")
        journal.plot()


def _fitting_micro(trainer: Trainer, batch: Packed, recipe: Recipe, world: int) -> int:
    """Clean tokens of a micro-batch: few on a CPU, on a GPU a power of two of rows that fits its memory."""
    most = max(recipe.decay_shape.clean, recipe.update // world)
    if trainer.device.type != "cuda":
        return min(most, CPU_MICRO_TOKENS)
    used = trainer.footprint(batch, recipe.shape)
    free, _ = torch.cuda.mem_get_info(trainer.device)
    rows = processes.least(max(1, int(MEMORY_SHARE * free / used)), trainer.device)
    fitting = 1 << (rows.bit_length() - 1)
    return max(recipe.decay_shape.clean, min(most, fitting * recipe.shape.clean))


def main(arguments: Sequence[str] | None = None) -> None:
    with reported("mercury_training.train"):
        settings, threads = _settings(arguments)
        torch.set_num_threads(threads)
        _launch(settings)


def _launch(settings: Settings) -> None:
    """This process' part of the run."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0"))
    if world == 1:
        if settings.sharded:
            raise SystemExit("--shard: there is one process to share the weights; start several with torchrun")
        run(settings)
        return
    on_gpu = settings.device.startswith("cuda")
    if on_gpu:
        settings = msgspec.structs.replace(settings, device=f"cuda:{os.environ['LOCAL_RANK']}")
        torch.cuda.set_device(settings.device)
    distributed.init_process_group("nccl" if on_gpu else "gloo")
    try:
        run(settings, rank, world)
    finally:
        distributed.destroy_process_group()


def _recipe(folder: Path, rank: int) -> Recipe:
    """For a model that is there already: half of its context, all of it in the decay, at careful rates."""
    config = read_config(folder / models.CONFIG_FILE)
    half = Shape(config.context // 2, 3 * config.context // 16)
    whole = Shape(2 * half.clean, 2 * half.canvas)
    return Recipe(config, half, whole, 32 * half.clean, LOW_RANK if rank else ADAPTATION)


def _settings(arguments: Sequence[str] | None) -> tuple[Settings, int]:
    on_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(prog="mercury_training.train", description=__doc__.split("\n")[0])
    option = parser.add_argument
    option("--data", type=Path, required=True, metavar="DIR", help="a corpus folder")
    option("--out", type=Path, required=True, metavar="DIR", help="the run: log, curve, checkpoints, model")
    begin = parser.add_mutually_exclusive_group(required=True)
    begin.add_argument("--preset", choices=RECIPES)
    begin.add_argument("--model", type=Path, metavar="DIR", help="go on from a model, as `adapt` leaves them")
    option("--lora", type=int, default=0, metavar="RANK", help="with --model: learn only products of this rank")
    option("--minutes", type=float, default=10.0, help="the budget: the schedule ends when it does (default: 10)")
    option("--steps", type=int, help="a budget in updates instead")
    option("--stage", choices=get_args(Stage), default="whole", help="stable: no decay; decay: only that")
    option("--resume", action="store_true", help="go on from the newest checkpoint of --out")
    option("--start", type=Path, metavar="DIR", help="go on from a checkpoint of another run")
    option("--device", default="cuda" if on_gpu else "cpu")
    option("--precision", choices=PRECISIONS, default="bfloat16" if on_gpu else "float32")
    option("--compile", action=argparse.BooleanOptionalAction, default=on_gpu)
    option("--shard", dest="sharded", action="store_true", help="of several processes each holds a part of the weights")
    option("--micro", type=int, metavar="TOKENS", help="clean tokens at once (default: what memory allows)")
    option("--update", type=int, metavar="TOKENS", help="clean tokens an update (default: the preset's)")
    option("--workers", type=int, default=12 if on_gpu else 0, help="processes that lay out rows")
    option("--negatives", type=int, metavar="N", help="tokens beside the targets in a loss (default: all)")
    option(
        "--height", type=float, default=1.0, help="of all rates: a decay that goes on from another's middle is lower"
    )
    option("--threads", type=int, default=1)
    option("--seed", type=int, default=0)
    option("--checkpoint-minutes", type=float, default=5.0)
    option("--evaluate-minutes", type=float, default=15.0)
    found = vars(parser.parse_args(arguments))
    found["rank"] = found.pop("lora")
    preset = found.pop("preset")
    recipe = RECIPES[preset] if preset else _recipe(found["model"], found["rank"])
    update = found.pop("update")
    if update is not None:
        recipe = msgspec.structs.replace(recipe, update=update)
    threads, compiled = found.pop("threads"), found.pop("compile")
    return Settings(recipe=recipe, compiled=compiled, **found), threads
