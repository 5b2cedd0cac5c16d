"""What is fitted to a model once it is trained: small JSON files beside its weights, which belong to them alone."""

from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from mercury_engine.model.config import ModelError

__all__ = ["CALIBRATION_FILE", "ECHO_FILE", "FITTED_FILES", "WORTH_FILE", "read_fitted", "write_fitted"]

CALIBRATION_FILE = "confidence.json"
ECHO_FILE = "echo.json"
WORTH_FILE = "worth.json"
FITTED_FILES = (CALIBRATION_FILE, ECHO_FILE, WORTH_FILE)

Fitted = TypeVar("Fitted", bound=Struct)


def read_fitted(path: Path, kind: type[Fitted]) -> Fitted | None:
    """None where nothing was fitted, or nothing found to help."""
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError) as error:
        raise ModelError(f"{path}: {error}; correct the file or remove it") from error


def write_fitted(path: Path, found: Struct) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
