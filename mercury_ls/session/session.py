"""One client: what it types, what it is offered, and what becomes of that."""

import asyncio
import logging
import time
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import EngineError
from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.code.edits import TextEdit
from mercury_ls.completion.gate import Gate
from mercury_ls.completion.offers import Answer, Offer, with_sent
from mercury_ls.completion.polish import is_scrap
from mercury_ls.completion.suggest import NO_DRAFT, Question, suggest
from mercury_ls.link.client import EngineUnavailable
from mercury_ls.names.members import KnownNames
from mercury_ls.session.idle import Idle
from mercury_ls.session.next_edits import NextEdits
from mercury_ls.session.open_files import OpenFiles
from mercury_ls.session.outcomes import Outcomes
from mercury_ls.session.questions import Questions
from mercury_ls.session.stats import Stats, Tally
from mercury_ls.settings.schema import Settings
from mercury_ls.wording import readable

__all__ = ["Decision", "InlineRequest", "Session"]

log = logging.getLogger(__name__)

CHANGED = "the text changed while the model was answering"


class InlineRequest(Struct, frozen=True, kw_only=True):
    """An inline completion request; `version` is that of the text in which `offset` counts, the latest if None, and
    `selected` the entry highlighted in the editor's own menu.
    """

    uri: str
    offset: int
    version: int | None = None
    invoked: bool = False
    selected: tuple[int, int, str] | None = None


class Decision(Struct, frozen=True):
    """A line of the log in which users look up why nothing was suggested."""

    uri: str
    line: int
    outcome: str
    milliseconds: float


class Session:
    """The straight path of inline completions, with all that has to be remembered between requests."""

    def __init__(
        self,
        settings: Settings,
        engine: Any,
        privacy: Any,
        workspace: Any,
        recorder: Any,
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
        self.tally = Tally(self.stats)
        self.idle = Idle(self.questions, self.stats)
        self.gate = Gate(settings.suggest.minimum_probability, adapts=settings.suggest.adapt)
        self.next_edits = NextEdits(self.files, self.questions, self.tally)
        self.decisions: deque[Decision] = deque(maxlen=64)
        self.roots: Sequence[str] = ()
        self.accepted_count = self.rejected_count = 0
        self._last_change = ("", 0)
        self._pending: Offer | None = None
        """The suggestion on the screen, for the text in which it was first shown."""

    @property
    def settings(self) -> Settings:
        return self.questions.settings

    @property
    def engine(self) -> Any:
        return self.questions.engine

    def adopt(self, settings: Settings, privacy: Any = None, workspace: Any = None) -> None:
        """New settings, replaced whole, and other rules and folders if there are any; the documents stay, and so does
        what was learned about the user."""
        chosen = settings.suggest.minimum_probability, settings.suggest.adapt
        if chosen != (self.gate.base, self.gate.adapts):
            self.gate = Gate(chosen[0], adapts=chosen[1])
            self.next_edits.choose(settings.suggest)
        self.questions.adopt(settings)
        self.stats.enabled = settings.record.counts
        self.files.adopt(privacy, workspace)
        self.questions.names.forget()

    def know_names(self, names: KnownNames) -> None:
        """From another analyser; the one before ends in its own time."""
        before, self.questions.names = self.questions.names, names
        before.leave()

    async def end(self) -> None:
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

    def change(self, uri: str, version: int, changes: Sequence[tuple], encoding: str) -> None:
        self.idle.active.set()
        typed = self.files.change(uri, version, changes, encoding, self.next_edits.makes)
        if typed is not None:
            self._last_change = uri, typed

    def close(self, uri: str) -> None:
        self.idle.active.set()
        self.files.close(uri)
        self.questions.names.forget(uri)
        if self._pending and uri in self._pending.base:
            self._pending = None

    def lose(self, uri: str, reason: str) -> None:
        self.close(uri)
        self.files.lose(uri, reason)

    def branch_switched(self) -> None:
        self.files.branch_switched()
        self._pending = None
        self.next_edits.forget()

    # Suggestions

    async def inline(self, request: InlineRequest) -> AsyncGenerator[Answer, None]:
        """Answers as the drafts improve; the last is final, and fits the document as it is by then."""
        began = self.clock()
        self.idle.active.set()
        if request.uri in self.files.documents:
            self.files.cursors[request.uri] = request.offset
        async with aclosing(self._inline(request)) as answers:
            async for answer in answers:
                if answer.final:
                    self._decided(request, answer, began)
                yield answer

    async def _inline(self, request: InlineRequest) -> AsyncGenerator[Answer, None]:
        if reason := self.questions.unavailable(request.uri, request.invoked):
            yield Answer(silence=reason, final=True)
            return
        document = self.files.documents[request.uri]
        if document.is_new:
            await self.files.parsed(request.uri)
        if request.version not in (None, document.version):
            yield Answer(silence="the text changed before the request had its turn", final=True)
            return
        snapshot, offset = with_selected(document.snapshot(), request)
        self.questions.names.want(snapshot, offset)
        if not request.invoked and request.selected is None and (rest := self._typed_through(snapshot, offset)):
            yield Answer((rest,), source="type-through", final=True)
            return
        delay_ms = self.settings.suggest.delay_ms
        if not request.invoked and delay_ms:
            await asyncio.sleep(delay_ms / 1000)
        async with aclosing(self._answers(snapshot, offset, request)) as answers:
            async for answer in answers:
                yield self._offered(document, snapshot, offset, request, answer) if answer.final else answer

    async def _answers(self, snapshot: Snapshot, offset: int, request: InlineRequest) -> AsyncGenerator[Answer, None]:
        """What the straight path says; an engine that cannot answer is a reason like any other."""
        bar, alternatives = self.gate.bar(self.clock()), self.settings.suggest.alternatives if request.invoked else 1
        members = self.questions.names.about(snapshot, offset)
        question = self.questions.about(
            Question,
            snapshot,
            offset,
            bar,
            invoked=request.invoked,
            alternatives=alternatives,
            members=members,
            proposals=self.questions.proposals(snapshot, offset),
            correction=self.questions.correction("inline"),
        )
        try:
            async with aclosing(self.questions.telling(suggest(question, self.engine))) as answers:
                async for answer in answers:
                    yield answer
        except EngineUnavailable as error:
            yield Answer(silence=f"the engine is not available: {error}", final=True)
        except EngineError as error:
            log.warning("the engine could not answer: %s", error)
            yield Answer(silence=f"the engine could not answer: {error}", final=True)

    def _typed_through(self, snapshot: Snapshot, offset: int) -> Offer | None:
        """What is left of the suggestion on the screen, if the user is typing it."""
        pending = self._pending
        if pending is None or snapshot.uri not in pending.base:
            return None
        rest = pending.on({snapshot.uri: snapshot}, offset)
        if rest is not None and rest.edits:
            return rest
        self._pending = None
        if rest is not None:
            self.tally.typed_through(pending.id)
        elif self.tally.passed_over(pending.id):
            self.gate.rejected(self.clock(), weight=0.3)
        return None

    def _offered(
        self, document: Document, snapshot: Snapshot, offset: int, request: InlineRequest, answer: Answer
    ) -> Answer:
        """The final answer with ids, for the text as it is by now: what still fits moves along, the rest is dropped."""
        if not answer.offers:
            return answer
        offers = [replace(offer, id=uuid.uuid4().hex[:16]) for offer in answer.offers]
        for offer in offers:
            self.tally.offered(offer.id, snapshot.language, "inline", self.questions.learn("inline", offer.p_model))
        shown, now = offers, document.snapshot()
        is_current = now.version == snapshot.version
        if request.selected is not None:
            shown = [after_selected(offer, now, request.selected) for offer in offers if is_current]
        elif not is_current:
            cursor = offset + len(now.text) - len(snapshot.text)
            shown = [rest for offer in offers if (rest := rest_of(offer, now, cursor))]
        if shown and request.selected is None:
            self._pending = next(offer for offer in offers if offer.id == shown[0].id)
        return replace(answer, offers=tuple(shown), silence="" if shown else CHANGED)

    def _decided(self, request: InlineRequest, answer: Answer, began: float) -> None:
        outcome = answer.silence or f"{len(answer.offers)} shown ({answer.source})"
        document = self.files.documents.get(request.uri)
        line = document.snapshot().line_of(min(request.offset, len(document.text))) if document else 0
        milliseconds = (self.clock() - began) * 1000
        decision = Decision(request.uri, line, outcome, milliseconds)
        self.decisions.append(decision)
        log.info("%s", self.decision_line(decision))
        self.recorder.answered(request, answer, milliseconds)
        if answer.offer:
            self.tally.answered(answer.offer.id)

    def decision_line(self, decision: Decision) -> str:
        where = readable(decision.uri, self.roots)
        return f"{where}:{decision.line + 1}: {decision.outcome} ({decision.milliseconds:.1f} ms)"

    async def why(self, uri: str, offset: int) -> str:
        """Why nothing is suggested here: asked once more as if the user had just typed, and nothing remembered."""
        if reason := self.questions.unavailable(uri, invoked=False):
            return reason
        if self.files.documents[uri].is_new:
            await self.files.parsed(uri)
        request, latest = InlineRequest(uri=uri, offset=offset), NO_DRAFT
        async with aclosing(self._answers(self.files.documents[uri].snapshot(), offset, request)) as answers:
            async for answer in answers:
                latest = answer
        reason = latest.silence
        if latest.offer:
            reason = f"a suggestion is ready here ({latest.offer.p_accept:.0%} likely to be accepted)"
        return with_sent(reason, latest)

    # What became of them

    def accepted(self, id: str, edits: int | None = None) -> None:
        """`edits` is how many of the edits of an offer were made, if the client lets its user leave some out."""
        if edits == 0:
            self.rejected(id)
        elif self.next_edits.accepted(id, edits):
            self.accepted_count += 1
            self.recorder.accepted(id)
        elif self._accepted(id):
            self._drop(id)

    def partially_accepted(self, id: str, length: int) -> None:
        """Taking some words of a suggestion accepts it, and the rest stays on offer."""
        self._accepted(id, length)

    def _accepted(self, id: str, length: int | None = None) -> bool:
        """Whether this is the first that is heard of it."""
        if not self.tally.accepted(id, self._just_inserted(id)):
            return False
        self.accepted_count += 1
        self.gate.accepted(self.clock())
        self.recorder.accepted(id, length)
        return True

    def _just_inserted(self, id: str) -> int:
        """How many characters accepting a suggestion has just inserted: what the user typed of it does not count."""
        pending = self._pending
        if pending is None or pending.id != id:
            return self._last_change[1]
        (uri, typed), edit = self._last_change, pending.edit
        is_made = uri == edit.uri and self.files.documents[uri].text != pending.base[uri].text
        return min(typed, len(edit.text)) if is_made else len(edit.text)

    def rejected(self, id: str) -> None:
        if not self.next_edits.rejected(id):
            if not self.tally.rejected(id):
                return
            self.gate.rejected(self.clock())
            self._drop(id)
        self.rejected_count += 1
        self.recorder.rejected(id)

    def _drop(self, id: str) -> None:
        if self._pending and self._pending.id == id:
            self._pending = None


def with_selected(snapshot: Snapshot, request: InlineRequest) -> tuple[Snapshot, int]:
    """The text as it would be with the entry of the editor's menu accepted."""
    if request.selected is None:
        return snapshot, request.offset
    start, end, text = request.selected
    return snapshot.changed(TextEdit(start, end, text)), start + len(text)


def after_selected(offer: Offer, now: Snapshot, selected: tuple[int, int, str]) -> Offer:
    """The offer as the protocol wants it: it begins with the selected entry and replaces that entry's range."""
    start, end, text = selected
    return replace(offer, edits=(TextEdit(start, end, text + offer.edit.text, now.uri),), base={now.uri: now})


def rest_of(offer: Offer, now: Snapshot, cursor: int) -> Offer | None:
    """What is left of an offer that the user has typed into meanwhile, if that is worth showing."""
    rest = offer.on({now.uri: now}, cursor)
    return rest if rest and rest.edits and not is_scrap(rest.edit.text, now.text[:cursor]) else None
