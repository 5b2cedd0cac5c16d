"""What the syntax states of a name or an expression, by the queries beside this module.

There is one for each language; `; inherits: ecma` in its first line puts another one before it, as in editors. Their
captures say what gives a `@name` its type and what an `@expression` is made of; `python.scm` explains them.
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from itertools import islice, pairwise

from tree_sitter import Node, Query, QueryCursor

from mercury_ls.code import languages, scopes
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.code.languages import Language
from mercury_ls.code.syntax import innermost, outward

INHERITS = re.compile(r"; inherits: (\w+)\n")
LEVELS = 6
"""Nodes between a name and the statement that says what it is."""

Facts = dict[str, list[Node]]


def of_name(file: Snapshot, name: Node) -> Facts:
    """What is stated where a name is declared."""
    matches = (match for around in islice(outward(name.parent), LEVELS) for match in _matches(file, around))
    return _joined(match for match in matches if name in match.get("name", ()))


def of_expression(file: Snapshot, node: Node) -> Facts:
    """What an expression is made of."""
    return _joined(match for match in _matches(file, node) if "name" not in match)


def _joined(matches: Iterable[Facts]) -> Facts:
    facts: Facts = {}
    for match in matches:
        for capture, nodes in match.items():
            captured = facts.setdefault(capture, [])
            captured += [node for node in nodes if node not in captured]
    return facts


@cached
def classes(file: Snapshot) -> tuple[Node, ...]:
    """The names of the classes of a file that name bases."""
    query = _query(file.written_in, "base")
    if query is None or file.tree is None:
        return ()
    matches = QueryCursor(query).matches(file.tree.root_node)
    return tuple(dict.fromkeys(match["name"][0] for _, match in matches if "base" in match))


def returned(file: Snapshot, function: Node) -> list[Node]:
    """What a function returns, as far as it is written in its body; nothing if it yields."""
    query = _query(file.written_in, "")
    captures = QueryCursor(query).captures(function) if query is not None else {}
    if any(innermost(node, scopes.FUNCTIONS) == function for node in captures.get("yields", ())):
        return []
    return [node for node in captures.get("returned", ()) if innermost(node, scopes.FUNCTIONS) == function]


@cached
def _matches(file: Snapshot, node: Node) -> list[Facts]:
    """The patterns that this node begins."""
    query = _query(file.written_in, "")
    if query is None:
        return []
    cursor = QueryCursor(query)
    cursor.set_max_start_depth(0)
    return [match for _, match in cursor.matches(node)]


@cache
def _query(language: Language, capture: str) -> Query | None:
    """All patterns of a language, or only those with a capture, which take much less of a whole file's time."""
    source = _patterns(language.id)
    if not source or not capture:
        return languages.query(language, source) if source else None
    query = languages.query(language, source)
    starts = [query.start_byte_for_pattern(number) for number in range(query.pattern_count)]
    patterns = [source[start:end] for start, end in pairwise([*starts, len(source)])]
    return languages.query(language, "".join(pattern for pattern in patterns if f"@{capture}" in pattern))


def _patterns(name: str) -> str:
    source = files("mercury_ls.code.index").joinpath(f"{name}.scm")
    text = source.read_text("utf-8") if source.is_file() else ""
    inherited = INHERITS.match(text)
    return (_patterns(inherited[1]) if inherited else "") + text
