"""Checkpoints of a run: weights, moments and the place in the data, whole or not there at all.

out/checkpoints/00001200/   weights.safetensors  optimizer.safetensors  state.json
out/pre-decay/              the same, kept: what a longer run goes on from
out/model/                  what the engine loads
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec
import torch
from msgspec import Struct
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from mercury_engine.tokens import hints
from mercury_training.errors import TrainingError
from mercury_training.train.schedule import Stage

__all__ = ["Place", "latest", "read", "write"]

KEPT = 2
WEIGHTS, MOMENTS = "weights.safetensors", "optimizer.safetensors"


class Place(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a run stands: `row` is the next packed row, `seconds` and `stage_steps` count within the stage."""

    stage: Stage
    step: int = 0
    row: int = 0
    positions: int = 0
    seconds: float = 0.0
    stage_steps: int = 0
    warm: bool = False


def write(folder: Path, place: Place, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor]) -> None:
    """All or nothing: written beside its place, then renamed. What was not finished before goes."""
    for stale in folder.parent.glob("*.partial"):
        shutil.rmtree(stale)
    partial = folder.with_name(f"{folder.name}.partial")
    try:
        partial.mkdir(parents=True)
        save_file({name: weight.detach().contiguous() for name, weight in weights.items()}, partial / WEIGHTS)
        save_file({name: moment.contiguous() for name, moment in moments.items()}, partial / MOMENTS)
        (partial / "state.json").write_bytes(msgspec.json.encode(place))
    except (OSError, SafetensorError) as error:
        raise TrainingError(
            f"{folder}: cannot be written ({error}); make room, and go on from the checkpoint before with --resume"
        ) from error
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    _thin(folder.parent)


def read(folder: Path) -> tuple[Place, dict[str, Tensor], dict[str, Tensor]]:
    """The place, the weights, and the moments: none where only weights were kept."""
    try:
        place = msgspec.json.decode((folder / "state.json").read_bytes(), type=Place)
    except (OSError, msgspec.DecodeError) as error:
        raise TrainingError(f"{folder}: no checkpoint ({error}); name a folder with state.json in it") from error
    try:
        weights = load_file(folder / WEIGHTS)
        return place, weights, load_file(folder / MOMENTS) if (folder / MOMENTS).exists() else {}
    except (OSError, SafetensorError) as error:
        raise TrainingError(f"{folder}: damaged ({error}); remove it, and go on from the checkpoint before") from error


def grown(kept: Mapping[str, Tensor], begun: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What was kept; and where that is of a model that had no hints yet, nothing for what is to read them."""
    new = {name for name in begun if name.endswith(hints.WEIGHTS) and name not in kept}
    return {name: torch.zeros_like(begun[name]) if name in new else kept[name] for name in begun}


def latest(out: Path) -> Path:
    found = _numbered(out / "checkpoints")
    if not found:
        raise TrainingError(f"{out}/checkpoints: empty; leave out --resume to begin a run")
    return found[-1]


def _numbered(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.name.isdigit())


def _thin(folder: Path) -> None:
    for path in _numbered(folder)[:-KEPT]:
        shutil.rmtree(path)
