"""The suggestion on the screen: what is left of it after the user has typed into it, or deleted before it."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mercury_ls.code.documents import Change, Snapshot, difference
from mercury_ls.next_edit.lexemes import is_word
from mercury_ls.wording import decoded

__all__ = ["CLOSED", "Pending", "PendingEdits", "Remainder", "SpanEdit", "inserted", "summary"]

CLOSED = -1
"""The version of a file that no editor has open."""

PAIRS = {"(": ")", "[": "]", "{": "}", '"': '"', "'": "'", "`": "`", "<": ">"}


class Remainder(Struct, frozen=True):
    """The edit that still completes the suggestion in the text as it is now."""

    start: int
    end: int
    text: str


class Pending(Struct, frozen=True):
    """A suggestion for `[start, end)` of `base`, by an id that accepting it names."""

    id: str
    uri: str
    base: str
    start: int
    end: int
    text: str
    p_accept: float

    def remainder(self, snapshot: Snapshot, offset: int) -> Remainder | None:
        """What to insert at `offset`; None where the text has gone elsewhere, an empty text where all is typed.

        Typing along takes from the front, backspace gives back, and a bracket that the editor closed by itself
        is replaced by the suggestion's own.
        """
        text = snapshot.text
        end = len(text) - (len(self.base) - self.end)
        if offset < self._line_start() or end < offset or text[end:] != self.base[self.end :]:
            return None
        if not self._leads_to(text, offset) or not self._replaces(text[offset:end], text[self.start : offset]):
            return None
        return Remainder(offset, end, self._completed_from(offset))

    def _line_start(self) -> int:
        return self.base.rfind("\n", 0, self.start) + 1

    def _leads_to(self, text: str, offset: int) -> bool:
        """Whether the text before the cursor is what the completed document begins with."""
        if offset <= self.start:
            return text[:offset] == self.base[:offset]
        typed = text[self.start : offset]
        return self.text.startswith(typed) and text[: self.start] == self.base[: self.start]

    def _completed_from(self, offset: int) -> str:
        if offset <= self.start:
            return self.base[offset : self.start] + self.text
        return self.text[offset - self.start :]

    def _replaces(self, between: str, typed: str) -> bool:
        """Whether the text from the cursor to the end of the span is what stood there, or closers of what was typed."""
        expected = "".join(PAIRS[c] for c in reversed(typed) if c in PAIRS)
        closed = between.removesuffix(self.base[self.start : self.end])
        if between != closed + self.base[self.start : self.end]:
            return False
        return expected.startswith(closed) and all(c in self.text for c in closed)


class SpanEdit(Struct, frozen=True):
    """One of several edits: replace `[start, end)` of a document by `text`."""

    uri: str
    start: int
    end: int
    text: str
    display: str = "diff"


class PendingEdits(Struct, frozen=True):
    """A next edit on offer: several edits that belong together, the texts that they are edits of, and what to know of
    it besides."""

    id: str
    label: str
    p_accept: float
    edits: tuple[SpanEdit, ...]
    texts: dict[str, str]
    versions: dict[str, int]
    note: str = ""

    def old_text(self, edit: SpanEdit) -> str:
        return self.texts[edit.uri][edit.start : edit.end]

    @property
    def characters(self) -> int:
        """What would have to be typed for it."""
        return sum(inserted(self.old_text(edit), edit.text) for edit in self.edits)

    def is_made_in(self, snapshots: Mapping[str, Snapshot]) -> bool:
        """Whether the texts are what they were before, with all of it and nothing else."""
        return all(
            uri in snapshots and snapshots[uri].text == with_all([e for e in self.edits if e.uri == uri], before)
            for uri, before in self.texts.items()
        )

    def on(self, snapshots: Mapping[str, Snapshot]) -> "PendingEdits | None":
        """The same offer in the texts as they are now: moved along, without what has been done of it by hand or one
        by one; None where a text has gone elsewhere, or nothing is left."""
        edits: list[SpanEdit] = []
        for uri, before in self.texts.items():
            if uri not in snapshots:
                return None
            moved = follow([e for e in self.edits if e.uri == uri], before, snapshots[uri].text)
            if moved is None:
                return None
            edits += moved
        if not edits:
            return None
        now = {uri: snapshots[uri] for uri in self.texts}
        return replace(
            self,
            edits=tuple(edits),
            texts={uri: snapshot.text for uri, snapshot in now.items()},
            versions={uri: snapshot.version for uri, snapshot in now.items()},
        )

    def makes(self, uri: str, before: str, change: Change) -> bool:
        """Whether a change is one of these edits; where it stands by now does not matter."""
        made = widened(before, change.start, change.end, change.text)
        return any(made == widened(self.texts[uri], e.start, e.end, e.text) for e in self.edits if e.uri == uri)


def widened(text: str, start: int, end: int, new: str) -> tuple[str, str]:
    """What goes and what comes, with the rest of the words at both ends, and no more than differs."""
    change = difference(text[start:end], new)
    start, end, new = start + change.start, start + change.end, change.text
    while start > 0 and is_word(text[start - 1]):
        start, new = start - 1, text[start - 1] + new
    while end < len(text) and is_word(text[end]):
        end, new = end + 1, new + text[end]
    return text[start:end], new


def summary(edits: Sequence[SpanEdit], uri: str) -> str:
    """Where the edits are, as seen from one document: "5 here, 4 in models.py", "2 here, 9 in 3 other files"."""
    here = sum(edit.uri == uri for edit in edits)
    others = sorted({edit.uri for edit in edits} - {uri})
    places = [f"{here} here"] if here else []
    if len(others) == 1:
        places.append(f"{len(edits) - here} in {name_of(others[0])}")
    elif others:
        places.append(f"{len(edits) - here} in {len(others)} {'other ' if here else ''}files")
    return ", ".join(places)


def name_of(uri: str) -> str:
    return decoded(uri).rstrip("/").rpartition("/")[2] or uri


def inserted(old: str, new: str) -> int:
    """How many characters of a replacement are not in place already."""
    return len(difference(old, new).text)


def follow(edits: Sequence[SpanEdit], before: str, after: str) -> list[SpanEdit] | None:
    """The edits of one text in a later one; None where what was typed overlaps one without being it."""
    if (left := left_of(edits, before, after)) is not None:
        return left
    change = difference(before, after)
    grown = len(change.text) - (change.end - change.start)
    moved = []
    for edit in edits:
        if edit.start >= change.end and (edit.start, edit.end) != (change.start, change.end):
            moved.append(replace(edit, start=edit.start + grown, end=edit.end + grown))
        elif edit.end <= change.start:
            moved.append(edit)
        else:
            return None
    return moved


def left_of(edits: Sequence[SpanEdit], before: str, after: str) -> list[SpanEdit] | None:
    """Those that are left, where the later text is the earlier one with the others made; None where it is not.

    Each way through the edits is known by how much longer the text has become.
    """
    ways: dict[int, list[SpanEdit]] = {0: []}
    at = 0
    for edit in sorted(edits, key=lambda each: (each.start, each.end)):
        between, old = before[at : edit.start], before[edit.start : edit.end]
        found: dict[int, list[SpanEdit]] = {}
        for grown, left in ways.items():
            start = edit.start + grown
            if not after.startswith(between, at + grown):
                continue
            if after.startswith(edit.text, start):
                found.setdefault(grown + len(edit.text) - len(old), left)
            if after.startswith(old, start):
                found.setdefault(grown, [*left, replace(edit, start=start, end=edit.end + grown)])
        ways, at = found, edit.end
    grown = len(after) - len(before)
    return ways[grown] if grown in ways and after.endswith(before[at:]) and len(after) >= at + grown else None


def with_all(edits: Sequence[SpanEdit], text: str) -> str:
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        text = applied(text, edit)
    return text


def applied(text: str, edit: SpanEdit) -> str:
    return text[: edit.start] + edit.text + text[edit.end :]
