"""The next edit on offer to one client, kept while the text around it changes."""

from msgspec.structs import replace

from mercury_ls.code.documents import Snapshot
from mercury_ls.code.edits import TextEdit
from mercury_ls.completion.offers import Offer
from mercury_ls.session.open_files import OpenFiles
from mercury_ls.session.stats import Tally


class StandingOffer:
    """Owns the one next edit on offer, which accepting and rejecting name by its id."""

    def __init__(self, files: OpenFiles, tally: Tally):
        self._files = files
        self._tally = tally
        self._offer: Offer | None = None
        self._origin = ""
        self._made: Offer | None = None
        self._known = 0
        self._is_passed_over = False
        """Whether the last offer was left alone: what follows from edits since then comes before it."""

    @property
    def is_there(self) -> bool:
        """Whether anything is on offer, by the texts as they were when that was last looked at."""
        return self._offer is not None

    @property
    def is_outdated(self) -> bool:
        """Whether the user has made edits that the offer does not know."""
        return self._files.history.has_changed_since(self._known)

    @property
    def fresh_edits(self) -> int:
        """The number of edits that the user has made instead of accepting the offer."""
        return self._files.history.since(self._known) if self._is_passed_over else 0

    def follows(self, uri: str) -> bool:
        """Whether the offer follows from an edit of this document."""
        document = self._files.documents.get(uri)
        return document is not None and document.path == self._origin

    def makes(self, uri: str, before: str, change: TextEdit) -> bool:
        """Whether this change of a document is one of the edits on offer: accepting makes them."""
        return self._offer is not None and self._offer.makes(uri, before, change)

    def current(self) -> Offer | None:
        """The offer in the texts as they are now; typing over it, or finishing it by hand, ends it.

        Making a part of it by hand keeps to the offer; any other edit may lead elsewhere.
        """
        if (before := self._offer) is not None:
            remaining = before.on(self._texts_of(before))
            self._offer = remaining if remaining and remaining.edits else None
            if remaining and not remaining.edits:
                self._made = before
                self._tally.typed_through(before.id)
            elif remaining is None:
                self._tally.typed_over(before.id)
            elif len(remaining.edits) < len(before.edits):
                self._known = self._files.history.mark
        return self._offer

    def put(self, offer: Offer, mark: int, origin: str) -> bool:
        """Puts this on offer, made of the edits up to `mark`, the last of them in the file `origin`. Returns False if
        what stands has all of it, and stays."""
        self._known, self._is_passed_over = mark, True
        standing = self.current()
        if standing is not None and set(offer.edits) <= set(standing.edits):
            self._offer = replace(standing, note=offer.note)
            return False
        self._offer, self._origin = offer, origin
        return True

    def drop(self) -> None:
        self._offer = None

    def accepted(self, id: str, edits: int | None = None) -> Offer | None:
        """The offer, if it is one of ours. The client may report it before the edits arrive, or after it has asked for
        something else in between."""
        offer = next((offer for offer in (self._offer, self._made) if offer is not None and offer.id == id), None)
        if offer is not None:
            self._tally.accepted(id, offer.characters if offer is self._made else self._saved(offer, edits))
            self._made = None
            self._is_passed_over = False
        return offer

    def rejected(self, id: str) -> Offer | None:
        """The offer, which no longer stands, if it is this one."""
        if self._offer is None or self._offer.id != id:
            return None
        self._tally.rejected(id)
        offer, self._offer = self._offer, None
        return offer

    def _saved(self, offer: Offer, edits: int | None) -> int:
        """The characters of the edits that have been made; if the client reports first, of those that it will make."""
        remaining = self.current()
        if remaining is None or remaining.edits != offer.edits:
            return offer.characters - (remaining.characters if remaining else 0)
        return round(offer.characters * min((edits or len(offer.edits)) / len(offer.edits), 1.0))

    def _texts_of(self, offer: Offer) -> dict[str, Snapshot]:
        """The files of an offer as they are by now, those that are not open as they are on the disk."""
        documents, workspace = self._files.documents, self._files.workspace
        snapshots = {uri: documents[uri].snapshot() for uri in offer.base if uri in documents}
        paths = [file.path for uri, file in offer.base.items() if uri not in documents]
        return snapshots | {file.uri: file for file in filter(None, map(workspace.closed, paths))}
