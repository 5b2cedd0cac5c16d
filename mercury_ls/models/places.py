"""Where the files of added models may lie: under a plain name in a folder of ours. Whatever is written into the
folder of the models asks here first, whoever chose the name."""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from mercury_engine.api import EngineError

NAME = re.compile(r"\.?[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,198}[A-Za-z0-9_-])?")
RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}
"""Devices of Windows, in every folder and whatever is behind their first dot."""
SHOWN = 80


def check(names: Iterable[str]) -> None:
    """Refuses a name that is not plain on every platform, and two that a disk which ignores case takes for one."""
    spellings: dict[str, str] = {}
    for name in names:
        if not NAME.fullmatch(name) or name.partition(".")[0].lower() in RESERVED:
            raise EngineError(
                f"{name[:SHOWN]!r} is no plain name for a file (letters, digits, `.`, `_` and `-`, and no device of "
                "Windows): nothing is written there; choose another model or name"
            )
        if spellings.setdefault(name.lower(), name) != name:
            raise EngineError(
                f"{spellings[name.lower()]} and {name} are one file on many disks: nothing is written there; choose "
                "another model or name"
            )


def inside(place: Path, name: str) -> Path:
    """The path of that name in a folder of ours. What is there under it is no link, which could lead out."""
    alike = [path.name for path in place.iterdir() if path.name.lower() == name.lower()] if place.exists() else []
    check([name, *alike])
    if (path := place / name).is_symlink():
        raise EngineError(f"{path}: is a link, and nothing is written through it; remove it, and run the command again")
    return path


def folder(place: Path, name: str) -> Path:
    """The folder of that name in another of ours, made if it is not there."""
    path = inside(place, name)
    path.mkdir(exist_ok=True)
    return path


def empty(place: Path, name: str) -> Path:
    """The same without what it had."""
    path = inside(place, name)
    if path.exists():
        shutil.rmtree(path)
    path.mkdir()
    return path
