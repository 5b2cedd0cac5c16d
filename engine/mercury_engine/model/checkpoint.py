"""A third-party checkpoint in a local folder in Hugging Face's layout: its config and its weights in our terms.

Only `config.json` and `.safetensors` are read; nothing is run. Weights are read on demand.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from mercury_engine.model.architectures import (
    ARCHITECTURES,
    Architecture,
    architecture_of,
    config_of,
    factors,
    read_json,
)
from mercury_engine.model.config import CONFIG_FILE, ModelConfig, ModelError
from mercury_engine.model.export import shapes
from mercury_engine.model.stored import FloatRows, stored_tensors

INDEX_FILE = "model.safetensors.index.json"
SINGLE_FILE = "model.safetensors"
COMPUTED = "rotary_emb.inv_freq"
INTEGERS = ("I8", "U8")
DOWNLOAD = "download the checkpoint again"


class WeightPlace(Struct, frozen=True):
    """A weight of this `shape`: the rows from `start` of the tensor that the checkpoint calls `name`."""

    name: str
    start: int
    shape: tuple[int, ...]


class CheckpointPlan(Struct, frozen=True):
    """What a checkpoint is, from its config and the shapes of its tensors: nothing of them is read yet. `places` have
    our names, in the order of `shapes`."""

    architecture: str
    config: ModelConfig
    places: dict[str, WeightPlace]


class Weight(Struct, frozen=True, eq=False):
    """Rows `start` to `stop` of a stored tensor, plus `offset`, times `factor`."""

    tensor: FloatRows
    start: int
    stop: int
    offset: float = 0.0
    factor: float = 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.stop - self.start, *self.tensor.shape[1:]

    def rows(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Some rows as float32."""
        last = self.stop if stop is None else min(self.start + stop, self.stop)
        floats = self.tensor.floats(self.start + start, last)
        if self.offset:
            floats = floats + np.float32(self.offset)
        return floats if self.factor == 1 else floats * np.float32(self.factor)


class Checkpoint(Struct, frozen=True, eq=False):
    """`weights` have our names, in the order of `shapes`."""

    architecture: str
    config: ModelConfig
    weights: dict[str, Weight]


def read_checkpoint(folder: Path, context: int = 0) -> Checkpoint:
    """The checkpoint in a folder; `context` is an upper limit unless 0."""
    path = folder / CONFIG_FILE
    found = read_json(path)
    tensors: dict[str, FloatRows] = {}
    for file in _weight_files(folder):
        tensors |= stored_tensors(file, DOWNLOAD)
    return checkpoint_of(path, found, tensors, context)


def checkpoint_of(path: Path, found: dict[str, Any], tensors: Mapping[str, FloatRows], context: int = 0) -> Checkpoint:
    """The checkpoint of these published tensors, by the config that was `found` at `path`."""
    made = plan(path, found, {name: tensor.shape for name, tensor in tensors.items()}, context)
    architecture, by_part = ARCHITECTURES[made.architecture], factors(path, found, made.config.head_width)
    weights: dict[str, Weight] = {}
    for ours, place in made.places.items():
        if (tensor := tensors[place.name]).dtype in INTEGERS:
            raise ModelError(
                f"{path}: {place.name} is {tensor.dtype}, and weights are floats: add the model that it was made from"
            )
        offset, factor = _changes(ours, architecture, by_part)
        weights[ours] = Weight(tensor, place.start, place.start + place.shape[0], offset, factor)
    return Checkpoint(made.architecture, made.config, weights)


def plan(path: Path, found: dict[str, Any], tensors: Mapping[str, tuple[int, ...]], context: int = 0) -> CheckpointPlan:
    """What the tensors of these shapes are, by the config that was `found` at `path`; `ModelError` unless they are all
    that it needs, and nothing else. `context` is an upper limit unless 0."""
    name, architecture = architecture_of(path, found)
    places = dict(_places(path, architecture, tensors))
    config = config_of(path, found, {ours: place.shape for ours, place in places.items()}, context)
    if config.tied:
        places.pop("head.weight", None)
    expected = shapes(config)
    stored = {ours: place.shape for ours, place in places.items()}
    odd = sorted(ours for ours in expected.keys() | stored.keys() if expected.get(ours) != stored.get(ours))
    if odd:
        own = odd[0]
        raise ModelError(
            f"{path}: {own} is {stored.get(own, 'missing')}, and by the config {expected.get(own) or 'there is none'}; "
            f"{DOWNLOAD}"
        )
    return CheckpointPlan(name, config, {ours: places[ours] for ours in expected})


def _weight_files(folder: Path) -> list[Path]:
    """The files of weights: those that an index names, or the single one."""
    index = folder / INDEX_FILE
    names = _named(index) if index.exists() else [SINGLE_FILE]
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise ModelError(f"{index}: {name!r} is no .safetensors file beside it; {DOWNLOAD}")
        if not (folder / name).exists():
            raise ModelError(f"{folder / name}: not there; only .safetensors are read: convert or download them")
    return [folder / name for name in names]


def _our_names(theirs: str, architecture: Architecture) -> tuple[str, ...] | None:
    """Our names for a weight: none if the graph computes it, None if it is unknown."""
    if theirs.endswith(COMPUTED):
        return ()
    part, _, kind = theirs.rpartition(".")
    if kind not in ("weight", "bias"):
        return None
    if part in architecture.whole:
        return (f"{architecture.whole[part]}.{kind}",)
    index, _, part = part.removeprefix(architecture.layer).partition(".")
    if not theirs.startswith(architecture.layer) or part not in architecture.parts:
        return None
    return tuple(f"layers.{index}.{ours}.{kind}" for ours in architecture.parts[part])


def _places(
    path: Path, architecture: Architecture, tensors: Mapping[str, tuple[int, ...]]
) -> Iterator[tuple[str, WeightPlace]]:
    for name, shape in tensors.items():
        ours = _our_names(name, architecture)
        if ours is None:
            raise ModelError(f"{path}: {name} is not a weight of this architecture; choose another checkpoint")
        rows = shape[0] if shape else 0
        if ours and rows % len(ours):
            raise ModelError(f"{path}: {name} is {shape}, whose rows cannot be {len(ours)} matrices; {DOWNLOAD}")
        size = rows // len(ours) if ours else 0
        for number, own in enumerate(ours):
            yield own, WeightPlace(name, number * size, (size, *shape[1:]) if shape else ())


def _changes(name: str, architecture: Architecture, by_part: Mapping[str, float]) -> tuple[float, float]:
    """The offset and the factor of a weight."""
    part = name.rpartition(".")[0]
    short = part.split(".", 2)[2] if part.startswith("layers.") else part
    is_norm = short.endswith("norm") and name.endswith(".weight")
    return architecture.norm_offset if is_norm else 0.0, by_part.get(short, 1.0)


def _named(index: Path) -> list[str]:
    weights: Any = read_json(index).get("weight_map")
    if not isinstance(weights, dict):
        raise ModelError(f"{index}: weight_map is {weights!r}, which names no files; {DOWNLOAD}")
    return sorted(set(map(str, weights.values())))
