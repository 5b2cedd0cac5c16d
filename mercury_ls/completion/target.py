"""Where something may be written: the span at the cursor, or the reason for silence."""

import re

from msgspec import Struct

from mercury_ls.code import syntax
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.edits import is_word
from mercury_ls.settings.schema import SuggestSettings

CLOSERS = re.compile(r"""[)\]}>"'`;:,]*\s*\Z""")
"""What may follow the cursor on a line that still counts as unfinished: what editors close by themselves."""


class Target(Struct, frozen=True):
    """A range of the document that a suggestion replaces. If it is `free`, the model's word is taken for where its
    answer ends: it may leave the block of its first line, continue an argument, or be a bracket alone. What goes
    `below` begins on a new line. Unless it is a `block`, it ends with its line."""

    start: int
    end: int
    block: bool = False
    free: bool = False
    below: bool = False


class Silence(Struct, frozen=True):
    """Why nothing is suggested: shown in the log, and to users who ask."""

    reason: str


def at_cursor(
    snapshot: Snapshot,
    offset: int,
    settings: SuggestSettings,
    *,
    invoked: bool = False,
    strong: bool = False,
    edited: bool = False,
) -> Target | Silence:
    """The span of an inline completion. An explicit request is answered even where mere typing is not interrupted; a
    line that is complete is continued only where the user has `edited` it. A strong model is asked for several lines
    wherever no code follows on the line."""
    line = snapshot.line_of(offset)
    tail = snapshot.text[offset : snapshot.line_end(line)]
    if not invoked and (reason := _unwelcome(snapshot, offset, tail, settings, edited=edited)):
        return Silence(reason)
    end = snapshot.line_end(line) if not tail.strip() else offset
    if strong and settings.multi_line != "never" and CLOSERS.match(tail):
        return Target(offset, end, block=True, free=True)
    return Target(offset, end, _wants_block(snapshot, offset, tail, settings.multi_line))


def _unwelcome(snapshot: Snapshot, offset: int, tail: str, settings: SuggestSettings, *, edited: bool) -> str:
    if tail and is_word(tail[0]):
        return "the cursor is inside a word"
    if not (edited or CLOSERS.match(tail)):
        return "code follows the cursor on its line, which you have not edited"
    place = syntax.inside(snapshot, offset)
    if place == "comment" and not settings.in_comments:
        return "inside a comment (suggest.in_comments is off)"
    if place == "string" and not settings.in_strings:
        return "inside a string (suggest.in_strings is off)"
    return ""


def _wants_block(snapshot: Snapshot, offset: int, tail: str, multi_line: str) -> bool:
    if multi_line == "never" or tail.strip():
        return False
    return multi_line == "always" or syntax.block_expected(snapshot, offset) or _deeper(snapshot, offset)


def _deeper(snapshot: Snapshot, offset: int) -> bool:
    """Whether a blank line is indented further than the line above, in a language whose blocks are indented."""
    line = snapshot.line_of(offset)
    head = snapshot.text[snapshot.line_start(line) : offset]
    if line == 0 or not head or head.strip() or not snapshot.written_in.indents_blocks:
        return False
    above = snapshot.line(line - 1)
    return bool(above.strip()) and len(head) > len(above) - len(above.lstrip())
