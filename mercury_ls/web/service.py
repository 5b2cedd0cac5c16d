"""Answers without an editor: the text comes with the request, and is treated as if open in an editor."""

import asyncio
import os
import re
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, nullcontext
from typing import Protocol, cast

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import ChatReply, ChatRequest, Effort, Gap
from mercury_ls.code import languages
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.edits import applied
from mercury_ls.completion.offers import Answer, Offer
from mercury_ls.completion.suggest import OPINION_MS, Question, gap_at, suggest, where
from mercury_ls.completion.target import Silence
from mercury_ls.link import local
from mercury_ls.link.client import EngineLink
from mercury_ls.link.wire import Status
from mercury_ls.next_edit.cursor_line import is_elsewhere
from mercury_ls.next_edit.pipeline import next_edits
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.next_edit.region import SURE_ENOUGH
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.workspace import Workspace
from mercury_ls.session.open_files import OpenFiles
from mercury_ls.session.outcomes import Outcomes
from mercury_ls.session.questions import Questions
from mercury_ls.session.record import NoRecorder
from mercury_ls.session.stats import Kind, Stats, Tally
from mercury_ls.settings.schema import Settings
from mercury_ls.web.metrics import Metrics
from mercury_ls.web.schemas import Feedback
from mercury_ls.web.text import Text, bounded, language_of, recorded

BETWEEN_SCANS_SECONDS = 5.0
LONG_TEXT = 1 << 16
"""Characters. Opening a longer one takes a part of a second, a slice at a time."""
REMEMBERED_OFFERS = 1024
"""For all clients: feedback on older answers is ignored."""


class ServedEngine(Protocol):
    """The engine as one of several clients sees it: `for_client` shares it fairly between them."""

    @property
    def status(self) -> Status: ...
    @property
    def latencies_ms(self) -> Sequence[float]: ...
    def for_client(self, name: str) -> "ServedEngine": ...
    def chat(self, request: ChatRequest) -> AsyncGenerator[ChatReply]: ...


class ApiClient(Struct, frozen=True):
    """Who asks: `name` gets a fair share of the engine, `session` is whose caches are used again, and `user`, "" if the
    token is everybody's, may say what became of an answer."""

    name: str = ""
    session: str = "http"
    user: str = ""


class Wish(Struct, frozen=True):
    """How to answer a request; None stands for the settings. `id` identifies it in feedback. `invoked`: the user asked
    by hand, so it is answered even where typing would not be interrupted."""

    id: str = ""
    invoked: bool = False
    alternatives: int = 1
    effort: Effort | None = None
    deadline_ms: float | None = None
    most_tokens: int = 64
    slots: bool = False


class _ApiPlace(Struct, frozen=True):
    """A text that was opened, who opened it, and what may be asked about it."""

    text: Text
    uri: str
    questions: Questions
    user: str

    @property
    def snapshot(self) -> Snapshot:
        return self.questions.files.documents[self.uri].snapshot()


class Service:
    """Owns what requests share: settings, the engine, the adapting bar, and the outcomes of offers. No text outlives
    its request."""

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
        self.began = clock()
        self.stats = stats or Stats()
        self.stats.enabled = settings.record.counts
        self.outcomes = outcomes or Outcomes()
        self.tally = Tally(self.stats, REMEMBERED_OFFERS)
        self.metrics = Metrics()
        self._opening = asyncio.Lock()
        self.roots = tuple(map(os.path.abspath, roots))
        privacy = Privacy(settings.privacy, roots, ignore_case=local.IGNORES_CASE)
        self.privacy = _AnyRoot(privacy, self.roots)
        self.workspace = Workspace(roots, privacy, settings.context)

    @property
    def model(self) -> str:
        """The name of the engine's model; for a path, without its folder."""
        info = self.engine.status.info
        return re.split(r"[/\\]", info.model)[-1] if info else "mercury"

    async def complete(self, text: Text, wish: Wish, client: ApiClient) -> AsyncGenerator[Answer]:
        """Stream improving answers; the last is final."""
        place = await self._opened(text, client)
        async with aclosing(self._completions(place, wish)) as answers:
            async for answer in answers:
                yield self._offered(answer, wish.id, place, "inline") if answer.final else answer

    async def rewrite(self, text: Text, region: tuple[int, int], wish: Wish, client: ApiClient) -> tuple[Answer, str]:
        """The likelier of a next edit in these lines and a completion at the cursor, as an editor would show one of
        them, else what the model makes of the cursor's line; and the lines' new text."""
        place = await self._opened(text, client)
        offered, kind = _within(await self._next_edit(place, wish), region), "nextEdit"
        if offered.offer is None or offered.offer.p_accept < SURE_ENOUGH:
            typed = offered
            async with aclosing(self._completions(place, wish)) as answers:
                async for answer in answers:
                    typed = _within(answer, region)
            if offered.offer is None or (typed.offer and typed.offer.p_accept > offered.offer.p_accept):
                offered, kind = typed, "inline"
        if offered.offer is None and not wish.invoked:
            rested = _within(await self._next_edit(place, wish, rests=True), region)
            offered, kind = (rested, "nextEdit") if rested.offer else (offered, kind)
        answer = self._offered(offered, wish.id, place, kind)
        start, end = region
        edits = [edit.moved(-start) for edit in answer.edits]
        return answer, applied(place.text.text[start:end], edits)

    async def warm(self, text: Text, wish: Wish, client: ApiClient) -> None:
        """Encode ahead what the next request will be about."""
        place = await self._opened(text, client)
        if (gap := _gap(place, replace(wish, invoked=True))) is not None:
            await place.questions.engine.warm(gap)

    async def context(self, text: Text, wish: Wish, client: ApiClient) -> Gap | None:
        """What the engine is asked; None where it would not be."""
        return _gap(await self._opened(text, client), wish)

    def chat(self, request: ChatRequest, client: ApiClient) -> AsyncGenerator[ChatReply]:
        """Stream growing and revised answers; the last is final."""
        return self.engine.for_client(client.name).chat(request)

    async def _completions(self, place: _ApiPlace, wish: Wish) -> AsyncGenerator[Answer]:
        question = _completion(place, wish)
        if isinstance(question, Silence):
            yield Answer(silence=question.reason, final=True)
            return
        async with aclosing(suggest(question, place.questions.engine)) as answers:
            async for answer in answers:
                place.questions.tell(answer)
                yield answer

    async def _next_edit(self, place: _ApiPlace, wish: Wish, *, rests: bool = False) -> Answer:
        """The last answer of the pipeline; of a user who `rests`, if that is away from the last edit."""
        questions = place.questions
        if reason := questions.unavailable(place.uri, wish.invoked):
            return Answer(silence=reason, final=True)
        question = NextQuestion.of(_question(place, wish, "nextEdit"))
        if rests:
            if not question.rewrites_lines or not is_elsewhere(question.snapshot, question.offset, question.edits):
                return Answer(silence="no edit elsewhere", final=True)
            question = replace(question, rests=True, deadline_ms=max(question.deadline_ms or 0.0, OPINION_MS))
        engine = questions.engine if questions.engine.status.state == "ready" else None
        latest = Answer(silence="no answer", final=True)
        async with aclosing(next_edits(question, engine)) as answers:
            async for latest in answers:
                questions.tell(latest)
        return latest

    def heard(self, feedback: Feedback, client: ApiClient) -> bool:
        """Whether this is the first that is heard of an offer."""
        offer, action = _offer_to(client.user, feedback.request_id), feedback.user_action
        if action == "ignore":
            return self.tally.passed_over(offer)
        characters = None if feedback.characters is None else int(feedback.characters)
        is_first = self.tally.accepted(offer, characters) if action == "accept" else self.tally.rejected(offer)
        if is_first:
            self.metrics.suggestions.labels(self.tally.kind(offer), f"{action}ed").inc()
        return is_first

    async def read_projects(self) -> None:
        """Maintain the index of the projects, in steps between requests."""
        while self.roots:
            while self.workspace.step(self.clock()):
                await asyncio.sleep(0)
            await asyncio.sleep(BETWEEN_SCANS_SECONDS)

    def close(self) -> None:
        self.stats.write()
        self.outcomes.write()

    async def _opened(self, text: Text, client: ApiClient) -> _ApiPlace:
        """The files of a request as if open in an editor, with its recent edits."""
        files = OpenFiles(self.privacy, self.workspace, NoRecorder(), self.clock)
        text = self._placed(bounded(text))
        for number, other in enumerate(text.others):
            _open_in(files, f"mercury:/{number}/{other.path}", other.path, "", other.text)
        uri = f"mercury:/{text.path}"
        _open_in(files, uri, text.path, language_of(text), text.text)
        if document := files.documents.get(uri):
            # Long texts wait for each other: with 60 at once everybody else waited for 20 seconds.
            async with self._opening if len(text.text) > LONG_TEXT else nullcontext():
                await files.parsed(uri)
            files.history = recorded(text, self.clock())
            text = replace(text, text=document.text)
        engine = cast("EngineLink", self.engine.for_client(client.name))  # whoever serves it starts and ends it
        questions = Questions(self.settings, engine, files, self.clock, outcomes=self.outcomes)
        questions.session = client.session
        return _ApiPlace(text, uri, questions, client.user)

    def _placed(self, text: Text) -> Text:
        """The text with paths resolved in the projects, where a client's are relative to one."""
        if not self.roots or not text.path or os.path.isabs(text.path):
            return text
        inside = (root for root in self.roots if os.path.isfile(os.path.join(root, text.path)))
        root = next(inside, self.roots[0])

        def placed(path: str) -> str:
            return os.path.join(root, path) if path else ""

        return text.with_paths(placed)

    def _offered(self, answer: Answer, id: str, place: _ApiPlace, kind: Kind) -> Answer:
        """The offers with ids for feedback: the first has that of its answer."""
        offers = tuple(replace(offer, id=f"{id}-{n}" if n else id) for n, offer in enumerate(answer.offers))
        for offer in offers:
            language, learn = place.snapshot.language, place.questions.taught_by(kind, offer)
            self.tally.offered(_offer_to(place.user, offer.id), language, kind, learn, offer.characters)
        if offers:
            self.tally.answered(_offer_to(place.user, offers[0].id))
            self.metrics.suggestions.labels(kind, "shown").inc()
        self.metrics.tokens.inc(answer.tokens)
        if self.stats.write_now_and_then():
            self.outcomes.write()
        return replace(answer, offers=offers, final=True)


class _AnyRoot:
    """The privacy rules for paths of unknown projects."""

    def __init__(self, privacy: Privacy, roots: Sequence[str]) -> None:
        self._privacy = privacy
        self._roots = (os.sep, *roots)

    def why_hidden(self, path: str, is_folder: bool = False) -> str | None:
        places = {os.path.join(root, path) for root in self._roots} if path else set()
        return next(filter(None, (self._privacy.why_hidden(place, is_folder) for place in places)), None)


def _offer_to(user: str, id: str) -> str:
    """What an offer is called in the tally: a user has only their own."""
    return f"{user}/{id}"


def _gap(place: _ApiPlace, wish: Wish) -> Gap | None:
    question = _completion(place, wish)
    return None if isinstance(question, Silence) else place.questions.engine.cleared(gap_at(question))


def _completion(place: _ApiPlace, wish: Wish) -> Question | Silence:
    """What is asked at the cursor, or why nothing is."""
    if reason := place.questions.unavailable(place.uri, wish.invoked):
        return Silence(reason)
    return where(replace(_question(place, wish, "inline"), slots=wish.slots, alternatives=wish.alternatives))


def _question(place: _ApiPlace, wish: Wish, kind: Kind) -> Question:
    question = place.questions.about(place.snapshot, place.text.cursor, invoked=wish.invoked)
    return replace(
        question,
        judge=place.questions.judge(kind),
        most_tokens=wish.most_tokens,
        effort=wish.effort or question.effort,
        deadline_ms=question.deadline_ms if wish.deadline_ms is None else wish.deadline_ms,
    )


def _open_in(files: OpenFiles, uri: str, path: str, language: str, text: str) -> None:
    language_of_file = languages.find(language, path)
    files.open(uri, path, language_of_file.id if language_of_file else "plaintext", 1, text)


def _within(answer: Answer, region: tuple[int, int]) -> Answer:
    """The part of the best offer within these lines, which are all that the client can change."""
    start, end = region
    if answer.offer is None:
        return answer
    edits = tuple(edit for edit in answer.edits if start <= edit.start <= edit.end <= end)
    if not edits:
        return replace(answer, offers=(), silence="what follows lies outside the region")
    return replace(answer, offers=(replace(answer.offer, edits=edits),))


def inserted_text(offer: Offer, text: Text) -> str:
    """The text that an offer inserts at the cursor, all that fill-in-the-middle clients can insert."""
    after = text.text[text.cursor :]
    new = applied(text.text, offer.edits)
    if new.startswith(text.text[: text.cursor]) and new.endswith(after):
        return new[text.cursor : len(new) - len(after)]
    return text.text[text.cursor : offer.edit.start] + offer.edit.text
