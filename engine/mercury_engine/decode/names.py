"""Names that exist: an answer ends before a member that does not."""

import re
from collections.abc import Collection, Sequence
from typing import Self

from mercury_engine.api import Gap, Members

GAP = re.compile(r"\W")
JOINT = r"(?:\?\.|\.|::|->)"
LONGEST_JOINT = 2
DOTTED = rf"(?<![\w.>:])(?:[^\W\d]\w*{JOINT})*[^\W\d]\w*"
MEMBER = re.compile(rf"{JOINT}(?P<name>[^\W\d]\w*+)(?!\s*=(?!=))")
RECEIVER = re.compile(rf"({DOTTED}){JOINT}\Z")
QUOTES_AND_COMMENTS = re.compile(r"[\"'`#]|//")
LONGEST_LINE = 200


class KnownNames:
    """The names that exist at the places of one answer. `head` is the line up to the cursor; the answer begins by
    repeating its end, `respelled`."""

    def __init__(self, members: Sequence[Members], head: str, respelled: str) -> None:
        self._before = head[: len(head) - len(respelled)]
        self._again = respelled
        self._begins = len(respelled) - len(_word_at_end(head))
        self._names = {member.receiver: member.names for member in members}

    @classmethod
    def of(cls, gap: Gap, respelled: str) -> Self | None:
        return cls(gap.members, gap.before.rpartition("\n")[2], respelled) if gap.members else None

    def fitting(self, text: str, *, complete: bool) -> int:
        """The length of an answer, with what it spells again, up to the first member that cannot exist. One that it
        assigns to may be new, and one at the end of an answer that is not `complete` may continue."""
        text_before = self._before + text
        first = len(self._before) + min(self._begins - LONGEST_JOINT, 0)
        for match in MEMBER.finditer(text_before, max(first, 0)):
            start, end = match.span("name")
            line = text_before[text_before.rfind("\n", 0, start) + 1 : start][-LONGEST_LINE:]
            names = self._closed(line, start - len(self._before))
            if names is None or match["name"] in names:
                continue
            if complete or end < len(text_before) or not any(name.startswith(match["name"]) for name in names):
                return max(0, match.start() - len(self._before))
        return len(text)

    def existing(self, text: str, *, complete: bool) -> tuple[str, bool]:
        """The same for what an answer adds to the text before the cursor, and whether it is complete."""
        fitting = max(0, self.fitting(self._again + text, complete=complete) - len(self._again))
        return text[:fitting], complete and fitting == len(text)

    def _closed(self, line: str, start: int) -> Collection[str] | None:
        """The names of which one must follow a line, at this place in the answer; None if others may."""
        if start < self._begins or QUOTES_AND_COMMENTS.search(line):
            return None
        if start == self._begins:
            return self._names.get("")
        receiver = RECEIVER.search(line)
        return self._names.get(receiver[1]) if receiver else None


def _word_at_end(text: str) -> str:
    """The word that a text ends with, found from behind: a long line costs no more than its length."""
    gap = GAP.search(text[::-1])
    return text[len(text) - gap.start() :] if gap else text
