"""What an edit teaches: a rule that other places of the code may have to follow. Each kind of edit has its own type."""

import re
from collections.abc import Hashable, Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Edit
from mercury_engine.redaction import ForeignText
from mercury_ls.code.documents import Snapshot
from mercury_ls.wording import quoted

LONGEST_LABEL = 40


class Rule(Struct, frozen=True, kw_only=True):
    """`before` became `after`, within the whole lines `lines_before` that became `lines_after`.

    The last time that was at offset `column` of line `line` of `path`, `age` edits ago; the first time `since` edits
    ago. It was done `count` times in all, by edits that began at `places` and spanned up to `lines` lines. `changed`
    is the share of the lines' tokens that the edit changed.
    """

    kind: ClassVar[str]
    is_of_lines: ClassVar[bool] = False
    """Whether it speaks of whole lines rather than of a piece of one."""
    is_indivisible: ClassVar[bool] = False
    """Whether making it in some of its places is worse than making it in none."""
    copies_code: ClassVar[bool] = False
    """Whether it writes code of one place in another, which may know none of its names."""
    is_rare: ClassVar[bool] = False
    """History has too few examples to learn when such a rule is right; it is narrow enough to be mostly right."""

    before: str = ""
    after: str = ""
    lines_before: str = ""
    lines_after: str = ""
    path: str = ""
    line: int = 0
    column: int = 0
    age: int = 0
    since: int = 0
    count: int = 1
    places: tuple[tuple[str, int], ...] = ()
    lines: int = 1
    changed: float = 1.0

    @property
    def key(self) -> Hashable:
        """Equal for edits that do the same."""
        return self.kind, self.before, self.after

    @property
    def known_as(self) -> str:
        """The name that leads from it to files that are not open; empty if none does."""
        return ""

    def joined(self, earlier: "Rule") -> "Rule":
        """The rule after an earlier edit that did the same."""
        places = (*self.places, *earlier.places)
        return replace(self, count=self.count + 1, since=earlier.age, places=places)

    def is_undone_by(self, other: "Rule") -> bool:
        """Whether a later edit did the reverse."""
        if self.kind != other.kind or other.age > self.age or self.before == self.after:
            return False
        return (other.before, other.after) == (self.after, self.before)

    def is_taken_back(self, later: Sequence[Edit]) -> bool:
        """Whether a later edit did the reverse without teaching a rule that says so."""
        return False

    def offset(self, snapshot: Snapshot) -> int:
        """Where the new text begins, in the file in which it was written last."""
        line = min(self.line, snapshot.line_count - 1)
        return max(snapshot.line_start(line) + self.column - len(self.after), 0)


TRIMMED = " ,\t\r\n"
"""What a label leaves out at the ends of code."""


def in_label(code: str) -> str:
    """Code of the user's, so that `without_code` knows it."""
    return quoted(ForeignText(code.strip(TRIMMED)), LONGEST_LABEL)


def without_code(text: str) -> str:
    """For what is kept or logged.

    >>> without_code("unsure: rename `a` → `b` is 20% likely")
    'unsure: rename `…` → `…` is 20% likely'
    """
    return re.sub(r"`[^`]*`", "`…`", text)
