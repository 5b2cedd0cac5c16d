"""Adds low-rank factors to the model that they were trained on: `python -m mercury_training.merge MODEL FACTORS OUT`.

OUT is a model folder with float32 weights, which `python -m mercury_engine.export` turns into int8.
"""

import argparse
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from msgspec import structs
from torch import Tensor

from mercury_engine.model import provenance
from mercury_engine.model.adapter import DOWN, UP
from mercury_engine.model.config import TOKENIZER_FILE
from mercury_engine.model.network import Model
from mercury_training import models
from mercury_training.errors import TrainingError, reported
from mercury_training.train import lora

COMMAND = "mercury_training.merge"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").split(":")[0])
    parser.add_argument("model", type=Path, metavar="MODEL", help="a folder of float weights")
    parser.add_argument("factors", type=Path, metavar="FACTORS", help="the factors.safetensors of a run on it")
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write")
    options = parser.parse_args(arguments)
    with reported(COMMAND):
        merge(options.model, options.factors, options.out)


def merge(model: Path, factors: Path, out: Path) -> None:
    """Write the sum of a model and its factors to another folder, whose name it takes."""
    merged = models.load(model, torch.float32)
    learned = lora.read(factors)
    _add(merged, learned, factors)
    merged.config = structs.replace(merged.config, name=out.name)
    models.save(merged, out)
    shutil.copy(model / TOKENIZER_FILE, out)
    provenance.note(COMMAND, out, {"model": model, "factors": factors})


def _add(model: Model, learned: Mapping[str, Tensor], source: Path) -> None:
    """Add the products of factors to the weights beside which they stand."""
    weights = dict(model.named_parameters())
    paths = {name.removesuffix(UP).removesuffix(DOWN) for name in learned}
    for path in sorted(paths):
        up, down, weight = learned.get(path + UP), learned.get(path + DOWN), weights.get(path)
        if up is None or down is None or weight is None or (len(up), down.shape[1]) != weight.shape:
            raise TrainingError(f"{source}: {path} is not that of this model; name the factors of a run on it")
        weight.data += up.float() @ down.float()


if __name__ == "__main__":
    main()
