"""Parsers of the languages with a grammar here, and the number of syntax errors in a text."""

import importlib
from functools import cache

from tree_sitter import Language, Parser

GRAMMARS = {
    "python": ("tree_sitter_python", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "javascript": ("tree_sitter_javascript", "language"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "java": ("tree_sitter_java", "language"),
    "bash": ("tree_sitter_bash", "language"),
    "lua": ("tree_sitter_lua", "language"),
}


@cache
def parser(language: str) -> Parser:
    module, function = GRAMMARS[language]
    return Parser(Language(getattr(importlib.import_module(module), function)()))


def count_errors(language: str, text: str) -> int | None:
    """Errors and missing tokens in the syntax tree; None for a language without a grammar here."""
    if language not in GRAMMARS:
        return None
    tree = parser(language).parse(text.encode("utf-8", "replace"))
    count, stack = 0, [tree.root_node]
    while stack:
        node = stack.pop()
        count += node.is_error or node.is_missing
        if node.has_error:
            stack += node.children
    return count
