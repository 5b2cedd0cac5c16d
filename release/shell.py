"""Commands, run to their end; what fails is told with what it printed."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

NOTHING: Mapping[str, str] = {}
LAST_CHARACTERS = 4000


class CommandError(Exception):
    """A command ended with another status than 0. The message has the end of its output."""


class Run(Protocol):
    """Runs a command in a folder, with further variables in its environment; returns what it printed."""

    def __call__(self, command: Sequence[str | Path], folder: Path, more: Mapping[str, str] = NOTHING) -> str: ...


def run(command: Sequence[str | Path], folder: Path, more: Mapping[str, str] = NOTHING) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1", **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode:
        told = " ".join(map(str, command))
        raise CommandError(f"{told} ended with {done.returncode}:\n{done.stdout[-LAST_CHARACTERS:]}")
    return done.stdout
