"""The suggestion on the screen: what is left of it after the user has typed into it, or deleted before it."""

from msgspec import Struct

from mercury_ls.documents import Snapshot

__all__ = ["Pending", "Remainder"]

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
