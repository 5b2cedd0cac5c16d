"""What becomes of each answer, shown or not: the text that the user then writes says whether it was right."""

from typing import Protocol

from msgspec import Struct

from mercury_ls.code.documents import Snapshot
from mercury_ls.code.edits import PAIRS, TextEdit, difference, same_result

MOST_FOLLOWED = 8
MOST_ELSEWHERE = 3
"""Changes at other places after which what comes here later has other reasons than the answer."""
MOST_SLIP = 1
"""Characters that the user may have typed by mistake: one more is a decision."""


class Learn(Protocol):
    """Is told once what became of an answer."""

    def __call__(self, kept: bool, shown: bool) -> None: ...


class _Followed(Struct, eq=False):
    """An answer whose fate is open: in the text as it is now, `text` is to replace `[start, end)`, which holds what the
    user has typed so far, what the editor closed by itself, and the `old` text that was there.

    The first `head` characters of `text` stood before the gap; the user went back over them. `is_taken` says that a
    part was accepted by command.
    """

    uri: str
    start: int
    end: int
    text: str
    old: str
    learn: Learn
    ids: list[str]
    is_shown: bool
    head: int = 0
    agreed: int = 0
    has_slipped: bool = False
    is_taken: bool = False
    elsewhere: int = 0

    @property
    def edit(self) -> TextEdit:
        return TextEdit(self.start, self.end, self.text)

    @property
    def is_half_taken(self) -> bool:
        return self.is_taken and 2 * (self.agreed - self.head) >= len(self.text) - self.head


class Aftermath:
    """Follows the last answers of one client. Each teaches at most once; what is left undecided teaches nothing."""

    def __init__(self) -> None:
        self._followed: list[_Followed] = []
        self._missed: tuple[str, int] | None = None

    def generated(
        self, id: str, base: Snapshot, current: Snapshot, edit: TextEdit, learn: Learn, *, shown: bool = False
    ) -> None:
        """An answer for the text `base`, which may have changed since. One that only says again what another one says
        is the same answer, and counts by the evidence under which it was first shown."""
        old = base.text[edit.start : edit.end]
        followed = _Followed(base.uri, edit.start, edit.end, edit.text, old, learn, [id], shown)
        if current.text != base.text and not self._goes_on(followed, base.text, difference(base.text, current.text)):
            return
        for other in self._followed:
            if other.uri == base.uri and same_result(current.text, other.edit, followed.edit):
                other.ids = [*other.ids[1 - MOST_FOLLOWED :], id]
                if shown and not other.is_shown:
                    other.is_shown, other.learn = True, learn
                return
        self._followed.append(followed)
        for oldest in self._followed[:-MOST_FOLLOWED]:
            self._drop(oldest)

    def shown(self, id: str) -> None:
        if followed := self._find(id):
            followed.is_shown = True

    def changed(self, uri: str, before: str, change: TextEdit) -> None:
        """One change of a document, in offsets of the text before it."""
        missed_uri, missed_at = self._missed or ("", 0)
        if missed_uri == uri and change.end < missed_at:
            self._missed = uri, missed_at + len(change.text) - (change.end - change.start)
        self._followed = [
            followed for followed in self._followed if followed.uri != uri or self._goes_on(followed, before, change)
        ]

    def accepted(self, id: str, length: int | None = None) -> None:
        """The user took it by command; or its first `length` characters, and half of it is enough."""
        if followed := self._find(id):
            followed.is_shown = followed.is_taken = True
            if length is None or 2 * length >= len(followed.text) - followed.head:
                self._followed.remove(followed)
                followed.learn(True, True)

    def dismissed(self, id: str) -> None:
        """The user refused it. What was never on the screen cannot be."""
        if (followed := self._find(id)) and followed.is_shown:
            self._followed.remove(followed)
            followed.learn(followed.is_half_taken, True)

    def closed(self, uri: str) -> None:
        for followed in [followed for followed in self._followed if followed.uri == uri]:
            self._drop(followed)
        if self._missed and self._missed[0] == uri:
            self._missed = None

    def forget(self) -> None:
        """The texts change by other hands."""
        self._followed.clear()
        self._missed = None

    def missed(self, snapshot: Snapshot, offset: int) -> bool:
        """Whether the last answer on this line is one that the user then typed something else than."""
        if self._missed is None or self._missed[0] != snapshot.uri or self._missed[1] > len(snapshot.text):
            return False
        return snapshot.line_of(self._missed[1]) == snapshot.line_of(offset)

    def _find(self, id: str) -> _Followed | None:
        return next((followed for followed in self._followed if id in followed.ids), None)

    def _drop(self, followed: _Followed) -> None:
        """Nothing is learned unless half of it has been taken."""
        self._followed.remove(followed)
        self._ends(followed)

    def _goes_on(self, followed: _Followed, before: str, change: TextEdit) -> bool:
        """Whether the answer's fate is still open after a change; what is decided is told."""
        if change.end < followed.start or change.start > followed.end:
            followed.start, followed.end = _moved(followed, change)
            followed.elsewhere += 1
            return followed.elsewhere <= MOST_ELSEWHERE or self._ends(followed)
        outside = before[change.start : followed.start], before[followed.end : change.end]
        if any(line_break in piece for line_break in "\r\n" for piece in outside):
            return self._ends(followed)
        _widen(followed, *outside)
        typing_ends = max(followed.end - len(followed.old), followed.start + followed.agreed)
        is_typing = followed.start + followed.agreed <= change.start <= typing_ends
        region = before[followed.start : change.start] + change.text + before[change.end : followed.end]
        followed.end = followed.start + len(region)
        if _is_made(followed, region):
            self._missed = None
            return self._ends(followed, is_kept=True)
        typed = region.removesuffix(followed.old)
        followed.agreed = difference(typed, followed.text).start
        remainder = typed[followed.agreed :]
        is_whole = len(typed) + len(followed.old) == len(region)
        if _belongs(typed, followed.agreed) if is_whole else _is_cleared(followed, region):
            if followed.has_slipped:
                self._missed, followed.has_slipped = None, False
            return True
        if not is_typing or followed.agreed < followed.head:
            return len(remainder) <= MOST_SLIP or self._ends(followed)
        self._missed, followed.has_slipped = (followed.uri, followed.start + followed.agreed), True
        return len(remainder) <= MOST_SLIP or self._ends(followed, is_kept=False)

    def _ends(self, followed: _Followed, is_kept: bool | None = None) -> bool:
        """Always false: its fate is no longer open. None where it is undecided."""
        if is_kept is not None or followed.is_half_taken:
            followed.learn(is_kept or followed.is_half_taken, followed.is_shown)
        return False


def _moved(followed: _Followed, change: TextEdit) -> tuple[int, int]:
    grown = len(change.text) - (change.end - change.start) if change.end < followed.start else 0
    return followed.start + grown, followed.end + grown


def _widen(followed: _Followed, head: str, tail: str) -> None:
    """Takes in what stands before and behind the gap and is being changed as well."""
    followed.start -= len(head)
    followed.end += len(tail)
    followed.text = head + followed.text + tail
    followed.old += tail
    followed.head += len(head)
    followed.agreed += len(head)


def _is_made(followed: _Followed, region: str) -> bool:
    """Whether the whole text stands there, whatever comes behind it."""
    text = followed.text
    return region == text or (region.startswith(text) and not followed.old.startswith(text))


def _is_cleared(followed: _Followed, region: str) -> bool:
    """Whether the user has removed some of what it replaces, or all of it and written a part of the answer."""
    return followed.old.startswith(region) or followed.text.startswith(region)


def _belongs(text: str, agreed: int) -> bool:
    """Whether what the user has written may still become the answer: the rest of it is what the editor added by itself,
    brackets that close those before, or the indentation of a new line."""
    own, remainder = text[:agreed], text[agreed:]
    closing = "".join(PAIRS[character] for character in reversed(own) if character in PAIRS)
    is_indentation = not remainder.strip(" \t") and own.rstrip(" \t").endswith("\n")
    return closing.startswith(remainder) or is_indentation
