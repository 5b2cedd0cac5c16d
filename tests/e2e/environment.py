"""Where end-to-end tests run: a home of their own, and the command under test."""

import os
import subprocess
import sys
from pathlib import Path

from bench.harness.client import own_home

COMMAND = [sys.executable, "-m", "mercury_ls"]


def home(folder: Path, **more: str) -> dict[str, str]:
    """An environment in which nothing of the user's is read and nothing of the tests' is left behind."""
    return {**os.environ, **own_home(folder), **more}


def stop_engine(variables: dict[str, str]) -> None:
    subprocess.run([*COMMAND, "serve", "--stop"], env=variables, check=True, capture_output=True)
