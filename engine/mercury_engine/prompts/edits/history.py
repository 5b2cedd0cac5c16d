"""Recent edits as the formats of next-edit models write them."""

from collections.abc import Sequence

from msgspec import Struct

from mercury_engine.api import Edit, Region
from mercury_engine.prompts.fim import changed_lines, edit_lines
from mercury_engine.prompts.lines import bare_lines, lines_of, shared_ends

CONTEXT_LINES = 3


class DiffHunk(Struct, frozen=True):
    """What changed, and the lines around it, each behind its sign; the first of them is line `start`, from 1 on."""

    start: int
    lines: tuple[str, ...]

    def side(self, sign: str) -> list[str]:
        """The lines before ("-") or after ("+") the edit."""
        return [line[1:] for line in self.lines if line[0] in (" ", sign)]


def newest(edits: Sequence[Edit], limit: int) -> list[Edit]:
    """The newest first, without those that are too long to be of use."""
    return [edit for edit in reversed(edits) if edit_lines(edit)][:limit]


def hunk_of(edit: Edit, context: int = CONTEXT_LINES) -> DiffHunk:
    """The edit with at most `context` lines above and below what differs."""
    old, new = ([*bare_lines(f"{edit.above}{text}"), *bare_lines(edit.below)] for text in (edit.before, edit.after))
    head, tail = shared_ends(old, new)
    above, below = old[:head][-context:], old[len(old) - tail :][:context]
    lines = changed_lines(old[head : len(old) - tail], new[head : len(new) - tail])
    start = edit.line + 1 - len(bare_lines(edit.above)) + head - len(above)
    return DiffHunk(start, (*(f" {line}" for line in above), *lines, *(f" {line}" for line in below)))


def unified(edit: Edit) -> str:
    """One hunk of a unified diff as Zed writes it: both numbers of a side even where it has no line or only one."""
    hunk = hunk_of(edit)
    before, after = (len(hunk.side(sign)) for sign in "-+")
    return "\n".join([f"@@ -{hunk.start},{before} +{hunk.start},{after} @@", *hunk.lines]) + "\n"


def place_of(edit: Edit, window: Region) -> int:
    """Where the lines that the edit left begin in the window: on the line that it names, or where else they stand only
    once; -1 if they are not there."""
    text, after, row = window.old, edit.after, edit.line - window.first_line
    if edit.path != window.path:
        return -1
    lines = lines_of(text)
    if 0 <= row <= len(lines):
        start = len("".join(lines[:row]))
        line = after or "".join(lines_of(edit.below)[:1])
        if text.startswith(line, start) if line else start == len(text):
            return start
    offset = text.index(after) if after and text.count(after) == 1 else -1
    return offset if offset <= 0 or text[offset - 1] == "\n" else -1
