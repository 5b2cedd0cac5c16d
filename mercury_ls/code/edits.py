"""Edits of texts: what a difference consists of, what is suggested, and where that is after the text has changed."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

PAIRS = {"(": ")", "[": "]", "{": "}", '"': '"', "'": "'", "`": "`", "<": ">"}
CLOSERS = frozenset(PAIRS.values())


class TextEdit(Struct, frozen=True):
    """`text` replaces `[start, end)` of the document `uri`, which is empty where the document is clear from the
    context."""

    start: int
    end: int
    text: str
    uri: str = ""

    def moved(self, distance: int) -> "TextEdit":
        return replace(self, start=self.start + distance, end=self.end + distance)


def applied(text: str, edits: Iterable[TextEdit]) -> str:
    """The text with all of these edits applied; their offsets refer to the text before any of them."""
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def difference(before: str, after: str) -> TextEdit:
    """The edit that turns one text into the other, without their common prefix and suffix."""
    limit = min(len(before), len(after))
    head = _common_length(limit, lambda length: before.startswith(after[:length]))
    tail = _common_length(limit - head, lambda length: before.endswith(after[len(after) - length :]))
    return TextEdit(head, len(before) - tail, after[head : len(after) - tail])


def _common_length(limit: int, agree: Callable[[int], bool]) -> int:
    """The longest length up to `limit` for which the texts agree, given that agreement is monotonic."""
    return bisect_left(range(1, limit + 1), True, key=lambda length: not agree(length))


def same_result(text: str, first: TextEdit, second: TextEdit) -> bool:
    """True if two changes of a text have the same result."""
    if len(first.text) - first.end + first.start != len(second.text) - second.end + second.start:
        return False
    start, end = min(first.start, second.start), max(first.end, second.end)
    results = [text[start : change.start] + change.text + text[change.end : end] for change in (first, second)]
    return results[0] == results[1]


def widened(text: str, edit: TextEdit) -> tuple[str, str]:
    """The removed and the inserted text, extended to whole words but no further than the texts differ."""
    change = difference(text[edit.start : edit.end], edit.text)
    start, end, new = edit.start + change.start, edit.start + change.end, change.text
    while start > 0 and is_word(text[start - 1]):
        start, new = start - 1, text[start - 1] + new
    while end < len(text) and is_word(text[end]):
        end, new = end + 1, new + text[end]
    return text[start:end], new


def is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def rebase(edits: Sequence[TextEdit], before: str, after: str, cursor: int | None = None) -> list[TextEdit] | None:
    """The edits of one text carried over to a later one, without those already made; None if the text conflicts with
    them.

    With a `cursor` there is one edit, which the user is typing: the rest of it replaces the text at the cursor.
    """
    if cursor is not None:
        (edit,) = edits
        return _rest_of(edit, before, after, cursor)
    remaining = _not_yet_made(edits, before, after)
    return shifted(edits, before, after) if remaining is None else remaining


def _rest_of(edit: TextEdit, before: str, after: str, cursor: int) -> list[TextEdit] | None:
    """The rest of an edit at the cursor: typing consumes its front, backspace restores it up to the start of the line,
    and a bracket that the editor closed by itself is replaced by the edit's own."""
    end = len(after) - (len(before) - edit.end)
    if cursor < before.rfind("\n", 0, edit.start) + 1 or end < cursor or after[end:] != before[edit.end :]:
        return None
    completed = before[: edit.start] + edit.text
    replaced, typed = before[edit.start : edit.end], after[edit.start : cursor]
    if not completed.startswith(after[:cursor]) or not after[cursor:end].endswith(replaced):
        return None
    closed = after[cursor:end].removesuffix(replaced)
    expected = "".join(PAIRS[c] for c in reversed(typed) if c in PAIRS)
    if not expected.startswith(closed) or not all(c in edit.text for c in closed):
        return None
    tail = completed[cursor:]
    return [replace(edit, start=cursor, end=end, text=tail)] if tail else []


def may_become(edit: TextEdit, before: str, after: str, cursor: int) -> bool:
    """True if typing may lead to an edit of which only the beginning, `edit.text`, is known so far.

    A cursor that is only guessed may be behind brackets that the editor closed by itself.
    """
    for guess in (cursor, cursor - 1) if after[cursor - 1 : cursor] in CLOSERS else (cursor,):
        end = len(after) - (len(before) - edit.end)
        typed, behind = after[edit.start : guess], after[guess : max(end, guess)]
        if edit.text.startswith(typed) or typed.startswith(edit.text):
            longest = max(edit.text, typed, key=len)
            if _rest_of(replace(edit, text=longest + behind), before, after, guess) is not None:
                return True
    return False


def _not_yet_made(edits: Sequence[TextEdit], before: str, after: str) -> list[TextEdit] | None:
    """The remaining edits if the later text is the earlier one with the others made; None if it is not.

    Each path through the edits is identified by how much longer it makes the text.
    """
    ways: dict[int, list[TextEdit]] = {0: []}
    at = 0
    for edit in sorted(edits, key=lambda key: (key.start, key.end)):
        between, old = before[at : edit.start], before[edit.start : edit.end]
        grouped: dict[int, list[TextEdit]] = {}
        for grown, remaining in ways.items():
            start = edit.start + grown
            if not after.startswith(between, at + grown):
                continue
            if after.startswith(edit.text, start):
                grouped.setdefault(grown + len(edit.text) - len(old), remaining)
            if after.startswith(old, start):
                grouped.setdefault(grown, [*remaining, replace(edit, start=start, end=edit.end + grown)])
        ways, at = grouped, edit.end
    grown = len(after) - len(before)
    return ways[grown] if grown in ways and after.endswith(before[at:]) and len(after) >= at + grown else None


def shifted(edits: Sequence[TextEdit], before: str, after: str) -> list[TextEdit] | None:
    """The edits shifted by a change that touches none of them; None if it touches one."""
    change = difference(before, after)
    grown = len(change.text) - (change.end - change.start)
    moved: list[TextEdit] = []
    for edit in edits:
        if edit.start >= change.end and (edit.start, edit.end) != (change.start, change.end):
            moved.append(edit.moved(grown))
        elif edit.end <= change.start:
            moved.append(edit)
        else:
            return None
    return moved
