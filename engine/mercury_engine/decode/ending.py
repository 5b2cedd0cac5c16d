"""Where an inserted text ends although the model goes on: at code outside of it, or where it loops."""

import re

from mercury_engine.prompts.lines import indentation

ROUNDS = 3
SHORTEST_CIRCLE = 24
"""In characters: a row of zeros may be intended."""

LONGEST_ROUND = 240

WORD = re.compile(r"\w")


def inside(text: str, margin: int) -> str:
    """The text up to the first line below its own that is indented less than `margin`."""
    end = text.find("\n")
    while end >= 0:
        start, end_of_line = end + 1, text.find("\n", end + 1)
        line = text[start:] if end_of_line < 0 else text[start:end_of_line]
        if line.strip() and indentation(line) < margin:
            return text[:end].rstrip()
        end = end_of_line
    return text


def once(text: str) -> str:
    """The text up to the end of the first repetition, if it ends with several equal ones."""
    # A round ends with the same character as the text, so only its earlier occurrences are tried.
    last, least = len(text) - 1, max(0, len(text) - 1 - min(LONGEST_ROUND, len(text) // ROUNDS))
    at = text.rfind(text[-1:], least, last) if len(text) >= SHORTEST_CIRCLE else -1
    while at >= 0:
        size, start = last - at, at + 1
        while start > 0 and text[start - 1] == text[start - 1 + size]:
            start -= 1
        if len(text) - start >= max(ROUNDS * size, SHORTEST_CIRCLE) and WORD.search(text, start):
            return text[: start + size]
        at = text.rfind(text[-1:], least, at)
    return text
