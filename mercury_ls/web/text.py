"""The text of a request, with its author's recent edits, as an open editor would know it."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Edit, Snippet
from mercury_ls.code.differences import LINE
from mercury_ls.code.edits import TextEdit, difference
from mercury_ls.code.history import MAX_HUNKS, History
from mercury_ls.code.languages import find

APART_SECONDS = 10.0
"""Between two edits: their true times are unknown."""
MOST_LINES = 1 << 16
LONGEST_TEXT = 1 << 18
"""In characters."""
MOST_OTHERS = 64
"""The number of other files: the last in the list, which clients used last."""
LONGEST_PATH = 1000
"""In characters: file names are at most 255 bytes long, and paths 4096."""


class Text(Struct, frozen=True):
    """The text in a request, perhaps a part of a file, with its cursor, other files, and the last edits, oldest first.
    A path may be unknown."""

    path: str
    text: str
    cursor: int
    language: str = ""
    others: tuple[Snippet, ...] = ()
    edits: tuple[Edit, ...] = ()

    def with_paths(self, renamed: Callable[[str], str]) -> "Text":
        return replace(
            self,
            path=renamed(self.path),
            others=tuple(replace(other, path=renamed(other.path)) for other in self.others),
            edits=tuple(replace(edit, path=renamed(edit.path)) for edit in self.edits),
        )


def near(text: Text) -> Text:
    """The part of the text that a suggestion at the cursor can depend on: whole lines of a text longer than most
    files."""
    if len(text.text) <= LONGEST_TEXT:
        return text
    first = max(text.cursor - LONGEST_TEXT * 3 // 4, 0)
    start = text.text.find("\n", first, text.cursor) + 1 or first
    return replace(text, text=text.text[start : text.cursor + LONGEST_TEXT // 4], cursor=text.cursor - start)


def bounded(text: Text) -> Text:
    """The text within limits, since strangers choose it: no more of other files than is worth reading, no impossible
    path, and the cursor outside line breaks."""
    snippets = text.others[-MOST_OTHERS:]
    sizes = accumulate(len(other.text) for other in snippets)
    others = tuple(snippet for snippet, size in zip(snippets, sizes, strict=True) if size <= LONGEST_TEXT)
    cursor = text.cursor - text.text.startswith("\r\n", text.cursor - 1)
    return replace(text, cursor=cursor, others=others).with_paths(_usable)


def _usable(path: str) -> str:
    return path.replace("\0", "")[-LONGEST_PATH:]


def language_of(text: Text) -> str:
    """The language of a text; if its file is unknown, that of most of the other files, where its author was just
    now."""
    if text.language or text.path:
        return text.language
    counts = Counter(language.id for other in text.others if (language := find("", other.path)))
    return counts.most_common(1)[0][0] if counts else ""


def recorded(text: Text, time: float) -> History:
    """The history of a session in which these edits were made one after the other."""
    history = History()
    text = replace(text, edits=text.edits[-MAX_HUNKS:])
    began = time - APART_SECONDS * len(text.edits)
    for number, (path, before, change, lines) in enumerate(_changes(text)):
        history.record(path, before, change, began + number * APART_SECONDS, lines=lines)
    return history


def _changes(text: Text) -> Iterator[tuple[str, str, TextEdit, tuple[int, int]]]:
    """Each edit with the text before it, and the known part of that: in this text by undoing the edits, newest first;
    in other files, whose texts are unknown, only the changed lines and their surroundings. An edit that has left no
    trace is left out."""
    changes: list[tuple[str, str, TextEdit, tuple[int, int]]] = []
    current = text.text
    for edit in reversed(text.edits):
        if edit.path != text.path:
            first = max(min(edit.line, MOST_LINES) - len(LINE.findall(edit.above)), 0)
            head = "\n" * first + edit.above
            before = head + edit.before + edit.below
            change = difference(edit.before, edit.after).moved(len(head))
            changes.append((edit.path, before, change, (first, len(before))))
            continue
        start = _place_of(edit, current)
        if start is not None:
            current = current[:start] + edit.before + current[start + len(edit.after) :]
            changes.append((edit.path, current, difference(edit.before, edit.after).moved(start), (0, len(current))))
    return reversed(changes)


def _place_of(edit: Edit, text: str) -> int | None:
    """The line where an edit's lines begin: the line that it names, or their only other occurrence."""
    if not edit.after.strip():
        return None
    lines = text.split("\n", edit.line) if edit.line < MOST_LINES else []
    start = len(text) - len(lines[-1]) if len(lines) > edit.line else 0
    if lines and text.startswith(edit.after, start):
        return start
    if text.count(edit.after) != 1:
        return None
    offset = text.index(edit.after)
    return offset if offset == 0 or text[offset - 1] == "\n" else None
