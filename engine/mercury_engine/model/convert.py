"""Converts a checkpoint for running: int8 or int4 weights under our names beside its own config and tokenizer."""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
from msgspec import Struct

from mercury_engine.bounds import small_bytes
from mercury_engine.model.architectures import config_of, read_json
from mercury_engine.model.checkpoint import DOWNLOAD, Checkpoint, Weight, read_checkpoint
from mercury_engine.model.config import CONFIG_FILE, TOKENIZER_FILE, ModelConfig, ModelError
from mercury_engine.model.export import SCALE, Weights, fits, shapes
from mercury_engine.model.quantize import quantize, quantize_groups
from mercury_engine.model.stored import TensorWriter, check_finite, forget_pages, pieces, stored_tensors

WEIGHTS_FILE = "weights.safetensors"
COPIED = (CONFIG_FILE, TOKENIZER_FILE, "tokenizer_config.json", "chat_template.jinja", "generation_config.json")
REMEDY = "add the model again: `mercury-ls model add`"

GROUPS = (128, 64, 32)
"""Candidates for the number of inputs that share a scale in int4; the first that divides a row is used: 128 decode a
sixth faster than 64."""

Precision = Literal["int8", "int4"]
Report = Callable[[float, str], None]
_Layout = dict[str, tuple[np.dtype, tuple[int, ...]]]


class Converted(Struct, frozen=True):
    """What is known about a converted model; `bytes` of its weights."""

    architecture: str
    parameters: int
    vocabulary: int
    context: int
    precision: Precision
    bytes: int


def convert(
    source: Path, target: Path, precision: Precision = "int8", report: Report = lambda share, doing: None
) -> Converted:
    """Write the checkpoint in `source` to the folder `target`. Embeddings are int8 either way."""
    checkpoint = read_checkpoint(source)
    layout = _layout(checkpoint, precision)
    target.mkdir(parents=True, exist_ok=True)
    part = target / f"{WEIGHTS_FILE}.part"
    try:
        with part.open("wb") as file:
            writer = TensorWriter(file, layout)
            _write(source, checkpoint, layout, writer, report)
        os.replace(part, target / WEIGHTS_FILE)
    except OSError as error:
        raise ModelError(f"{part}: cannot be written ({error}); {_needed_to_write(layout)}") from error
    finally:
        part.unlink(missing_ok=True)
    for name in COPIED:
        if source.resolve() != target.resolve() and (source / name).exists():
            (target / name).write_bytes(_described(source / name))
    config, sizes = checkpoint.config, (weight.shape for weight in checkpoint.weights.values())
    return Converted(
        architecture=checkpoint.architecture,
        parameters=sum(math.prod(shape) for shape in sizes),
        vocabulary=config.vocabulary,
        context=config.context,
        precision=precision,
        bytes=writer.bytes,
    )


def _described(path: Path) -> bytes:
    try:
        return small_bytes(path)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error}); get the model from its publisher") from error


def _needed_to_write(layout: _Layout) -> str:
    size = sum(dtype.itemsize * math.prod(shape) for dtype, shape in layout.values())
    return f"it needs {size / 2**20:,.0f} MiB of free disk"


def _layout(checkpoint: Checkpoint, precision: Precision) -> _Layout:
    """The type and shape of everything to write, in the order in which a layer uses it."""
    layout: _Layout = {}
    for name, weight in checkpoint.weights.items():
        group = _group(name, weight, precision)
        rows, *inner = weight.shape
        if not inner:
            layout[name] = np.dtype(np.float32), weight.shape
        elif group:
            layout[name] = np.dtype(np.uint8), (rows, inner[0] // 2)
            layout[name + SCALE] = np.dtype(np.float16), (rows, inner[0] // group)
        else:
            layout[name] = np.dtype(np.int8), weight.shape
            layout[name + SCALE] = np.dtype(np.float32), (rows, 1)
    return layout


def _group(name: str, weight: Weight, precision: Precision) -> int:
    """The number of inputs that share a scale; 0 for a whole row."""
    if precision == "int8" or name in ("embedding.weight", "head.weight"):
        return 0
    return next((size for size in GROUPS if weight.shape[-1] % size == 0), 0)


def _write(source: Path, checkpoint: Checkpoint, layout: _Layout, writer: TensorWriter, report: Report) -> None:
    whole = sum(math.prod(weight.shape) for weight in checkpoint.weights.values())
    count = 0
    for name, weight in checkpoint.weights.items():
        for start, stop in pieces(weight.shape):
            rows = weight.rows(start, stop)
            check_finite(rows, f"{source}: {name}", DOWNLOAD)
            if rows.ndim == 1:
                writer.write(name, start, rows)
            else:
                values, scales = _quantised(rows, layout[name], layout[name + SCALE])
                check_finite(scales, f"{source}: the scales of {name}", "choose int8, or another checkpoint")
                writer.write(name, start, values)
                writer.write(name + SCALE, start, scales)
            count += rows.size
            forget_pages([weight.tensor.raw])
            report(count / whole, "converting")


def _quantised(
    rows: np.ndarray, values: tuple[np.dtype, tuple[int, ...]], scales: tuple[np.dtype, tuple[int, ...]]
) -> tuple[np.ndarray, np.ndarray]:
    if values[0] == np.int8:
        return quantize(rows)
    return quantize_groups(rows, rows.shape[1] // scales[1][1])


def read_converted(folder: Path, context: int = 0) -> tuple[ModelConfig, Weights]:
    """The config and the mapped weights of a folder that `convert` wrote; `context` is an upper limit unless 0."""
    stored = stored_tensors(folder / WEIGHTS_FILE, REMEDY)
    path = folder / CONFIG_FILE
    config = config_of(path, read_json(path, REMEDY), {name: tensor.shape for name, tensor in stored.items()}, context)
    weights = {name: tensor.raw for name, tensor in stored.items()}
    _check(folder, config, weights)
    return config, weights


def _check(folder: Path, config: ModelConfig, weights: Weights) -> None:
    expected = shapes(config)
    unknown = weights.keys() - expected.keys() - {name + SCALE for name in expected}
    wrong = sorted(unknown)
    wrong += [name for name, shape in expected.items() if name not in weights or not fits(weights, name, shape)]
    if wrong:
        raise ModelError(f"{folder / WEIGHTS_FILE}: {wrong[0]} is missing, unknown or of another shape; {REMEDY}")
