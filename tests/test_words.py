"""A variable is named after what it holds, a docstring names what is there, a class name means one thing, and a test
name leads with the feature."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("mercury_ls", "engine/mercury_engine", "kernels/mercury_kernels", "training/mercury_training")
AROUND = {"bench": 0.102, "release": 0.066, "tests": 0.086}
"""The shares of vague names that are left there: they may only shrink."""
VAGUE = frozenset(
    re.findall(
        r"\w+",
        """
    also again another asked beside both by called done each found given gone heard held here it kept known left
    made meant more most now of one ones opened others rest said same seen shown so such taken them then there these
    those told wanted what which who written
    """,
    )
)
LEADING = re.compile(
    "test_(a|an|the|what|who|where|whoever|of|in|if|while|only|nothing|nobody|no|every|each|some|one|there|how|it)_"
)
BACKTICKED = re.compile(r"`([a-z_]\w*)=?`")
MOST_VAGUE = 0.01
MOST_LEADING = 0.005
SHARED_CLASS_NAMES = 10


def bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    """What is assigned, iterated over, a parameter or an alias of an import, with its line."""
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.alias(asname=str(name)):
                yield name, node.lineno


class Module(NamedTuple):
    """What is named in a file: each with its place."""

    variables: tuple[tuple[str, str], ...]
    strangers: tuple[str, ...]
    classes: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]


@cache
def modules(package: str) -> list[Module]:
    """Each file is parsed once; no tree is kept."""
    return [read(path) for path in sorted((ROOT / package).rglob("*.py"))]


def read(path: Path) -> Module:
    source, file = path.read_text("utf-8"), path.relative_to(ROOT)
    nodes = [*ast.walk(ast.parse(source))]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    return Module(
        tuple((name, f"{file}:{line} {name}") for name, line in bindings(nodes)),
        tuple(f"{file}:{line} {word}" for line, word in strangers(source, nodes)),
        tuple((node.name, f"{file}:{node.lineno} {node.name}") for node in classes),
        tuple(f"{file}:{node.lineno} {node.name}" for node in functions if node.name.startswith("test_")),
    )


def check(source: str, *names: str) -> None:
    assert [name for name, _ in bindings(ast.walk(ast.parse(source)))] == list(names)


def test_bindings_of_every_form_are_counted():
    check("a = 1", "a")
    check("for a, b in c: pass", "a", "b")
    check("with a as b: c.d = e", "b")
    check("[a for a in b]", "a")
    check("(a := b)", "a")
    check("def a(b, *c, d=e, **f): pass", "b", "c", "d", "f")
    check("lambda a: b", "a")
    check("import a, b as c", "c")


@pytest.mark.parametrize(("package", "share"), [*dict.fromkeys(PACKAGES, MOST_VAGUE).items(), *AROUND.items()])
def test_variables_are_named_after_what_they_hold(package, share):
    names = [variable for module in modules(package) for variable in module.variables]
    vague = [place for name, place in names if name.strip("_") in VAGUE]
    assert len(vague) <= share * len(names), "\n".join(vague)


def documented(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.Expr, int]]:
    """The docstrings of functions and classes, with the lines of what they document."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            match node.body[0]:
                case ast.Expr(value=ast.Constant(value=str())) as docstring:
                    yield docstring, node.lineno


def strangers(source: str, nodes: Iterable[ast.AST]) -> list[tuple[int, str]]:
    """Vague words in backticks, with the lines of what they describe, that no code beside them has: a name that has
    been changed since."""
    docstrings = [*documented(nodes)]
    lines = source.splitlines()
    for docstring, _ in docstrings:
        for number in range(docstring.lineno - 1, docstring.end_lineno or docstring.lineno):
            lines[number] = ""
    names = re.findall(r"[^\W_]+", "\n".join(lines))
    quoted = ((line, word) for docstring, line in docstrings for word in BACKTICKED.findall(ast.unparse(docstring)))
    return [(line, word) for line, word in quoted if word in VAGUE and word not in names]


def test_changed_names_are_strangers_to_their_docstrings():
    for source, places in (
        ('def a(b):\n    """Makes `left` of `b`."""\n    return b\n', [(1, "left")]),
        ('def a(left):\n    """Makes `left`."""\n', []),
    ):
        assert strangers(source, ast.walk(ast.parse(source))) == places


@pytest.mark.parametrize("package", [*PACKAGES, *AROUND])
def test_docstrings_name_what_is_there(package):
    assert [place for module in modules(package) for place in module.strangers] == []


def test_class_name_means_one_thing():
    places = defaultdict(list)
    for name, place in (named for package in PACKAGES for module in modules(package) for named in module.classes):
        places[name].append(place)
    shared = [place for same in places.values() if len(same) > 1 for place in same]
    assert sum(len(same) > 1 for same in places.values()) <= SHARED_CLASS_NAMES, "\n".join(shared)


def test_names_of_tests_lead_with_the_feature():
    names = [name for module in modules("tests") for name in module.tests]
    leading = [name for name in names if LEADING.match(name.split()[1])]
    assert len(leading) <= MOST_LEADING * len(names), "\n".join(leading)
