"""The extension's package, made with the Node that was brought: `python -m tests.editors.vscode.package`."""

import fcntl
import subprocess
import sys
from pathlib import Path

from tests.editors.tools import bring

__all__ = ["EXTENSION", "PACKAGE", "made"]

EXTENSION = Path(__file__).parents[3] / "editors/vscode"
PACKAGE = EXTENSION / "dist/mercury-ls.vsix"
STEPS = (["ci", "--ignore-scripts"], ["test"], ["run", "package"])


def made() -> Path:
    """Built from the sources as they are, after their own tests; nothing is done where it is newer than all of them."""
    with (EXTENSION / "package.json").open(encoding="utf-8") as manifest:
        fcntl.flock(manifest, fcntl.LOCK_EX)  # two at once would pull the packages from under each other
        if not PACKAGE.exists() or PACKAGE.stat().st_mtime <= max(path.stat().st_mtime for path in sources()):
            make()
    return PACKAGE


def make() -> None:
    npm = bring("node").with_name("npm")
    for arguments in STEPS:
        finished = subprocess.run([npm, *arguments], cwd=EXTENSION, capture_output=True, text=True)
        if finished.returncode:
            raise RuntimeError(f"npm {' '.join(arguments)} failed:\n{finished.stdout}\n{finished.stderr}")


def sources() -> list[Path]:
    folders = [EXTENSION / name for name in ("src", "test", "media")]
    return [path for folder in (EXTENSION, *folders) for path in folder.iterdir() if path.is_file()]


if __name__ == "__main__":
    sys.stdout.write(f"{made()}\n")
