"""The search for the next edit of one client: once an edit has settled, and ahead once one was accepted."""

import asyncio
import logging
import uuid
from collections.abc import Callable
from contextlib import aclosing
from pathlib import PurePath

from msgspec.structs import replace

from mercury_engine.api import Edit, EngineError
from mercury_ls.code.diagnostics import FileDiagnostic
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import minimal
from mercury_ls.completion.offers import Answer, Offer, described, with_sent
from mercury_ls.link.client import EngineUnavailable
from mercury_ls.next_edit.cursor_line import is_elsewhere
from mercury_ls.next_edit.pipeline import NOTHING_FOLLOWS, next_edits
from mercury_ls.next_edit.region import SURE_ENOUGH
from mercury_ls.next_edit.rule import TRIMMED, in_label, without_code
from mercury_ls.session.next_questions import NextQuestions
from mercury_ls.session.open_files import OpenFiles
from mercury_ls.session.questions import Questions
from mercury_ls.session.requests import ANYONE, Asker, NextEditRequest
from mercury_ls.session.standing_offer import StandingOffer
from mercury_ls.session.stats import Tally

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
ELSEWHERE = "the next edits are in other files"
CHANGED = "the text changed while the answer was being made"
NOTED = frozenset({"argument", "parameter", "rename"})
"""Kinds of edits that may be due in files that are not searched."""
TRIES = 3
"""While other texts change: an editor may report an accepted edit file by file, and ask in between."""


class NextEdits:
    """Looks for what is put on offer. Rules need no model."""

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
        self.next_questions = NextQuestions(files, questions)
        self.standing = StandingOffer(files, tally)
        self._answered_at = 0
        self._lacked_engine = False
        """Whether the last answer was made while the engine was starting."""
        self._gap = ""
        """Why the offer may lack files, which it may have once that is different."""
        self._ahead: asyncio.Task[Answer] | None = None
        self._rejected_at = -QUIET_AFTER_REJECTION_SECONDS

    async def ask(
        self, uri: str, offset: int, invoked: bool = False, asker: Asker = ANYONE, *, rests: bool = False
    ) -> Answer:
        """What is still on offer, or a new answer once an edit that the offer does not know has settled.

        Files that are not open take part if the `asker` can show them, in a rename only if it has no `renamer`.
        """
        began = self._clock()
        self._files.compare_closed()
        self.next_questions.asked_by(asker, uri)
        request = NextEditRequest(uri, offset, invoked, asker)
        answer = await self._current_or_new(replace(request, rests=rests and self._is_left(request)))
        outcome = f"{len(answer.offer.edits)} shown" if answer.offer else without_code(answer.silence)
        self._note(uri, offset, f"next edit: {outcome}", began)
        return answer

    async def _current_or_new(self, request: NextEditRequest) -> Answer:
        if self._ahead is not None:
            await asyncio.wait([self._ahead])
        if (offer := self.standing.current()) and request.asker.leaves_to_renamer(offer):
            self.standing.drop()
        elif offer and not self.is_outdated and request.asker.shown(offer) and not _passes(offer, request):
            return self._shown(Answer((offer,), final=True), request)
        if reason := self._questions.unavailable(request.uri, request.invoked) or self._reason_to_wait(request):
            return Answer(silence=reason, final=True)
        settled = self._now() + (0.0 if request.invoked else SETTLING_SECONDS)
        await asyncio.sleep(0.0 if request.invoked else self._pause)
        answer = Answer(silence=CHANGED, final=True)
        for _ in range(TRIES):
            answer, mark = await self._answered(request, settled), self._files.history.mark
            if self.standing.is_there or self._answered_at == mark:
                break
        return answer

    async def why(self, uri: str, offset: int) -> str:
        """What is on offer, or why nothing is: looked for once more, and nothing remembered."""
        self._files.compare_closed()
        request = NextEditRequest(uri, offset, asker=self.next_questions.asker(uri))
        if reason := self._questions.unavailable(uri, invoked=False):
            return reason
        if (offer := self.standing.current()) and not self.is_outdated:
            return _with_note(f"on offer: {described(offer, uri)}", offer.note)
        if reason := self._reason_to_wait(request):
            return reason
        answer, note = await self._found(request)
        if not answer.offer and self._is_left(request):
            answer = _joined(answer, (await self._found(replace(request, rests=True)))[0])
        if answer.offer:
            ready = f"a next edit is ready: {described(answer.offer, uri)}"
            return with_sent(_with_note(ready, _joined_notes(note, answer.offer)), answer)
        reason = _silence_of(answer, note, request)
        last_edits = self.next_questions.edits[-1:] if reason.startswith(NOTHING_FOLLOWS) else ()
        return with_sent("; ".join((reason, *map(_named, last_edits))), answer)

    def engine_changed(self) -> None:
        """What was answered while the engine was starting is answered again once it is ready."""
        if self._lacked_engine and self._is_ready and not self.standing.current():
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

    @property
    def _pause(self) -> float:
        """How long to wait before anything is asked. The record of a next-edit model decides how often it is asked; one
        that only says what rules do not know is asked after them."""
        info = self._questions.engine.status.info
        rewrites = self._is_ready and info is not None and info.rewrites and not info.rewrites_lines
        return self._questions.rewrite_pause_ms / 1000 if rewrites else SETTLING_SECONDS

    async def _started(self) -> None:
        """Returns once the engine is ready or unavailable, or after a while."""
        began = self._now()
        limits = {"starting": STARTING_SECONDS, "loading": LOADING_SECONDS}
        while self._now() - began < limits.get(self._questions.engine.status.state, 0.0):
            await asyncio.sleep(POLL_SECONDS)

    @property
    def is_outdated(self) -> bool:
        """Whether there are edits, or files, that the offer does not know, or an engine that had no part in it."""
        has_read = bool(self._gap) and self._files.workspace.gap() != self._gap
        has_gained = has_read or (self._lacked_engine and self._is_ready)
        return self.standing.is_outdated or has_gained

    def _reason_to_wait(self, request: NextEditRequest) -> str:
        is_quiet = self._clock() - self._rejected_at < QUIET_AFTER_REJECTION_SECONDS
        return "a next edit was rejected a moment ago" if is_quiet and not request.invoked else ""

    async def _answered(self, request: NextEditRequest, settled: float = 0.0) -> Answer:
        """`settled` is when an edit by rule may be shown, by the loop's clock."""
        files, uri = self._files, request.uri
        await self._read(uri)
        if reason := self._questions.unavailable(uri, request.invoked):  # it may have been closed meanwhile
            return Answer(silence=reason, final=True)
        mark, document = files.history.mark, files.documents[uri]
        self._answered_at = mark
        lacked_engine = self._is_starting
        answer, note = await self._found(request)
        if request.invoked and lacked_engine and not (answer.offer and answer.offer.p_accept >= SURE_ENOUGH):
            await self._started()
            if reason := self._questions.unavailable(request.uri, request.invoked):  # it may have been closed
                return Answer(silence=reason, final=True)
            lacked_engine = self._is_starting
            answer, note = await self._found(request)
        self._lacked_engine = lacked_engine
        if answer.unshown:
            self._follow(answer.unshown)
        if answer.offer and answer.offer.kind != "region":
            await asyncio.sleep(max(settled - self._now(), 0.0))
        if answer.offer is None:
            if request.rests and (offer := self.standing.current()):
                return self._shown(Answer((offer,), final=True), request)
            self.standing.drop()
            return replace(answer, silence=_silence_of(answer, note, request))
        self._gap = files.workspace.gap() if note else ""
        offer = replace(answer.offer, id=uuid.uuid4().hex[:16], note=_joined_notes(note, answer.offer))
        edits = () if request.rests else self.next_questions.edits
        if self.standing.put(offer, mark, edits[-1].path if edits else document.path):
            self._tally.offered(offer.id, document.language, "nextEdit", self._questions.taught_by("nextEdit", offer))
        if offer := self.standing.current():
            return self._shown(replace(answer, offers=(offer,)), request)
        return Answer(silence=CHANGED, final=True)

    async def _read(self, uri: str) -> None:
        """Waits until the trees of the document and its neighbours are there, and for the project if others may know
        what was edited."""
        for open_uri in [uri, *(neighbour.uri for neighbour in self._files.neighbours(uri))]:
            if open_uri in self._files.documents:
                await self._files.parsed(open_uri)
        if self.next_questions.leads_elsewhere:
            await self._files.project_read(READING_SECONDS)

    def _shown(self, answer: Answer, request: NextEditRequest) -> Answer:
        """In the files that it changes, and in the one whose edit it follows. Elsewhere it would be in the way."""
        uri, offer = request.uri, answer.offer
        if offer is None:
            return answer
        shown = request.asker.shown(offer)
        if shown and (request.invoked or self.standing.follows(uri) or any(edit.uri == uri for edit in shown.edits)):
            return replace(answer, offers=(shown,))
        return Answer(silence=f"{ELSEWHERE}: {described(offer, uri)}", final=True)

    def _is_left(self, request: NextEditRequest) -> bool:
        """Whether the user has left the last edit for a line of which a model may know."""
        info, document = self._questions.engine.status.info, self._files.documents.get(request.uri)
        if document is None or info is None or not info.rewrites_lines:
            return False
        return is_elsewhere(document.snapshot(), request.offset, self._files.history.edits(1))

    async def _found(self, request: NextEditRequest) -> tuple[Answer, str]:
        """The answer, and what a rename would leave."""
        question, note = self.next_questions.about(request, self.standing.fresh_edits)
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

    def _follow(self, unshown: Offer) -> None:
        """What a model proposed and is not on offer is learned from as well: of several edits, from the first."""
        edit = unshown.edits[0]
        if unshown.evidence and (document := self._files.documents.get(edit.uri)):
            learn = self._questions.lesson("nextEdit", unshown.evidence)
            self._files.aftermath.generated("", unshown.base[edit.uri], document.snapshot(), edit, learn)

    def accepted(self, id: str, edits: int | None = None) -> Offer | None:
        """The offer, if it is one of ours. What follows from it is looked for at once."""
        offer = self.standing.accepted(id, edits)
        if offer is not None:
            self._leave(offer)
            self._look_ahead()
        return offer

    def rejected(self, id: str) -> bool:
        offer = self.standing.rejected(id)
        if offer is None:
            return False
        self.next_questions.refuse(offer)
        self._leave(offer)
        self._rejected_at = self._clock()
        return True

    def reported(self, snapshot: Snapshot, diagnostics: tuple[FileDiagnostic, ...]) -> bool:
        """All that the editor's other language servers say about a document; returns whether the client should ask
        again."""
        has_changed = self.next_questions.reported(snapshot, diagnostics)
        offer = self.standing.current()
        if has_changed and offer and offer.is_place:
            self.standing.drop()
        return has_changed

    def _leave(self, offer: Offer) -> None:
        self.next_questions.visited(offer)
        if offer.is_place:
            self.standing.drop()

    def _look_ahead(self) -> None:
        """What follows from an accepted edit is looked for at once: it is there when the editor asks."""
        place = self._files.last_place()
        if place and not self.standing.is_there:
            request = NextEditRequest(*place, asker=self.next_questions.asker(place[0]))
            self._ahead = asyncio.get_running_loop().create_task(self._answered(request))
            self._ahead.add_done_callback(self._looked)

    def _looked(self, task: "asyncio.Task[Answer]") -> None:
        self._ahead = None
        if not task.cancelled() and (error := task.exception()):
            log.error("the search for a next edit failed", exc_info=error)

    def end(self) -> None:
        if self._ahead is not None:
            self._ahead.cancel()


def _passes(offer: Offer, request: NextEditRequest) -> bool:
    """Whether the user has gone on to another file than those of the offer, or it only says where to go."""
    return request.rests and (offer.is_place or all(edit.uri != request.uri for edit in offer.edits))


def _joined(by_rule: Answer, at_rest: Answer) -> Answer:
    """What follows by rule, with what the model makes of the line where the user rests."""
    silence = "; ".join(filter(None, (by_rule.silence, at_rest.silence)))
    return at_rest if at_rest.offer else replace(by_rule, silence=silence)


def _named(edit: Edit) -> str:
    """Which edit it is that nothing follows from."""
    place = f"{PurePath(edit.path).name}:{edit.line + 1}"
    change = minimal(edit.before, edit.after)
    went, came = (text.strip(TRIMMED) for text in (edit.before[change.start : change.end], change.text))
    if went and came:
        return f"the last one is {in_label(went)} → {in_label(came)} at {place}"
    if went or came:
        return f"the last one {'added' if came else 'removed'} {in_label(came or went)} at {place}"
    return f"the last one is at {place}"


def _joined_notes(note: str, offer: Offer) -> str:
    """What a rename or another parameter list leaves undone: in files that are not read, and where nothing says whether
    it is meant."""
    return "; ".join(filter(None, (note if offer.kind in NOTED else "", offer.note)))


def _with_note(text: str, note: str) -> str:
    return f"{text}; {note}" if note else text


def _silence_of(answer: Answer, note: str, request: NextEditRequest) -> str:
    reasons = (note,) if request.asker.renamer and note else (answer.silence or NOTHING_FOLLOWS, note)
    return "; ".join(filter(None, reasons))
