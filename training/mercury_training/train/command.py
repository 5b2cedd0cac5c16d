"""Trains a model: `python -m mercury_training.train --data CORPUS --preset small --minutes 25 --out DIR`.

Runs on a CPU, on a GPU, or on several under torchrun, where gradients are summed and every process holds the whole
model or, with --shard, a part of every weight. A file PAUSE in the run's folder holds it; SIGTERM ends it with a
checkpoint, and --resume continues it.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import torch
import torch.distributed as distributed
from msgspec.structs import replace

from mercury_training.errors import TrainingError, reported
from mercury_training.rows.packing import RowShape
from mercury_training.train.losses import CROSS_ENTROPY, CanvasLoss
from mercury_training.train.run import run
from mercury_training.train.schedule import Stage
from mercury_training.train.settings import PRECISIONS, RECIPES, Hardware, Start, TrainSettings, recipe_for


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    with reported("mercury_training.train"):
        settings = settings_of(options)
        torch.set_num_threads(options.threads)
        _launch(settings)


def settings_of(options: argparse.Namespace) -> TrainSettings:
    if options.factors is not None and options.model is None:
        raise TrainingError("--factors: add --model, the model that they were trained on")
    low_rank = bool(options.lora or options.factors)
    recipe = RECIPES[options.preset] if options.preset else recipe_for(options.model, low_rank=low_rank)
    if options.shape is not None:
        recipe = replace(recipe, shape=RowShape(*options.shape), decay_shape=RowShape(*options.shape))
    if options.rate is not None:
        recipe = replace(recipe, rates=replace(recipe.rates, adam=options.rate))
    recipe = replace(
        recipe,
        update=recipe.update if options.update is None else options.update,
        canvas_loss=CanvasLoss(options.canvas_weight, options.reading),
    )
    return TrainSettings(
        data=options.data,
        out=options.out,
        recipe=recipe,
        stage=options.stage,
        minutes=options.minutes,
        steps=options.steps,
        warm_up=options.warm_up,
        start=Start(options.resume, options.start, options.model, options.lora, options.factors),
        hardware=Hardware(
            options.device, options.precision, options.compile, options.shard, options.micro, options.workers
        ),
        sampled_softmax=options.sampled_softmax,
        lr_scale=options.lr_scale,
        seed=options.seed,
        checkpoint_minutes=options.checkpoint_minutes,
        evaluate_minutes=options.evaluate_minutes,
    )


def _launch(settings: TrainSettings) -> None:
    """This process' part of the run."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        if settings.hardware.sharded:
            raise TrainingError("--shard: only one process is running; start several with torchrun")
        run(settings)
        return
    on_gpu = settings.hardware.device.startswith("cuda")
    if on_gpu:
        hardware = replace(settings.hardware, device=f"cuda:{os.environ['LOCAL_RANK']}")
        settings = replace(settings, hardware=hardware)
        torch.cuda.set_device(hardware.device)
    distributed.init_process_group("nccl" if on_gpu else "gloo")
    try:
        run(settings)
    finally:
        distributed.destroy_process_group()


def _parser() -> argparse.ArgumentParser:
    on_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(prog="mercury_training.train", description=(__doc__ or "").split("\n")[0])
    option = parser.add_argument
    option("--data", type=Path, required=True, metavar="DIR", help="a corpus folder")
    option("--out", type=Path, required=True, metavar="DIR", help="the run: log, curve, checkpoints, model")
    begin = parser.add_mutually_exclusive_group(required=True)
    begin.add_argument("--preset", choices=RECIPES)
    begin.add_argument("--model", type=Path, metavar="DIR", help="train an existing model, as `adapt` writes them")
    option("--lora", type=int, default=0, metavar="RANK", help="with --model: learn only products of this rank")
    option("--factors", type=Path, metavar="FILE", help="with --model: go on learning the products of an earlier run")
    option("--minutes", type=float, default=10.0, help="the budget, over which the schedule runs (default: 10)")
    option("--steps", type=int, help="a budget in updates instead")
    option("--stage", choices=get_args(Stage), default="whole", help="stable: no decay; decay: only that")
    option("--resume", action="store_true", help="continue from the newest checkpoint of --out")
    option(
        "--start", type=Path, metavar="DIR", help="continue from a checkpoint of another run, or from an exported model"
    )
    option("--device", default="cuda" if on_gpu else "cpu")
    option("--precision", choices=PRECISIONS, default="bfloat16" if on_gpu else "float32")
    option("--compile", action=argparse.BooleanOptionalAction, default=on_gpu)
    option("--shard", action="store_true", help="each of several processes holds a part of the weights")
    option("--shape", type=int, nargs=2, metavar=("CLEAN", "CANVAS"), help="rows of a packed row, in the decay as well")
    option("--micro", type=int, metavar="TOKENS", help="clean tokens at once (default: as memory allows)")
    option("--update", type=int, metavar="TOKENS", help="clean tokens in an update (default: the preset's)")
    option("--rate", type=float, help="Adam's learning rate (default: the preset's)")
    option("--warm-up", type=int, metavar="UPDATES", help="of the learning rates (default: a fiftieth of the budget)")
    option("--canvas-weight", type=float, default=CROSS_ENTROPY.weight, help="of canvas rows; clean ones weigh 1")
    option(
        "--reading",
        type=float,
        default=CROSS_ENTROPY.reading,
        metavar="SHARE",
        help="of the canvas loss: the distance to the model's own reading instead of cross entropy (default: 0)",
    )
    option("--workers", type=int, default=12 if on_gpu else 0, help="processes that lay out rows")
    option("--sampled-softmax", type=int, metavar="N", help="tokens besides the targets in a loss (default: all)")
    option("--lr-scale", type=float, default=1.0, help="factor on all rates, to decay from the middle of another decay")
    option("--threads", type=int, default=1)
    option("--seed", type=int, default=0)
    option("--checkpoint-minutes", type=float, default=5.0)
    option("--evaluate-minutes", type=float, default=15.0)
    return parser
