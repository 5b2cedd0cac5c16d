"""What every script for a rented GPU keeps to."""

import re
import shutil
import subprocess
from pathlib import Path

__all__ = ["check_script"]

LONGEST_COMMAND = 2000


def check_script(script: Path, folder: str) -> None:
    """It fits a command, says how it is called, and shellcheck finds nothing where there is one."""
    text = script.read_text()
    assert len(text) < LONGEST_COMMAND
    assert re.match(rf"#!/bin/sh\n# .*\n(# .*\n)*#     sh {folder}/{script.name}( .*)?\n", text)
    assert re.search(r"^set -eu$", text, re.MULTILINE)
    if shutil.which("shellcheck"):
        done = subprocess.run(["shellcheck", script], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
