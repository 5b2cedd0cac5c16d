"""An offer names what a rename leaves because nothing says for certain what it is, and not what is something else.

They are drawn in `unjudged/`, as in test_uses.py; a line that ends in `?` as a comment holds a place that is named.
"""

import re

import pytest

from tests.mercury_ls.next_edit.next_edit_scenarios import Scenario, read
from tests.mercury_ls.next_edit.test_uses import FILE, check

UNJUDGED = read("unjudged")
MARK = re.compile(r"  (?:#|//)\?$", re.MULTILINE)


@pytest.mark.parametrize("scenario", UNJUDGED, ids=lambda scenario: scenario.title)
async def test_places_that_a_rename_cannot_judge_are_named(scenario: Scenario) -> None:
    files = FILE.split(scenario.drawn)[1:]
    places = [
        f"{path.rpartition('/')[2]}:{number}"
        for path, text in zip(files[::2], files[1::2], strict=True)
        for number, line in enumerate(text.split("\n"), 1)
        if MARK.search(line)
    ]
    await check(MARK.sub("", scenario.drawn), places=places)


async def test_many_places_are_one_short_line() -> None:
    home = "--- shop.py\nclass Entry:\n    def ⟦name→title⟧(self): return self.«name»()\n"
    uses = "--- use.py\nfrom shop import Entry\n\ndef f(x):\n" + "    x.name()\n" * 60
    await check(home + uses, "more than 50 places cannot be judged: use.py")


TOKENS = """
--- tokens.py
from dataclasses import dataclass


@dataclass
class Token:
    text: str
    ⟦lineno→row⟧: int = 0
--- kinds.py
from typing import NamedTuple, Protocol
from tokens import Token

Alias = Token
Pair = NamedTuple("Pair", [("lineno", int)])


class Placed(Protocol):
    pass


class Lexer:
    token: Token
--- use.py
from tokens import Token
"""
SHAPES = (
    "def f(token: Token): return token.«lineno»",
    "def f(token: 'Token'): return f'{token.«lineno»}'",
    "def f(token: Token): token.«lineno» += 1",
    "def f(token): token.lineno += 1  #?",
    "def f(token): return f'{token.lineno:>4}'  #?",
    "def f(tokens: list[Token]): return [token.«lineno» for token in tokens]",
    "def f(tokens): return max(token.lineno for token in tokens)  #?",
    "def f(tokens: list[Token]): return tokens[0].«lineno»",
    "def f(token): return getattr(token, 'lineno')  #?",
    "def f() -> Token: return g()\nprint(f().«lineno»)",
    "token = Token('a', «lineno»=1)",
    "from dataclasses import replace\ndef f(token): return replace(token, lineno=1)  #?",
    "match g():\n    case Token(«lineno»=1): pass",
    "class A:\n    def f(self): return self.token.lineno  #?",
    "class A:\n    def __init__(self): self.token = Token('a')\n    def f(self): return self.token.«lineno»",
    "class A(Token):\n    def f(self): return self.«lineno»",
    "from kinds import Lexer\ndef f(lexer: Lexer): return lexer.token.«lineno»",
    "from kinds import Alias\ndef f(token: Alias): return token.«lineno»",
    "from kinds import Placed\ndef f(token: Placed): return token.lineno  #?",
    "from kinds import Pair\ndef f(pair: Pair): return pair.lineno",
    "Row = Token | None\ndef f(row: Row): return row.«lineno»",
    "class A:\n    lineno = 1\n    def f(self): return self.lineno",
    "def f(token: str): return token.lineno",
    "# the lineno of a Token",
    "_ = 'the lineno of a Token'",
)


@pytest.mark.parametrize("shape", SHAPES)
async def test_use_of_an_attribute_is_renamed_named_or_certainly_anothers(shape: str) -> None:
    lines = enumerate(shape.split("\n"), 2)
    places = [f"use.py:{number}" for number, line in lines if line.endswith("#?")]
    await check(TOKENS.lstrip("\n") + shape.replace("  #?", "") + "\nprint(Token('b', «lineno»=2))\n", places=places)


async def test_place_in_a_file_of_the_same_name_is_told_by_its_folder() -> None:
    home = "--- shop/lists/__init__.py\nclass Entry:\n    def ⟦name→title⟧(self): ...\n"
    uses = "--- shop/__init__.py\nfrom shop.lists import Entry\ndef f(x): return x.name()\n"
    await check(home + uses, "1 place cannot be judged: shop/__init__.py:2")
