"""Checkpoints of a run: weights, moments and the position in the data, complete or absent.

out/checkpoints/00001200/   weights.safetensors  optimizer.safetensors  state.json
out/pre-decay/              the same, kept for a longer run to continue from
out/model/                  what the engine loads
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from mercury_training.errors import TrainingError
from mercury_training.train.schedule import Stage

KEPT = 2
WEIGHTS, MOMENTS = "weights.safetensors", "optimizer.safetensors"


class TrainState(Struct, frozen=True, forbid_unknown_fields=True):
    """The progress of a run: `row` is the next packed row; `seconds` and `stage_steps` count within the stage."""

    stage: Stage
    step: int = 0
    row: int = 0
    positions: int = 0
    seconds: float = 0.0
    stage_steps: int = 0
    warm: bool = False


def write(folder: Path, state: TrainState, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor]) -> None:
    """Write all or nothing: beside the folder, then renamed. Unfinished checkpoints are removed."""
    for stale in folder.parent.glob("*.partial"):
        shutil.rmtree(stale)
    partial = folder.with_name(f"{folder.name}.partial")
    try:
        partial.mkdir(parents=True)
        save_file({name: weight.detach().contiguous() for name, weight in weights.items()}, partial / WEIGHTS)
        save_file({name: moment.contiguous() for name, moment in moments.items()}, partial / MOMENTS)
        (partial / "state.json").write_bytes(msgspec.json.encode(state))
    except (OSError, SafetensorError) as error:
        raise TrainingError(
            f"{folder}: cannot be written ({error}); make room, and continue from the previous checkpoint with --resume"
        ) from error
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    _thin(folder.parent)


def read(folder: Path) -> tuple[TrainState, dict[str, Tensor], dict[str, Tensor]]:
    """The state, the weights, and the moments, which are empty if only weights were kept."""
    try:
        state = msgspec.json.decode((folder / "state.json").read_bytes(), type=TrainState)
    except (OSError, msgspec.DecodeError) as error:
        raise TrainingError(f"{folder}: not a checkpoint ({error}); name a folder with a state.json") from error
    try:
        weights = load_file(folder / WEIGHTS)
        return state, weights, load_file(folder / MOMENTS) if (folder / MOMENTS).exists() else {}
    except (OSError, SafetensorError) as error:
        raise TrainingError(
            f"{folder}: damaged ({error}); remove it, and continue from the previous checkpoint"
        ) from error


def latest(folder: Path) -> Path:
    checkpoints = _numbered(folder)
    if not checkpoints:
        raise TrainingError(f"{folder}: empty; leave out --resume to begin a run")
    return checkpoints[-1]


def _numbered(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.name.isdigit())


def _thin(folder: Path) -> None:
    for path in _numbered(folder)[:-KEPT]:
        shutil.rmtree(path)
