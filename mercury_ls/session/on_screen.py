"""The suggestion that the user sees, and what becomes of it."""

from mercury_ls.code.documents import Snapshot
from mercury_ls.completion.offers import Offer
from mercury_ls.session.generations import Generation
from mercury_ls.session.open_files import OpenFiles
from mercury_ls.session.stats import Tally


class OnScreen:
    """At most one suggestion of the inline kind; the tally counts what became of it, the aftermath learns from that."""

    def __init__(self, files: OpenFiles, tally: Tally) -> None:
        self._files = files
        self._tally = tally
        self._last_change = ("", 0)
        self.generation: Generation | None = None

    def typed(self, uri: str, characters: int) -> None:
        """The last change of a document inserted so many."""
        self._last_change = uri, characters

    def leave(self, uri: str) -> None:
        if self.generation and self.generation.question.snapshot.uri == uri:
            self.generation = None

    def follow(self, snapshot: Snapshot, offset: int) -> None:
        """What became of it, if the user has typed something else or all of it."""
        generation = self.generation
        if generation is None or generation.question.snapshot.uri != snapshot.uri:
            return
        remainder = generation.remainder(snapshot, offset)
        if remainder is None:
            self.generation = None
            self._tally.passed_over(generation.id)
        elif not remainder.edits and generation.is_over:
            self.generation = None
            self._tally.typed_through(generation.id)

    def answered(self, offer: Offer) -> None:
        self._tally.answered(offer.id)
        if self._tally.is_shown(offer.id):
            self._files.aftermath.shown(offer.id)

    def shown(self, id: str) -> None:
        """The client reports that the user sees it."""
        self._tally.shown(id)
        self._files.aftermath.shown(id)

    def accepted(self, id: str, length: int | None = None) -> bool:
        """Whether this is the first that is heard of it; after some characters of it the rest stays on offer."""
        self._files.aftermath.accepted(id, length)
        is_first = self._tally.accepted(id, self._just_inserted(id))
        if is_first and length is None:
            self._drop(id)
        return is_first

    def rejected(self, id: str) -> bool:
        if not self._tally.rejected(id):
            return False
        self._files.aftermath.dismissed(id)
        self._drop(id)
        return True

    def _just_inserted(self, id: str) -> int:
        """How many characters accepting a suggestion has just inserted: what the user typed of it does not count."""
        uri, typed = self._last_change
        offer = self.generation.answer.offer if self.generation and self.generation.id == id else None
        if offer is None:
            return typed
        is_made = uri == offer.edit.uri and self._files.documents[uri].text != offer.base[uri].text
        return min(typed, len(offer.edit.text)) if is_made else len(offer.edit.text)

    def _drop(self, id: str) -> None:
        if self.generation and self.generation.id == id:
            self.generation = None
