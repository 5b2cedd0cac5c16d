"""What a prompt asks for: to fill a gap, or to rewrite what should change in a region."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from msgspec import Struct

from mercury_engine.api import Edit, Snippet
from mercury_engine.prompts.lines import shared_ends

LINES_AROUND = 3
HEAD = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
PATH = re.compile(r"(--- |\+\+\+ )(?:[ab]/)?(.*)")
NO_FILE = "/dev/null"


class ReceivedGap(Struct, frozen=True):
    """A text with a gap in it, and other files. The answer is what fills the gap."""

    prefix: str
    suffix: str
    path: str = ""
    snippets: tuple[Snippet, ...] = ()


class ReceivedRegion(Struct, frozen=True):
    """A part of a file, of which `text[start:end]` is to be rewritten, and the last edits, oldest first. `answer` makes
    of the region's new text what the program expects, also where nothing is new."""

    path: str
    text: str
    start: int
    end: int
    cursor: int
    answer: Callable[[str], str]
    snippets: tuple[Snippet, ...] = ()
    edits: tuple[Edit, ...] = ()


def marked(text: str, mark: str) -> tuple[str, int]:
    """A text without the mark, and where it stood; at its start if there is none."""
    before, separator, after = text.partition(mark)
    return (before + after, len(before)) if separator else (text, 0)


def edits_in(diff: str, path: str = "") -> Iterator[Edit]:
    """The hunks of unified diffs, as whole lines; `path` is that of a diff without a head. Those of a file that was
    renamed are left out: an edit has one path, and either may be private. Within a hunk both names of a file begin a
    head; one alone is a line that begins like it."""
    old, renamed = "", False
    before: list[str] = []
    after: list[str] = []
    line = -1
    for row, below in pairwise([*diff.split("\n"), "@@ -1 +1 @@", ""]):
        head, named = HEAD.match(row), PATH.match(row)
        if line >= 0 and not (row.startswith("--- ") and below.startswith("+++ ")):
            named = None
        if head or named:
            if line >= 0 and not renamed and (edit := trimmed(path, line, before, after)):
                yield edit
            if named and named[1] == "--- ":
                path = old = named[2]
                renamed = False
            elif named and named[2] != NO_FILE:
                path = named[2]
                renamed = old not in ("", NO_FILE, path)
            before, after, line = [], [], max(int(head[2]) - 1, 0) if head else -1
        elif line >= 0 and row[:1] in (" ", "-", "+"):
            if row[0] in " -":
                before.append(row[1:])
            if row[0] in " +":
                after.append(row[1:])


def trimmed(path: str, line: int, before: list[str], after: list[str]) -> Edit | None:
    if before == after:
        return None
    head, tail = shared_ends(before, after)
    return Edit(
        path,
        line + head,
        before=_joined(before[head : len(before) - tail]),
        after=_joined(after[head : len(after) - tail]),
        above=_joined(before[:head][-LINES_AROUND:]),
        below=_joined(before[len(before) - tail :][:LINES_AROUND]),
    )


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
