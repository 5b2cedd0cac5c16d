"""The folder of a model as it ships: its config, int8 shards with float scales, and their checksums.

`export` writes one from float weights, as `python -m mercury_engine.export SOURCE TARGET` does; `read` maps either
kind into memory. Neither needs torch.
"""

import argparse
import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from safetensors.numpy import save_file

from mercury_engine.model.config import CONFIG_FILE, TOKENIZER_FILE, ModelConfig, ModelError, read_config, write_config
from mercury_engine.model.fitted import FITTED_FILES
from mercury_engine.model.quantize import quantize, relative_error
from mercury_engine.model.stored import stored_tensors
from mercury_engine.tokens.hints import HINTS

Weights = dict[str, np.ndarray]
"""Arrays by their names in the reference model. A quantised matrix is int8, and its scales are named like it plus
`.scale`."""

CHECKSUMS_FILE = "checksums.sha256"
SEALED = {".json", ".safetensors"}
SCALE = ".scale"
SHARD_BYTES = 16 * 2**20
HEADER_BYTES = 2**20
READABLE = 0o644
"""safetensors makes its files readable by the owner only, but packages are installed for all users."""

REMEDY = "install the model again"


class ExportReport(Struct, frozen=True):
    """`errors`: the relative error of each quantised matrix."""

    files: tuple[str, ...]
    bytes: int
    errors: dict[str, float]


def export(source: Path, target: Path) -> ExportReport:
    """Write the model in `source` to the folder `target`, with int8 matrices."""
    if source.resolve() == target.resolve():
        raise ModelError(f"{target}: holds the float weights; export to another folder")
    config, weights = read(source)
    target.mkdir(parents=True, exist_ok=True)
    for stale in [*target.glob("*.safetensors"), *(target / name for name in FITTED_FILES)]:
        stale.unlink(missing_ok=True)
    matrices = {name: weight for name, weight in weights.items() if _can_shrink(name, weight)}
    quantised = weights | _quantised(matrices)
    _write_shards(quantised, target)
    write_config(config, target / CONFIG_FILE)
    if (source / TOKENIZER_FILE).exists():
        shutil.copyfile(source / TOKENIZER_FILE, target / TOKENIZER_FILE)
    names = seal(target)
    errors = {name: relative_error(weight) for name, weight in matrices.items()}
    return ExportReport(names, sum((target / name).stat().st_size for name in names), errors)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="mercury_engine.export", description="Write a model as it ships.")
    parser.add_argument("source", type=Path, help="a folder with float weights: the model/ of a training run")
    parser.add_argument("target", type=Path, help="the folder to write, for the engine to open")
    options = parser.parse_args(arguments)
    try:
        exported = export(options.source, options.target)
    except ModelError as error:
        raise SystemExit(f"mercury_engine.export: {error}") from error
    moved = max(exported.errors.values(), default=0.0)
    size = f"{len(exported.files)} files, {exported.bytes / 2**20:.1f} MiB"
    print(f"{options.target}: {size}; the relative error of each matrix is at most {moved:.2%}")


def seal(folder: Path) -> tuple[str, ...]:
    """Write the checksums of all files that an engine reads from the folder; return their names."""
    names = tuple(sorted(path.name for path in folder.iterdir() if path.suffix in SEALED))
    lines = [f"{_digest(folder / name)}  {name}\n" for name in names]
    (folder / CHECKSUMS_FILE).write_text("".join(lines), encoding="utf-8")
    return names


def read(folder: Path) -> tuple[ModelConfig, Weights]:
    """The model in a folder. Matrices stay memory-mapped where they are stored as float32 or int8."""
    _verify_checksums(folder)
    config = read_config(folder / CONFIG_FILE)
    paths = sorted(folder.glob("*.safetensors"))
    if not paths:
        raise ModelError(f"{folder}: no .safetensors file in it; {REMEDY}")
    weights: Weights = {}
    for path in paths:
        weights |= {name: tensor.floats() for name, tensor in stored_tensors(path, REMEDY).items()}
    _check(weights, config, folder)
    return config, weights


def shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The weights that a config requires."""
    queries, keys = config.heads * config.head_width, config.kv_heads * config.head_width
    shapes: dict[str, tuple[int, ...]] = {
        "embedding.weight": (config.vocabulary, config.width),
        "norm.weight": (config.width,),
    }
    if config.hints:
        shapes |= {"hint.weight": (config.width, HINTS * config.width), "trust.weight": (HINTS, config.width)}
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


def _biased(config: ModelConfig) -> dict[str, bool]:
    """The parts of a layer that may have a bias."""
    return {
        **dict.fromkeys(("attention.query", "attention.key", "attention.value"), config.qkv_bias),
        "attention.output": config.output_bias,
        **dict.fromkeys(("feed_forward.gate", "feed_forward.up", "feed_forward.down"), config.feed_forward_bias),
        **dict.fromkeys(("attention_norm", "feed_forward_norm"), config.layer_norm),
    }


def _can_shrink(name: str, weight: np.ndarray) -> bool:
    return weight.ndim == 2 and weight.dtype != np.int8 and not name.endswith(SCALE)


def _quantised(matrices: Weights) -> Weights:
    weights: Weights = {}
    for name, weight in matrices.items():
        weights[name], weights[name + SCALE] = quantize(weight)
    return weights


def _write_shards(weights: Weights, folder: Path) -> None:
    """Fill shards in order; a tensor larger than a shard gets its own."""
    shards: list[Weights] = [{}]
    room = SHARD_BYTES - HEADER_BYTES
    for name, weight in weights.items():
        if weight.nbytes > room and shards[-1]:
            shards.append({})
            room = SHARD_BYTES - HEADER_BYTES
        shards[-1][name] = np.ascontiguousarray(weight)
        room -= weight.nbytes
    names = [f"weights-{number:05}-of-{len(shards):05}.safetensors" for number in range(1, len(shards) + 1)]
    for name, shard in zip(names, shards, strict=True):
        save_file(shard, folder / name)
        (folder / name).chmod(READABLE)


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
    expected |= {name + SCALE: (expected[name][0], 1) for name in _int8(weights) if name in expected}
    missing, unknown = sorted(expected.keys() - weights.keys()), sorted(weights.keys() - expected.keys())
    if missing or unknown:
        raise ModelError(
            f"{folder}: weights missing {missing[:3]}, unknown {unknown[:3]}; "
            f"a shard is missing, or {CONFIG_FILE} belongs to another model: {REMEDY}"
        )
    for name, weight in weights.items():
        if weight.shape != expected[name]:
            raise ModelError(
                f"{folder}: {name} is {weight.shape}, the config says {expected[name]}; "
                f"{CONFIG_FILE} belongs to another model: {REMEDY}"
            )
    matrices = {name for name, shape in shapes(config).items() if len(shape) == 2}
    odd = sorted(matrices.symmetric_difference(_int8(weights))) if _int8(weights) else []
    if odd:
        raise ModelError(f"{folder}: {odd[:3]}: either all matrices are int8 or none, and nothing else is: {REMEDY}")


def _int8(weights: Weights) -> list[str]:
    return [name for name, weight in weights.items() if weight.dtype == np.int8]
