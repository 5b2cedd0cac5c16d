"""Code as characters and tokens: keywords, the words of a name, the shape of a line, line breaks."""

import re
from functools import lru_cache

from mercury_ls.code.differences import TOKEN
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.edits import TextEdit, difference, is_word

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

QUOTES = frozenset("\"'`")
CONSTANTS = frozenset({"False", "None", "True", "false", "nil", "null", "true", "undefined"})
FIXED = KEYWORDS - {"bool", "boolean", "char", "double", "float", "int", "long", "string", "unsigned", "void"}
"""The keywords that a shape keeps: built-in types count as names."""

PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|_+")
IMPORT = re.compile(r"\s*(?:import|from|use|using|#include|package|const \{?[\w, ]+\}? = require)\b")

LONGEST_LINE = 400


def indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def minimal(old: str, new: str) -> TextEdit:
    """The difference of two texts, widened to whole words and operators."""
    change = difference(old, new)
    start, end, text = change.start, change.end, change.text
    while start > 0 and (_glued(old[start - 1], old[start : start + 1]) or _glued(old[start - 1], text[:1])):
        start -= 1
        text = old[start] + text
    while end < len(old) and (_glued(old[end - 1 : end], old[end]) or _glued(text[-1:], old[end])):
        text += old[end]
        end += 1
    return TextEdit(start, end, text)


def _glued(before: str, after: str) -> bool:
    """True if two characters belong to one word or one operator."""
    return bool(before and after) and any(kind(before) and kind(after) for kind in (is_word, _is_operator))


def _is_operator(character: str) -> bool:
    return character in "=<>!&|+-*/%^?:"


def openness(text: str) -> int:
    return sum((character in "([{") - (character in ")]}") for character in text)


def tokens_of(text: str) -> list[str]:
    return TOKEN.findall(text)


def shape(text: str) -> str:
    """The tokens of the text, with all names and all numbers made alike."""
    return " ".join(map(_kind_of, TOKEN.findall(text)))


@lru_cache(maxsize=1 << 14)
def _kind_of(token: str) -> str:
    return "x" if token.isidentifier() and token not in FIXED else "0" if token[0].isdigit() else token


@lru_cache(maxsize=1 << 14)
def kinship(old: str, line: str) -> float:
    """The share of words in their names that two lines have in common."""
    mine, theirs = ({word for word in PARTS.findall(text) if word.strip("_")} - KEYWORDS for text in (old, line))
    return len(mine & theirs) / max(len(mine | theirs), 1)


@lru_cache(maxsize=1 << 15)
def shape_of(line: str) -> str:
    """The cached shape of a line; a line that is too long has a shape of its own."""
    return shape(line) if len(line) <= LONGEST_LINE else line


@lru_cache(maxsize=8)
def line_break(text: str) -> str:
    """The line break of most lines, so that one pasted from elsewhere decides nothing."""
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def in_the_files_lines(text: str, snapshot: Snapshot) -> str:
    return text.replace("\r\n", "\n").replace("\n", line_break(snapshot.text)) if "\n" in text else text
