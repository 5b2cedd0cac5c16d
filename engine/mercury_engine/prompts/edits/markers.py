"""The numbered markers of Zeta 2.1: where they stand in a region, and what an answer puts between them."""

import re
from collections.abc import Sequence
from itertools import pairwise

from mercury_engine.prompts.edits.asked import Refused, Taken
from mercury_engine.prompts.pieces import Mark, Piece

MARKER = "<|marker_"
TAG = re.compile(r"<\|marker_(\d+)\|>")
SHORTEST_BLOCK, LONGEST_BLOCK = 6, 16
"""Lines."""

FURTHEST = 5
"""How many lines a boundary moves down to find a line that something begins with."""

LAST_WORDS = frozenset({"break", "continue", "return", "throw", "end"})


def offsets(text: str) -> list[int]:
    """Where the markers stand: at both ends, and at lines that follow a blank one, six to sixteen lines apart."""
    lines = text.removesuffix("\n").split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    rows, last, row = [0], 0, 0
    while row < len(lines):
        target = _boundary(lines, row, last)
        if target > last:
            rows.append(starts[target])
            last = row = target
        row += 1
    return [*rows, len(text)] if text else [0, 0]


def _boundary(lines: Sequence[str], row: int, last: int) -> int:
    """The line that a block begins with if this line ends the one before, 0 if it does not."""
    size = row - last
    if size >= SHORTEST_BLOCK and lines[row].strip() and not lines[row - 1].strip():
        target = _beginning(lines, row)
        if len(lines) - target >= SHORTEST_BLOCK:
            return target
    return _beginning(lines, row) if size >= LONGEST_BLOCK else 0


def _beginning(lines: Sequence[str], row: int) -> int:
    return next((at for at in range(row, min(row + FURTHEST, len(lines))) if _begins_something(lines[at])), row)


def _begins_something(line: str) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith(("}", "]", ")")) and text.rstrip(";") not in LAST_WORDS


def with_markers(text: str, cursor: int, mark: Piece) -> list[Piece]:
    """The text with its markers, and a mark at the cursor. Nothing else comes between."""
    pieces: list[Piece] = []
    marker_rows = offsets(text)
    placed = False
    for number, (start, end) in enumerate(pairwise(marker_rows), 1):
        pieces.append(Mark(f"{MARKER}{number}|>"))
        if not placed and start <= cursor <= end:
            placed = True
            pieces += [text[start:cursor], mark, text[cursor:end]]
        else:
            pieces.append(text[start:end])
    return [*pieces, Mark(f"{MARKER}{len(marker_rows)}|>")]


def rewritten(old: str, marker_rows: Sequence[int], answer: str) -> Taken:
    """The old text with what the answer writes from its first marker to its last. The same marker twice means no
    edit."""
    tags = [*TAG.finditer(answer)]
    numbers = [int(tag[1]) for tag in tags]
    if len(tags) < 2 or not 1 <= min(numbers) <= max(numbers) <= len(marker_rows):
        return Refused("it does not name the blocks that it changes")
    if len(set(numbers)) == 1:
        return None
    if numbers != sorted(set(numbers)) or answer[: tags[0].start()].strip():
        return Refused("its marks are out of order")
    starts = [marker_rows[number - 1] for number in numbers]
    parts = [answer[tag.end() : following.start()] for tag, following in pairwise(tags)]
    own_lines = all(part.startswith("\n") for part in parts)
    if own_lines and not any(old.startswith("\n", start) for start in starts[:-1]):
        parts = [part[1:] for part in parts]
    new = "".join(parts)
    if starts[-1] < len(old) and new and not new.endswith("\n"):
        new += "\n"
    elif starts[-1] == len(old) and not old.endswith("\n"):
        new = new.removesuffix("\n")
    return old[: starts[0]] + new + old[starts[-1] :]
