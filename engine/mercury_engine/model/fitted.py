"""Small JSON files beside a model's weights: coefficients fitted to this one model after training."""

from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from mercury_engine.model.config import ModelError

CALIBRATION_FILE = "confidence.json"

Fitted = TypeVar("Fitted", bound=Struct)


def read_fitted(folder: Path, name: str, kind: type[Fitted]) -> Fitted | None:
    """The coefficients; None where nothing was fitted, or where it did not help."""
    path = folder / name
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError) as error:
        raise ModelError(f"{path}: {error}; correct the file or remove it") from error


def write_fitted(folder: Path, name: str, value: Struct) -> None:
    (folder / name).write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")
