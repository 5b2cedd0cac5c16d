"""Sets one value in the user's settings file, and leaves every other character of it as it is."""

import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mercury_ls.settings import toml

BOM = "\ufeff"


def assign(file: Path, path: str, value: str) -> None:
    """Set the value, creating the file if needed. Raise `toml.UnreadableError` if the file cannot be read, or has no
    safe place for the value."""
    file = Path(os.path.realpath(file))  # a link, for example into a repository of settings, stays a link
    text = ""
    if file.exists():
        toml.read(file)
        text = file.read_bytes().decode()
    bare = text.removeprefix(BOM)
    changed = assigned(bare, path, value)
    if changed is None:
        line = f"{path} = {json.dumps(value)}"
        raise toml.UnreadableError(str(file), f"has no safe place for `{line}`: add it yourself")
    if changed != bare:
        write(file, text[: len(text) - len(bare)] + changed)


def write(file: Path, text: str) -> None:
    """Write the file atomically, so that no one reads half of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.new")
    draft.write_bytes(text.encode())
    if file.exists():
        shutil.copymode(file, draft)
    draft.replace(file)


def assigned(text: str, path: str, value: str) -> str | None:
    """The first of the possible edits after which the file means the same but for this value; None if there is none.

    >>> assigned("[engine]\\nthreads = 2 # both\\n", "engine.model", "qwen")
    '[engine]\\nmodel = "qwen"\\nthreads = 2 # both\\n'
    """
    group, name = path.split(".")
    parsed = tomllib.loads(text)
    table = parsed.setdefault(group, {})
    if not isinstance(table, dict):
        return None
    table[name] = value
    return next((changed for changed in _edits(text, group, name, json.dumps(value)) if _means(changed, parsed)), None)


def _means(text: str, expected: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == expected
    except tomllib.TOMLDecodeError:
        return False


def _edits(text: str, group: str, name: str, value: str) -> Iterator[str]:
    """Replace the old value, or add it below the header of its table, beside its dotted siblings, or in a new table:
    the reader of the result judges whether a line is what it looks like."""
    lines = text.splitlines(keepends=True)
    end = "\r\n" if "\r\n" in text else "\n"
    dotted = rf"""['"]?{group}['"]?\s*\.\s*"""
    for number, line in enumerate(lines):
        old = re.match(rf"""(\s*(?:{dotted})?['"]?{name}['"]?\s*=\s*)("(?:\\.|[^"\\])*"|'[^']*')""", line)
        if old:
            yield "".join([*lines[:number], old[1] + value + line[old.end() :], *lines[number + 1 :]])
    for number, line in enumerate(lines, 1):
        if re.match(rf"""\s*\[\s*['"]?{group}['"]?\s*\]""", line):
            yield "".join([*_whole(lines[:number], end), f"{name} = {value}{end}", *lines[number:]])
    for number, line in enumerate(lines):
        if re.match(rf"\s*{dotted}", line):
            yield "".join([*lines[:number], f"{group}.{name} = {value}{end}", *lines[number:]])
    gap = end if lines else ""
    yield "".join([*_whole(lines, end), gap, f"[{group}]{end}{name} = {value}{end}"])


def _whole(lines: list[str], end: str) -> list[str]:
    """The lines, the last of which may lack its line end."""
    return lines if not lines or lines[-1].endswith("\n") else [*lines[:-1], lines[-1] + end]
