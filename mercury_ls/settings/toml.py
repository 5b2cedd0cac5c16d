"""Reads untrusted TOML files, within bounds of size, nesting and time."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from mercury_engine.redaction import ForeignText, Secrets
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


class Table(Struct, frozen=True):
    """What a file sets, and its text."""

    values: dict[str, Any]
    text: str


def read(path: Path) -> Table:
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
        return Table(tomllib.loads(text), text)
    except (ValueError, RecursionError) as error:
        match = re.search(r"line (\d+), column \d+\)\Z", str(error))
        where = f"{path}:{match[1]}" if match else str(path)
        why = Secrets().shown(ForeignText(str(error)))
        raise UnreadableError(where, f"is not valid TOML ({why}); fix it, since nothing in this file applies") from None


def statements(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """What each statement of a valid text sets by itself, and the line where it begins."""
    table: list[str] = []
    line = 1
    for statement in _split(text):
        values = tomllib.loads(statement)
        if statement.lstrip().startswith("["):
            table = [*_keys(values)]
        else:
            for key in reversed(table):
                values = {key: values}
        yield line, values
        line += statement.count("\n")


def _split(text: str) -> Iterator[str]:
    start = depth = 0
    for token in TOKEN.finditer(text):
        mark = token["mark"]
        depth += (mark in ("[", "{")) - (mark in ("]", "}"))
        if mark == "\n" and not depth:
            yield text[start : token.end()]
            start = token.end()
    yield text[start:]


def _keys(header: dict[str, Any]) -> Iterator[str]:
    """The names in the header of a table, which is empty, or of one in a list of tables."""
    within: Any = header
    while within:
        [(key, within)] = within.items()
        within = within[0] if isinstance(within, list) else within
        yield key


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
