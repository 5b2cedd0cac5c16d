"""The version stands in `mercury_ls/__init__.py`; `python -m release.version` writes it wherever else it is told."""

import re
import sys
from pathlib import Path

from mercury_ls import __version__

ROOT = Path(__file__).parent.parent
FOLLOWERS = {
    "editors/vscode/package.json": r'^  "version": "(.*)"',
    "editors/vscode/package-lock.json": r'^(?:  |      )"name": "mercury-ls",\n +"version": "(.*)"',
    "editors/vim/package.json": r'^  "version": "(.*)"',
    "editors/zed/extension.toml": r'^version = "(.*)"',
    "editors/zed/Cargo.toml": r'\A\[package\]\n.*\nversion = "(.*)"',
    "CITATION.cff": r"^version: (.*)",
    "editors/nvim/lua/mercury/version.lua": r'^M\.plugin = "(.*)"',
}
"""The files that repeat it, and where: the first group of every match."""


PACKAGE = ""
"""The name on PyPI, once it is ours: until then what anybody could take is installed from nowhere."""

INSTALLERS = {
    "editors/vscode/package.json": r'"mercury-ls\.server\.package": \{\s*"type": "string",\s*"default": "(.*)"',
    "editors/nvim/lua/mercury/install.lua": r'^M\.package = "(.*)"',
}
"""What the plugins install: the package in their own version."""


def requirement(package: str, version: str) -> str:
    return f"{package}=={version}" if package else ""


def renewed(text: str, place: str, value: str) -> str:
    """The text with the value at every match of the place."""
    matches = list(re.finditer(place, text, re.MULTILINE))
    if not matches:
        raise ValueError(f"nothing in the file matches {place!r}: correct release/version.py")
    for match in reversed(matches):
        text = text[: match.start(1)] + value + text[match.end(1) :]
    return text


def main() -> None:
    values = [(FOLLOWERS, __version__), (INSTALLERS, requirement(PACKAGE, __version__))]
    for places, value in values:
        for name, place in places.items():
            path = ROOT / name
            path.write_text(renewed(path.read_text(encoding="utf-8"), place, value), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
