"""Lines as models see them: what ends with a line feed, and nothing else that Python takes for an end."""

import re
from collections.abc import Sequence


def lines_of(text: str) -> list[str]:
    """Lines with their line feeds; a last one only if it is not empty."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def bare_lines(text: str) -> list[str]:
    """The same without their line feeds."""
    return [line.removesuffix("\n") for line in lines_of(text)]


def indentation(line: str) -> int:
    """In columns; a tab counts as four."""
    return sum(4 if blank == "\t" else 1 for blank in line[: len(line) - len(line.lstrip())])


def shared_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines both begin with, and how many of the rest both end with."""
    shared = min(len(old), len(new))
    head = next((n for n in range(shared) if old[n] != new[n]), shared)
    tail = next((n for n in range(shared - head) if old[-n - 1] != new[-n - 1]), shared - head)
    return head, tail
