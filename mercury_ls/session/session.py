"""One client: what it types, what it is offered, and what becomes of that."""

import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial

from msgspec.structs import replace

from mercury_ls.code.documents import Change
from mercury_ls.code.positions import Encoding
from mercury_ls.completion.offers import Answer
from mercury_ls.completion.target import Silence
from mercury_ls.link.client import EngineLink
from mercury_ls.names.members import NameSources
from mercury_ls.project.workspace import Workspace
from mercury_ls.session.completions import Completions
from mercury_ls.session.following import Following
from mercury_ls.session.gate import Gate
from mercury_ls.session.idle import Idle
from mercury_ls.session.next_edits import NextEdits
from mercury_ls.session.on_screen import OnScreen
from mercury_ls.session.open_files import OpenFiles, PrivacyRules
from mercury_ls.session.outcomes import Outcomes
from mercury_ls.session.questions import Questions
from mercury_ls.session.record import NoRecorder
from mercury_ls.session.requests import InlineRequest, MenuEntry, Patience
from mercury_ls.session.stats import Stats, Tally
from mercury_ls.settings.schema import Settings
from mercury_ls.wording import readable

log = logging.getLogger(__name__)


class Session:
    """The straight path of inline completions, with all that has to be remembered between requests."""

    def __init__(
        self,
        settings: Settings,
        engine: EngineLink,
        privacy: PrivacyRules,
        workspace: Workspace,
        recorder: NoRecorder,
        clock: Callable[[], float] = time.monotonic,
        stats: Stats | None = None,
        outcomes: Outcomes | None = None,
    ):
        self.recorder = recorder
        self.clock = clock
        self.files = OpenFiles(privacy, workspace, recorder, clock)
        self.questions = Questions(settings, engine, self.files, clock, outcomes)
        self.stats = stats or Stats()
        self.stats.enabled = settings.record.counts
        self.stats.model = lambda: self.questions.model
        self.tally = Tally(self.stats)
        self.on_screen = OnScreen(self.files, self.tally)
        self.completions = Completions(self.files, self.questions, self.tally, self.on_screen)
        self.generations = self.completions.generations
        self.following = Following(self.completions)
        self.idle = Idle(self.questions, self.stats, lambda: self.generations.are_running)
        self.next_edits = NextEdits(self.files, self.questions, self.tally, self._note_next_edit)
        self.decisions: deque[str] = deque(maxlen=64)
        """The last lines of the log in which users look up why nothing was suggested."""
        self.roots: Sequence[str] = ()
        self._forgotten = 0

    @property
    def settings(self) -> Settings:
        return self.questions.settings

    @property
    def engine(self) -> Gate:
        return self.questions.engine

    def adopt(
        self, settings: Settings, privacy: PrivacyRules | None = None, workspace: Workspace | None = None
    ) -> None:
        """New settings, replaced whole, and other rules and folders if there are any; the documents stay, and so does
        what was learned about the user."""
        self.questions.adopt(settings)
        self.generations.clear()
        self.on_screen.generation = None
        self.stats.enabled = settings.record.counts
        self.files.adopt(privacy, workspace)
        self.questions.names.forget()
        self.idle.active.set()

    def know_names(self, names: NameSources) -> None:
        """From another analyser; the one before ends in its own time."""
        before, self.questions.names = self.questions.names, names
        before.leave()

    async def end(self) -> None:
        self.generations.clear()
        self.following.end()
        self.next_edits.end()
        await self.questions.names.close()
        self.recorder.close()
        self.stats.write()
        self.questions.outcomes.write()
        await self.engine.close()

    # Documents

    def open(self, uri: str, path: str, language: str, version: int, text: str, cell: str = "") -> None:
        self.close(uri)
        self.files.open(uri, path, language, version, text, cell)

    def change(self, uri: str, version: int, changes: Sequence[Change], encoding: Encoding) -> None:
        self.idle.active.set()
        typed = self.files.change(uri, version, changes, encoding, self.next_edits.standing.makes)
        if typed is not None:
            self.on_screen.typed(uri, typed)
            self.completions.follow_text(self.files.documents[uri].snapshot(), self.files.cursor(uri))

    def close(self, uri: str) -> None:
        self.idle.active.set()
        self.files.close(uri)
        self.questions.names.forget(uri)
        self.generations.leave(uri)
        self.on_screen.leave(uri)

    def lose(self, uri: str, reason: str) -> None:
        self.close(uri)
        self.files.lose(uri, reason)

    def branch_switched(self) -> None:
        self.files.branch_switched()
        self.generations.clear()
        self.on_screen.generation = None
        self.next_edits.standing.drop()

    # Suggestions

    async def inline(
        self,
        uri: str,
        offset: int,
        *,
        version: int | None = None,
        invoked: bool = False,
        selected: MenuEntry | None = None,
    ) -> AsyncGenerator[Answer]:
        """Drafts while nothing can be shown yet, then the answer, which fits the document as it is by then. `version`
        is that of the text in which `offset` counts, the latest if None."""
        decided = partial(self._decided, uri, offset, invoked=invoked, began=self.clock())
        self.idle.active.set()
        self.files.compare_closed()
        if uri in self.files.documents:
            self.files.cursors[uri] = offset
        if reason := await self._refusal(uri, version, invoked=invoked):
            yield decided(Answer(silence=reason, final=True))
            return
        request = InlineRequest.at(self.files.documents[uri], offset, invoked=invoked, selected=selected)
        self.questions.names.want(request.snapshot, request.offset)
        self.on_screen.follow(request.snapshot, request.offset)
        generation, source = self.generations.fitting(request.snapshot, request.offset, request.invoked), "type-through"
        answer, patience = None, Patience(request.invoked, grows=self.following.on_growth is not None)
        while answer is None:
            if generation is None:
                generation, source = await self.completions.begun(request), "model"
            if isinstance(generation, Silence):
                answer = Answer(silence=generation.reason)
                break
            with generation.awaited():
                while True:
                    answer = self.completions.answer_of(generation, request)
                    if generation.is_over or (answer and not (answer.offers and patience.lasts())):
                        break
                    latest = generation.answer
                    if latest.step:
                        self.questions.tell(latest)
                        yield latest
                    await generation.news(latest, patience.until if answer else None)
            if answer is None:  # it was for less text than there is by now, or cut
                generation = None
            elif answer.offers and request.invoked:
                answer = await self.completions.with_alternatives(generation, request, answer)
            elif request.invoked and (standing := self.completions.still_standing(request)):
                generation, answer = standing
            if request.selected is None and generation is not None and generation.is_over:
                self.completions.learn_from(generation)
            if generation and answer and answer.offers and request.selected is None:
                self.following.show(generation, answer.offers[0].edit.text)
            elif generation and generation.is_over and generation.answer.unread and request.selected is None:
                self.following.read_on(generation, request)
        yield decided(replace(answer, source=source, final=True))

    async def _refusal(self, uri: str, version: int | None, *, invoked: bool) -> str:
        """Why a request gets no answer; empty if it may have one."""
        if reason := await self.completions.refusal(uri, invoked=invoked):
            return reason
        if version not in (None, self.files.documents[uri].version):
            return "the text changed before the request had its turn"
        if self._forgotten != self.files.forgotten:
            self._forgotten = self.files.forgotten
            self.generations.clear()
        return ""

    async def written(self) -> None:
        """Returns once all of what is on the screen is written."""
        if (generation := self.on_screen.generation) is not None:
            await generation.end()

    def _decided(self, uri: str, offset: int, answer: Answer, *, invoked: bool, began: float) -> Answer:
        answer = replace(answer, final=True)
        self.questions.tell(answer)
        outcome = answer.silence or f"{len(answer.offers)} shown ({answer.source})"
        milliseconds = self._note(uri, offset, outcome, began)
        self.recorder.answered(uri, offset, answer, milliseconds, invoked=invoked)
        if answer.offer:
            self.on_screen.answered(answer.offer)
        return answer

    def _note_next_edit(self, uri: str, offset: int, outcome: str, began: float) -> None:
        """To ask is activity as well: what the answer lacked is read now."""
        self.idle.active.set()
        self._note(uri, offset, outcome, began)

    def _note(self, uri: str, offset: int, outcome: str, began: float) -> float:
        """Keeps and logs what was decided; returns how many milliseconds that took."""
        document = self.files.documents.get(uri)
        line = document.snapshot().line_of(min(offset, len(document.text))) if document else 0
        milliseconds = (self.clock() - began) * 1000
        self.decisions.append(f"{readable(uri, self.roots)}:{line + 1}: {outcome} ({milliseconds:.1f} ms)")
        log.info("%s", self.decisions[-1])
        return milliseconds

    # What became of them

    def shown(self, id: str) -> None:
        """The client reports that the user sees it."""
        self.on_screen.shown(id)

    def accepted(self, id: str, edits: int | None = None) -> None:
        """`edits` is how many of the edits of an offer were made, if the client lets its user leave some out."""
        if edits == 0:
            self.rejected(id)
        elif self.next_edits.accepted(id, edits) or self.on_screen.accepted(id):
            self.recorder.accepted(id)

    def partially_accepted(self, id: str, length: int) -> None:
        """Taking some words of a suggestion accepts it, and the rest stays on offer."""
        if self.on_screen.accepted(id, length):
            self.recorder.accepted(id, length)

    def rejected(self, id: str) -> None:
        if not self.next_edits.rejected(id):
            if not self.on_screen.rejected(id):
                return
            self.generations.refuse(id)
        self.recorder.rejected(id)
