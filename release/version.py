"""The version stands in `mercury_ls/__init__.py`, and what this project is called elsewhere here; `python -m
release.version` writes all of it wherever else it is told."""

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

ADDRESS = ""
"""The repository's, such as https://github.com/OWNER/NAME, once there is one: until then no file names it."""

PUBLISHER = "mercury-ls"
"""On the Marketplace and Open VSX."""

PUBLISHED = {"editors/vscode/package.json": r'^  "publisher": "(.*)"'}

ADDRESSED = {
    "pyproject.toml": (r"^license-files = .*\n", 'urls = {{ Repository = "{}" }}\n'),
    "editors/vscode/package.json": (r'^  "publisher": .*\n', '  "repository": {{ "type": "git", "url": "{}" }},\n'),
    "editors/zed/extension.toml": (r"^authors = .*\n", 'repository = "{}"\n'),
    "CITATION.cff": (r"^version: .*\n", 'repository-code: "{}"\n'),
}
"""Behind which line each file names the address, and how."""

INSTALLERS = {
    "editors/vscode/package.json": r'"mercury-ls\.server\.package": \{\s*"type": "string",\s*"default": "(.*)"',
    "editors/zed/src/lib.rs": r'^const PACKAGE: &str = "(.*)";',
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


def addressed(text: str, before: str, line: str, address: str) -> str:
    """The text with the line that names the address; without it where there is none."""
    present = "".join(".*" if piece == "{}" else re.escape(piece) for piece in re.split(r"({})", line.format("{}")))
    place = re.compile(f"({before})(?:{present})?", re.MULTILINE)
    if len(place.findall(text)) != 1:
        raise ValueError(f"nothing in the file, or too much, matches {before!r}: correct release/version.py")
    return place.sub(lambda found: found[1] + (line.format(address) if address else ""), text)


def main() -> None:
    for name, (before, line) in ADDRESSED.items():
        path = ROOT / name
        path.write_text(addressed(path.read_text(encoding="utf-8"), before, line, ADDRESS), encoding="utf-8")
    values = [
        (FOLLOWERS, __version__),
        (PUBLISHED, PUBLISHER),
        (INSTALLERS, requirement(PACKAGE, __version__)),
    ]
    for places, value in values:
        for name, place in places.items():
            path = ROOT / name
            path.write_text(renewed(path.read_text(encoding="utf-8"), place, value), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
