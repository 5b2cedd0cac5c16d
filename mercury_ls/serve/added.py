"""Models that a user adds: what they are, from the small files of their folder, and their weights for the engine."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from mercury_engine.api import Engine, EngineError
from mercury_engine.record import Kind, ModelRecord

__all__ = [
    "Identity",
    "Probed",
    "convert",
    "describe_gguf",
    "identify",
    "open_once",
    "probe",
    "running",
    "weigh",
    "write_gguf",
]

Report = Callable[[float, str], None]

NEXT_EDIT = ("zeta-?2\\.1", "zeta-?2", "zeta", "sweep", "instinct")
"""A next-edit model has the tokens and the config of the model that it was trained from: only its name tells."""
QUANTISED = "{} are quantised already ({}): add the model that they were made from, and choose --int8 or --int4"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
LARGEST_HEADER = 100 << 20


class Identity(Struct, frozen=True):
    """`answers` says in words what the model can do."""

    kind: Kind
    prompt: str
    architecture: str
    context: int
    answers: str


def identify(folder: Path, name: str) -> Identity:
    """From config and tokenizer alone, so that nobody waits for the weights of a model that cannot be used.

    `name` is what the model is called where it comes from: some families differ in nothing else.
    """
    from mercury_engine.families.family import family_for
    from mercury_engine.prompts.dialects import dialect_for

    config, tokens = small_file(folder / "config.json"), added_tokens(folder)
    architecture = ", ".join(map(str, config.get("architectures") or ["not named"]))
    context = int(config.get("max_position_embeddings") or 0)
    if quantised := config.get("quantization_config"):
        raise EngineError(f"{name}: {QUANTISED.format('its weights', quantised.get('quant_method', 'unknown'))}")
    if family := family_for(config, tokens, name):
        says = "blocks" if family.answers == ("block",) else "lines and blocks"
        return Identity("diffusion", family.name, architecture, context, f"{says}, by diffusion")
    check_architecture(folder / "config.json", config)
    for pattern in NEXT_EDIT:
        if re.search(pattern, name, re.IGNORECASE):
            return Identity(
                "next-edit", pattern.replace("-?", "-").replace("\\", ""), architecture, context, "next edits"
            )
    if dialect := dialect_for(tokens, name):
        return Identity("fim", dialect.name, architecture, context, "lines and blocks")
    raise EngineError(
        f"{name} ({architecture}) was not trained to fill in the middle of a text: its tokenizer has no tokens for it; "
        "choose a base model for code: `mercury-ls model recommend`"
    )


def check_architecture(path: Path, config: Mapping[str, Any]) -> None:
    from mercury_engine.model.architectures import config_of

    config_of(path, dict(config), {}, 0)


def added_tokens(folder: Path) -> frozenset[str]:
    tokenizer = small_file(folder / "tokenizer.json")
    return frozenset(str(token.get("content")) for token in tokenizer.get("added_tokens") or [])


def small_file(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise EngineError(
            f"{path.parent} has no {path.name}: a model is a folder with config.json, tokenizer.json and .safetensors"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise EngineError(f"{path}: cannot be read ({error}); get the model again") from error
    if not isinstance(found, dict):
        raise EngineError(f"{path}: is not a JSON object; get the model again")
    return found


def weigh(files: list[Path]) -> int:
    """The number of parameters in safetensors files, from their headers."""
    return sum(elements(entry) for path in files for name, entry in header(path).items() if name != "__metadata__")


def elements(entry: Any) -> int:
    count = 1
    for size in entry.get("shape", ()):
        count *= int(size)
    return count


def header(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > min(LARGEST_HEADER, path.stat().st_size):
                raise ValueError("its header is longer than the file")
            return json.loads(file.read(length))
    except (OSError, ValueError, RecursionError) as error:
        raise EngineError(f"{path}: is no safetensors file ({error}); get it again") from error


def convert(source: Path, target: Path, record: ModelRecord, report: Report) -> None:
    """The model in `source` as the engine opens it, in the folder `target`, which exists and is empty."""
    from mercury_engine.model import convert

    convert.convert(source, target, record.precision, report)


def describe_gguf(file: Path, target: Path) -> int:
    """Writes config and tokenizer of a GGUF file as of any other model; the number of its parameters."""
    from mercury_engine.model import gguf

    return gguf.describe(file, target)


def write_gguf(file: Path, target: Path, report: Report) -> None:
    from mercury_engine.model import gguf

    gguf.write_weights(file, target, report)


class Probed(Struct, frozen=True):
    """A server that answers: how to speak to it, and the models that it has."""

    address: str
    protocol: str
    models: tuple[str, ...] = ()


def probe(address: str, key: str = "") -> Probed:
    """Asks the server what it is; `EngineError` says why it could not be asked."""
    from mercury_engine.remote import probe

    return probed(probe.probe(address, key))


def running() -> list[Probed]:
    """The servers at their usual ports of this machine."""
    from mercury_engine.remote import probe

    return [probed(each) for each in probe.running()]


def probed(found: Any) -> Probed:
    return Probed(found.address, found.protocol, tuple(found.models))


def open_once(folder: Path | None, settings: Any, report: Report) -> Engine:
    """The engine of a model, for a command that asks it a few times."""
    from mercury_ls.serve.models import open_model

    return open_model(folder, settings, report)
