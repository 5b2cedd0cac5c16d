"""`python -m release.bundle` makes one file that installs on machines without a network, and tries it.

It holds wheels of the server, the model and all that they need, for machines like this one; the plugins and VS Code's
extension lie in the server's. It is tried in an empty home, and where Linux allows it in a network namespace without
routes: `mercury-ls doctor`, a completed line, and the demo.
"""

import argparse
import shutil
import sys
import zipapp
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from mercury_ls import __version__
from release.bundled import MADE_FOR, made_for
from release.proof import Room, installation
from release.shell import NOTHING, CommandError, run

ROOT = Path(__file__).parent.parent
VSIX = ROOT / "editors/vscode/dist/mercury-ls.vsix"
SEPARATE = ("unshare", "--net")


def built(out: Path) -> Path:
    """The file, in this folder."""
    if not VSIX.exists():
        raise ValueError(f"{VSIX.relative_to(ROOT)} is not there: run `make vscode` first")
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="mercury-bundle-") as folder:
        wheels = [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", folder]
        run([*wheels, ROOT, ROOT / "models/quicksilver"], ROOT)
        shutil.copy(Path(__file__).with_name("bundled.py"), Path(folder) / "__main__.py")
        (Path(folder) / MADE_FOR).write_text(made_for(), encoding="utf-8")
        path = out / f"mercury-ls-{__version__}-{made_for().replace(', ', '-').replace(' ', '')}.pyz"
        zipapp.create_archive(folder, path, interpreter="/usr/bin/env python3")
    return path


def offline(command: Sequence[str | Path], folder: Path, variables: Mapping[str, str] = NOTHING) -> str:
    return run([*SEPARATE, *command], folder, variables)


def _can_be_offline() -> bool:
    try:
        return bool(shutil.which(SEPARATE[0])) and not offline(["true"], ROOT)
    except CommandError:
        return False


def tried(bundle: Path) -> str:
    """What it did once installed."""
    runs = offline if _can_be_offline() else run
    with TemporaryDirectory(prefix="mercury-") as home:
        folder = Path(home)
        shutil.copytree(
            ROOT / "bench", folder / "tools/bench", ignore=shutil.ignore_patterns("sets", "sessions", "wire")
        )
        (folder / "room").mkdir()
        target = folder / "installed"
        runs([sys.executable, bundle, target], folder, {"PYTHONPATH": ""})
        room = Room(runs, folder / "room", folder / "tools", ROOT, target / "bin", __version__)
        proof = installation(room, bundle, target / "bin")
    return f"{proof}; {'without a network' if runs is offline else 'with a network, which could not be taken away'}"


def main() -> str | None:
    options = argparse.ArgumentParser(prog="python -m release.bundle", description=__doc__)
    options.add_argument("--out", type=Path, default=ROOT / "dist/bundle")
    chosen = options.parse_args()
    try:
        bundle = built(chosen.out.resolve())
        sys.stdout.write(f"{bundle}: {bundle.stat().st_size >> 20} MiB\n")
        sys.stdout.write(f"tried: {tried(bundle)}\n")
    except (CommandError, ValueError) as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main())
