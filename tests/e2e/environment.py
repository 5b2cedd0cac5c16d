"""Where end-to-end tests run: a home of their own, and the command under test."""

import os
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "mercury_ls"]


def home(folder: Path, **more: str) -> dict[str, str]:
    """An environment in which nothing of the user's is read and nothing of the tests' is left behind."""
    own = {"HOME": folder, "XDG_CONFIG_HOME": folder / "config", "XDG_STATE_HOME": folder / "state"}
    own |= {"XDG_CACHE_HOME": folder / "cache", "XDG_DATA_HOME": folder / "data"}
    runtime = folder / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    engine = {"MERCURY_LS_RUNTIME_DIR": str(runtime), "MERCURY_ENGINE_MODEL": "fake"}
    return {**os.environ, **{k: str(v) for k, v in own.items()}, **engine, **more}


def stop_engine(variables: dict[str, str]) -> None:
    subprocess.run([*COMMAND, "serve", "--stop"], env=variables, check=True, capture_output=True)
