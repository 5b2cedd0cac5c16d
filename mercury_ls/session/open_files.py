"""One client's files: those that are open, those that were a moment ago, and what the user has just done in them."""

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import chain, islice
from typing import Protocol

from mercury_ls.code.documents import Change, Document, Snapshot
from mercury_ls.code.edits import TextEdit, applied, difference
from mercury_ls.code.files import stamp_of
from mercury_ls.code.history import History
from mercury_ls.code.positions import Encoding
from mercury_ls.completion.aftermath import Aftermath
from mercury_ls.project.workspace import Workspace
from mercury_ls.session.record import NoRecorder

LARGEST_DOCUMENT = 1 << 20
PARSE_SECONDS = 0.008
NEIGHBOURS = 8
MOST_UNSAVED_LINES = 8
"""More are not one edit, but all that lies between several."""
SAVING_SECONDS = 2.0
"""How long after a change that the file has already an editor may say that it was saved: then the user made it."""


class PrivacyRules(Protocol):
    def why_hidden(self, path: str, is_folder: bool = False) -> str | None: ...


class OpenFiles:
    """Owns the documents and their history. What privacy rules hide is never kept, but for the reason."""

    def __init__(
        self,
        privacy: PrivacyRules,
        workspace: Workspace,
        recorder: NoRecorder,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.privacy = privacy
        self.workspace = workspace
        self.recorder = recorder
        self.clock = clock
        self.history = History()
        self.aftermath = Aftermath()
        self.documents: dict[str, Document] = {}
        self.hidden: dict[str, str] = {}
        self.notebooks: dict[str, list[str]] = {}
        self.cursors: dict[str, int] = {}
        """Where in each document something was last typed or requested."""
        self.forgotten = 0
        """How often something was forgotten: what was made of the files before that must not be used again."""
        self._saved: set[str] = set()
        """The documents that were last seen to be as their files are."""
        self._reloads: dict[str, tuple[float, int]] = {}
        """When documents became what their files were already, and the mark of the history before that."""
        self._stamps: dict[str, tuple[int, int] | None] = {}
        """What the closed files that have edits were like when they were last compared with them."""
        self._paths: dict[str, str] = {}
        self._lost: dict[str, str] = {}
        self._recent: OrderedDict[str, Snapshot] = OrderedDict()

    def adopt(self, privacy: PrivacyRules | None = None, workspace: Workspace | None = None) -> None:
        """Other rules and folders, if there are any."""
        self.privacy = self.privacy if privacy is None else privacy
        self.workspace = self.workspace if workspace is None else workspace
        self.hide_again()

    def hide_again(self) -> None:
        """The rules have changed: what was kept of a file that they hide is forgotten."""
        self.forgotten += 1
        for uri in list(self._paths):
            self._hides(uri)

    def branch_switched(self) -> None:
        """Another branch was checked out: the edits and the project's definitions belong to the old one."""
        self.history.clear()
        self.aftermath.forget()
        self.forgotten += 1

    def open(self, uri: str, path: str, language: str, version: int, text: str, cell: str = "") -> None:
        """Keep the text, unless privacy rules hide the file. The cells of a notebook share the path of their file and
        are told apart by `cell`."""
        self.close(uri)
        if reason := self.privacy.why_hidden(path):
            self.hidden[uri] = reason
            return
        document = Document(uri, f"{path}{cell}", language, version, text, PARSE_SECONDS)
        self.history.reopened(document.path, document.text)
        self.documents[uri] = document
        self._paths[uri] = path
        self.recorder.opened(document)
        self._take_up_unsaved(document)
        self.focus(uri)

    def _take_up_unsaved(self, document: Document) -> None:
        """What the user has changed since the file was saved, before there was a server to tell, is an edit as well."""
        saved = self._text_on_disk(document)
        if saved == document.text:
            self._saved.add(document.uri)
        if saved is None or self.history.knows(document.path):
            return
        edit = difference(saved, document.text)
        removed = saved[edit.start : edit.end]
        is_one_edit = max(removed.count("\n"), edit.text.count("\n")) < MOST_UNSAVED_LINES
        if is_one_edit and removed.strip() != edit.text.strip():
            self.history.record(document.path, saved, edit, self.clock())

    def _text_on_disk(self, document: Document) -> str | None:
        """The text of the file as an editor shows it."""
        saved = self.workspace.read(document.path)
        if saved is None:
            return None
        saved = saved.removeprefix("\ufeff")
        return saved if "\r\n" in document.text else saved.replace("\r\n", "\n")

    def change(
        self,
        uri: str,
        version: int,
        changes: Sequence[Change],
        encoding: Encoding,
        is_offered: Callable[[str, str, TextEdit], bool],
    ) -> int | None:
        """How many characters all these changes inserted, whoever made them; None if nothing is kept of the document.
        What `is_offered` is an edit of an offer that the user has accepted, and teaches nothing new."""
        document = self.documents.get(uri)
        if document is None or (self.recorder.records and self._hides(uri)):
            return None
        time, before, typed = self.clock(), document.text, 0
        self.recorder.changed(document, version, changes, encoding)
        edits = [*document.apply(changes, version, encoding)]
        is_reload = self._is_reload(document, time)
        for edit in edits:
            self.cursors[uri] = edit.start + len(edit.text)
            typed += len(edit.text)
            if max(len(before), len(edit.text)) <= LARGEST_DOCUMENT:
                self.aftermath.changed(uri, before, edit)
                is_accepted = is_offered(uri, before, edit)
                if is_reload and not is_accepted:
                    self.history.reloaded(document.path, before, edit, time)
                else:
                    self.history.record(document.path, before, edit, time, not is_accepted)
                before = applied(before, [edit])
        return typed

    def _is_reload(self, document: Document, time: float) -> bool:
        """Whether a document that was as its file was has become what the file is by now, since another program
        changed it."""
        if document.uri not in self._saved:
            return False
        if self._text_on_disk(document) == document.text:
            self._reloads[document.uri] = time, self.history.mark
            return True
        self._saved.discard(document.uri)
        return False

    def compare_closed(self) -> None:
        """Forget what closed files no longer hold, since it was reverted on the disk, or another program changed it."""
        kept = {snapshot.path for uri, snapshot in self._recent.items() if uri not in self.documents}
        closed = (self.history.paths | kept) - {document.path for document in self.documents.values()}
        self._stamps = {path: stamp for path, stamp in self._stamps.items() if path in closed}
        for path in closed:
            stamp = stamp_of(path)
            if path in self._stamps and self._stamps[path] == stamp:
                continue
            self._stamps[path] = stamp
            saved = self.workspace.read(path) if stamp else ""
            if saved is not None:
                self._compare_with_saved(path, saved.removeprefix("\ufeff"))

    def _compare_with_saved(self, path: str, saved: str) -> None:
        texts = saved, saved.replace("\r\n", "\n")
        self.history.reopened(path, *texts)
        if any(text not in texts for text in self._closed_texts(path).values()):
            self._forget_closed(path)

    def _closed_texts(self, path: str) -> dict[str, str]:
        recent = ((uri, snapshot) for uri, snapshot in self._recent.items() if uri not in self.documents)
        return {uri: snapshot.text for uri, snapshot in recent if snapshot.path == path}

    def _forget_closed(self, path: str) -> None:
        for uri in self._closed_texts(path):
            del self._recent[uri]
            self._paths.pop(uri, None)

    def close(self, uri: str) -> None:
        self.hidden.pop(uri, None)
        self._lost.pop(uri, None)
        self.cursors.pop(uri, None)
        self._saved.discard(uri)
        self._reloads.pop(uri, None)
        self.aftermath.closed(uri)
        document = self.documents.pop(uri, None)
        if document is None:
            return
        self.recorder.closed(document)
        if len(document.text) <= LARGEST_DOCUMENT:
            self._recent[uri] = document.snapshot()
        else:
            self._recent.pop(uri, None)

    def lose(self, uri: str, reason: str) -> None:
        """The text is unknown until the editor opens the document again."""
        self.close(uri)
        self._recent.pop(uri, None)
        self._lost[uri] = f"{reason}: close the file and open it again"

    def focus(self, uri: str) -> None:
        if document := self.documents.get(uri):
            self._recent[uri] = document.snapshot()
            self._recent.move_to_end(uri)
        while len(self._recent) > max(NEIGHBOURS, len(self.documents)):
            self._recent.popitem(last=False)
        self._paths = {u: path for u, path in self._paths.items() if u in self._recent or u in self.documents}

    def _hides(self, uri: str) -> bool:
        """Whether the rules hide this document by now: then all but the reason is forgotten."""
        reason = self.privacy.why_hidden(self._paths[uri]) if uri in self._paths else None
        if not reason:
            return False
        self.history.forget((self.documents.get(uri) or self._recent[uri]).path)
        self.close(uri)
        self._recent.pop(uri, None)
        del self._paths[uri]
        self.hidden[uri] = reason
        self.forgotten += 1
        return True

    def saved(self, uri: str) -> None:
        if document := self.documents.get(uri):
            self.recorder.saved(document)
            self.workspace.changed([document.path])
            self._saved.add(uri)
            time, mark = self._reloads.pop(uri, (-SAVING_SECONDS, 0))
            if self.clock() - time < SAVING_SECONDS:
                self.history.reloaded_by_user(document.path, mark)

    def renamed(self, old: str, new: str) -> None:
        """The history moves to the new path; the text that was kept under the old one is no other file's."""
        self.history.rename(old, new)
        if reason := self.privacy.why_hidden(new):
            self.history.forget(new)
            for uri in [uri for uri, document in self.documents.items() if document.path == old]:
                self.close(uri)
                self.hidden[uri] = reason
            self.forgotten += 1
        self._forget_closed(old)
        self.workspace.removed([old])
        self.workspace.changed([new])

    # What is known of them

    def why_missing(self, uri: str) -> str:
        """Why the text of this document is not here; empty if it is. It may have become private just now."""
        self._hides(uri)
        if uri in self.hidden:
            return f"the file is private: {self.hidden[uri]}"
        if uri in self._lost:
            return self._lost[uri]
        return "" if uri in self.documents else "the document is not open"

    async def parsed(self, uri: str) -> None:
        """Wait for the tree of a long text, a slice at a time; nothing else waits meanwhile."""
        for _ in self.documents[uri].parsing():
            await asyncio.sleep(0)

    async def project_read(self, seconds: float) -> None:
        """Read the project to its end, or for so many seconds."""
        until = self.clock() + seconds
        while self.workspace.step(self.clock()) and self.clock() < until:
            await asyncio.sleep(0)

    def last_place(self) -> tuple[str, int] | None:
        """The open document that was last in use, and where in it something was last typed or requested."""
        uri = next((uri for uri in reversed(self._recent) if uri in self.documents), None)
        return (uri, self.cursor(uri)) if uri is not None else None

    def cursor(self, uri: str) -> int:
        return min(self.cursors.get(uri, 0), len(self.documents[uri].text))

    def neighbours(self, uri: str) -> list[Snapshot]:
        """The cells of the same notebook, then the other files, the most recently used first."""
        notebooks = [cells for cells in self.notebooks.values() if uri in cells]
        order = dict.fromkeys(chain(*notebooks[:1], reversed(self._recent)))
        order.pop(uri, None)
        latest = (self._latest(other) for other in order if not self._hides(other))
        return [*islice(filter(None, latest), NEIGHBOURS)]

    def _latest(self, uri: str) -> Snapshot | None:
        """An open or recent file as it is now; none of one whose text is unfit."""
        document = self.documents.get(uri)
        snapshot = document.snapshot() if document else self._recent.get(uri)
        return None if snapshot is None or unfit(snapshot.text) else snapshot

    def around(self, snapshot: Snapshot) -> list[Snapshot]:
        """The neighbours, and in place of those that are missing the nearest files of the workspace."""
        open_snapshots = self.neighbours(snapshot.uri)
        open_paths = {os.path.realpath(file.path) for file in (snapshot, *open_snapshots)}
        nearest = self.workspace.around(snapshot.path)
        closed = ((path, text) for path, text in nearest if os.path.realpath(path) not in open_paths)
        nearest_closed = islice(closed, NEIGHBOURS - len(open_snapshots))
        return [
            *open_snapshots,
            *(Document("", path, "", 0, text, tried=self.workspace.tried).snapshot() for path, text in nearest_closed),
        ]


def unfit(text: str) -> str:
    """Why nothing is suggested in this text, whatever the settings; empty if something may be."""
    if len(text) > LARGEST_DOCUMENT:
        return f"the file is larger than {LARGEST_DOCUMENT >> 20} MiB"
    return "the file is binary" if "\0" in text[:8192] else ""
