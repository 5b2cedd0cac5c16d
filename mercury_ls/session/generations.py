"""What an engine is writing, and has written, for the places where the user types: it outlives the requests for it."""

import asyncio
import logging
import uuid
from collections.abc import Callable, Generator, Sequence, Set
from contextlib import aclosing, contextmanager, suppress

from msgspec.structs import replace

from mercury_engine.api import Edit, EngineError
from mercury_ls.code.differences import WORD
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.edits import TextEdit, difference, may_become
from mercury_ls.completion.budgets import EnginePace
from mercury_ls.completion.judge import Evidence
from mercury_ls.completion.offers import Answer, Offer
from mercury_ls.completion.polish import in_the_files_style
from mercury_ls.completion.suggest import Filling, Question, suggest
from mercury_ls.link.client import BusyError, EngineUnavailable

log = logging.getLogger(__name__)

LINGER_SECONDS = 1.0
"""An engine that nobody waits for writes on for so long: most clients cancel at each key, and ask again at once."""
MOST_KEPT = 16
CHANGED = "the text changed while the model was answering"


class Generation:
    """One answer of the engine, from its beginning to its end, to a contradiction, or until nobody waits for it.

    Its offers are edits of the snapshot in its question. What stands on offer only grows until the last draft: a
    suggestion that changes while it is read is worse than a late one.
    """

    def __init__(self, question: Question, engine: Filling, pace: EnginePace) -> None:
        self.id = uuid.uuid4().hex[:16]
        self.question = question
        self.answer = Answer()
        self.alternatives: Sequence[Generation] = ()
        self.failure = ""
        """Why the engine could not answer."""
        self.is_ahead = False
        """Whether it is for the text as it will be once the suggestion on the screen is taken."""
        self._waiting = 0
        self._is_taught = False
        self._news = asyncio.Event()
        self._writing = asyncio.ensure_future(self._write(engine, pace))

    @property
    def is_over(self) -> bool:
        return self.answer.final

    @property
    def stands(self) -> bool:
        """Whether something of it may be shown, although more may follow."""
        return bool(self.answer.offers) and (self.is_over or self.question.grows)

    @contextmanager
    def awaited(self) -> Generator[None]:
        """The engine writes on while somebody waits, and for a moment afterwards."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if not (self._waiting or self.is_over):
                asyncio.get_running_loop().call_later(LINGER_SECONDS, self._leave)

    async def news(self, latest: Answer, until: float | None = None) -> None:
        """Returns once the answer is another than the `latest` that the caller has seen, or at a time of the loop."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                while self.answer is latest and not self.is_over:
                    await self._news.wait()

    async def end(self) -> None:
        with self.awaited():
            while not self.is_over:
                await self._news.wait()

    def agrees(self, current: Snapshot, cursor: int) -> bool:
        """Whether it may still be what the user is typing: what was typed since it began and what it has written are
        the same as far as both go."""
        base = self.question.snapshot
        if base.uri != current.uri:
            return False
        if cursor < self.question.offset:
            return self.is_ahead and base.text.startswith(current.text[:cursor])
        draft = self.answer.draft if self.question.grows or self.is_over else ""
        edit = self._replacing(in_the_files_style(draft, base))
        return may_become(edit, base.text, current.text, cursor)

    def remainder(self, current: Snapshot, cursor: int) -> Offer | None:
        """What is left of its offer in this text, None where the text conflicts with it or nothing is on offer."""
        offer = self.answer.offer if self.stands else None
        return offer.on({current.uri: current}, cursor) if offer and current.uri in offer.base else None

    def falls_short(self, remainder: Offer, invoked: bool) -> bool:
        """Whether who asks by hand is owed more than what is left of it: it was cut for somebody who typed."""
        return invoked and not self.question.invoked and self.is_over and remainder.is_cut

    def is_about(self, current: Snapshot, cursor: int) -> bool:
        """Whether it was asked for exactly this place of this text."""
        question = self.question
        return (
            cursor == question.offset
            and current.uri == question.snapshot.uri
            and current.text == question.snapshot.text
        )

    def is_far(self, current: Snapshot, cursor: int) -> bool:
        """Whether nothing of it is left in its document, and no few keys on the cursor's line, or the one above, lead
        to its text."""
        base = self.question.snapshot
        if base.uri != current.uri or self.remainder(current, cursor):
            return False
        start = current.line_start(max(current.line_of(min(cursor, len(current.text))) - 1, 0))
        return difference(current.text, base.text).start < start

    def is_outdated(self, changed: Snapshot, gone: Set[str]) -> bool:
        """True if it is for another document than the changed one, and says nothing or one of the words that are gone:
        what it was written from may have changed."""
        if self.question.snapshot.uri == changed.uri:
            return False
        offer = self.answer.offer
        return offer is None or not gone.isdisjoint(WORD.findall(offer.edit.text))

    def lesson(self) -> tuple[Evidence, TextEdit] | None:
        """What is to be learned from: what was known of the answer, and what it would have written. None if that is
        nothing, or was learned from already."""
        answer = self.answer
        offer = answer.offer or answer.unshown
        evidence = offer.evidence if offer else answer.evidence
        if self._is_taught or evidence is None or not answer.draft.strip():
            return None
        self._is_taught = True
        text = in_the_files_style(answer.draft, self.question.snapshot)
        return evidence, offer.edit if offer else self._replacing(text)

    def _replacing(self, text: str) -> TextEdit:
        target = self.question.target
        return TextEdit(target.start, target.end, text)

    def close(self) -> None:
        """Stops the engine within one pass. What it has written stays known: the user may come back to it."""
        for alternative in self.alternatives:
            alternative.close()
        if not self.is_over:
            self._writing.cancel()
            self._finish(CHANGED)

    def _leave(self) -> None:
        if not self._waiting:
            self.close()

    async def _write(self, engine: Filling, pace: EnginePace) -> None:
        clock = asyncio.get_running_loop().time
        began = first = clock()
        first_tokens = 0.0
        try:
            async with aclosing(suggest(self.question, engine)) as answers:
                async for answer in answers:
                    if first == began and answer.draft.strip():
                        first, first_tokens = clock(), self._tokens_of(answer)
                    self._update(grown(self.answer, answer) if self.question.grows else answer)
                    await asyncio.sleep(0)  # those who wait see each draft
            if first > began:
                later = self._tokens_of(self.answer) - first_tokens
                pace.measured((first - began) * 1000, later, clock() - first)
        except EngineUnavailable as error:
            self.failure = f"the engine is not available: {error}"
        except BusyError as error:
            self.failure = str(error)
        except EngineError as error:
            log.warning("the engine could not answer: %s", error)
            self.failure = f"the engine could not answer: {error}"
        except Exception as error:
            log.exception("the engine's answer could not be used")
            self.failure = f"the engine's answer could not be used ({type(error).__name__})"
        if self.failure:
            self._finish(self.failure)

    def _tokens_of(self, answer: Answer) -> float:
        return answer.tokens or len(answer.draft) / self.question.budget.characters_per_token

    def _finish(self, reason: str) -> None:
        """What stands already stays on offer."""
        self._update(replace(self.answer, silence="" if self.stands else reason, step=0, unread=0, final=True))

    def _update(self, answer: Answer) -> None:
        if self.is_over:
            return
        self.answer = replace(answer, offers=tuple(replace(offer, id=self.id) for offer in answer.offers))
        news, self._news = self._news, asyncio.Event()
        news.set()


def grown(before: Answer, after: Answer) -> Answer:
    """The later answer; but where it offers less and is not the last word, with what stood on offer before."""
    if before.offer is None or (after.offer and after.offer.edit.text.startswith(before.offer.edit.text)):
        return after
    return after if after.final and after.offer else replace(after, offers=before.offers, silence="")


class Generations:
    """Owns the generations of one client: what is being written, and what was written last."""

    def __init__(self) -> None:
        self._recent: list[Generation] = []

    @property
    def are_running(self) -> bool:
        return any(not generation.is_over for generation in self._recent)

    def add(self, generation: Generation) -> Generation:
        self._recent.append(generation)
        for oldest in self._recent[:-MOST_KEPT]:
            oldest.close()
        del self._recent[:-MOST_KEPT]
        return generation

    def fitting(self, current: Snapshot, cursor: int, invoked: bool) -> Generation | None:
        """The newest from which a request at this place can be answered, at once if there is one, else later."""
        fitting = [generation for generation in self._recent if answers(generation, current, cursor, invoked)]
        return max(fitting, key=lambda generation: (generation.is_over, self._recent.index(generation)), default=None)

    def failure(self, current: Snapshot, cursor: int) -> str:
        """Why the engine could not answer the last request at this place of this text; empty if it did."""
        about = (generation for generation in reversed(self._recent) if generation.is_about(current, cursor))
        return next((generation.failure for generation in about), "")

    def follow(self, current: Snapshot, cursor: int, edits: Sequence[Edit]) -> None:
        """This document has changed: what contradicts it is stopped, what is far from it is forgotten, and so is what
        was answered elsewhere with words that these edits have taken away, or with nothing."""
        gone = {word for edit in edits for word in {*WORD.findall(edit.before)}.difference(WORD.findall(edit.after))}
        for generation in self.contradicted(current, cursor):
            generation.close()
        self._drop(
            lambda generation: (
                generation.is_over and (generation.is_far(current, cursor) or generation.is_outdated(current, gone))
            )
        )

    def contradicted(self, current: Snapshot, cursor: int) -> list[Generation]:
        """Those that are being written for something else than what this document says by now."""
        return [
            generation
            for generation in self._recent
            if generation.question.snapshot.uri == current.uri
            and not generation.is_over
            and not generation.agrees(current, cursor)
        ]

    def clear(self) -> None:
        while self._recent:
            self._recent.pop().close()

    def leave(self, uri: str) -> None:
        """The document is closed."""
        self._drop(lambda generation: generation.question.snapshot.uri == uri)

    def refuse(self, id: str) -> None:
        """The user does not want it."""
        self._drop(lambda generation: generation.id == id)

    def _drop(self, is_dropped: Callable[[Generation], bool]) -> None:
        for generation in list(filter(is_dropped, self._recent)):
            generation.close()
            self._recent.remove(generation)


def answers(generation: Generation, current: Snapshot, cursor: int, invoked: bool) -> bool:
    """Whether a request at this place can be answered from the generation. One that was silent at this very place is an
    answer too, unless it was late, or the user insists; so is one that was cut to its likely beginning."""
    if generation.is_ahead and cursor < generation.question.offset:
        return False
    if not generation.is_over:
        return generation.agrees(current, cursor)
    if remainder := generation.remainder(current, cursor):
        return bool(remainder.edits) and not generation.falls_short(remainder, invoked)
    insists = invoked and not generation.question.invoked
    is_silent = generation.answer.step > 0 and not generation.answer.offers
    return is_silent and not insists and generation.is_about(current, cursor)
