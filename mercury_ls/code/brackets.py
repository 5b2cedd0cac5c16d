"""Brackets in text that is being written and may not parse: which are open, and what the commas separate."""

import re

PAIRS = {"(": ")", "[": "]", "{": "}"}
QUOTED = re.compile(r"(?<!\\)(?:\"(?:\\.|[^\"\\\n])*+\"|'(?:\\.|[^'\\\n])*+'|`(?:\\.|[^`\\])*+`)")


def unclosed(text: str) -> list[int]:
    """The offsets of the unclosed brackets, outermost first."""
    offsets: list[int] = []
    for at, character in enumerate(text):
        if character in PAIRS:
            offsets.append(at)
        elif offsets and character == PAIRS[text[offsets[-1]]]:
            offsets.pop()
    return offsets


def closing(text: str) -> str:
    """The brackets that close those left open."""
    return "".join(PAIRS[text[at]] for at in reversed(unclosed(text)))


def unquoted(text: str) -> str:
    """The text with quoted parts blanked, character for character."""
    return QUOTED.sub(lambda match: "_" * len(match[0]), text)


def split(text: str, *, types: bool = False) -> list[str]:
    """Split at commas outside brackets and quotes; with `types`, also outside `<…>`."""
    openers, closers = ("([{<", ")]}>") if types else ("([{", ")]}")
    parts: list[str] = []
    depth, start, blank = 0, 0, unquoted(text)
    for at, character in enumerate(blank):
        if character in openers:
            depth += 1
        elif character in closers and blank[at - 1 : at + 1] not in ("->", "=>"):
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]
