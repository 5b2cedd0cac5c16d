"""The next edit of one session: asked for when an edit has settled, kept, moved along, offered to every face."""

import asyncio
import logging
import uuid
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Edit, EngineError, Worth
from mercury_ls.code.documents import Change, Document, Snapshot
from mercury_ls.completion.gate import Fading, Gate
from mercury_ls.completion.pending import CLOSED, PendingEdits, SpanEdit, summary
from mercury_ls.link.client import EngineUnavailable
from mercury_ls.next_edit.imports import Diagnosed
from mercury_ls.next_edit.modules import Project
from mercury_ls.next_edit.pipeline import NextAnswer, NextQuestion, next_edits
from mercury_ls.next_edit.propagation import travelling
from mercury_ls.next_edit.renames import may_use, sought
from mercury_ls.next_edit.uses import knows_imports
from mercury_ls.settings.schema import SuggestSettings
from mercury_ls.wording import counted

if TYPE_CHECKING:
    from mercury_ls.session.session import Session

__all__ = ["Proposals", "Proposed"]

log = logging.getLogger(__name__)

SETTLING_SECONDS = 0.1
QUIET_AFTER_REJECTION_SECONDS = 5.0
READING_SECONDS = 0.5
"""A rename soon after the start waits for the rest of the project."""
MOST_CLOSED = 4
NOTHING_FOLLOWS = "nothing follows from the last edits"
TRIES = 3
"""While other texts change: an editor may tell of an accepted edit file by file, and ask in between."""
MOST_RENAMED = 256
"""Files that are not open and may use what was renamed."""


class Proposed(Struct, frozen=True):
    """An offer, or why there is none."""

    offer: PendingEdits | None = None
    silence: str = ""


class Proposals:
    """Owns the one next edit on offer. Rules need no model, and a weak one takes nothing from what they say."""

    def __init__(self, session: "Session"):
        self._session = session
        self._closed_too = True
        self._renamer = ""
        self.choose(session.settings.suggest)
        self._patience = Fading(1.5, 0.8, 0.5, 30.0)
        self._offer: PendingEdits | None = None
        self._answered_at = 0
        self._has_gap = False
        """Whether the offer might name more files once the project has been read."""
        self._made: PendingEdits | None = None
        self._known = 0
        self._is_passed_over = False
        """Whether the last offer was left alone: what follows from edits since then comes before it."""
        self._ahead: asyncio.Task[Proposed] | None = None
        self._diagnosed: dict[str, tuple[int, tuple[Diagnosed, ...]]] = {}
        self._rejected_at = -QUIET_AFTER_REJECTION_SECONDS

    def choose(self, settings: SuggestSettings) -> None:
        """New settings: what was learnt of the user by the old ones is of no use."""
        self._gate = Gate(settings.minimum_probability, adapts=settings.adapt)

    async def ask(
        self, uri: str, offset: int, invoked: bool = False, *, closed: bool = True, renamer: str = ""
    ) -> Proposed:
        """What is on offer still, or a new answer once an edit that the offer does not know has settled. Files that are
        not open have a part in it if the client can show them: `closed`; in a rename not where another language server
        of the client, the `renamer`, does that better."""
        self._closed_too, self._renamer = closed, renamer
        if self._ahead is not None:
            await asyncio.wait([self._ahead])
        if (offer := self.current()) and not self.is_outdated and self._is_showable(offer):
            return Proposed(offer)
        if reason := self._session.unavailable(uri, invoked) or self._reason_to_wait(invoked):
            return Proposed(silence=reason)
        if not invoked:
            await asyncio.sleep(SETTLING_SECONDS * self._patience.at(self._session.clock()))
        for _ in range(TRIES):
            found, mark = await self._answered(uri, offset, invoked), self._session.history.mark
            if found.offer is not None or self._answered_at == mark:
                break
        return found

    async def why(self, uri: str, offset: int) -> str:
        """What is on offer, or why nothing is: looked for once more, and nothing is remembered of it."""
        if reason := self._session.unavailable(uri, invoked=False):
            return reason
        if (offer := self.current()) and not self.is_outdated:
            return f"on offer: {offer.label} ({summary(offer.edits, uri)})"
        if reason := self._reason_to_wait(invoked=False):
            return reason
        answer, _, _ = await self._found(uri, offset, invoked=False)
        if answer.edits:
            return f"a next edit is ready: {answer.label} ({summary(spans(answer), uri)})"
        return answer.silence or NOTHING_FOLLOWS

    def diagnosed(self, uri: str, version: int, found: tuple[Diagnosed, ...]) -> None:
        """What the editor's language servers say of this version of a document."""
        self._diagnosed = {u: said for u, said in self._diagnosed.items() if u in self._session.documents}
        self._diagnosed[uri] = version, found

    def _is_showable(self, offer: PendingEdits) -> bool:
        return self._closed_too or any(edit.uri in self._session.documents for edit in offer.edits)

    @property
    def is_outdated(self) -> bool:
        """Whether there are edits, or files, that the offer does not know."""
        return self._session.history.since(self._known) > 0 or (self._has_gap and not self._session.workspace.gap())

    def forget(self) -> None:
        self._offer = None

    def _reason_to_wait(self, invoked: bool) -> str:
        since = self._session.clock() - self._rejected_at
        return "" if invoked or since >= QUIET_AFTER_REJECTION_SECONDS else "the last next edit was rejected just now"

    async def _answered(self, uri: str, offset: int, invoked: bool) -> Proposed:
        session = self._session
        for each in [uri, *(neighbour.uri for neighbour in session.neighbours(uri))]:
            if each in session.documents:
                await session.parsed(session.documents[each])
        if travelling(session.history.edits(session.settings.context.recent_edits, own=True)):
            await session.project_read(READING_SECONDS)
        if reason := session.unavailable(uri, invoked):  # it may have been closed while the edit settled
            return Proposed(silence=reason)
        mark = self._answered_at = session.history.mark
        answer, question, note = await self._found(uri, offset, invoked)
        if not answer.edits:
            self._offer = None
            reasons = (note,) if self._renamer and note else (answer.silence or NOTHING_FOLLOWS, note)
            return Proposed(silence="; ".join(filter(None, reasons)))
        self._known, self._is_passed_over = mark, True
        self._has_gap = bool(note and session.workspace.gap())
        snapshots = {each.uri: each for each in (question.snapshot, *question.others)}
        offer = offered(answer, snapshots, note if answer.kind == "rename" else "")
        if (standing := self.current()) is None or not set(offer.edits) <= set(standing.edits):
            self._offer = offer
            session.tally.offered(offer.id, question.snapshot.language, "nextEdit")
        else:
            self._offer = replace(standing, note=offer.note)
        return Proposed(self.current(), "the text changed while the answer was made")

    async def _found(self, uri: str, offset: int, invoked: bool) -> tuple[NextAnswer, NextQuestion, str]:
        """The answer, what was asked, and what a rename would leave."""
        session = self._session
        question, note = self._question(uri, offset, invoked)
        answer = NextAnswer(silence="no answer")
        await asyncio.sleep(0)
        engine = session.engine if session.engine.status.state == "ready" else None
        try:
            async with aclosing(next_edits(question, engine)) as answers:
                async for latest in answers:
                    answer = latest
        except (EngineUnavailable, EngineError) as error:
            log.info("the engine had no part in a next edit: %s", error)
        return answer, question, note

    def _question(self, uri: str, offset: int, invoked: bool) -> tuple[NextQuestion, str]:
        session = self._session
        snapshot = session.documents[uri].snapshot()
        others, note = self._others(snapshot)
        info = session.engine.status.info
        version, said = self._diagnosed.get(uri, (snapshot.version, ()))
        question = NextQuestion(
            snapshot=snapshot,
            offset=offset,
            history=session.history,
            related=session.related(snapshot, offset),
            settings=session.settings.suggest,
            budget=session.budget,
            session=session.id,
            bar=self._gate.bar(session.clock()),
            invoked=invoked,
            effort=session.settings.engine.effort,
            deadline_ms=session.settings.engine.deadline_ms,
            recent_edits=session.settings.context.recent_edits,
            fresh=session.history.since(self._known) if self._is_passed_over else 0,
            others=others,
            project=Project((), session.workspace.read, session.workspace.exists, self._where),
            diagnosed=said if version == snapshot.version else (),
            worth=(info and info.worth) or Worth(),
        )
        return question, note

    def _others(self, snapshot: Snapshot) -> tuple[tuple[Snapshot, ...], str]:
        """The other open files, closed ones that know what was just changed by its name, and what a rename leaves."""
        session = self._session
        edits = session.history.edits(session.settings.context.recent_edits, own=True)
        beside = [each for each in session.neighbours(snapshot.uri) if each.uri in session.documents]
        beside = [*beside, *self._edited({snapshot.path, *(each.path for each in beside)}, edits)]
        wanted = sought(edits, {each.path: each for each in (snapshot, *beside)})
        opened = [*beside, *self._mentioning({snapshot.uri, *(each.uri for each in beside)}, wanted)]
        known = {document.path for document in session.documents.values()}
        paths = [path for path in session.workspace.mentioning(wanted, snapshot.path) if path not in known]
        note = self._left_by_a_rename(snapshot, paths) if wanted else ""
        if not self._closed_too:
            return tuple(opened), note
        if self._renamer or not knows_imports(snapshot):
            paths = []
        names = [frozenset({name}) for name in travelling(edits)]
        also = (path for path in session.workspace.mentioning(names, snapshot.path) if path not in known)
        paths = list(dict.fromkeys([*paths[:MOST_RENAMED], *(() if wanted else islice(also, MOST_CLOSED))]))
        texts = ((path, session.workspace.text(path)) for path in paths)
        read = ((path, text) for path, text in texts if text and is_asked(text, wanted or names))
        closed = (closed_file(path, text) for path, text in read)
        return (*opened, *closed), note

    def _where(self, name: str, near: str) -> list[str] | None:
        """The files in which a name stands, if all are known."""
        workspace = self._session.workspace
        return None if workspace.gap() else workspace.mentioning([frozenset({name})], near)

    def _edited(self, but: set[str], edits: Sequence[Edit]) -> Iterator[Snapshot]:
        """The open documents that the user's last edits were of: what is learned from an edit depends on its file."""
        paths = {edit.path for edit in edits} - but
        for uri, document in self._session.documents.items():
            if document.path in paths and uri not in self._session.hidden:
                yield document.snapshot()

    def _mentioning(self, but: set[str], wanted: Sequence[frozenset[str]]) -> Iterator[Snapshot]:
        """The open documents in which all the names of one of these sets stand."""
        for uri, document in self._session.documents.items():
            if uri not in but and uri not in self._session.hidden and is_asked(document.text, wanted):
                yield document.snapshot()

    def _left_by_a_rename(self, snapshot: Snapshot, paths: Sequence[str]) -> str:
        """Who offers a part of a rename says so. `paths` are the files that are not open and may use the name."""
        gap = self._session.workspace.gap()
        if self._renamer and (paths or gap):
            return f"{self._renamer} can rename this in the whole project: undo and use rename"
        if paths and not self._closed_too:
            return f"{counted(len(paths), 'file')} that are not open may use this name too"
        if paths and not knows_imports(snapshot):
            return (
                f"{counted(len(paths), 'file')} may use this name too: what they import is not known in this language"
            )
        if len(paths) > MOST_RENAMED:
            return f"{counted(len(paths) - MOST_RENAMED, 'more file')} may use this name"
        return f"more files may use this name: {gap}" if gap else ""

    def makes(self, uri: str, before: str, change: Change) -> bool:
        """Whether this change of a document is one of the edits on offer: accepting makes them."""
        return self._offer is not None and uri in self._offer.texts and self._offer.makes(uri, before, change)

    def current(self) -> PendingEdits | None:
        """The offer in the texts as they are now; typing over it, or finishing it by hand, ends it.

        Whoever makes a part of it is still about it; any other edit may lead elsewhere.
        """
        if (before := self._offer) is not None:
            documents = self._session.documents
            snapshots = {uri: documents[uri].snapshot() for uri in before.texts if uri in documents}
            snapshots |= self._closed(before)
            self._offer = before.on(snapshots)
            if self._offer is None and before.is_made_in(snapshots):
                self._made = before
                self._session.tally.typed_through(before.id)
            elif self._offer is not None and len(self._offer.edits) < len(before.edits):
                self._known = self._session.history.mark
        return self._offer

    def _closed(self, offer: PendingEdits) -> dict[str, Snapshot]:
        """The closed files of an offer as they are on the disk by now."""
        paths = [path_of(uri) for uri in offer.texts if uri not in self._session.documents]
        texts = ((path, self._session.workspace.text(path)) for path in paths)
        return {(file := closed_file(path, text)).uri: file for path, text in texts if text is not None}

    def accepted(self, id: str, edits: int | None = None) -> bool:
        """The client may tell before the edits arrive, or after it has asked for something else in between."""
        offer = next((each for each in (self._offer, self._made) if each is not None and each.id == id), None)
        if offer is None:
            return False
        if offer is self._made:
            self._made = None
            self._session.tally.accepted(id, offer.characters)
        else:
            self._session.tally.accepted(id, self._saved(offer, edits))
            self._made = None
        self._is_passed_over = False
        now = self._session.clock()
        self._gate.accepted(now)
        self._patience.accepted(now)
        self._look_ahead()
        return True

    def _saved(self, offer: PendingEdits, edits: int | None) -> int:
        """The characters of those edits that have been made; of all that the client says it makes if it tells first."""
        left = self.current()
        if left is None or left.edits != offer.edits:
            return offer.characters - (left.characters if left else 0)
        return round(offer.characters * min((edits or len(offer.edits)) / len(offer.edits), 1.0))

    def _look_ahead(self) -> None:
        """What comes after an accepted edit is sought at once: it is there when the editor asks."""
        place = self._session.last_place()
        if place and self._offer is None:
            self._ahead = asyncio.get_running_loop().create_task(self._answered(*place, invoked=False))
            self._ahead.add_done_callback(self._looked)

    def _looked(self, task: "asyncio.Task[Proposed]") -> None:
        self._ahead = None
        if not task.cancelled() and (error := task.exception()):
            log.error("the search for a next edit failed", exc_info=error)

    def end(self) -> None:
        if self._ahead is not None:
            self._ahead.cancel()

    def rejected(self, id: str) -> bool:
        if self._offer is None or self._offer.id != id:
            return False
        self._session.tally.rejected(id)
        self._offer = None
        self._rejected_at = self._session.clock()
        self._gate.rejected(self._rejected_at)
        self._patience.rejected(self._rejected_at)
        return True


@lru_cache(maxsize=16)
def closed_file(path: str, text: str) -> Snapshot:
    return Document(Path(path).as_uri(), path, "", CLOSED, text).snapshot()


def path_of(uri: str) -> str:
    return url2pathname(urlsplit(uri).path)


def spans(answer: NextAnswer) -> tuple[SpanEdit, ...]:
    return tuple(SpanEdit(e.uri, e.start, e.end, e.text, e.display) for e in answer.edits)


def is_asked(text: str, wanted: Sequence[frozenset[str]]) -> bool:
    return any(may_use(text, names) for names in wanted)


def offered(answer: NextAnswer, snapshots: dict[str, Snapshot], note: str = "") -> PendingEdits:
    edits = spans(answer)
    touched = {edit.uri: snapshots[edit.uri] for edit in edits}
    return PendingEdits(
        uuid.uuid4().hex[:16],
        answer.label,
        answer.p_accept,
        edits,
        {uri: snapshot.text for uri, snapshot in touched.items()},
        {uri: snapshot.version for uri, snapshot in touched.items()},
        note,
    )
