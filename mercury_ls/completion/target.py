"""Where something may be written: the span at the cursor, the places of the next edit, or the reason for silence."""

import re
from collections.abc import Generator, Sequence
from typing import Literal

from msgspec import Struct

from mercury_engine.api import Edit
from mercury_ls.code import languages, syntax
from mercury_ls.code.differences import pieces, touches_of
from mercury_ls.code.documents import Snapshot
from mercury_ls.next_edit import candidates
from mercury_ls.next_edit.candidates import Candidate
from mercury_ls.next_edit.imports import Diagnosed
from mercury_ls.next_edit.modules import Project
from mercury_ls.next_edit.propagation import openness

__all__ = ["Silence", "Target", "at_cursor", "next_edit", "searching"]

MOST_CANDIDATES = 64
CLOSERS = re.compile(r"""[)\]}>"'`;:,]*\s*\Z""")
"""What may follow the cursor on a line that still counts as unfinished: what editors close by themselves."""


class Target(Struct, frozen=True):
    """A range of the document that a suggestion replaces."""

    start: int
    end: int
    mode: Literal["line", "block", "edit"]


class Silence(Struct, frozen=True):
    """Why nothing is suggested: shown in the log, and to users who ask."""

    reason: str


def at_cursor(
    snapshot: Snapshot,
    offset: int,
    *,
    invoked: bool = False,
    in_comments: bool = False,
    in_strings: bool = False,
    multi_line: Literal["auto", "always", "never"] = "auto",
) -> Target | Silence:
    """The span of an inline completion. An explicit request is answered even where mere typing is not interrupted."""
    line = snapshot.line_of(offset)
    tail = snapshot.text[offset : snapshot.line_end(line)]
    if not invoked and (reason := unwelcome(snapshot, offset, tail, in_comments, in_strings)):
        return Silence(reason)
    end = snapshot.line_end(line) if not tail.strip() else offset
    return Target(offset, end, "block" if wants_block(snapshot, offset, tail, multi_line) else "line")


def unwelcome(snapshot: Snapshot, offset: int, tail: str, in_comments: bool, in_strings: bool) -> str:
    if tail and is_word(tail[0]):
        return "the cursor is inside a word"
    if tail.strip() and not CLOSERS.match(tail):
        return "code follows the cursor on its line"
    place = syntax.inside(snapshot, offset)
    if place == "comment" and not in_comments:
        return "inside a comment (suggest.in_comments is off)"
    if place == "string" and not in_strings:
        return "inside a string (suggest.in_strings is off)"
    return ""


def is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def wants_block(snapshot: Snapshot, offset: int, tail: str, multi_line: str) -> bool:
    if multi_line == "never" or tail.strip():
        return False
    return multi_line == "always" or syntax.block_expected(snapshot, offset) or deeper(snapshot, offset)


def deeper(snapshot: Snapshot, offset: int) -> bool:
    """Whether a blank line is indented further than the line above, in a language whose blocks are indented."""
    line = snapshot.line_of(offset)
    head = snapshot.text[snapshot.line_start(line) : offset]
    language = languages.find(snapshot.language, snapshot.path)
    if line == 0 or not head or head.strip() or language is None or not language.indents_blocks:
        return False
    above = snapshot.line(line - 1)
    return bool(above.strip()) and len(head) > len(above) - len(above.lstrip())


def next_edit(
    snapshot: Snapshot,
    offset: int,
    edits: Sequence[Edit],
    others: Sequence[Snapshot] = (),
    diagnosed: Sequence[Diagnosed] = (),
    project: Project | None = None,
) -> tuple[Candidate, ...] | Silence:
    """Where the last edits, oldest first, and complaints lead to: in this file and in others, the likeliest first."""
    search = searching(snapshot, offset, edits, others, diagnosed, project)
    while True:
        try:
            next(search)
        except StopIteration as end:
            return end.value


def searching(
    snapshot: Snapshot,
    offset: int,
    edits: Sequence[Edit],
    others: Sequence[Snapshot] = (),
    diagnosed: Sequence[Diagnosed] = (),
    project: Project | None = None,
    accepted: Sequence[Edit] = (),
) -> Generator[None, None, tuple[Candidate, ...] | Silence]:
    """The same in steps of a few milliseconds."""
    if not edits and not diagnosed:
        return Silence("nothing has been edited yet")
    if edits and (reason := in_progress(snapshot, offset, edits)):
        return Silence(reason)
    yield
    judged: list[Candidate] = []
    for some in candidates.batches(snapshot, offset, edits, others, diagnosed, project, accepted):
        judged += candidates.judged(some)
        yield
    found = candidates.distinct(judged)
    most = MOST_CANDIDATES + sum(each.bound for each in found)
    return found[:most] or Silence("nothing follows from the last edits")


def in_progress(snapshot: Snapshot, offset: int, edits: Sequence[Edit]) -> str:
    """What is still being typed is no example yet."""
    edit = edits[-1]
    if edit.path != snapshot.path or edit.line >= snapshot.line_count:
        return ""
    first, stop = edit.line, edit.line + max(edit.after.count("\n"), 1)
    if not first <= snapshot.line_of(offset) < stop:
        return ""
    start = snapshot.line_start(edit.line)
    known = {replaced for earlier in edits[:-1] for replaced in replacements(earlier)}
    for touch in touches_of(edit.before, edit.after):
        went, came = pieces(edit.before, edit.after, touch)
        shortened = came and went != came and went.startswith(came)
        if start + touch.new_end == offset and shortened and (went, came) not in known:
            return "a word is being deleted at the cursor"
    incomplete = broken(snapshot, first, min(stop, snapshot.line_count)) or unbalanced(snapshot, edit)
    if incomplete and not broken_before(snapshot, edit):
        return "the statement at the cursor is not complete"
    return ""


def broken_before(snapshot: Snapshot, edit: Edit) -> bool:
    """Whether the file parsed no better without the edit: then it is not this statement that is incomplete."""
    start = snapshot.line_start(edit.line)
    if not snapshot.text.startswith(edit.after, start):
        return False
    without = syntax.problems_after(snapshot, start, start + len(edit.after), edit.before)
    return 0 < without >= syntax.problems(snapshot.tree)


def replacements(edit: Edit) -> list[tuple[str, str]]:
    return [pieces(edit.before, edit.after, touch) for touch in touches_of(edit.before, edit.after)]


def unbalanced(snapshot: Snapshot, edit: Edit) -> bool:
    """Whether the file does not parse and this edit has left a bracket or quote alone."""
    if snapshot.tree is None or not snapshot.tree.root_node.has_error:
        return False
    odd = any((edit.before.count(quote) - edit.after.count(quote)) % 2 for quote in "\"'`")
    return odd or openness(edit.before) != openness(edit.after)


def broken(snapshot: Snapshot, first: int, stop: int) -> bool:
    """Whether the parser stumbles over these lines."""
    if snapshot.tree is None or not snapshot.tree.root_node.has_error:
        return False
    start, end = snapshot.byte(snapshot.line_start(first)), snapshot.byte(snapshot.line_end(stop - 1))
    stack = [snapshot.tree.root_node]
    while stack:
        node = stack.pop()
        if node.end_byte < start or node.start_byte > end or not node.has_error:
            continue
        within = node.start_byte >= start - 1 and node.end_byte <= end + 1
        if (node.is_error or node.is_missing) and (within or node.start_byte >= start):
            return True
        stack += node.children
    return False
