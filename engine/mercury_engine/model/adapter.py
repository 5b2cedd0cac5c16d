"""A model's tuning to one project: low-rank products (LoRA) or whole differences to add to its weights.

adapter.safetensors   `<weight>.up` and `<weight>.down`, whose product is added, or `<weight>.delta`
adapter.json          the identity of the weights that they belong to, and the tuner's report
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from safetensors import SafetensorError
from safetensors.numpy import load_file

from mercury_engine.model.config import ModelError
from mercury_engine.model.export import SCALE, Weights, plain
from mercury_engine.model.quantize import quantize

SHAPES = ("config.json", "tokenizer.json")
ADAPTER_FILE = "adapter.json"
WEIGHTS_FILE = "adapter.safetensors"
UP, DOWN, DELTA = ".up", ".down", ".delta"

REMEDY = "tune the project again, or remove the tuned weights with `mercury-ls tune PATH --remove`"


class _Base(Struct, frozen=True):
    base: str


def identity(folder: Path) -> str:
    """A hash of the weights in a folder, independent of the folder's name."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.suffix == ".safetensors" or path.name in SHAPES):
        with path.open("rb") as file:
            digest.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def read_adapter(folder: Path, model: Path) -> Weights:
    """The weights to add to those in the folder `model`, for which the adapter must have been made."""
    path = folder / ADAPTER_FILE
    try:
        base = msgspec.json.decode(path.read_bytes(), type=_Base).base
        added = load_file(folder / WEIGHTS_FILE)
    except (OSError, msgspec.DecodeError, SafetensorError, TypeError) as error:
        raise ModelError(f"{folder}: damaged ({error}); {REMEDY}") from error
    if base != identity(model):
        raise ModelError(f"{path}: was made for other weights than those in {model}; {REMEDY}")
    return added


def adapted(weights: Weights, added: Weights) -> Weights:
    """The sum. Matrices that were quantised are int8, with new scales."""
    adapted = dict(weights)
    for name, parts in _by_weight(added).items():
        base = plain(weights, name) if name in weights else None
        if base is None or _shape(parts) != base.shape:
            raise ModelError(
                f"{name}: {', '.join(str(part.shape) for part in parts)} fits no weight of the model; {REMEDY}"
            )
        delta = parts[0].astype(np.float32)
        for part in parts[1:]:
            delta = delta @ part.astype(np.float32)
        if name + SCALE in weights:
            adapted[name], adapted[name + SCALE] = quantize(base + delta)
        else:
            adapted[name] = base + delta
    return adapted


def _by_weight(added: Weights) -> dict[str, list[np.ndarray]]:
    """The difference for each weight, or the two factors of its product."""
    parts: dict[str, list[np.ndarray]] = {}
    for key, array in added.items():
        name = key.rpartition(".")[0]
        if key == name + DELTA:
            parts[name] = [array]
        elif key == name + UP and name + DOWN in added:
            parts[name] = [array, added[name + DOWN]]
        elif key != name + DOWN or name + UP not in added:
            raise ModelError(f"{key} does not belong in an adapter; {REMEDY}")
    return parts


def _shape(parts: Sequence[np.ndarray]) -> tuple[int, ...] | None:
    """The shape of the product, None if there is none: nothing is multiplied before it is known to fit."""
    if len(parts) == 1:
        return parts[0].shape
    up, down = parts
    fit = up.ndim == down.ndim == 2 and up.shape[1] == down.shape[0]
    return (up.shape[0], down.shape[1]) if fit else None
