"""Synthetic changes of common kinds: a name, a signature or an import, carried through one Python file."""

import ast
import builtins
import keyword
import random
import re
import warnings
from collections.abc import Callable, Iterator

Hunk = tuple[int, int, tuple[str, ...], tuple[str, ...]]
"""First and last line (half-open) of the file before, its lines, and the lines that replace them."""

LINE = re.compile(r"[^\n]*\n|[^\n]+")
PARAMETERS = (
    *("timeout", "context", "strict", "encoding", "verbose", "default", "logger", "config", "limit", "prefix"),
    *("session", "options", "callback", "dry_run", "metadata", "retries", "scope", "locale", "headers", "weights"),
)
OCCURRENCES = range(3, 13)
SHORTEST_NAME = 4


def changes(text: str, draw: random.Random) -> Iterator[tuple[str, list[str], list[Hunk], int]]:
    """At most one change of each kind: its kind, the lines before, its hunks in order, and how many are history."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = lines_of(text)
    makers: dict[str, Callable[[list[str], ast.Module, random.Random], list[Hunk]]] = {
        "rename": _rename,
        "signature": _signature,
        "import": _import,
    }
    for kind, make in makers.items():
        hunks = make(lines, tree, draw)
        if len(hunks) >= 2:
            yield kind, _without_import(lines, hunks) if kind == "import" else lines, hunks, _known(kind, hunks, draw)


def lines_of(text: str) -> list[str]:
    """Lines with their ends; only a line feed ends one."""
    return LINE.findall(text)


def _known(kind: str, hunks: list[Hunk], draw: random.Random) -> int:
    return 1 if kind == "import" else draw.randint(1, min(3, len(hunks) - 1))


def _rename(lines: list[str], tree: ast.Module, draw: random.Random) -> list[Hunk]:
    """Rename a name of the file to one built from words that the file uses; lines with strings may differ."""
    places: dict[str, set[int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            places.setdefault(node.id, set()).add(node.lineno - 1)
        elif isinstance(node, ast.arg):
            places.setdefault(node.arg, set()).add(node.lineno - 1)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            places.setdefault(node.name, set()).add(node.lineno - 1)
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        for alias in getattr(node, "names", [])
        if isinstance(alias, ast.alias)
    }
    reserved = {*keyword.kwlist, *dir(builtins), *imported, "self"}
    eligible = sorted(
        name
        for name, nodes in places.items()
        if len(nodes) in OCCURRENCES and len(name) >= SHORTEST_NAME and name not in reserved
    )
    if not eligible:
        return []
    old = draw.choice(eligible)
    new = _other_name(old, sorted(places), draw)
    if new in reserved | places.keys():
        return []
    spelled = re.compile(rf"(?<![\w.\"']){old}(?![\w\"'])")
    return _line_hunks(lines, {line: spelled.sub(new, lines[line]) for line in places[old]})


def _other_name(old: str, names: list[str], draw: random.Random) -> str:
    """The name with a part of another name replacing or joining a part of it."""
    words = sorted({part for name in names for part in name.strip("_").lower().split("_") if len(part) > 2})
    word = draw.choice([word for word in words if word not in old.lower()] or ["updated"])
    if "_" not in old.strip("_") and old != old.lower():
        return old + word.capitalize()
    parts = old.split("_")
    place = draw.randrange(len(parts))
    if draw.random() < 0.5 and parts[place]:
        parts[place] = word
    else:
        parts.insert(place + 1, word)
    return "_".join(parts)


def _signature(lines: list[str], tree: ast.Module, draw: random.Random) -> list[Hunk]:
    """Add a parameter to a function, and the argument to its calls."""
    defined = {
        node.name: node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_plain(node, lines)
    }
    calls: dict[str, list[ast.Call]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _called(node)) in defined and node.end_lineno == node.lineno:
            calls.setdefault(name, []).append(node)
    eligible = sorted(name for name, nodes in calls.items() if len({call.lineno for call in nodes}) == len(nodes) <= 10)
    if not eligible:
        return []
    name = draw.choice(eligible)
    parameter = draw.choice(PARAMETERS)
    header = defined[name].lineno - 1
    changed = {header: _extended(lines[header], lines[header].rindex(")", 0, _header_end(lines[header])), parameter)}
    for call in calls[name]:
        line = lines[call.lineno - 1]
        close = len(line.encode()[: call.end_col_offset].decode()) - 1
        changed[call.lineno - 1] = _extended(line, close, f"{parameter}={parameter}")
    hunks = _line_hunks(lines, changed)
    return sorted(hunks, key=lambda hunk: hunk[0] != header)


def _is_plain(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> bool:
    header = lines[node.lineno - 1]
    arguments = node.args
    last = arguments.kwarg or arguments.vararg or arguments.kwonlyargs or arguments.defaults
    return not last and header.rstrip().endswith(":") and ")" in header and not node.name.startswith("__")


def _header_end(line: str) -> int:
    """The possible end of the parameters of a one-line header: before its return type."""
    return line.index("->") if "->" in line else len(line)


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name | ast.Attribute):
        return call.func.id if isinstance(call.func, ast.Name) else call.func.attr
    return ""


def _extended(line: str, close: int, argument: str) -> str:
    """The line with one argument more before its bracket at `close`."""
    inside = line[:close].rstrip()
    separator = "" if inside.endswith("(") else " " if inside.endswith(",") else ", "
    return inside + separator + argument + line[close:]


def _import(lines: list[str], tree: ast.Module, draw: random.Random) -> list[Hunk]:
    """A line that needs an import was just written; the import is still missing.

    The hunks are against the file without both, so they are built from the two lines that stay out."""
    imports = {}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and node.lineno == node.end_lineno and len(node.names) == 1:
            imports[(node.names[0].asname or node.names[0].name).split(".")[0]] = node.lineno - 1
    uses: dict[str, set[int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in imports:
            uses.setdefault(node.id, set()).add(node.lineno - 1)
    eligible = sorted(name for name, nodes in uses.items() if len(nodes) == 1)
    if not eligible:
        return []
    name = draw.choice(eligible)
    (use,) = uses[name]
    place = imports[name]
    if use <= place:
        return []
    return [(use - 1, use - 1, (), (lines[use],)), (place, place, (), (lines[place],))]


def _without_import(lines: list[str], hunks: list[Hunk]) -> list[str]:
    (use, *_), (place, *_) = hunks
    return [line for number, line in enumerate(lines) if number not in (use + 1, place)]


def _line_hunks(lines: list[str], changed: dict[int, str]) -> list[Hunk]:
    return [
        (number, number + 1, (lines[number],), (changed[number],))
        for number in sorted(changed)
        if changed[number] != lines[number]
    ]
