"""Which lines around the cursor a next-edit model reads, and which of them it rewrites."""

from collections.abc import Sequence
from itertools import accumulate

from msgspec import Struct

BYTES_PER_TOKEN = 3


class Excerpt(Struct, frozen=True):
    """Offsets into a window: the lines from `start` to `end` are rewritten, those from `first` to `last` are read. The
    line feeds at `end` and `last` do not belong to them."""

    first: int
    start: int
    end: int
    last: int


def around(text: str, cursor: int, radius: int, context: int) -> Excerpt:
    """As many lines above the cursor's as below it."""
    lines = text.split("\n")
    row = text.count("\n", 0, cursor)
    return _excerpt(lines, row - radius, row + radius, row - context, row + context)


def nearby(text: str, cursor: int, editable: int, context: int) -> Excerpt:
    """As Zed chooses them without a syntax tree: lines of `editable` tokens, alternately below and above the cursor,
    then above; and as many around them as `context` more tokens allow. A token is three bytes."""
    lines = text.split("\n")
    costs = [max(len(line.encode("utf-8", "replace")) // BYTES_PER_TOKEN, 1) for line in lines]
    row = text.count("\n", 0, cursor)
    share = editable * 3 // 4
    start, end, remaining = _widened(costs, row, row, max(share - costs[row], 0), (1, -1), is_patient=False)
    start, end, _ = _widened(costs, start, end, remaining + editable - share, (-1, 1), is_patient=True)
    first, last, _ = _widened(costs, start, end, context, (-1, 1), is_patient=True)
    return _excerpt(lines, start, end, first, last)


def _widened(
    costs: Sequence[int], first: int, last: int, room: int, directions: Sequence[int], *, is_patient: bool
) -> tuple[int, int, int]:
    """One line in each direction in turn. A line that does not fit ends it, or, if `is_patient`, its direction."""
    grown = True
    while grown:
        grown = False
        for direction in directions:
            row = last + 1 if direction > 0 else first - 1
            if not (0 <= row < len(costs)) or room == 0:
                continue
            if costs[row] > room:
                if is_patient:
                    continue
                return first, last, room
            first, last, room, grown = min(first, row), max(last, row), room - costs[row], True
    return first, last, room


def _excerpt(lines: Sequence[str], start: int, end: int, first: int, last: int) -> Excerpt:
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    top, bottom = 0, len(lines) - 1
    return Excerpt(
        first=starts[max(first, top)],
        start=starts[max(start, top)],
        end=starts[min(end, bottom) + 1] - 1,
        last=starts[min(last, bottom) + 1] - 1,
    )
