"""Reads untrusted TOML files, within bounds of size, nesting and time."""

import re
import tomllib
from pathlib import Path
from typing import Any

from mercury_ls.code.files import read_small

LARGEST_FILE = 1 << 18
MAX_DEPTH = 32
MAX_DOTS = 32

TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"{3,5}|\\?\Z)|\'\'\'.*?(?:\'{3,5}|\Z)|"(?:\\[^\n]|[^"\\\n])*"?|\'[^\'\n]*\'?|#[^\n]*'
    r"|(?P<mark>[\[{\]}.\n])",
    re.DOTALL,
)
"""Matches whole strings and comments, and the characters that nest. An unterminated string reaches as far as one can,
so that nothing is scanned twice."""


class UnreadableError(Exception):
    """Nothing in this file applies. `where` is the file, with the line if it is known."""

    def __init__(self, where: str, remedy: str) -> None:
        super().__init__(f"{where} {remedy}")
        self.where = where
        self.remedy = remedy


def read(path: Path) -> dict[str, Any]:
    """Read the file. Raise FileNotFoundError if there is none, and UnreadableError for every other problem."""
    try:
        text = read_small(str(path), LARGEST_FILE).decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableError(str(path), f"cannot be read ({error.strerror or error}); fix or remove it") from None
    except UnicodeDecodeError as error:
        raise UnreadableError(str(path), f"is not UTF-8 at byte {error.start}; save it as UTF-8") from None
    if line := _too_deep(text):
        raise UnreadableError(f"{path}:{line}", f"is nested more than {MAX_DEPTH} levels deep; settings need three")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        match = re.search(r"line (\d+)", str(error))
        where = f"{path}:{match[1]}" if match else str(path)
        raise UnreadableError(
            where, f"is not valid TOML ({error}); fix it, since nothing in this file applies"
        ) from None


def _too_deep(text: str) -> int:
    """The line where brackets or dotted keys nest too deeply for tomllib, which recurses into brackets and takes
    quadratic time for dotted keys; 0 if nowhere."""
    depth = dots = 0
    for token in TOKEN.finditer(text):
        mark = token["mark"]
        depth += (mark in ("[", "{")) - (mark in ("]", "}") and depth > 0)
        dots = 0 if mark == "\n" else dots + (mark == ".")
        if depth > MAX_DEPTH or dots > MAX_DOTS:
            return text.count("\n", 0, token.start()) + 1
    return 0
