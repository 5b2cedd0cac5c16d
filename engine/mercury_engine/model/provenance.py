"""How a model was made: all steps, with digests of what they read and wrote, in `provenance.json` beside its weights.

`read` groups files by what they were for, so that a step can be done again:

    {"command": "mercury_training.merge", "settings": {},
     "read": {"model": {"config.json": "5535…", …}, "factors": {"factors.safetensors": "0a1b…"}},
     "wrote": {"config.json": "5535…", "model.safetensors": "77c2…", "tokenizer.json": "364d…"}}
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from mercury_engine.model.config import CONFIG_FILE, TOKENIZER_FILE, ModelError

PROVENANCE_FILE = "provenance.json"


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """Digests are SHA-256, by the names of the files."""

    command: str
    settings: dict[str, int | float | str]
    read: dict[str, dict[str, str]]
    wrote: dict[str, str]


def note(command: str, folder: Path, read: Mapping[str, Path], **settings: float | str | None) -> None:
    """Add the step that wrote the model in `folder` to those that made the models it was made of."""
    earlier = [step for path in read.values() for step in steps(path)]
    given = {name: value for name, value in settings.items() if value is not None}
    step = Step(command, given, {purpose: digests(path) for purpose, path in read.items()}, digests(folder))
    encoded = msgspec.json.encode([*earlier, step])
    (folder / PROVENANCE_FILE).write_bytes(msgspec.json.format(encoded, indent=2) + b"\n")


def steps(folder: Path) -> tuple[Step, ...]:
    """The steps that made the model in a folder, as far as they were noted."""
    path = folder / PROVENANCE_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=tuple[Step, ...]) if path.exists() else ()
    except msgspec.DecodeError as error:
        raise ModelError(f"{path}: {error}; make the model again, or remove the file") from error


def digests(path: Path) -> dict[str, str]:
    """The digest of a file, or of the weights, the config and the tokenizer in a folder."""
    files = [path] if path.is_file() else [*path.glob("*.safetensors"), path / CONFIG_FILE, path / TOKENIZER_FILE]
    return {file.name: digest(file) for file in sorted(files) if file.exists()}


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
