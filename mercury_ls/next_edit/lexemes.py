"""Code as a row of characters: the words of a name, the bracket that closes another, a difference of whole words."""

import re

from mercury_ls.code.differences import tokens
from mercury_ls.code.edits import TextEdit, difference
from mercury_ls.next_edit.propagation import KEYWORDS, PARTS, changed_part, shape

__all__ = ["MARK", "bounded", "cased", "changed_words", "closing", "indentation", "is_word", "minimal"]

LONGEST_ARGUMENTS = 2000
SHORTEST = 3
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


def closing(text: str, start: int) -> int | None:
    """The bracket that ends what opened right before `start`."""
    depth = 0
    for piece in MARK.finditer(text, start, start + LONGEST_ARGUMENTS):
        if piece.group() in "([{":
            depth += 1
        elif piece.group() in ")]}":
            if depth == 0:
                return piece.start()
            depth -= 1
    return None


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
