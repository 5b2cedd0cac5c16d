"""Answers without an editor: the text comes with the request, and goes the way of one that is open in an editor."""

import os
import re
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import ChatRequest, Draft, Effort, InfillRequest, RescoringWeights, Said
from mercury_ls.code import languages
from mercury_ls.code.edits import applied
from mercury_ls.completion.gate import Gate
from mercury_ls.completion.offers import Answer, Offer
from mercury_ls.completion.suggest import Question, request, suggest, where
from mercury_ls.completion.target import Silence
from mercury_ls.link import local
from mercury_ls.link.wire import Status
from mercury_ls.next_edit.pipeline import next_edits
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.workspace import Workspace
from mercury_ls.session.open_files import OpenFiles
from mercury_ls.session.outcomes import Outcomes
from mercury_ls.session.questions import Questions
from mercury_ls.session.record import NoRecorder
from mercury_ls.session.stats import Kind, Stats, Tally
from mercury_ls.settings.schema import Settings
from mercury_ls.web.text import Text, recorded

__all__ = ["Client", "ServedEngine", "Service", "Wish", "inserted_text"]

REMEMBERED_OFFERS = 1024
"""Of all clients: what is said of an older one is no longer heard."""

Asked = TypeVar("Asked", bound=Question)


class ServedEngine(Protocol):
    """The engine as one of several clients sees it: `for_client` shares it fairly between them."""

    @property
    def status(self) -> Status: ...
    def for_client(self, name: str) -> "ServedEngine": ...
    def infill(self, request: InfillRequest) -> AsyncGenerator[Draft]: ...
    def chat(self, request: ChatRequest) -> AsyncGenerator[Said]: ...
    async def warm(self, request: InfillRequest) -> None: ...


class Client(Struct, frozen=True):
    """Who asks: `name` gets a fair share of the engine, `session` is whose caches are used again."""

    name: str = ""
    session: str = "http"


class Wish(Struct, frozen=True):
    """How it is to be answered; None stands for what the settings say. `id` is what feedback names. `invoked`: the user
    asked for it by hand, so that it is answered even where nobody who types is interrupted."""

    id: str = ""

    invoked: bool = False
    alternatives: int = 1
    effort: Effort | None = None
    deadline_ms: float | None = None
    most_tokens: int = 64


class Service:
    """Owns what requests share: settings, the engine, the bar that follows what users take, and what becomes of offers.
    Nothing of a text outlives its request."""

    def __init__(
        self,
        engine: ServedEngine,
        settings: Settings,
        *,
        stats: Stats | None = None,
        outcomes: Outcomes | None = None,
        roots: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.engine = engine
        self.settings = settings
        self.clock = clock
        self.stats = stats or Stats()
        self.stats.enabled = settings.record.counts
        self.outcomes = outcomes or Outcomes()
        self.tally = Tally(self.stats, REMEMBERED_OFFERS)
        self._characters: OrderedDict[str, int] = OrderedDict()
        self.gate = Gate(settings.suggest.minimum_probability, adapts=settings.suggest.adapt)
        privacy = Privacy(settings.privacy, roots, ignore_case=local.IGNORES_CASE)
        self.privacy = AnyRoot(privacy)
        self.workspace = Workspace(roots, privacy, settings.context)

    @property
    def model(self) -> str:
        """The name under which the engine's model is known; of a file, without its folder."""
        info = self.engine.status.info
        return re.split(r"[/\\]", info.model)[-1] if info else "mercury"

    async def complete(self, text: Text, wish: Wish, client: Client) -> AsyncGenerator[Answer]:
        """Answers as the drafts improve; the last is final."""
        questions, uri = await self._opened(text, client)
        if reason := questions.unavailable(uri, wish.invoked):
            yield Answer(silence=reason, final=True)
            return
        question = self._question(Question, questions, uri, text, wish, "inline")
        async with aclosing(questions.telling(suggest(question, questions.engine))) as answers:
            async for answer in answers:
                yield self._offered(answer, wish.id, "inline", questions) if answer.final else answer

    async def next_edit(self, text: Text, wish: Wish, client: Client) -> Answer:
        """The last answer of the pipeline: edits of this text."""
        questions, uri = await self._opened(text, client)
        if reason := questions.unavailable(uri, wish.invoked):
            return Answer(silence=reason, final=True)
        info = questions.engine.status.info
        rescoring = (info and info.rescoring) or RescoringWeights()
        question = self._question(NextQuestion, questions, uri, text, wish, "nextEdit", rescoring=rescoring)
        engine = questions.engine if questions.engine.status.state == "ready" else None
        latest = Answer(silence="no answer", final=True)
        async with aclosing(questions.telling(next_edits(question, engine))) as answers:
            async for answer in answers:
                latest = answer
        return self._offered(latest, wish.id, "nextEdit", questions)

    async def warm(self, text: Text, wish: Wish, client: Client) -> None:
        """Encodes ahead what the next request will be about."""
        questions, uri = await self._opened(text, client)
        if questions.unavailable(uri, invoked=True):
            return
        question = self._question(Question, questions, uri, text, replace(wish, invoked=True), "inline")
        span = where(question)
        if not isinstance(span, Silence):
            await questions.engine.warm(request(question, span))

    def accepted(self, id: str, characters: int | None = None) -> bool:
        """Whether this is the first that is heard of an offer. `characters`: of a part that was taken."""
        known = self.tally.accepted(id, self._characters.get(id, 0) if characters is None else characters)
        if known:
            self.gate.accepted(self.clock())
        return known

    def rejected(self, id: str) -> bool:
        known = self.tally.rejected(id)
        if known:
            self.gate.rejected(self.clock())
        return known

    def close(self) -> None:
        self.stats.write()
        self.outcomes.write()

    async def _opened(self, text: Text, client: Client) -> tuple[Questions, str]:
        """The files of a request as if they were open in an editor, with what was edited last."""
        files = OpenFiles(self.privacy, self.workspace, NoRecorder(), self.clock)
        for number, other in enumerate(text.others):
            open_in(files, f"mercury:/{number}/{other.path}", other.path, "", other.text)
        uri = f"mercury:/{text.path}"
        open_in(files, uri, text.path, text.language, text.text)
        if uri in files.documents:
            await files.parsed(uri)
            files.history = recorded(text, self.clock())
        questions = Questions(
            self.settings, self.engine.for_client(client.name), files, self.clock, outcomes=self.outcomes
        )
        questions.session = client.session
        return questions, uri

    def _question(
        self, kind: type[Asked], questions: Questions, uri: str, text: Text, wish: Wish, of: Kind, **more: Any
    ) -> Asked:
        question = questions.about(
            kind,
            questions.files.documents[uri].snapshot(),
            text.cursor,
            self.gate.bar(self.clock()),
            invoked=wish.invoked,
            alternatives=wish.alternatives,
            correction=questions.correction(of),
            most_tokens=wish.most_tokens,
            **more,
        )
        deadline = question.deadline_ms if wish.deadline_ms is None else wish.deadline_ms
        return replace(question, effort=wish.effort or question.effort, deadline_ms=deadline)

    def _offered(self, answer: Answer, id: str, kind: Kind, questions: Questions) -> Answer:
        """With ids, under which clients say what became of the offers: the first has that of its answer."""
        offers = tuple(replace(each, id=f"{id}-{n}" if n else id) for n, each in enumerate(answer.offers))
        language = questions.files.documents[next(iter(offers[0].base))].language if offers else ""
        for offer in offers:
            self.tally.offered(offer.id, language, kind, questions.learn(kind, offer.p_model))
            self._characters[offer.id] = offer.characters
        if offers:
            self.tally.answered(offers[0].id)
        while len(self._characters) > REMEMBERED_OFFERS:
            self._characters.popitem(last=False)
        if self.stats.write_now_and_then():
            self.outcomes.write()
        return replace(answer, offers=offers, final=True)


class AnyRoot:
    """The privacy rules for paths that say nothing of where their project is."""

    def __init__(self, privacy: Privacy) -> None:
        self._privacy = privacy

    def why_hidden(self, path: str, is_folder: bool = False) -> str | None:
        return self._privacy.why_hidden(os.path.join(os.sep, path), is_folder) if path else None


def open_in(files: OpenFiles, uri: str, path: str, language: str, text: str) -> None:
    known = languages.find(language, path)
    files.open(uri, path, known.id if known else language or "plaintext", 1, text)


def inserted_text(offer: Offer, text: Text) -> str:
    """What an offer puts between the text before the cursor and the text after it, the only thing that clients which
    fill a gap can insert."""
    after = text.text[text.cursor :]
    new = applied(text.text, offer.edits)
    if new.startswith(text.text[: text.cursor]) and new.endswith(after):
        return new[text.cursor : len(new) - len(after)]
    return text.text[text.cursor : offer.edit.start] + offer.edit.text
