"""Code as characters and tokens: keywords, the words of a name, the shape of a line, line breaks."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile

from mercury_ls.code.differences import TOKEN, tokens
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.edits import TextEdit, difference

__all__ = [
    "FIXED",
    "IMPORT",
    "KEYWORDS",
    "MARK",
    "PARTS",
    "bounded",
    "cased",
    "changed_part",
    "changed_words",
    "in_the_files_lines",
    "indentation",
    "is_word",
    "kinship",
    "line_break",
    "minimal",
    "openness",
    "shape",
    "shape_of",
    "tokens_of",
]

KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
    and as async await bool boolean break case catch char class const continue def default del do double elif
    else enum except export extends extern final finally float fn for from func function go if impl import in
    int interface is lambda let long match mod module mut namespace new not None null nil or package pass
    private protected pub public raise range return self static string struct super switch this throw throws
    trait True true False false try type typeof undefined unsigned use using var void where while with yield
    """,
    )
)

FIXED = KEYWORDS - {"bool", "boolean", "char", "double", "float", "int", "long", "string", "unsigned", "void"}
"""What a shape is made of: the names of built-in types are names as others are."""

PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|_+")
IMPORT = re.compile(r"\s*(?:import|from|use|using|#include|package|const \{?[\w, ]+\}? = require)\b")

LONGEST_LINE = 400
SHORTEST = 3
SHORT_NAME = 3
MARK = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[()\[\]{},]")
"""A string, or what arguments are told apart by."""


def cased(name: str) -> tuple[str, ...]:
    """The name as `snake_case`, `CamelCase`, `camelCase` and `UPPER_CASE` have it, itself first."""
    words = [word for word in PARTS.findall(name) if word.strip("_")]
    joined = "".join(word[:1].upper() + word[1:].lower() for word in words)
    snake = "_".join(word.lower() for word in words)
    return name, snake, joined, joined[:1].lower() + joined[1:], snake.upper()


def bounded(word: str) -> str:
    """A pattern for a word of a name: `Load` of `preLoadAll` and `load` of `load_all`, not of `loader`."""
    before = r"(?<![A-Z])" if word[:1].isupper() else r"(?<![^\W_])"
    after = r"(?![^\W_])" if word[-1:].isupper() else r"(?![a-z\d])"
    return before + re.escape(word) + after


def changed_words(old: str, new: str) -> dict[str, str]:
    """The words that a text of the same shape has instead, as names spell them; nothing where that is not clear."""
    if not old.strip() or shape(old) != shape(new):
        return {}
    pairs = [(a.text, b.text) for a, b in zip(tokens(old), tokens(new), strict=True) if a.text != b.text]
    if any(dict(pairs)[a] != b for a, b in pairs):
        return {}
    found: dict[str, str] = {}
    for before, after in pairs:
        if before.isidentifier() and before not in KEYWORDS and len(before) >= SHORTEST:
            word, other = next(changed_part(before, after), (before, after))
            spelled = zip(cased(word), cased(other), strict=True)
            found |= {a: b for a, b in spelled if len(a) >= SHORTEST and a not in found}
            found[before] = after
    return found


def indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def minimal(old: str, new: str) -> TextEdit:
    """The difference, widened to whole words and operators."""
    change = difference(old, new)
    start, end, text = change.start, change.end, change.text
    while start > 0 and (glued(old[start - 1], old[start : start + 1]) or glued(old[start - 1], text[:1])):
        start -= 1
        text = old[start] + text
    while end < len(old) and (glued(old[end - 1 : end], old[end]) or glued(text[-1:], old[end])):
        text += old[end]
        end += 1
    return TextEdit(start, end, text)


def glued(left: str, right: str) -> bool:
    """Whether two neighbours belong to one word or one operator."""
    return bool(left and right) and any(kind(left) and kind(right) for kind in (is_word, is_operator))


def is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def is_operator(character: str) -> bool:
    return character in "=<>!&|+-*/%^?:"


def changed_part(before: str, after: str) -> Iterator[tuple[str, str]]:
    """The words within two names that differ, and the names themselves, which may be a part of longer ones."""
    old, new = PARTS.findall(before), PARTS.findall(after)
    pairs = list(zip(old, new, strict=False))
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    rest = list(zip(reversed(old[head:]), reversed(new[head:]), strict=False))
    tail = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], rest))
    went, came = "".join(old[head : len(old) - tail]), "".join(new[head : len(new) - tail])
    if head + tail and len(went.strip("_")) > 1 and came:
        yield went, came
    if len(before) > SHORT_NAME:
        yield before, after


def openness(text: str) -> int:
    return sum((character in "([{") - (character in ")]}") for character in text)


def tokens_of(text: str) -> list[str]:
    return TOKEN.findall(text)


def shape(text: str) -> str:
    """The tokens of the text, with every name and every number alike."""
    return " ".join(map(kind_of, TOKEN.findall(text)))


@lru_cache(maxsize=1 << 14)
def kind_of(token: str) -> str:
    return "x" if token.isidentifier() and token not in FIXED else "0" if token[0].isdigit() else token


@lru_cache(maxsize=1 << 14)
def kinship(old: str, line: str) -> float:
    """The share of the words of its names that a line has, too."""
    mine, theirs = ({word for word in PARTS.findall(text) if word.strip("_")} - KEYWORDS for text in (old, line))
    return len(mine & theirs) / max(len(mine | theirs), 1)


@lru_cache(maxsize=1 << 15)
def shape_of(line: str) -> str:
    """Lines of one shape have as many tokens; one that is too long has the shape of none but itself."""
    return shape(line) if len(line) <= LONGEST_LINE else line


@lru_cache(maxsize=8)
def line_break(text: str) -> str:
    """As most of the lines have it: one that was pasted from elsewhere decides nothing."""
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def in_the_files_lines(text: str, snapshot: Snapshot) -> str:
    return text.replace("\r\n", "\n").replace("\n", line_break(snapshot.text)) if "\n" in text else text
