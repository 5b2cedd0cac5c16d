"""Functions are plain: what a line decides can be seen, and a class fits into a head."""

import ast
from functools import cache
from typing import Any

import pytest

from house import ROOT

DECISIONS = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.With,
    ast.AsyncWith,
    ast.IfExp,
    ast.match_case,
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PRODUCT = ("mercury_ls", "engine")
SHORT_LINES = 4
"""Functions of so many lines may be dense."""
MOST_DECISIONS = 15
"""Of a function that decides which edits follow."""
DEEP_FOLDERS = ("mercury_ls/next_edit", "mercury_ls/code/index")
LONGEST_CLASS = 300


def decisions(node: ast.AST) -> int:
    own = isinstance(node, DECISIONS)
    if isinstance(node, ast.BoolOp):
        own = len(node.values) - 1
    elif isinstance(node, ast.comprehension):
        own = 1 + len(node.ifs)
    inner = (child for child in ast.iter_child_nodes(node) if not isinstance(child, (*FUNCTIONS, ast.ClassDef)))
    return own + sum(map(decisions, inner))


def lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Those of the body, without what a docstring says."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


@cache
def product() -> list[tuple[str, Any]]:
    """The functions and classes, each with its place."""
    paths = sorted(path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))
    trees = ((path, ast.walk(ast.parse(path.read_text(encoding="utf-8")))) for path in paths)
    return [
        (f"{path.relative_to(ROOT).as_posix()}:{node.lineno} {node.name}", node)
        for path, tree in trees
        for node in tree
        if isinstance(node, (*FUNCTIONS, ast.ClassDef))
    ]


def functions(*folders: str) -> list[tuple[str, Any]]:
    return [(at, node) for at, node in product() if isinstance(node, FUNCTIONS) and at.startswith(folders)]


def test_functions_decide_at_most_once_a_line():
    dense = [at for at, node in functions(*PRODUCT) if SHORT_LINES < lines(node) < decisions(node)]
    assert not dense, "give its steps names of their own"


def test_functions_of_next_edits_decide_little():
    assert not [at for at, node in functions(*DEEP_FOLDERS) if decisions(node) > MOST_DECISIONS]


def test_classes_fit_into_a_head():
    classes = (node for _, node in product() if isinstance(node, ast.ClassDef))
    assert [node.name for node in classes if (node.end_lineno or 0) - node.lineno >= LONGEST_CLASS] == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("def f(x):\n    return x", 0),
        ("def f(x):\n    return [a for a in x if a or not a]", 3),
        ("def f(x):\n    if x:\n        with x:\n            pass", 2),
        ("def f(x):\n    def g():\n        if x:\n            pass", 0),
    ],
)
def test_decisions_are_counted(source, count):
    assert decisions(ast.parse(source).body[0]) == count
