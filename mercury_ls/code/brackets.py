"""Brackets of a text that is being written, and so may not parse: which are open, and what stands between commas."""

import re

__all__ = ["PAIRS", "QUOTED", "closing", "split", "unclosed", "unquoted"]

PAIRS = {"(": ")", "[": "]", "{": "}"}
QUOTED = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`")


def unclosed(text: str) -> list[int]:
    """Where those stand that nothing closes, outermost first."""
    offsets: list[int] = []
    for at, character in enumerate(text):
        if character in PAIRS:
            offsets.append(at)
        elif offsets and character == PAIRS[text[offsets[-1]]]:
            offsets.pop()
    return offsets


def closing(text: str) -> str:
    """What closes those that are open."""
    return "".join(PAIRS[text[at]] for at in reversed(unclosed(text)))


def unquoted(text: str) -> str:
    """With what is quoted blanked, character for character."""
    return QUOTED.sub(lambda match: "_" * len(match[0]), text)


def split(text: str, *, types: bool = False) -> list[str]:
    """At the commas that stand outside of brackets and quotes, where there are `types` also outside of `<…>`."""
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
