"""What a client asks for, and where that is in a text that goes on changing."""

import asyncio
import math

from msgspec import Struct
from msgspec.structs import replace

from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.code.edits import TextEdit
from mercury_ls.completion.offers import Offer

EXPLICIT_SECONDS = 5.0
"""How long somebody who asked by hand waits at least."""
UNHEARD_SECONDS = 1.0
"""How long a client waits that is not told when an answer grows."""


class Asker(Struct, frozen=True):
    """What a client says of itself when it asks for a next edit: whether it can show edits of `closed` files, and
    `places` to which it only goes, and the name of its `renamer`, another language server to which renames in closed
    files are left.
    One that asks also while its user `is_typing` may ask in the middle of an edit."""

    closed: bool = True
    renamer: str = ""
    is_typing: bool = True
    places: bool = False

    def shown(self, offer: Offer) -> Offer | None:
        """What the client can show of an offer; None if that is nothing."""
        if offer.is_place and not self.places:
            return None
        edits = tuple(edit for edit in offer.edits if self.closed or offer.version(edit.uri) is not None)
        return replace(offer, edits=edits) if edits else None

    def leaves_to_renamer(self, offer: Offer) -> bool:
        """Whether the offer, made before the client named a `renamer`, is a rename in closed files."""
        return bool(self.renamer) and offer.kind == "rename" and None in map(offer.version, offer.base)


ANYONE = Asker()


class NextEditRequest(Struct, frozen=True):
    """A request for what follows from the last edits, by `asker` at this place; by hand if `invoked`. A user who
    `rests` has heard what follows by rule, and has gone to another line."""

    uri: str
    offset: int
    invoked: bool = False
    asker: Asker = ANYONE
    rests: bool = False


class Patience:
    """How long a request waits for the end of an answer whose first lines stand: one that was made by hand from its own
    beginning, another only where the client is not told when the answer `grows`."""

    def __init__(self, invoked: bool, *, grows: bool) -> None:
        self._clock = asyncio.get_running_loop().time
        self._asked_until = self._clock() + EXPLICIT_SECONDS if invoked else -math.inf
        self._more = 0.0 if grows or invoked else UNHEARD_SECONDS
        self.until: float | None = None
        """By the loop's clock, once something stands."""

    def lasts(self) -> bool:
        """Asked once something stands."""
        if self.until is None:
            self.until = max(self._asked_until, self._clock() + self._more)
        return self._clock() < self.until


MenuEntry = tuple[int, int, str]
"""The entry highlighted in the editor's own menu: the range that it would replace, and its text."""


class InlineRequest(Struct, frozen=True):
    """Where a completion is asked for, by hand if `invoked`: `snapshot` is the text as the client saw it, with the
    entry of its menu accepted if one is `selected`."""

    document: Document
    seen: Snapshot
    snapshot: Snapshot
    offset: int
    invoked: bool
    selected: MenuEntry | None

    @classmethod
    def at(cls, document: Document, offset: int, *, invoked: bool, selected: MenuEntry | None) -> "InlineRequest":
        seen = snapshot = document.snapshot()
        if selected is not None:
            start, end, text = selected
            snapshot, offset = seen.changed(TextEdit(start, end, text)), start + len(text)
        return cls(document, seen, snapshot, offset, invoked, selected)

    @property
    def is_current(self) -> bool:
        return self.document.text == self.seen.text

    @property
    def now(self) -> tuple[Snapshot, int]:
        """The text as it is by now, and where the cursor is if the user has typed on."""
        if self.is_current or self.selected is not None:
            return self.snapshot, self.offset
        return self.document.snapshot(), self.offset + len(self.document.text) - len(self.seen.text)


def after_selected(offer: Offer, current: Snapshot, selected: MenuEntry) -> Offer:
    """The offer as the protocol wants it: it begins with the selected entry and replaces that entry's range."""
    start, end, text = selected
    return replace(
        offer, edits=(TextEdit(start, end, text + offer.edit.text, current.uri),), base={current.uri: current}
    )
