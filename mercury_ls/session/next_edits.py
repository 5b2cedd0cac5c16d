"""The next edit of one client: looked for once an edit has settled, kept while the text around it changes."""

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from functools import lru_cache
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname  # pyright: ignore[reportDeprecated]: only of the module behind it on Windows

from msgspec.structs import replace

from mercury_engine.api import Edit, EngineError
from mercury_ls.code.diagnostics import FileDiagnostic
from mercury_ls.code.documents import CLOSED, Document, Snapshot
from mercury_ls.code.edits import TextEdit, widened
from mercury_ls.code.modules import Project
from mercury_ls.completion.budgets import LONGEST_DEADLINE_MS
from mercury_ls.completion.offers import Answer, Offer, described, with_sent
from mercury_ls.completion.suggest import asked_modes
from mercury_ls.link.client import EngineUnavailable
from mercury_ls.next_edit.kinds.rename.uses import knows_imports
from mercury_ls.next_edit.pipeline import next_edits
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.next_edit.region import SURE_ENOUGH
from mercury_ls.next_edit.renamed import may_use, renamed_symbols, sought
from mercury_ls.session.open_files import OpenFiles
from mercury_ls.session.patience import Patience
from mercury_ls.session.questions import Questions
from mercury_ls.session.requests import ANYONE, Asker, NextEditRequest
from mercury_ls.session.stats import Tally
from mercury_ls.wording import counted

__all__ = ["NextEdits"]

log = logging.getLogger(__name__)

SETTLING_SECONDS = 0.1
"""How long an edit that follows by rule waits for more keys. A next-edit model is asked at once, unless that may cost
money: what it says of a text that has changed since is discarded."""
STARTING_SECONDS, LOADING_SECONDS = 10.0, 180.0
"""How long somebody who asked by hand waits for an engine that starts, and for one that says that it is loading."""
POLL_SECONDS = 0.05
QUIET_AFTER_REJECTION_SECONDS = 5.0
READING_SECONDS = 0.5
"""How long a rename soon after the start waits for the rest of the project to be read."""
MOST_CLOSED = 4
NOTHING_FOLLOWS = "nothing follows from the last edits"
ELSEWHERE = "the next edits are in other files"
CHANGED = "the text changed while the answer was being made"
TRIES = 3
"""While other texts change: an editor may report an accepted edit file by file, and ask in between."""
MOST_REFUSED = 64
MOST_RENAMED = 256
"""Files that are not open and may use what was renamed."""


class NextEdits:
    """Owns the one next edit on offer. Rules need no model, and a weak model takes nothing from what they find."""

    def __init__(
        self,
        files: OpenFiles,
        questions: Questions,
        tally: Tally,
        note: Callable[[str, int, str, float], object] = lambda uri, offset, outcome, began: None,
    ):
        """`note` is told what was decided where, for those who ask, and when the question came."""
        self._files = files
        self._questions = questions
        self._tally = tally
        self._note = note
        self._clock = questions.clock
        self._patience = Patience()
        self._refused: deque[tuple[str, str, str]] = deque(maxlen=MOST_REFUSED)
        self._offer: Offer | None = None
        self._origin = ""
        """The file of the edit that the offer followed."""
        self._answered_at = 0
        self._lacked_engine = False
        """Whether the last answer was made while the engine was starting."""
        self._has_gap = False
        """Whether the offer might name more files once the project has been read."""
        self._made: Offer | None = None
        self._known = 0
        self._is_passed_over = False
        """Whether the last offer was left alone: what follows from edits since then comes before it."""
        self._ahead: asyncio.Task[Answer] | None = None
        self._askers: dict[str, Asker] = {}
        self._diagnosed: dict[str, tuple[int, tuple[FileDiagnostic, ...]]] = {}
        self._rejected_at = -QUIET_AFTER_REJECTION_SECONDS

    async def ask(self, uri: str, offset: int, invoked: bool = False, asker: Asker = ANYONE) -> Answer:
        """What is still on offer, or a new answer once an edit that the offer does not know has settled.

        Files that are not open take part if the `asker` can show them, in a rename only if it has no `renamer`.
        """
        began = self._clock()
        self._askers = {u: last for u, last in self._askers.items() if u in self._files.documents} | {uri: asker}
        answer = await self._current_or_new(NextEditRequest(uri, offset, invoked, asker))
        outcome = f"{len(answer.offer.edits)} shown" if answer.offer else answer.silence
        self._note(uri, offset, f"next edit: {outcome}", began)
        return answer

    def asker(self, uri: str, default: Asker = ANYONE) -> Asker:
        """What the client last said of itself in this document, for requests that do not say it."""
        return self._askers.get(uri, default)

    async def _current_or_new(self, request: NextEditRequest) -> Answer:
        if self._ahead is not None:
            await asyncio.wait([self._ahead])
        if (offer := self.current()) and not self.is_outdated and request.asker.shown(offer):
            return self._shown(Answer((offer,), final=True), request)
        if reason := self._questions.unavailable(request.uri, request.invoked) or self._reason_to_wait(request):
            return Answer(silence=reason, final=True)
        settled = self._now() + (0.0 if request.invoked else SETTLING_SECONDS * self._patience.at(self._clock()))
        await asyncio.sleep(0.0 if request.invoked else self._pause(settled - self._now()))
        answer = Answer(silence=CHANGED, final=True)
        for _ in range(TRIES):
            answer, mark = await self._answered(request, settled), self._files.history.mark
            if self._offer is not None or self._answered_at == mark:
                break
        return answer

    async def why(self, uri: str, offset: int) -> str:
        """What is on offer, or why nothing is: looked for once more, and nothing remembered."""
        request = NextEditRequest(uri, offset, asker=self.asker(uri))
        if reason := self._questions.unavailable(uri, invoked=False):
            return reason
        if (offer := self.current()) and not self.is_outdated:
            return f"on offer: {described(offer, uri)}"
        if reason := self._reason_to_wait(request):
            return reason
        answer, note = await self._found(request)
        if answer.offer:
            return with_sent(f"a next edit is ready: {described(answer.offer, uri)}", answer)
        return with_sent(silence_of(answer, note, request), answer)

    def engine_changed(self) -> None:
        """What was answered while the engine was starting is answered again once it is ready."""
        if self._lacked_engine and self._is_ready and not self.current():
            self._look_ahead()

    @property
    def _is_ready(self) -> bool:
        return self._questions.engine.status.state == "ready"

    @property
    def _is_starting(self) -> bool:
        return self._questions.engine.status.state in ("starting", "loading")

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    def _pause(self, settling: float) -> float:
        """How long to wait before anything is asked, where an edit settles within so many seconds. The record of a
        next-edit model decides how often it is asked."""
        info = self._questions.engine.status.info
        if not (self._is_ready and "region" in asked_modes(info)):
            return settling
        return max(self._questions.rewrite_pause_ms / 1000, settling - SETTLING_SECONDS, 0.0)

    async def _started(self) -> None:
        """Returns once the engine is ready or unavailable, or after a while."""
        began = self._now()
        limits = {"starting": STARTING_SECONDS, "loading": LOADING_SECONDS}
        while self._now() - began < limits.get(self._questions.engine.status.state, 0.0):
            await asyncio.sleep(POLL_SECONDS)

    def diagnosed(self, uri: str, version: int, diagnostics: tuple[FileDiagnostic, ...]) -> None:
        """What the editor's language servers say about this version of a document."""
        self._diagnosed = {u: reported for u, reported in self._diagnosed.items() if u in self._files.documents}
        self._diagnosed[uri] = version, diagnostics

    @property
    def is_outdated(self) -> bool:
        """Whether there are edits, or files, that the offer does not know, or an engine that had no part in it."""
        has_gained = (self._has_gap and not self._files.workspace.gap()) or (self._lacked_engine and self._is_ready)
        return self._files.history.has_changed_since(self._known) or has_gained

    def forget(self) -> None:
        self._offer = None

    def _reason_to_wait(self, request: NextEditRequest) -> str:
        is_quiet = self._clock() - self._rejected_at < QUIET_AFTER_REJECTION_SECONDS
        return "a next edit was rejected a moment ago" if is_quiet and not request.invoked else ""

    async def _answered(self, request: NextEditRequest, settled: float = 0.0) -> Answer:
        """`settled` is when an edit by rule may be shown, by the loop's clock."""
        files, uri = self._files, request.uri
        for neighbour_uri in [uri, *(neighbour.uri for neighbour in files.neighbours(uri))]:
            if neighbour_uri in files.documents:
                await files.parsed(neighbour_uri)
        if renamed_symbols(self._edits):
            await files.project_read(READING_SECONDS)
        if reason := self._questions.unavailable(uri, request.invoked):  # it may have been closed meanwhile
            return Answer(silence=reason, final=True)
        mark, language = files.history.mark, files.documents[uri].language
        self._answered_at = mark
        answer, note = await self._found(request)
        self._lacked_engine = self._is_starting
        if request.invoked and self._is_starting and not (answer.offer and answer.offer.p_accept >= SURE_ENOUGH):
            await self._started()
            answer, note = await self._found(request)
            self._lacked_engine = self._is_starting
        if answer.unshown:
            self._follow(answer.unshown)
        if answer.offer and answer.offer.kind != "region":
            await asyncio.sleep(max(settled - self._now(), 0.0))
        if answer.offer is None:
            self._offer = None
            return replace(answer, silence=silence_of(answer, note, request))
        self._known, self._is_passed_over = mark, True
        self._has_gap = bool(note and files.workspace.gap())
        offer = replace(answer.offer, id=uuid.uuid4().hex[:16], note=joined_notes(note, answer.offer))
        if (standing := self.current()) is None or not set(offer.edits) <= set(standing.edits):
            self._offer = offer
            self._origin = self._edits[-1].path if self._edits else ""
            self._tally.offered(offer.id, language, "nextEdit", self._questions.taught_by("nextEdit", offer))
        else:
            self._offer = replace(standing, note=offer.note)
        if offer := self.current():
            return self._shown(replace(answer, offers=(offer,)), request)
        return Answer(silence=CHANGED, final=True)

    def _shown(self, answer: Answer, request: NextEditRequest) -> Answer:
        """In the files that it changes, and in the one whose edit it follows. Elsewhere it would be in the way."""
        document, offer = self._files.documents.get(request.uri), answer.offer
        if offer is None:
            return answer
        follows = document is not None and document.path == self._origin
        shown = request.asker.shown(offer)
        if shown and (request.invoked or follows or any(edit.uri == request.uri for edit in shown.edits)):
            return replace(answer, offers=(shown,))
        return Answer(silence=f"{ELSEWHERE}: {described(offer, request.uri)}", final=True)

    @property
    def _edits(self) -> tuple[Edit, ...]:
        """The user's own."""
        return self._files.history.edits(self._questions.settings.context.recent_edits, own=True)

    async def _found(self, request: NextEditRequest) -> tuple[Answer, str]:
        """The answer, and what a rename would leave."""
        question, note = self._question(request)
        answer = Answer(silence="no answer")
        await asyncio.sleep(0)
        engine = self._questions.engine if self._is_ready else None
        left_out = self._questions.engine.status.reason if self._is_starting else ""
        try:
            async with aclosing(next_edits(question, engine)) as answers:
                async for latest in answers:
                    answer = latest
                    self._questions.tell(answer)
        except (EngineUnavailable, EngineError) as error:
            log.info("the engine had no part in a next edit: %s", error)
            left_out = str(error)
        if left_out and not answer.offer:
            answer = replace(answer, silence=f"{answer.silence}; {left_out}", final=True)
        return answer, note

    def _question(self, request: NextEditRequest) -> tuple[NextQuestion, str]:
        files = self._files
        snapshot = files.documents[request.uri].snapshot()
        neighbours, note = self._others(snapshot, request.asker)
        info = self._questions.engine.status.info
        version, diagnostics = self._diagnosed.get(request.uri, (snapshot.version, ()))
        question = self._questions.about(snapshot, request.offset, invoked=request.invoked)
        next_question = NextQuestion.of(
            replace(question, judge=self._questions.judge("nextEdit"), deadline_ms=self._deadline_ms),
            refused=frozenset(self._refused),
            fresh=files.history.since(self._known) if self._is_passed_over else 0,
            neighbours=neighbours,
            project=Project((), files.workspace.read, files.workspace.exists, self._where),
            diagnostics=diagnostics if version == snapshot.version else (),
            rescoring=info.rescoring if info else None,
        )
        return next_question, note

    @property
    def _deadline_ms(self) -> float:
        """A rewrite is of use as long as the text stays as it is: only the user's own limit ends it early."""
        budgets, settings = self._questions.budgets, self._questions.settings
        is_long = "region" in asked_modes(self._questions.engine.status.info) and not settings.engine.deadline_ms
        return LONGEST_DEADLINE_MS if is_long else budgets.deadline_ms

    def _others(self, snapshot: Snapshot, asker: Asker) -> tuple[tuple[Snapshot, ...], str]:
        """The other open files, closed ones that mention what was just changed, and what a rename leaves."""
        files, workspace, edits = self._files, self._files.workspace, self._edits
        neighbours = [neighbour for neighbour in files.neighbours(snapshot.uri) if neighbour.uri in files.documents]
        neighbours = [*neighbours, *self._edited({snapshot.path, *(neighbour.path for neighbour in neighbours)}, edits)]
        name_sets = sought(edits, {file.path: file for file in (snapshot, *neighbours)})
        open_snapshots = [
            *neighbours,
            *self._mentioning({snapshot.uri, *(neighbour.uri for neighbour in neighbours)}, name_sets),
        ]
        open_paths = {document.path for document in files.documents.values()}
        paths = [path for path in workspace.mentioning(name_sets, snapshot.path) if path not in open_paths]
        note = self._left_by_a_rename(snapshot, paths, asker) if name_sets else ""
        if not asker.closed:
            return tuple(open_snapshots), note
        if asker.renamer or not knows_imports(snapshot):
            paths = []
        names = [frozenset({name}) for name in renamed_symbols(edits)]
        definition_paths = (path for path in workspace.mentioning(names, snapshot.path) if path not in open_paths)
        paths = list(
            dict.fromkeys([*paths[:MOST_RENAMED], *(() if name_sets else islice(definition_paths, MOST_CLOSED))])
        )
        texts = ((path, workspace.text(path)) for path in paths)
        read = ((path, text) for path, text in texts if text and is_asked(text, name_sets or names))
        return (*open_snapshots, *(closed_file(path, text) for path, text in read)), note

    def _where(self, name: str, near: str) -> list[str] | None:
        """The files in which a name occurs, if all are known."""
        workspace = self._files.workspace
        return None if workspace.gap() else workspace.mentioning([frozenset({name})], near)

    def _edited(self, but: set[str], edits: Sequence[Edit]) -> Iterator[Snapshot]:
        """The open documents of the user's last edits: what is learned from an edit depends on its file."""
        paths = {edit.path for edit in edits} - but
        return (document.snapshot() for document in self._files.documents.values() if document.path in paths)

    def _mentioning(self, but: set[str], name_sets: Sequence[frozenset[str]]) -> Iterator[Snapshot]:
        """The open documents in which all the names of one of these sets occur."""
        documents = self._files.documents.items()
        return (
            document.snapshot() for uri, document in documents if uri not in but and is_asked(document.text, name_sets)
        )

    def _left_by_a_rename(self, snapshot: Snapshot, paths: Sequence[str], asker: Asker) -> str:
        """An offer of only a part of a rename says so. `paths` are closed files that may use the name."""
        gap = self._files.workspace.gap()
        if asker.renamer and (paths or gap):
            return f"{asker.renamer} can rename this in the whole project: undo your edit and use its rename"
        if paths and not asker.closed:
            return f"{counted(len(paths), 'closed file')} may use this name too"
        if paths and not knows_imports(snapshot):
            return f"{counted(len(paths), 'file')} may use this name too: imports in this language are not understood"
        if len(paths) > MOST_RENAMED:
            return f"{counted(len(paths) - MOST_RENAMED, 'more file')} may use this name"
        return f"more files may use this name: {gap}" if gap else ""

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

    def _follow(self, unshown: Offer) -> None:
        """What a model proposed and is not on offer is learned from as well: of several edits, from the first."""
        edit = unshown.edits[0]
        if unshown.evidence and (document := self._files.documents.get(edit.uri)):
            learn = self._questions.lesson("nextEdit", unshown.evidence)
            self._files.aftermath.generated("", unshown.base[edit.uri], document.snapshot(), edit, learn)

    def _texts_of(self, offer: Offer) -> dict[str, Snapshot]:
        """The files of an offer as they are by now, those that are not open as they are on the disk."""
        documents, workspace = self._files.documents, self._files.workspace
        snapshots = {uri: documents[uri].snapshot() for uri in offer.base if uri in documents}
        paths = [path_of(uri) for uri in offer.base if uri not in documents]
        closed = [closed_file(path, text) for path in paths if (text := workspace.text(path)) is not None]
        return snapshots | {snapshot.uri: snapshot for snapshot in closed}

    def accepted(self, id: str, edits: int | None = None) -> Offer | None:
        """The offer, if it is one of ours. The client may report it before the edits arrive, or after it has asked for
        something else in between."""
        offer = next((offer for offer in (self._offer, self._made) if offer is not None and offer.id == id), None)
        if offer is None:
            return None
        self._tally.accepted(id, offer.characters if offer is self._made else self._saved(offer, edits))
        self._made = None
        self._is_passed_over = False
        self._patience.accepted(self._clock())
        self._look_ahead()
        return offer

    def _saved(self, offer: Offer, edits: int | None) -> int:
        """The characters of the edits that have been made; if the client reports first, of those that it will make."""
        remaining = self.current()
        if remaining is None or remaining.edits != offer.edits:
            return offer.characters - (remaining.characters if remaining else 0)
        return round(offer.characters * min((edits or len(offer.edits)) / len(offer.edits), 1.0))

    def _look_ahead(self) -> None:
        """What follows from an accepted edit is looked for at once: it is there when the editor asks."""
        place = self._files.last_place()
        if place and self._offer is None:
            request = NextEditRequest(*place, asker=self.asker(place[0]))
            self._ahead = asyncio.get_running_loop().create_task(self._answered(request))
            self._ahead.add_done_callback(self._looked)

    def _looked(self, task: "asyncio.Task[Answer]") -> None:
        self._ahead = None
        if not task.cancelled() and (error := task.exception()):
            log.error("the search for a next edit failed", exc_info=error)

    def end(self) -> None:
        if self._ahead is not None:
            self._ahead.cancel()

    def rejected(self, id: str) -> bool:
        if self._offer is None or self._offer.id != id:
            return False
        self._tally.rejected(id)
        if self._offer.evidence:
            texts = {uri: base.text for uri, base in self._offer.base.items()}
            self._refused += [(edit.uri, *widened(texts[edit.uri], edit)) for edit in self._offer.edits]
        self._offer = None
        self._rejected_at = self._clock()
        self._patience.rejected(self._rejected_at)
        return True


@lru_cache(maxsize=16)
def closed_file(path: str, text: str) -> Snapshot:
    return Document(Path(path).as_uri(), path, "", CLOSED, text).snapshot()


def path_of(uri: str) -> str:
    return url2pathname(urlsplit(uri).path)  # pyright: ignore[reportDeprecated]


def joined_notes(note: str, offer: Offer) -> str:
    """What a rename leaves undone: in files that are not read, and where nothing says whether it is meant."""
    return "; ".join(filter(None, (note, offer.note))) if offer.kind == "rename" else ""


def is_asked(text: str, name_sets: Sequence[frozenset[str]]) -> bool:
    return any(may_use(text, names) for names in name_sets)


def silence_of(answer: Answer, note: str, request: NextEditRequest) -> str:
    reasons = (note,) if request.asker.renamer and note else (answer.silence or NOTHING_FOLLOWS, note)
    return "; ".join(filter(None, reasons))
