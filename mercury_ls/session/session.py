"""One client: what it types, what it is offered, and what becomes of that."""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from mercury_ls.code.documents import Change, Snapshot
from mercury_ls.code.positions import Encoding
from mercury_ls.completion.offers import Answer, Offer, with_sent
from mercury_ls.completion.polish import is_scrap
from mercury_ls.completion.suggest import Question, alternative, joined, where
from mercury_ls.completion.target import Silence
from mercury_ls.link.client import EngineLink
from mercury_ls.names.members import NameSources
from mercury_ls.project.workspace import Workspace
from mercury_ls.session.gate import Gate
from mercury_ls.session.generations import CHANGED, Generation, Generations
from mercury_ls.session.idle import Idle
from mercury_ls.session.next_edits import NextEdits
from mercury_ls.session.on_screen import OnScreen
from mercury_ls.session.open_files import OpenFiles, PrivacyRules
from mercury_ls.session.outcomes import Outcomes
from mercury_ls.session.questions import Questions
from mercury_ls.session.record import NoRecorder
from mercury_ls.session.requests import EXPLICIT_SECONDS, InlineRequest, MenuEntry, Patience, after_selected
from mercury_ls.session.stats import Stats, Tally
from mercury_ls.settings.schema import Settings
from mercury_ls.wording import readable

log = logging.getLogger(__name__)

ALTERNATIVES_SECONDS = 0.15
"""How long the first answer to an explicit request waits for alternatives: quick engines have them by then."""
AHEAD_SECONDS = 0.05
"""How long a suggestion stands before what follows it is asked for."""


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
        self.generations = Generations()
        self.idle = Idle(self.questions, self.stats, lambda: self.generations.are_running)
        self.next_edits = NextEdits(self.files, self.questions, self.tally, self._note_next_edit)
        self.decisions: deque[str] = deque(maxlen=64)
        """The last lines of the log in which users look up why nothing was suggested."""
        self.roots: Sequence[str] = ()
        self.on_growth: Callable[[str], None] | None = None
        """Called when there is more than the client of this document was told; None if it would not ask again."""
        self.on_screen = OnScreen(self.files, self.tally)
        self._following: asyncio.Future[None] | None = None
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
        if self._following is not None:
            self._following.cancel()
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
            self._follow_text(self.files.documents[uri].snapshot(), self.files.cursor(uri))

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
        answer, patience = None, Patience(request.invoked, grows=self.on_growth is not None)
        while answer is None:
            if generation is None:
                generation, source = await self._begun(request), "model"
            if isinstance(generation, Silence):
                answer = Answer(silence=generation.reason)
                break
            with generation.awaited():
                while True:
                    answer = self._answer_of(generation, request)
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
                answer = await self._with_alternatives(generation, request, answer)
            elif request.invoked and (standing := self._still_standing(request)):
                generation, answer = standing
            if request.selected is None and generation is not None and generation.is_over:
                self._learn_from(generation)
            if generation and answer and answer.offers and request.selected is None:
                self._show(generation, answer.offers)
            elif generation and generation.is_over and generation.answer.unread and request.selected is None:
                self._follow(self._ask_until_read(generation, request))
        yield decided(replace(answer, source=source, final=True))

    async def _refusal(self, uri: str, version: int | None, *, invoked: bool) -> str:
        """Why a request gets no answer; empty if it may have one."""
        if reason := self.questions.unavailable(uri, invoked):
            return reason
        document = self.files.documents[uri]
        if document.is_slow:
            await self.files.parsed(uri)
        if version not in (None, document.version):
            return "the text changed before the request had its turn"
        if self._forgotten != self.files.forgotten:
            self._forgotten = self.files.forgotten
            self.generations.clear()
        return ""

    async def _begun(self, request: InlineRequest) -> Generation | Silence:
        if not request.invoked and (pause_ms := self.questions.pause_ms(request.snapshot, request.offset)):
            await asyncio.sleep(pause_ms / 1000)
            if not self._is_still_at(request):
                return Silence(CHANGED)
        self._follow_text(request.snapshot, request.offset)
        return self._begin(request.snapshot, request.offset, request.invoked)

    def _begin(self, snapshot: Snapshot, offset: int, invoked: bool) -> Generation | Silence:
        question = where(self.questions.completion(snapshot, offset, invoked=invoked))
        return question if isinstance(question, Silence) else self.generations.add(self._generation(question))

    def _generation(self, question: Question) -> Generation:
        return Generation(question, self.engine, self.questions.pace)

    def _answer_of(self, generation: Generation, request: InlineRequest) -> Answer | None:
        """What the generation has for a place by now, or why it has nothing; None while it is to be waited for, or if
        another should be begun."""
        current, cursor = request.now
        if self.files.documents.get(current.uri) is not request.document:
            return Answer(silence="the document was closed")
        remainder = generation.remainder(current, cursor)
        if (
            remainder is not None
            and remainder.edits
            and not generation.falls_short(remainder, request.invoked)
            and not self._is_late_scrap(generation, remainder, current, cursor)
        ):
            return self._offered(generation, remainder, request)
        if not generation.is_over:
            if generation.agrees(current, cursor):
                return None
            self._learn_from(generation)
            generation.close()
        insists = request.invoked and not generation.question.invoked
        if request.is_current and (insists or not generation.is_about(request.snapshot, request.offset)):
            return None
        return replace(generation.answer, offers=(), silence=generation.answer.silence or CHANGED)

    def _still_standing(self, request: InlineRequest) -> tuple[Generation, Answer] | None:
        """What is left of the suggestion on the screen, for who insists on more and gets nothing."""
        standing = self.on_screen.generation
        answer = self._answer_of(standing, replace(request, invoked=False)) if standing else None
        return (standing, answer) if standing and answer and answer.offers else None

    def _is_late_scrap(self, generation: Generation, remainder: Offer, current: Snapshot, cursor: int) -> bool:
        """Whether hardly anything is left of an answer that was never on the screen."""
        is_new = generation is not self.on_screen.generation and not generation.is_about(current, cursor)
        return is_new and is_scrap(remainder.edit.text, current.text[:cursor])

    def _offered(self, generation: Generation, remainder: Offer, request: InlineRequest) -> Answer:
        """The answer with what is left of its offer."""
        if not self.tally.knows(remainder.id):
            self.tally.offered(remainder.id, request.document.language, "inline")
        if request.selected is not None:
            if not request.is_current:
                return replace(generation.answer, offers=(), silence=CHANGED)
            remainder = after_selected(remainder, request.seen, request.selected)
        return replace(generation.answer, offers=(remainder,), silence="")

    async def _with_alternatives(self, generation: Generation, request: InlineRequest, answer: Answer) -> Answer:
        """Other answers are asked for together once there is a first one, which hardly waits for them. Who asks again
        at the same place gets all of them."""
        seconds = EXPLICIT_SECONDS
        if not generation.alternatives:
            seconds = ALTERNATIVES_SECONDS
            question, number = generation.question, self.settings.suggest.alternatives
            questions = (alternative(question, other) for other in range(1, number))
            generation.alternatives = list(map(self._generation, questions))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(alternative.end() for alternative in generation.alternatives))
        alternatives = [self._answer_of(other, request) for other in generation.alternatives if other.is_over]
        first = self._answer_of(generation, request) or answer
        return joined([first if first.offers else answer, *(other for other in alternatives if other is not None)])

    async def _follow_written(self, generation: Generation, shown_text: str) -> None:
        """While the user reads the beginning of an answer it goes on, and the client, which has `shown_text`, hears
        when there is more. Then what may follow it is asked for, so that it is there when the user takes this one."""
        uri = generation.question.snapshot.uri
        with generation.awaited():
            while True:
                latest, is_shown = generation.answer, generation is self.on_screen.generation
                if is_shown and latest.offer and not latest.offer.edit.text.endswith(shown_text):
                    shown_text = latest.offer.edit.text
                    self._tell_growth(uri)
                if generation.is_over:
                    break
                await generation.news(latest)
        self._learn_from(generation)
        if any(not alternative.is_over for alternative in generation.alternatives):
            await asyncio.gather(*(alternative.end() for alternative in generation.alternatives))
            self._tell_growth(uri)
        await asyncio.sleep(AHEAD_SECONDS)
        offer = generation.answer.offer
        base, document = generation.question.snapshot, self.files.documents.get(uri)
        is_left = document and generation.remainder(document.snapshot(), self.files.cursor(uri))
        if generation is self.on_screen.generation and offer and is_left and self.questions.budgets.writes_ahead:
            edit = offer.edit
            accepted_text, offset = base.changed(edit), edit.start + len(edit.text)
            if self.generations.fitting(accepted_text, offset, invoked=False) is None:
                ahead = self._begin(accepted_text, offset, invoked=False)
                if isinstance(ahead, Generation):
                    ahead.is_ahead = True
                    await ahead.end()

    async def _ask_until_read(self, late: Generation, request: InlineRequest) -> None:
        """Asks again where the model was still reading, as long as it gets on and the text stays; the client hears when
        there is something."""
        unread = math.inf
        while 0 < late.answer.unread < unread and self._is_still_at(request):
            unread = late.answer.unread
            retry = self._begin(request.snapshot, request.offset, request.invoked)
            if isinstance(retry, Silence):
                return
            with retry.awaited():
                while not (retry.stands or retry.is_over):
                    await retry.news(retry.answer)
                if retry.stands:
                    self._tell_growth(request.snapshot.uri)
                await retry.end()
            late = retry

    def _tell_growth(self, uri: str) -> None:
        if self.on_growth is not None:
            self.on_growth(uri)

    async def written(self) -> None:
        """Returns once all of what is on the screen is written."""
        if (generation := self.on_screen.generation) is not None:
            await generation.end()

    def _is_still_at(self, request: InlineRequest) -> bool:
        return request.is_current and self.files.documents.get(request.snapshot.uri) is request.document

    def _follow_text(self, current: Snapshot, cursor: int) -> None:
        """What contradicts the text is stopped; how far it was right is learned first."""
        for generation in self.generations.contradicted(current, cursor):
            self._learn_from(generation)
        self.generations.follow(current, cursor, self.files.history.edits(1))

    def _learn_from(self, generation: Generation) -> None:
        """The text that the user writes says whether it was right, shown or not."""
        lesson, document = generation.lesson(), self.files.documents.get(generation.question.snapshot.uri)
        if lesson is None or document is None:
            return
        evidence, edit = lesson
        base, current = generation.question.snapshot, document.snapshot()
        learn, is_shown = self.questions.lesson("inline", evidence), self.tally.is_shown(generation.id)
        self.files.aftermath.generated(generation.id, base, current, edit, learn, shown=is_shown)

    def _show(self, generation: Generation, offers: Sequence[Offer]) -> None:
        """It is what the user sees from now on."""
        self.on_screen.generation = generation
        self._follow(self._follow_written(generation, offers[0].edit.text))

    def _follow(self, work: Coroutine[None, None, None]) -> None:
        """Only what was asked for last is followed."""
        if self._following is not None:
            self._following.cancel()
        self._following = asyncio.ensure_future(work)

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

    async def why(self, uri: str, offset: int) -> str:
        """Why nothing is suggested here: the engine's failure at the last request, or else asked once more as if the
        user had just typed, and nothing remembered."""
        if reason := self.questions.unavailable(uri, invoked=False):
            return reason
        if self.files.documents[uri].is_slow:
            await self.files.parsed(uri)
        snapshot = self.files.documents[uri].snapshot()
        if failure := self.generations.failure(snapshot, offset):
            return failure
        question = where(self.questions.completion(snapshot, offset))
        if isinstance(question, Silence):
            return question.reason
        generation = self._generation(question)
        await generation.end()
        answer = generation.answer
        self.questions.tell(answer)
        reason = answer.silence
        if answer.offer:
            reason = f"a suggestion is ready here ({answer.offer.p_accept:.0%} likely to be accepted)"
        return with_sent(reason, answer)

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
