"""One client's state: its documents, what it did, what is on its screen, and what it has accepted or rejected."""

import asyncio
import logging
import math
import os
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from itertools import islice
from typing import Any

from msgspec import Struct

from mercury_engine.api import EngineError
from mercury_ls.code.documents import Change, Document, Snapshot
from mercury_ls.code.history import History
from mercury_ls.completion import context
from mercury_ls.completion.context import Budget, Related
from mercury_ls.completion.gate import Gate
from mercury_ls.completion.pending import Pending, Remainder
from mercury_ls.completion.polish import is_scrap
from mercury_ls.completion.suggest import Answer, Question, Suggestion, suggest
from mercury_ls.completion.targets import Target
from mercury_ls.link.client import EngineUnavailable
from mercury_ls.session.chores import Chore
from mercury_ls.session.next_edits import Proposals
from mercury_ls.session.stats import Stats, Tally
from mercury_ls.settings.load import Settings
from mercury_ls.wording import counted, readable

__all__ = ["Ask", "Decision", "Item", "Reply", "Session"]

log = logging.getLogger(__name__)

LARGEST_DOCUMENT = 1 << 20
IDLE_SECONDS = 0.3
PARSE_SECONDS = 0.008
NEIGHBOURS = 8
LONGEST_SNOOZE = 60.0 * 24 * 365
CHANGED = "the text changed while the model answered"


class Ask(Struct, frozen=True, kw_only=True):
    """An inline completion request; `version` is the text that `offset` counts in, the latest if there is none, and
    `selected` the entry highlighted in the editor's own menu.
    """

    uri: str
    offset: int
    version: int | None = None
    invoked: bool = False
    selected: tuple[int, int, str] | None = None


class Item(Struct, frozen=True):
    """One suggestion on offer: replace `[start, end)` of the document by `text`."""

    id: str
    start: int
    end: int
    text: str
    p_accept: float


class Reply(Struct, frozen=True, kw_only=True):
    """What the client is told, or why it is told nothing; `snapshot` is the text that the offsets are of."""

    snapshot: Snapshot | None = None
    items: tuple[Item, ...] = ()
    silence: str = ""
    source: str = "model"
    step: int = 0
    draft: str = ""
    tokens: int = 0
    final: bool = True


class Decision(Struct, frozen=True):
    """A line of the log that "why nothing here?" reads from."""

    uri: str
    version: int
    line: int
    outcome: str
    milliseconds: float


class Session:
    """Everything between LSP and the straight path that has to be remembered."""

    def __init__(
        self,
        settings: Settings,
        engine: Any,
        privacy: Any,
        workspace: Any,
        recorder: Any,
        clock: Callable[[], float] = time.monotonic,
        stats: Stats | None = None,
    ):
        self.id = uuid.uuid4().hex[:12]
        self.settings = settings
        self.engine = engine
        self.privacy = privacy
        self.workspace = workspace
        self.recorder = recorder
        self.clock = clock
        self.history = History()
        self.gate = Gate(settings.suggest.minimum_probability, adapts=settings.suggest.adapt)
        self.documents: dict[str, Document] = {}
        self._files: dict[str, str] = {}
        self.hidden: dict[str, str] = {}
        self._lost: dict[str, str] = {}
        self.notebooks: dict[str, list[str]] = {}
        self.decisions: deque[Decision] = deque(maxlen=64)
        self.roots: Sequence[str] = ()
        self.snoozed_until = 0.0
        self.active = asyncio.Event()
        self.when_idle: Callable[[], None] = lambda: None
        self.accepted_count = self.rejected_count = 0
        self.stats = stats or Stats()
        self.stats.enabled = settings.record.counts
        self.tally = Tally(self.stats)
        self._last_change = ("", 0)
        self._recent: OrderedDict[str, Snapshot] = OrderedDict()
        self._pending: Pending | None = None
        self._related: Related | None = None
        self._cursors: dict[str, int] = {}
        self.proposals = Proposals(self)

    def adopt(self, settings: Settings, privacy: Any, workspace: Any) -> None:
        """New settings, replaced whole; the documents go on, and so does what was learnt of the user."""
        chosen = settings.suggest.minimum_probability, settings.suggest.adapt
        if chosen != (self.gate.base, self.gate.adapts):
            self.gate = Gate(chosen[0], adapts=chosen[1])
            self.proposals.choose(settings.suggest)
        self.settings, self.privacy, self.workspace = settings, privacy, workspace
        self.stats.enabled = settings.record.counts
        self.judge_again()

    def judge_again(self) -> None:
        """Other files are private by now: what was kept of them is forgotten."""
        self._related = None
        for uri in list(self._files):
            self._hides(uri)

    async def end(self) -> None:
        self.proposals.end()
        self.recorder.close()
        self.stats.write()
        await self.engine.close()

    # Documents

    def open(self, uri: str, path: str, language: str, version: int, text: str, cell: str = "") -> None:
        """Keep the text, unless privacy rules hide the file: then only the reason is kept.

        The cells of a notebook are told apart by `cell`; they are as private as their file.
        """
        self.active.set()
        self.close(uri)
        if reason := self.privacy.why_hidden(path):
            self.hidden[uri] = reason
            return
        document = Document(uri, f"{path}{cell}", language, version, text, PARSE_SECONDS)
        self.history.reopened(document.path, document.text)
        self.documents[uri] = document
        self._files[uri] = path
        self.recorder.opened(document)
        self.focus(uri)

    def change(self, uri: str, version: int, changes: Sequence[tuple], encoding: str) -> None:
        self.active.set()
        document = self.documents.get(uri)
        if document is None or (self.recorder.records and self._hides(uri)):
            return
        now = self.clock()
        before = document.text
        self.recorder.changed(document, version, changes, encoding)
        typed = 0
        for applied in document.apply(changes, version, encoding):
            self._cursors[uri] = applied.start + len(applied.text)
            typed += len(applied.text)
            if max(len(before), len(applied.text)) <= LARGEST_DOCUMENT:
                is_own = not self.proposals.makes(uri, before, applied)
                self.history.record(document.path, before, applied, now, is_own)
                before = before[: applied.start] + applied.text + before[applied.end :]
        self._last_change = uri, typed

    def last_place(self) -> tuple[str, int] | None:
        """The document in use, and where in it something was last typed or asked for."""
        uri = next((uri for uri in reversed(self._recent) if uri in self.documents), None)
        return uri and (uri, min(self._cursors.get(uri, 0), len(self.documents[uri].text)))

    def close(self, uri: str) -> None:
        self.hidden.pop(uri, None)
        self._lost.pop(uri, None)
        self._cursors.pop(uri, None)
        document = self.documents.pop(uri, None)
        if document is None:
            return
        self.recorder.closed(document)
        if len(document.text) <= LARGEST_DOCUMENT:
            self._recent[uri] = document.snapshot()
        if self._pending and self._pending.uri == uri:
            self._pending = None

    def lost(self, uri: str, reason: str) -> None:
        """The text is not known any more, until the editor opens the document again."""
        self.close(uri)
        self._recent.pop(uri, None)
        self._lost[uri] = f"{reason}: close and open the file"

    def focus(self, uri: str) -> None:
        if document := self.documents.get(uri):
            self._recent[uri] = document.snapshot()
            self._recent.move_to_end(uri)
        while len(self._recent) > max(NEIGHBOURS, len(self.documents)):
            self._recent.popitem(last=False)
        self._files = {u: path for u, path in self._files.items() if u in self._recent or u in self.documents}

    def _hides(self, uri: str) -> bool:
        """Whether the rules, as they are now, hide this document: then nothing is kept of it but the reason."""
        reason = self.privacy.why_hidden(self._files[uri]) if uri in self._files else None
        if not reason:
            return False
        self.history.forget((self.documents.get(uri) or self._recent[uri]).path)
        self.close(uri)
        self._recent.pop(uri, None)
        del self._files[uri]
        self._related = None
        self.hidden[uri] = reason
        return True

    def saved(self, uri: str) -> None:
        if document := self.documents.get(uri):
            self.recorder.saved(document)
            self.workspace.changed([document.path])

    def renamed(self, old: str, new: str) -> None:
        """What was typed there was typed here; the text under the old name is no other file's."""
        self.history.rename(old, new)
        closed = [uri for uri, snapshot in self._recent.items() if snapshot.path == old and uri not in self.documents]
        for uri in closed:
            del self._recent[uri], self._files[uri]
        self.workspace.removed([old])
        self.workspace.changed([new])

    def branch_switched(self) -> None:
        """Another branch was checked out: what the user edited and what the project defines are of another world."""
        self.history.clear()
        self._related = self._pending = None
        self.proposals.forget()

    # Suggestions

    async def inline(self, ask: Ask) -> AsyncGenerator[Reply, None]:
        """Replies as the drafts improve; the last is final and true of the document as it is by then."""
        began = self.clock()
        self.active.set()
        if ask.uri in self.documents:
            self._cursors[ask.uri] = ask.offset
        async with aclosing(self._inline(ask)) as replies:
            async for reply in replies:
                if reply.final:
                    self._decided(ask, reply, began)
                yield reply

    async def _inline(self, ask: Ask) -> AsyncGenerator[Reply, None]:
        if reason := self.unavailable(ask.uri, ask.invoked):
            yield Reply(silence=reason)
            return
        document = self.documents[ask.uri]
        if document.is_new:
            await self.parsed(document)
        if ask.version not in (None, document.version):
            yield Reply(silence="the text changed before the request had its turn")
            return
        snapshot, offset = with_selected(document.snapshot(), ask)
        if not ask.invoked and ask.selected is None and (item := self._type_through(snapshot, offset)):
            yield Reply(snapshot=snapshot, items=(item,), source="type-through")
            return
        if not ask.invoked and self.settings.suggest.delay_ms:
            await asyncio.sleep(self.settings.suggest.delay_ms / 1000)
        async with aclosing(self._answers(snapshot, offset, ask)) as answers:
            async for answer in answers:
                yield self._reply(document, snapshot, offset, ask, answer)

    async def parsed(self, document: Document) -> None:
        """Until the tree of a long text is there; nothing else waits for it."""
        for _ in document.parsing():
            await asyncio.sleep(0)

    async def _answers(self, snapshot: Snapshot, offset: int, ask: Ask) -> AsyncGenerator[Answer, None]:
        """What the straight path says; an engine that cannot answer is a reason like any other."""
        try:
            async with aclosing(suggest(self._question(snapshot, offset, ask), self.engine)) as answers:
                async for answer in answers:
                    yield answer
        except EngineUnavailable as error:
            yield Answer(silence=f"the engine is not available: {error}", final=True)
        except EngineError as error:
            log.warning("the engine could not answer: %s", error)
            yield Answer(silence=f"the engine could not answer: {error}", final=True)

    def unavailable(self, uri: str, invoked: bool) -> str:
        """Why this document gets no suggestions at all; empty where it may. It may have become private just now."""
        self._hides(uri)
        settings = self.settings.suggest
        if uri in self.hidden:
            return f"the file is private: {self.hidden[uri]}"
        if uri in self._lost:
            return self._lost[uri]
        if (document := self.documents.get(uri)) is None:
            return "the document is not open"
        if not settings.enabled:
            return "suggestions are off (suggest.enabled)"
        if self.clock() < self.snoozed_until and not invoked:
            return f"snoozed for another {counted(math.ceil((self.snoozed_until - self.clock()) / 60), 'minute')}"
        if not settings.speaks(document.language):
            return f"off for {document.language} (suggest.languages)"
        return unfit(document.text)

    def _type_through(self, snapshot: Snapshot, offset: int) -> Item | None:
        """What is left of the suggestion on the screen, where the user types along it."""
        pending = self._pending
        if pending is None or pending.uri != snapshot.uri:
            return None
        rest = pending.remainder(snapshot, offset)
        if rest is None:
            self._passed_over(pending)
        elif not rest.text:
            self.tally.typed_through(pending.id)
            self._pending = None
        return item_of(pending, rest) if rest and rest.text else None

    def _passed_over(self, pending: Pending) -> None:
        self._pending = None
        if self.tally.passed_over(pending.id):
            self.gate.rejected(self.clock(), weight=0.3)

    def _question(self, snapshot: Snapshot, offset: int, ask: Ask) -> Question:
        settings = self.settings
        return Question(
            snapshot=snapshot,
            offset=offset,
            history=self.history,
            related=self.related(snapshot, offset),
            settings=settings.suggest,
            budget=self.budget,
            session=self.id,
            bar=self.gate.bar(self.clock()),
            invoked=ask.invoked,
            alternatives=settings.suggest.alternatives if ask.invoked else 1,
            effort=settings.engine.effort,
            deadline_ms=settings.engine.deadline_ms,
            recent_edits=settings.context.recent_edits,
        )

    @property
    def budget(self) -> Budget:
        info = self.engine.status.info
        limit = self.settings.context
        if info is None:
            return Budget(tokens=limit.budget_tokens, snippets=limit.snippets)
        tokens = min(limit.budget_tokens, info.context_tokens)
        return Budget(tokens, info.characters_per_token, limit.snippets)

    def related(self, snapshot: Snapshot, offset: int) -> Related:
        now = self.clock()
        if self._related is None or not self._related.still_fits(snapshot, offset, now):
            others = self._around(snapshot) if self.settings.context.snippets else []
            self._related = context.relate(snapshot, offset, others, self.workspace.definitions, self.budget, now)
        return self._related

    def neighbours(self, uri: str) -> list[Snapshot]:
        """The cells of the same notebook, then other files, the latest in use first, as they are now."""
        cells = next((cells for cells in self.notebooks.values() if uri in cells), [])
        order = [*cells, *(u for u in reversed(self._recent) if u not in cells)]
        found = (self._latest(u) for u in order if u != uri and not self._hides(u))
        return [*islice((snapshot for snapshot in found if snapshot and not unfit(snapshot.text)), NEIGHBOURS)]

    def _around(self, snapshot: Snapshot) -> list[Snapshot]:
        """Its neighbours, and in place of those that nobody has opened the nearest files of the workspace."""
        opened = self.neighbours(snapshot.uri)
        known = {os.path.realpath(each.path) for each in (snapshot, *opened)}
        around = self.workspace.around(snapshot.path)
        found = ((path, text) for path, text in around if os.path.realpath(path) not in known)
        beside = islice(found, NEIGHBOURS - len(opened))
        return [*opened, *(Document("", path, "", 0, text).snapshot() for path, text in beside)]

    def _latest(self, uri: str) -> Snapshot | None:
        return self.documents[uri].snapshot() if uri in self.documents else self._recent.get(uri)

    def _reply(self, document: Document, snapshot: Snapshot, offset: int, ask: Ask, answer: Answer) -> Reply:
        known = {"step": answer.step, "draft": answer.draft, "tokens": answer.tokens, "final": answer.final}
        if not answer.final:
            items = tuple(Item("", *place(s), s.p_accept) for s in answer.suggestions)
            return Reply(snapshot=snapshot, items=items, silence=answer.silence, **known)
        offers = [self._offered(snapshot, s) for s in answer.suggestions]
        if not offers:
            return Reply(snapshot=snapshot, silence=answer.silence, **known)
        is_current = document.version == snapshot.version
        if not is_current and ask.selected is None:
            return self._rebased(document, offset, snapshot, offers, known)
        if not is_current:
            return Reply(snapshot=document.snapshot(), silence=CHANGED, **known)
        if ask.selected is not None:
            return Reply(snapshot=document.snapshot(), items=after_selected(offers, ask), **known)
        self._pending = offers[0]
        return Reply(snapshot=snapshot, items=tuple(item_of(p) for p in offers), **known)

    def _offered(self, snapshot: Snapshot, suggestion: Suggestion) -> Pending:
        start, end, text = place(suggestion)
        pending = Pending(uuid.uuid4().hex[:16], snapshot.uri, snapshot.text, start, end, text, suggestion.p_accept)
        self.tally.offered(pending.id, snapshot.language, "inline")
        return pending

    def _rebased(
        self, document: Document, offset: int, old: Snapshot, offers: list[Pending], known: dict[str, Any]
    ) -> Reply:
        """The user typed on while the model thought: what still fits moves along, the rest is dropped."""
        now = document.snapshot()
        cursor = offset + len(now.text) - len(old.text)
        rests = [(p, p.remainder(now, cursor)) for p in offers]
        fitting = [(p, rest) for p, rest in rests if rest and not is_scrap(rest.text, now.text[:cursor])]
        if not fitting:
            return Reply(snapshot=now, silence=CHANGED, **known)
        self._pending = fitting[0][0]
        return Reply(snapshot=now, items=tuple(item_of(p, rest) for p, rest in fitting), **known)

    def _decided(self, ask: Ask, reply: Reply, began: float) -> None:
        outcome = reply.silence or f"{len(reply.items)} shown ({reply.source})"
        snapshot = reply.snapshot
        line = snapshot.line_of(min(ask.offset, len(snapshot.text))) if snapshot else 0
        milliseconds = (self.clock() - began) * 1000
        decision = Decision(ask.uri, snapshot.version if snapshot else 0, line, outcome, milliseconds)
        self.decisions.append(decision)
        log.info("%s", self.decision_line(decision))
        self.recorder.answered(ask, reply, milliseconds)
        for item in reply.items[:1]:
            self.tally.answered(item.id)

    def decision_line(self, decision: Decision) -> str:
        where = readable(decision.uri, self.roots)
        return f"{where}:{decision.line + 1} {decision.outcome} ({decision.milliseconds:.1f} ms)"

    async def why(self, uri: str, offset: int) -> str:
        """Why nothing is suggested here: asked once more as if the user had just typed, and nothing remembered."""
        if reason := self.unavailable(uri, invoked=False):
            return reason
        if self.documents[uri].is_new:
            await self.parsed(self.documents[uri])
        ask = Ask(uri=uri, offset=offset)
        latest = Answer(silence="the engine gave no draft")
        async with aclosing(self._answers(self.documents[uri].snapshot(), offset, ask)) as answers:
            async for answer in answers:
                latest = answer
        if latest.silence:
            return latest.silence
        return f"a suggestion is ready here ({latest.suggestions[0].p_accept:.0%} likely to be accepted)"

    # What became of them

    def accepted(self, id: str, edits: int | None = None) -> None:
        """`edits`: how many of the edits of an offer the client made, where it lets its user leave some out."""
        if edits == 0:
            return self.rejected(id)
        if self.proposals.accepted(id, edits):
            self.accepted_count += 1
            return self.recorder.accepted(id)
        if not self.tally.accepted(id, self._just_inserted(id)):
            return None
        self.accepted_count += 1
        self.gate.accepted(self.clock())
        self.recorder.accepted(id)
        if self._pending and self._pending.id == id:
            self._pending = None
        return None

    def _just_inserted(self, id: str) -> int:
        """How much of a suggestion its acceptance has just put into the document: what was typed of it before, the
        user has typed."""
        pending = self._pending
        if pending is None or pending.id != id:
            return self._last_change[1]
        uri, typed = self._last_change
        is_made = uri == pending.uri and self.documents[uri].text != pending.base
        return min(typed, len(pending.text)) if is_made else len(pending.text)

    def rejected(self, id: str) -> None:
        if self.proposals.rejected(id):
            self.rejected_count += 1
            return self.recorder.rejected(id)
        if not self.tally.rejected(id):
            return None
        self.rejected_count += 1
        self.gate.rejected(self.clock())
        self.recorder.rejected(id)
        if self._pending and self._pending.id == id:
            self._pending = None
        return None

    def partially_accepted(self, id: str, length: int) -> None:
        """Some words of it were taken: that is an accept, and the rest stays on offer."""
        if not self.tally.accepted(id, self._just_inserted(id)):
            return
        self.accepted_count += 1
        self.gate.accepted(self.clock())
        self.recorder.accepted(id, length)

    def snooze(self, minutes: float) -> None:
        """For a year at most, and not at all for what is no number."""
        bounded = min(minutes, LONGEST_SNOOZE) if minutes > 0 else 0.0
        self.snoozed_until = self.clock() + bounded * 60

    # Between keystrokes

    async def tend(self) -> None:
        """While nobody types: read the project step by step, and let the engine encode ahead."""
        chores = [
            Chore("reading the project", self._read_on, self.clock),
            Chore("following the settings", self._follow, self.clock),
            Chore("writing the counts", self._count, self.clock),
            Chore("letting the engine encode ahead", self._warm, self.clock),
        ]
        while True:
            await self.active.wait()
            await self._quiet()
            for chore in chores:
                if not self.active.is_set():
                    await chore.run()

    async def _quiet(self) -> None:
        while self.active.is_set():
            self.active.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(IDLE_SECONDS):
                    await self.active.wait()

    async def _read_on(self) -> None:
        while not self.active.is_set() and self.workspace.step(self.clock()):
            await asyncio.sleep(0)

    async def project_read(self, seconds: float) -> None:
        """The project is read to its end, or for so long."""
        until = self.clock() + seconds
        while self.workspace.step(self.clock()) and self.clock() < until:
            await asyncio.sleep(0)

    async def _follow(self) -> None:
        self.when_idle()

    async def _count(self) -> None:
        self.stats.write_now_and_then()

    async def _warm(self) -> None:
        uri = next(reversed(self._recent), None)
        if uri not in self.documents or self.unavailable(uri, invoked=False):
            return
        if self.documents[uri].is_new:
            await self.parsed(self.documents[uri])
        snapshot = self.documents[uri].snapshot()
        offset = min(self._cursors.get(snapshot.uri, 0), len(snapshot.text))
        target = Target(offset, offset, "line")
        try:
            await self.engine.warm(
                context.build(
                    snapshot,
                    [target],
                    self.related(snapshot, offset),
                    self.history.edits(self.settings.context.recent_edits),
                    self.budget,
                    session=self.id,
                    effort=self.settings.engine.effort,
                    deadline_ms=None,
                )
            )
        except (EngineUnavailable, EngineError) as error:
            log.debug("nothing was warmed: %s", error)


def unfit(text: str) -> str:
    if len(text) > LARGEST_DOCUMENT:
        return f"the file is larger than {LARGEST_DOCUMENT >> 20} MiB"
    return "the file is binary" if "\0" in text[:8192] else ""


def with_selected(snapshot: Snapshot, ask: Ask) -> tuple[Snapshot, int]:
    """The text as it would be with the entry of the editor's menu accepted."""
    if ask.selected is None:
        return snapshot, ask.offset
    start, end, text = ask.selected
    return snapshot.changed(Change(start, end, text)), start + len(text)


def after_selected(offers: Sequence[Pending], ask: Ask) -> tuple[Item, ...]:
    """Items that begin with the selected entry and replace its range, as the protocol wants them."""
    start, end, text = ask.selected or (0, 0, "")
    return tuple(Item(p.id, start, end, text + p.text, p.p_accept) for p in offers)


def place(suggestion: Suggestion) -> tuple[int, int, str]:
    proposal = suggestion.proposal
    return proposal.start, proposal.end, proposal.text


def item_of(pending: Pending, rest: Remainder | None = None) -> Item:
    if rest is None:
        return Item(pending.id, pending.start, pending.end, pending.text, pending.p_accept)
    return Item(pending.id, rest.start, rest.end, rest.text, pending.p_accept)
