"""Installs mercury-ls and its model from this file alone, without a network: `python FILE [FOLDER]`."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

PACKAGES = ("mercury-ls", "mercury-ls-quicksilver")
FOLDER = Path.home() / ".local/share/mercury-ls/installed"
MADE_FOR = "made-for"


def made_for() -> str:
    """What wheels depend on: the kind of machine, and the version of Python."""
    return f"{sysconfig.get_platform()}, {sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"


def main() -> str | None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    with zipfile.ZipFile(Path(__file__).parent) as bundle, TemporaryDirectory() as wheels:
        if (needed := bundle.read(MADE_FOR).decode()) != made_for():
            return f"this bundle is for {needed}, and this is {made_for()}: start it with that Python"
        bundle.extractall(wheels, [name for name in bundle.namelist() if name.endswith(".whl")])
        venv.create(folder, with_pip=True)
        programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
        pip = [programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
        done = subprocess.run([*pip, "--find-links", wheels, *PACKAGES], check=False)
    if done.returncode:
        return f"not installed: pip ended with {done.returncode}"
    command = programs / "mercury-ls"
    sys.stdout.write(f"installed: {command}\nnext: {command} doctor, then {command} editor NAME\n")
    return None


if __name__ == "__main__":
    sys.exit(main())
