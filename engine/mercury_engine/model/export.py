"""The folder of a model as it ships: its config, shards of int8 or int4 matrices with their scales, and checksums.

`export` writes one from float weights, as `python -m mercury_engine.export SOURCE TARGET` does, and `write` from
quantised ones; `read` maps any of them into memory. None needs torch.
"""

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from msgspec import Struct

from mercury_engine.model.config import (
    CALIBRATION_FILE,
    CONFIG_FILE,
    TOKENIZER_FILE,
    ModelConfig,
    ModelError,
    read_config,
    write_config,
)
from mercury_engine.model.provenance import note
from mercury_engine.model.quantize import (
    GROUP,
    dequantize,
    dequantize_groups,
    quantize,
    quantize_groups,
    relative_error,
)
from mercury_engine.model.stored import TensorWriter, stored_tensors

Weights = dict[str, np.ndarray]
"""Arrays by their names in the reference model. A quantised matrix is int8, or uint8 with two values of four bits
in a byte, and its scales are named like it plus `.scale`."""

Bits = Literal[4, 8]

COMMAND = "mercury_engine.export"
CHECKSUMS_FILE = "checksums.sha256"
SEALED = {".json", ".safetensors"}
SCALE = ".scale"
SHARD_BYTES = 48 * 2**20
HEADER_BYTES = 2**20
ADAPTER_FILE = "adapter.safetensors"
REMEDY = "install the model again"


class ExportReport(Struct, frozen=True):
    """`errors`: the relative error of each quantised matrix."""

    files: tuple[str, ...]
    bytes: int
    errors: dict[str, float]


def export(source: Path, target: Path, bits: Bits = 8) -> ExportReport:
    """Write the model in `source` to the folder `target`, its matrices rounded to so many bits."""
    config, weights = read(source)
    quantised = weights | _quantised({name: weights[name] for name in matrices(config)}, bits)
    return write(config, weights, quantised, source, target, COMMAND, {}, bits=bits)


def write(
    config: ModelConfig,
    weights: Weights,
    quantised: Weights,
    source: Path,
    target: Path,
    command: str,
    read: Mapping[str, Path],
    **settings: float | str,
) -> ExportReport:
    """Write `quantised` to the folder `target`, beside the tokenizer of the float model in `source`, its `weights`; and
    the note of the `command` that made it of that model and what else it `read`."""
    if source.resolve() == target.resolve():
        raise ModelError(f"{target}: holds the float weights; export to another folder")
    target.mkdir(parents=True, exist_ok=True)
    for stale in [*target.glob("*.safetensors"), target / CALIBRATION_FILE]:
        stale.unlink(missing_ok=True)
    _write_shards({name: quantised[name] for name in _in_order(config) if name in quantised}, target)
    write_config(config, target / CONFIG_FILE)
    if (source / TOKENIZER_FILE).exists():
        shutil.copyfile(source / TOKENIZER_FILE, target / TOKENIZER_FILE)
    note(command, target, {"model": source, **read}, **settings)
    names = seal(target)
    errors = {name: relative_error(plain(weights, name), plain(quantised, name)) for name in matrices(config)}
    return ExportReport(names, sum((target / name).stat().st_size for name in names), errors)


def seal(folder: Path) -> tuple[str, ...]:
    """Write the checksums of all files that an engine reads from the folder; return their names."""
    names = tuple(sorted(path.name for path in folder.iterdir() if path.suffix in SEALED))
    lines = [f"{_digest(folder / name)}  {name}\n" for name in names]
    (folder / CHECKSUMS_FILE).write_text("".join(lines), encoding="utf-8")
    return names


def read(folder: Path) -> tuple[ModelConfig, Weights]:
    """The model in a folder. Matrices stay memory-mapped unless they are stored as floats of 16 bits."""
    _verify_checksums(folder)
    config = read_config(folder / CONFIG_FILE)
    paths = weight_files(folder)
    if not paths:
        raise ModelError(f"{folder}: no .safetensors file in it; {REMEDY}")
    weights: Weights = {}
    for path in paths:
        for name, tensor in stored_tensors(path, REMEDY).items():
            weights[name] = tensor.raw if name.endswith(SCALE) else tensor.floats()
    _check(weights, config, folder)
    return config, weights


def weight_files(folder: Path) -> list[Path]:
    """Those of a model's folder that hold its weights, not its adapter."""
    return sorted(path for path in folder.glob("*.safetensors") if path.name != ADAPTER_FILE)


def dequantized(weights: Weights) -> Weights:
    """Float weights without scales."""
    return {name: plain(weights, name) for name in weights if not name.endswith(SCALE)}


def plain(weights: Weights, name: str) -> np.ndarray:
    """One weight as floats."""
    weight = weights[name]
    if weight.dtype == np.int8:
        return dequantize(weight, weights[name + SCALE])
    return dequantize_groups(weight, weights[name + SCALE]) if weight.dtype == np.uint8 else weight


def shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The weights that a config requires."""
    queries, keys = config.heads * config.head_width, config.kv_heads * config.head_width
    shapes: dict[str, tuple[int, ...]] = {
        "embedding.weight": (config.vocabulary, config.width),
        "norm.weight": (config.width,),
    }
    if config.layer_norm:
        shapes["norm.bias"] = (config.width,)
    if not config.tied:
        shapes["head.weight"] = (config.vocabulary, config.width)
    for index in range(config.layers):
        layer = {
            "attention_norm.weight": (config.width,),
            "attention.query.weight": (queries, config.width),
            "attention.key.weight": (keys, config.width),
            "attention.value.weight": (keys, config.width),
            "attention.output.weight": (config.width, queries),
            "feed_forward_norm.weight": (config.width,),
            "feed_forward.gate.weight": (config.feed_forward, config.width),
            "feed_forward.up.weight": (config.feed_forward, config.width),
            "feed_forward.down.weight": (config.width, config.feed_forward),
        }
        if not config.gated:
            del layer["feed_forward.gate.weight"]
        if config.qk_norm:
            layer |= {f"attention.{part}_norm.weight": (config.head_width,) for part in ("query", "key")}
        biased = [part for part, present in _biased(config).items() if present]
        layer |= {f"{part}.bias": layer[f"{part}.weight"][:1] for part in biased if f"{part}.weight" in layer}
        shapes |= {f"layers.{index}.{name}": shape for name, shape in layer.items()}
    return shapes


def matrices(config: ModelConfig) -> list[str]:
    """The weights that are quantised."""
    return [name for name, shape in shapes(config).items() if len(shape) == 2]


def _biased(config: ModelConfig) -> dict[str, bool]:
    """The parts of a layer that may have a bias."""
    return {
        **dict.fromkeys(("attention.query", "attention.key", "attention.value"), config.qkv_bias),
        "attention.output": config.output_bias,
        **dict.fromkeys(("feed_forward.gate", "feed_forward.up", "feed_forward.down"), config.feed_forward_bias),
        **dict.fromkeys(("attention_norm", "feed_forward_norm"), config.layer_norm),
    }


def _quantised(matrices: Weights, bits: Bits) -> Weights:
    """The matrices rounded; those that are quantised already stay as they are."""
    weights: Weights = {}
    for name, weight in matrices.items():
        if weight.dtype == np.float32:
            group = GROUP if bits == 4 and weight.shape[1] % GROUP == 0 else 0
            weights[name], weights[name + SCALE] = quantize_groups(weight, group) if group else quantize(weight)
    return weights


def _in_order(config: ModelConfig) -> list[str]:
    """All weights, and the scales that they may have; what a layer multiplies together stands together."""
    return [stored for name in shapes(config) for stored in (name, name + SCALE)]


def _write_shards(weights: Weights, folder: Path) -> None:
    """Fill shards in order; a tensor larger than a shard gets its own."""
    shards: list[Weights] = [{}]
    room = SHARD_BYTES - HEADER_BYTES
    for name, weight in weights.items():
        if weight.nbytes > room and shards[-1]:
            shards.append({})
            room = SHARD_BYTES - HEADER_BYTES
        shards[-1][name] = weight
        room -= weight.nbytes
    names = [f"weights-{number:05}-of-{len(shards):05}.safetensors" for number in range(1, len(shards) + 1)]
    for name, shard in zip(names, shards, strict=True):
        with (folder / name).open("wb") as file:
            writer = TensorWriter(file, {name: (weight.dtype, weight.shape) for name, weight in shard.items()})
            for name, weight in shard.items():
                writer.write(name, 0, weight)


def _verify_checksums(folder: Path) -> None:
    """Verify the checksums, if any: training writes float weights without."""
    path = folder / CHECKSUMS_FILE
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        expected, _, name = line.partition("  ")
        if not name or Path(name).name != name:
            raise ModelError(f"{path}: {line!r} names no file in this folder; {REMEDY}")
        if _digest(folder / name) != expected:
            raise ModelError(f"{folder / name}: does not match its checksum in {CHECKSUMS_FILE}; {REMEDY}")


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error}); {REMEDY}") from error


def _check(weights: Weights, config: ModelConfig, folder: Path) -> None:
    expected = shapes(config)
    quantised = [name for name in matrices(config) if name in weights and weights[name].dtype != np.float32]
    scales = {name + SCALE for name in quantised}
    missing = sorted((expected.keys() | scales) - weights.keys())
    unknown = sorted(weights.keys() - expected.keys() - scales)
    if missing or unknown:
        raise ModelError(
            f"{folder}: weights missing {missing[:3]}, unknown {unknown[:3]}; "
            f"a shard is missing, or {CONFIG_FILE} belongs to another model: {REMEDY}"
        )
    for name, shape in expected.items():
        if not fits(weights, name, shape):
            raise ModelError(
                f"{folder}: {name} is {weights[name].dtype} {weights[name].shape}, the config says {shape}; "
                f"{CONFIG_FILE} belongs to another model: {REMEDY}"
            )
    if quantised and (floats := [name for name in matrices(config) if name not in quantised]):
        raise ModelError(f"{folder}: {floats[:3]}: either all matrices are quantised or none: {REMEDY}")


def fits(weights: Weights, name: str, shape: tuple[int, ...]) -> bool:
    """True if a weight and its scales, if any, are what `shape` requires."""
    weight, scales = weights[name], weights.get(name + SCALE)
    if scales is None:
        return weight.dtype == np.float32 and weight.shape == shape
    if len(shape) != 2 or scales.ndim != 2 or len(scales) != shape[0]:
        return False
    rows, columns = shape
    groups = scales.shape[1]
    if weight.dtype == np.int8:
        return (weight.shape, groups, scales.dtype) == (shape, 1, np.float32)
    is_packed = (weight.shape, weight.dtype, scales.dtype) == ((rows, columns // 2), np.uint8, np.float16)
    return is_packed and columns % (2 * groups) == 0
