"""The text that a request is about, with what its author did last, as an open editor would know it."""

from collections.abc import Iterator

from msgspec import Struct

from mercury_engine.api import Edit, Snippet
from mercury_ls.code.edits import TextEdit, difference
from mercury_ls.code.history import History

__all__ = ["Text", "recorded"]

APART_SECONDS = 10.0
"""Between two edits: nothing is known of when they were made."""
MOST_LINES = 1 << 16


class Text(Struct, frozen=True):
    """What a request says: the text with its cursor, other files, and the last edits, oldest first. A path may be
    unknown."""

    path: str
    text: str
    cursor: int
    language: str = ""
    others: tuple[Snippet, ...] = ()
    edits: tuple[Edit, ...] = ()


def recorded(text: Text, now: float) -> History:
    """The history of a session in which these edits were made one after the other."""
    history = History()
    began = now - APART_SECONDS * len(text.edits)
    for number, (path, before, change) in enumerate(changes(text)):
        history.record(path, before, change, began + number * APART_SECONDS)
    return history


def changes(text: Text) -> Iterator[tuple[str, str, TextEdit]]:
    """Each edit with the text before it: of this text by taking the edits back, newest first; of other files, whose
    texts are unknown, only the lines that it changed. An edit of which nothing is left to see is left out."""
    found: list[tuple[str, str, TextEdit]] = []
    now = text.text
    for edit in reversed(text.edits):
        if edit.path != text.path:
            lines = "\n" * min(edit.line, MOST_LINES)
            found.append((edit.path, lines + edit.before, moved(difference(edit.before, edit.after), len(lines))))
            continue
        start = place_of(edit, now)
        if start is not None:
            now = now[:start] + edit.before + now[start + len(edit.after) :]
            found.append((edit.path, now, moved(difference(edit.before, edit.after), start)))
    return reversed(found)


def place_of(edit: Edit, text: str) -> int | None:
    """Where the lines that an edit left begin: on the line that it names, or where else they stand only once."""
    lines = text.splitlines(keepends=True)
    start = sum(map(len, lines[: edit.line]))
    if edit.line <= len(lines) and text.startswith(edit.after, start):
        return start
    if not edit.after.strip() or text.count(edit.after) != 1:
        return None
    found = text.index(edit.after)
    return found if found == 0 or text[found - 1] == "\n" else None


def moved(edit: TextEdit, by: int) -> TextEdit:
    return TextEdit(edit.start + by, edit.end + by, edit.text)
