"""A place that an edit leads to, what would become of it, and how its file ends a line."""

from functools import lru_cache

from msgspec import Struct

from mercury_ls.code.documents import Snapshot
from mercury_ls.next_edit.propagation import Rule

__all__ = ["Place", "in_the_files_lines", "line_break", "place_of"]


class Place(Struct, frozen=True):
    """`[start, end)` would become `text`, or what a model says where that is None.

    `likeness` is the share of neighbouring tokens that are as at the place that was edited, `same_role` whether the two
    are used alike (called, a member, bare), `defines` whether the name is declared here, `orphan` whether the
    edit was of its declaration and no other is left; `foreign` that it is text where the edit was code, or the other
    way round; `bound` that it certainly is what was renamed where it is declared, or a value that has a name by now:
    such places of one rule change together or not at all. `reach` is all of the lines whose shape decided, `sides` how
    much the lines above and below are like those of the edited place.
    """

    start: int
    end: int
    text: str | None
    likeness: float = 0.0
    same_role: bool = True
    defines: bool = False
    orphan: bool = False
    foreign: bool = False
    bound: bool = False
    reach: tuple[int, int] | None = None
    sides: tuple[float, float] = (0.0, 0.0)


def place_of(rule: Rule, snapshot: Snapshot) -> int:
    """Where the new text begins, in the file where it was last put."""
    line = min(rule.line, snapshot.line_count - 1)
    return max(snapshot.line_start(line) + rule.column - len(rule.after), 0)


@lru_cache(maxsize=8)
def line_break(text: str) -> str:
    """As most of the lines have it: one that was pasted from elsewhere decides nothing."""
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def in_the_files_lines(text: str, snapshot: Snapshot) -> str:
    return text.replace("\r\n", "\n").replace("\n", line_break(snapshot.text)) if "\n" in text else text
