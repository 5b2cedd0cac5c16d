"""What code says only once: the lines beside the cursor, a declaration in its block, a condition in its chain."""

import re
from collections.abc import Iterator
from itertools import islice

from mercury_ls.code import traits
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import indentation
from mercury_ls.completion.target import Target

MOST_LINES = 1000
"""Lines of a block that are read in each direction."""

DECLARED = re.compile(
    r"(?:(?:export|default|pub|async|abstract|declare)\s+)*"
    r"((def|class|fn|struct|enum|trait|function|interface|type|const)\s+(?!_\b)\w+)"
    r"(?=\s*(?:[^\w\s*&]|\Z|(?:extends|implements|where|final)\b))"
)
"""A line that declares a name, or may turn out to: of a C variable's `struct` or `const` type, more follows."""
CHAINED = re.compile(r"(?:\}\s*)?(?:elif|elsif|else if|except|catch|case|when)\b(.*)")
HEAD = re.compile(r"(?:if|match|switch)\b(.*)")
DECORATED = ("@", "#[", ")")
BETWEEN = re.compile(r"[})\]]|else\b")


def repeats(text: str, snapshot: Snapshot, target: Target) -> bool:
    """Whether the suggestion, with what precedes the cursor on its line, only says again what is there."""
    number = snapshot.line_of(target.start)
    whole = snapshot.text[snapshot.line_start(number) : target.start] + text
    lines = [line.rstrip() for line in whole.splitlines() if line.strip()]
    return bool(lines) and (
        _is_beside(lines, snapshot, number)
        or _is_declared(whole, snapshot, number)
        or _is_tested(whole.splitlines()[0], snapshot, number)
    )


def _is_beside(lines: list[str], snapshot: Snapshot, number: int) -> bool:
    """Whether they are the next or the previous lines again; behind a deeper block, it says something else."""
    below = list(islice(_nonblank(snapshot, number, 1), len(lines)))
    above = list(islice(_nonblank(snapshot, number, -1), len(lines)))[::-1]
    said = list(map(str.strip, lines))
    return said == list(map(str.strip, below)) or (lines == above and sum(map(len, said)) > 8)


def _nonblank(snapshot: Snapshot, number: int, step: int) -> Iterator[str]:
    numbers = range(number + step, snapshot.line_count if step > 0 else -1, step)
    return (line for at in numbers if (line := snapshot.line(at).rstrip()))


def _is_declared(whole: str, snapshot: Snapshot, number: int) -> bool:
    """Whether its name is declared in this block already; decorators, as of properties, make that legitimate, and so
    do overloads."""
    first = whole.splitlines()[0]
    declared = DECLARED.match(first.strip())
    if declared is None or _is_decorated(snapshot, number):
        return False
    if declared[2] == "function" and snapshot.written_in.id in traits.OVERLOAD_SIGNATURES:
        return False
    key = declared[1]
    return any(
        (other := DECLARED.match(snapshot.line(at).strip())) is not None
        and other[1] == key
        and not _is_decorated(snapshot, at)
        for step in (-1, 1)
        for at in _siblings(snapshot, number, indentation(first), step)
    )


def _is_decorated(snapshot: Snapshot, number: int) -> bool:
    return number > 0 and snapshot.line(number - 1).lstrip().startswith(DECORATED)


def _is_tested(first: str, snapshot: Snapshot, number: int) -> bool:
    """Whether a branch above in the same chain has its condition."""
    chained = CHAINED.fullmatch(first.strip())
    if chained is None or not first.rstrip().endswith((":", "{", "=>")):
        return False
    for at in _siblings(snapshot, number, indentation(first), -1):
        line = snapshot.line(at).strip()
        branch = CHAINED.fullmatch(line) or HEAD.fullmatch(line)
        if branch and branch[1].strip() == chained[1].strip():
            return True
        if not (CHAINED.match(line) or BETWEEN.match(line)):
            return False
    return False


def _siblings(snapshot: Snapshot, number: int, head: str, step: int) -> Iterator[int]:
    """The numbers of the lines of the same block, as far indented, from the cursor on."""
    end = min(number + MOST_LINES, snapshot.line_count) if step > 0 else max(number - MOST_LINES, -1)
    for at in range(number + step, end, step):
        line = snapshot.line(at)
        if not line.strip():
            continue
        if not line.startswith(head):
            return
        if indentation(line) == head:
            yield at
