"""A third-party checkpoint in a local folder in Hugging Face's layout: its config and its weights in our terms.

Only `config.json` and `.safetensors` are read; nothing is run. Weights are read on demand.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from mercury_engine.model.architectures import Architecture, architecture_of, config_of, factors, read_json
from mercury_engine.model.config import CONFIG_FILE, ModelConfig, ModelError
from mercury_engine.model.export import shapes
from mercury_engine.model.stored import StoredTensor, stored_tensors

INDEX_FILE = "model.safetensors.index.json"
SINGLE_FILE = "model.safetensors"
COMPUTED = "rotary_emb.inv_freq"
DOWNLOAD = "download the checkpoint again"


class Weight(Struct, frozen=True, eq=False):
    """Rows `start` to `stop` of a stored tensor, plus `offset`, times `factor`."""

    tensor: StoredTensor
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
    name, architecture = architecture_of(path, found)
    weights = dict(_weights(folder, architecture))
    config = config_of(path, found, {name: weight.shape for name, weight in weights.items()}, context)
    if config.tied:
        weights.pop("head.weight", None)
    _check(folder, config, weights)
    by_part = factors(found, config.head_width)
    changed = {ours: _changed(ours, weights[ours], architecture, by_part) for ours in shapes(config)}
    return Checkpoint(name, config, changed)


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


def _weights(folder: Path, architecture: Architecture) -> Iterator[tuple[str, Weight]]:
    for path in _weight_files(folder):
        for name, tensor in stored_tensors(path, DOWNLOAD).items():
            ours = _our_names(name, architecture)
            if ours is None:
                raise ModelError(f"{path}: {name} is not a weight of this architecture; choose another checkpoint")
            size = tensor.shape[0] // len(ours) if ours else 0
            for number, own in enumerate(ours):
                yield own, Weight(tensor, number * size, (number + 1) * size)


def _changed(name: str, weight: Weight, architecture: Architecture, by_part: Mapping[str, float]) -> Weight:
    part = name.rpartition(".")[0]
    short = part.split(".", 2)[2] if part.startswith("layers.") else part
    offset = architecture.norm_offset if short.endswith("norm") and name.endswith(".weight") else 0.0
    return Weight(weight.tensor, weight.start, weight.stop, offset, by_part.get(short, 1.0))


def _named(index: Path) -> list[str]:
    weights: Any = read_json(index).get("weight_map")
    if not isinstance(weights, dict):
        raise ModelError(f"{index}: weight_map is {weights!r}, which names no files; {DOWNLOAD}")
    return sorted(set(map(str, weights.values())))


def _check(folder: Path, config: ModelConfig, weights: Mapping[str, Weight]) -> None:
    expected = shapes(config)
    found = {name: weight.shape for name, weight in weights.items()}
    odd = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if odd:
        name = odd[0]
        raise ModelError(
            f"{folder}: {name} is {found.get(name) or 'missing'}, its config says "
            f"{expected.get(name) or 'there is none'}; {DOWNLOAD}"
        )
