"""Which lines of some files mention what an edit changed: its names, the rarest first, declarations before uses.

names = changed_names(old_lines, new_lines)
mentions(names, {"a.py": lines}, Edited("a.py", 3, 5))
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from mercury_engine.api import Mention

NAME = re.compile(r"[^\W\d]\w{2,}")
DECLARES = re.compile(
    r"\b(?:def|class|func|fn|fun|function|const|let|var|val|struct|enum|trait|type|interface|import|from|use)\s"
)
COMMON = frozenset(
    (
        *("and", "any", "are", "async", "await", "bool", "boolean", "break", "case"),
        *("catch", "class", "const", "continue", "def", "default", "delete", "double", "elif"),
        *("else", "enum", "err", "except", "export", "extends", "false", "final", "finally"),
        *("float", "for", "foreach", "from", "func", "function", "get", "global", "if"),
        *("implements", "import", "in", "int", "interface", "internal", "is", "lambda", "let"),
        *("long", "main", "match", "module", "mut", "namespace", "new", "nil", "none"),
        *("None", "not", "null", "number", "object", "or", "override", "package", "pass"),
        *("private", "protected", "pub", "public", "raise", "readonly", "return", "self", "set"),
        *("static", "str", "string", "struct", "super", "switch", "the", "then", "this"),
        *("throw", "throws", "trait", "true", "True", "False", "try", "type", "undefined"),
        *("union", "unsigned", "use", "using", "val", "value", "var", "void", "where"),
        *("while", "with", "yield"),
    )
)
"""Words of languages, and names so frequent that mentioning them tells nothing."""

MOST_NAMES = 6
MOST_LINES = 4
"""Lines for one name."""


class Edited(Struct, frozen=True):
    """The lines that an edit wrote, which need no mention."""

    path: str
    first: int
    stop: int


def changed_names(old: Iterable[str], new: Iterable[str]) -> set[str]:
    """The names that only one of the two texts has."""
    return (_names(old) ^ _names(new)) - COMMON


def mentions(names: Iterable[str], files: Mapping[str, Sequence[str]], edited: Edited) -> list[Mention]:
    """The most telling lines, those of the edited file first, in the order of the text."""
    holders = {name: _holders(name, files, edited) for name in names}
    rarest = sorted((name for name in holders if holders[name]), key=lambda name: (len(holders[name]), name))
    chosen: dict[Mention, None] = {}
    for name in rarest[:MOST_NAMES]:
        chosen.update(dict.fromkeys(_most_telling(holders[name], edited)))
    return sorted(chosen, key=lambda mention: (mention.path != edited.path, mention))


def _names(lines: Iterable[str]) -> set[str]:
    return {name for line in lines for name in NAME.findall(line)}


def _holders(name: str, files: Mapping[str, Sequence[str]], edited: Edited) -> list[Mention]:
    word = re.compile(rf"\b{re.escape(name)}\b")
    return [
        Mention(path, number, line)
        for path, lines in files.items()
        for number, line in enumerate(lines)
        if name in line and word.search(line) and not _within(edited, path, number)
    ]


def _within(edited: Edited, path: str, number: int) -> bool:
    return path == edited.path and edited.first <= number < edited.stop


def _most_telling(holders: list[Mention], edited: Edited) -> list[Mention]:
    def rank(mention: Mention) -> tuple[bool, bool, int]:
        declares = DECLARES.search(mention.text) is not None
        return not declares, mention.path != edited.path, abs(mention.line - edited.first)

    return sorted(holders, key=rank)[:MOST_LINES]
