"""TOML files that anybody may have written, read within bounds of size, nesting and time."""

import re
import tomllib
from pathlib import Path
from typing import Any

from mercury_ls.code.files import read_small

__all__ = ["UnreadableError", "read"]

LARGEST_FILE = 1 << 18
DEEPEST = 32
MOST_DOTS = 32

TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"{3,5}|\\?\Z)|\'\'\'.*?(?:\'{3,5}|\Z)|"(?:\\[^\n]|[^"\\\n])*"?|\'[^\'\n]*\'?|#[^\n]*'
    r"|(?P<mark>[\[{\]}.\n])",
    re.DOTALL,
)
"""Texts and comments, passed over whole, and the marks that nest. A text without its end goes on for as far as one can:
nothing is read twice."""


class UnreadableError(Exception):
    """Nothing in this file applies. `where` names the file, and the line if there is one."""

    def __init__(self, where: str, remedy: str) -> None:
        super().__init__(f"{where} {remedy}")
        self.where = where
        self.remedy = remedy


def read(path: Path) -> dict[str, Any]:
    """FileNotFoundError where there is none, UnreadableError for whatever else keeps it from being read."""
    try:
        text = read_small(str(path), LARGEST_FILE).decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableError(str(path), f"cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError as error:
        raise UnreadableError(str(path), f"is not UTF-8 at byte {error.start}; save it as UTF-8") from None
    if line := too_deep(text):
        raise UnreadableError(f"{path}:{line}", f"nests more than {DEEPEST} deep; settings need three levels")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        found = re.search(r"line (\d+)", str(error))
        where = f"{path}:{found[1]}" if found else str(path)
        raise UnreadableError(where, f"is not TOML: {error}; nothing in this file applies until it is") from None


def too_deep(text: str) -> int:
    """The line where brackets or dotted keys nest too deep to parse: tomllib recurses into the ones, and needs the
    square of the others' length."""
    depth = dots = 0
    for token in TOKEN.finditer(text):
        mark = token["mark"]
        depth += (mark in ("[", "{")) - (mark in ("]", "}") and depth > 0)
        dots = 0 if mark == "\n" else dots + (mark == ".")
        if depth > DEEPEST or dots > MOST_DOTS:
            return text.count("\n", 0, token.start()) + 1
    return 0
