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
from safetensors.torch import load_file, save_file
from torch import Tensor

from mercury_engine import hints
from mercury_training.schedule import Stage

__all__ = ["Place", "StateError", "latest", "read", "write"]

KEPT = 2


class StateError(Exception):
    """There is nothing to go on from, or it belongs to something else."""


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
    """All or nothing: written beside its place, then renamed."""
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    save_file({name: weight.detach().contiguous() for name, weight in weights.items()}, partial / "weights.safetensors")
    save_file({name: moment.contiguous() for name, moment in moments.items()}, partial / "optimizer.safetensors")
    (partial / "state.json").write_bytes(msgspec.json.encode(place))
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    _thin(folder.parent)


def read(folder: Path) -> tuple[Place, dict[str, Tensor], dict[str, Tensor]]:
    """The place, the weights, and the moments: none where only weights were kept."""
    try:
        place = msgspec.json.decode((folder / "state.json").read_bytes(), type=Place)
    except (OSError, msgspec.DecodeError) as error:
        raise StateError(f"{folder}: no checkpoint ({error}); name a folder with state.json in it") from error
    moments = folder / "optimizer.safetensors"
    return place, load_file(folder / "weights.safetensors"), load_file(moments) if moments.exists() else {}


def grown(kept: Mapping[str, Tensor], begun: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What was kept; and where that is of a model that had no hints yet, nothing for what is to read them."""
    new = {name for name in begun if name.endswith(hints.WEIGHTS) and name not in kept}
    return {name: torch.zeros_like(begun[name]) if name in new else kept[name] for name in begun}


def latest(out: Path) -> Path:
    found = _numbered(out / "checkpoints")
    if not found:
        raise StateError(f"{out}/checkpoints: empty; leave out --resume to begin a run")
    return found[-1]


def _numbered(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.name.isdigit())


def _thin(folder: Path) -> None:
    for path in _numbered(folder)[:-KEPT]:
        shutil.rmtree(path)
