"""What is offered at a place: an answer that the engine writes or has written, as far as it fits the text by now."""

import asyncio
from contextlib import suppress

from msgspec.structs import replace

from mercury_ls.code.documents import Snapshot
from mercury_ls.completion.offers import Answer, Offer, with_sent
from mercury_ls.completion.polish import is_scrap
from mercury_ls.completion.suggest import Question, alternative, joined, where
from mercury_ls.completion.target import Silence
from mercury_ls.session.generations import CHANGED, Generation, Generations
from mercury_ls.session.on_screen import OnScreen
from mercury_ls.session.open_files import OpenFiles
from mercury_ls.session.questions import Questions
from mercury_ls.session.requests import EXPLICIT_SECONDS, InlineRequest, after_selected
from mercury_ls.session.stats import Tally

ALTERNATIVES_SECONDS = 0.15
"""How long the first answer to an explicit request waits for alternatives: quick engines have them by then."""


class Completions:
    """The generations of one client, begun and read; what the user writes instead tells whether they were right."""

    def __init__(self, files: OpenFiles, questions: Questions, tally: Tally, on_screen: OnScreen) -> None:
        self.files = files
        self.questions = questions
        self.tally = tally
        self.on_screen = on_screen
        self.generations = Generations()

    async def begun(self, request: InlineRequest) -> Generation | Silence:
        if not request.invoked and (pause_ms := self.questions.pause_ms(request.snapshot, request.offset)):
            await asyncio.sleep(pause_ms / 1000)
            if not self.is_still_at(request):
                return Silence(CHANGED)
        self.follow_text(request.snapshot, request.offset)
        return self.begin(request.snapshot, request.offset, request.invoked)

    async def refusal(self, uri: str, *, invoked: bool) -> str:
        """Why nothing is asked about this document; empty if something may be, and then its tree is there."""
        reason = self.questions.unavailable(uri, invoked)
        if not reason and self.files.documents[uri].is_slow:
            await self.files.parsed(uri)
        return reason

    def begin(self, snapshot: Snapshot, offset: int, invoked: bool) -> Generation | Silence:
        generation = self._asked(snapshot, offset, invoked)
        return generation if isinstance(generation, Silence) else self.generations.add(generation)

    def begin_behind(self, generation: Generation) -> Generation | None:
        """What may follow an offer, if the user were to take it; None if that is asked for already, or not worth it."""
        offer, base = generation.answer.offer, generation.question.snapshot
        document = self.files.documents.get(base.uri)
        if offer is None or document is None or not self.questions.budgets.writes_ahead:
            return None
        accepted_text, offset = base.changed(offer.edit), offer.edit.start + len(offer.edit.text)
        is_left = generation.remainder(document.snapshot(), self.files.cursor(base.uri)) is not None
        if not is_left or self.generations.fitting(accepted_text, offset, invoked=False) is not None:
            return None
        ahead = self.begin(accepted_text, offset, invoked=False)
        if isinstance(ahead, Silence):
            return None
        ahead.is_ahead = True
        return ahead

    def _asked(self, snapshot: Snapshot, offset: int, invoked: bool) -> Generation | Silence:
        question = where(self.questions.completion(snapshot, offset, invoked=invoked))
        return question if isinstance(question, Silence) else self._generation(question)

    def _generation(self, question: Question) -> Generation:
        return Generation(question, self.questions.engine, self.questions.pace)

    def answer_of(self, generation: Generation, request: InlineRequest) -> Answer | None:
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
            self.learn_from(generation)
            generation.close()
        insists = request.invoked and not generation.question.invoked
        if request.is_current and (insists or not generation.is_about(request.snapshot, request.offset)):
            return None
        return replace(generation.answer, offers=(), silence=generation.answer.silence or CHANGED)

    def still_standing(self, request: InlineRequest) -> tuple[Generation, Answer] | None:
        """What is left of the suggestion on the screen, for who insists on more and gets nothing."""
        standing = self.on_screen.generation
        answer = self.answer_of(standing, replace(request, invoked=False)) if standing else None
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

    async def with_alternatives(self, generation: Generation, request: InlineRequest, answer: Answer) -> Answer:
        """Other answers are asked for together once there is a first one, which hardly waits for them. Who asks again
        at the same place gets all of them."""
        seconds = EXPLICIT_SECONDS
        if not generation.alternatives:
            seconds = ALTERNATIVES_SECONDS
            question, number = generation.question, self.questions.settings.suggest.alternatives
            questions = (alternative(question, other) for other in range(1, number))
            generation.alternatives = list(map(self._generation, questions))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(alternative.end() for alternative in generation.alternatives))
        alternatives = [self.answer_of(other, request) for other in generation.alternatives if other.is_over]
        first = self.answer_of(generation, request) or answer
        return joined([first if first.offers else answer, *(other for other in alternatives if other is not None)])

    def is_still_at(self, request: InlineRequest) -> bool:
        return request.is_current and self.files.documents.get(request.snapshot.uri) is request.document

    def follow_text(self, current: Snapshot, cursor: int) -> None:
        """What contradicts the text is stopped; how far it was right is learned first."""
        for generation in self.generations.contradicted(current, cursor):
            self.learn_from(generation)
        self.generations.follow(current, cursor, self.files.history.edits(1))

    def learn_from(self, generation: Generation) -> None:
        """The text that the user writes says whether it was right, shown or not."""
        lesson, document = generation.lesson(), self.files.documents.get(generation.question.snapshot.uri)
        if lesson is None or document is None:
            return
        evidence, edit = lesson
        base, current = generation.question.snapshot, document.snapshot()
        learn, is_shown = self.questions.lesson("inline", evidence), self.tally.is_shown(generation.id)
        self.files.aftermath.generated(generation.id, base, current, edit, learn, shown=is_shown)

    async def why(self, uri: str, offset: int) -> str:
        """Why nothing is suggested here: the engine's failure at the last request, or else asked once more as if the
        user had just typed, and nothing remembered."""
        if reason := await self.refusal(uri, invoked=False):
            return reason
        snapshot = self.files.documents[uri].snapshot()
        if failure := self.generations.failure(snapshot, offset):
            return failure
        generation = self._asked(snapshot, offset, invoked=False)
        if isinstance(generation, Silence):
            return generation.reason
        await generation.end()
        answer = generation.answer
        self.questions.tell(answer)
        reason = answer.silence
        if answer.offer:
            reason = f"a suggestion is ready here ({answer.offer.p_accept:.0%} likely to be accepted)"
        return with_sent(reason, answer)
