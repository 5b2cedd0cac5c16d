"""What the user has done, where, and beside what: all that the search for next edits starts from."""

from collections.abc import Sequence

from msgspec import Struct

from mercury_engine.api import Edit
from mercury_ls.code.differences import token_changes
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.modules import Project
from mercury_ls.next_edit.examples import balanced


class Situation(Struct, frozen=True):
    """The cursor is at `offset` of the snapshot; `edits` are the user's last ones, oldest first, `accepted` those that
    offers made. `neighbours` are the other files that may be edited as well. Where the user `may_delete_more`, a word
    that has become shorter may go on doing so."""

    snapshot: Snapshot
    offset: int
    edits: Sequence[Edit]
    neighbours: Sequence[Snapshot] = ()
    project: Project | None = None
    accepted: Sequence[Edit] = ()
    may_delete_more: bool = True

    @property
    def files(self) -> tuple[Snapshot, ...]:
        return self.snapshot, *self.neighbours


def edited_lines(snapshot: Snapshot, edits: Sequence[Edit]) -> list[tuple[int, tuple[int, int]]]:
    """The lines that each edit left in this file, with the edit's age, where they still stand."""
    ranges: list[tuple[int, tuple[int, int]]] = []
    for age, edit in enumerate(reversed(edits)):
        if edit.path == snapshot.path and edit.line < snapshot.line_count:
            start = snapshot.line_start(edit.line)
            if snapshot.text.startswith(edit.after.rstrip("\r\n"), start):
                ranges.append((age, (start, start + len(edit.after))))
    return ranges


def typed_ranges(snapshot: Snapshot, edits: Sequence[Edit]) -> list[tuple[int, tuple[int, int]]]:
    """What each edit put into this file, with the edit's age, where it still stands."""
    ranges: list[tuple[int, tuple[int, int]]] = []
    for age, (start, end) in edited_lines(snapshot, edits):
        edit = edits[-1 - age]
        if edit.before.strip():
            changes = token_changes(edit.before, edit.after)
            changes = (*changes, *balanced(edit.before, edit.after, changes))
            ranges += [(age, (start + change.new_start, start + change.new_end)) for change in changes]
        else:
            ranges.append((age, (start, end)))
    return ranges
