"""The engine whose model runs in somebody else's server: asks it, reads along, and stops it when enough is said."""

import math
import re
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import chain
from statistics import median
from typing import Any, NamedTuple

from msgspec.structs import replace

from mercury_engine.addresses import is_own_network, why_not
from mercury_engine.api import Draft, Engine, EngineError, EngineInfo, Gap, Regions, Rewrites, Rewritten
from mercury_engine.decode.confidence import SHARED
from mercury_engine.prompts.dialects import DIALECTS, Dialect, dialect_for
from mercury_engine.prompts.edits import FORMATS, EditFormat
from mercury_engine.prompts.edits.asked import window_of
from mercury_engine.prompts.edits.chat import CHAT_EDIT
from mercury_engine.prompts.edits.inception import INCEPTION_EDIT
from mercury_engine.record import ModelRecord
from mercury_engine.redaction import ForeignText
from mercury_engine.remote import asking
from mercury_engine.remote.access import client_for
from mercury_engine.remote.asking import Answer, Attempt
from mercury_engine.remote.health import (
    ServerHealth,
    Trouble,
    link_trouble,
    status_trouble,
    unknown_model,
    wrong_answer,
)
from mercury_engine.remote.heard import StreamedText
from mercury_engine.remote.http import Exchange, HttpClient, LinkError, site_of
from mercury_engine.remote.protocols import (
    Events,
    ServerProtocol,
    WrongAnswerError,
    body,
    decoded,
    is_name,
    model_names,
    protocol_named,
)

SLICE_SECONDS = 0.02
"""The longest that one step waits for news, of all requests together, so that others get their turn."""

BATCH = 4
FIRST_LOOK_SECONDS = 1.0
LONGEST_SECONDS = 120.0
"""Of an answer that never ends, for requests without a deadline."""

PROMPT_TOKENS = 8192
"""More costs a server on this machine seconds before its first token, and adds little."""

QUICK_SECONDS, TIMED = 0.6, 8
"""A server whose first text usually comes that soon, of the last answers, reads more of what follows the cursor."""

REWRITE_TOKENS = 8192
LEAST_ROOM = 256
DEFAULT_CONTEXT = 2048
"""That of llama-cpp-python, the one server that does not tell."""

MARGIN_SECONDS = 0.05
"""So much before the deadline it is said that a server is late, instead of nothing."""

PATIENCE = 2
"""How many answers in a row may come too late before that is said."""

ENDLESS = LinkError("slow", f"an answer took more than {LONGEST_SECONDS:g} s")
BROKEN_OFF = LinkError("broken", "the connection was closed in the middle of an answer")

CONTEXT = re.compile(rb"(?:context (?:length|size|window)\D{0,20}|n_ctx\W{1,4})(\d{3,7})")
"""How servers say what their context is when a prompt is too long."""

PICKY = frozenset({400, 422, 500})
"""How servers refuse a field that they do not know, or cannot honour."""

NO_TEXT = "no text in time"
OVERLAP = 256
"""In characters: by so much of an encoded key it is recognised, in whatever pieces it arrives."""

Attempts = Callable[[], Iterator[Attempt[Answer]]]

Filling = tuple[ServerProtocol, Dialect | None]
"""Whom to ask and how: in a dialect, or None if the server puts the prompt together."""

Rewriting = tuple[ServerProtocol, EditFormat]


class Ways(NamedTuple):
    """How a server is asked each question that it can answer."""

    filling: Filling | None
    rewriting: Rewriting | None


class _RefusedError(Exception):
    """A question that may be worth another try. `context`: how many tokens the server says that it can read."""

    def __init__(self, trouble: Trouble, context: int = 0) -> None:
        self.trouble = trouble
        self.context = context


class _Terms:
    """What the server accepts, as far as its refusals tell."""

    def __init__(self, context: int) -> None:
        self.context = context
        self.room = context
        """For prompts: less than the context if one was too long, since nobody here counts the model's tokens."""
        self.plain = False
        """Whether it is asked without what not every server knows."""
        self.proven = False
        """Whether an answer has ever come."""

    def can_ease(self, refused: _RefusedError) -> bool:
        """Whether to ask again: with less text, if it was too long; or without what not every server knows, if it has
        never answered."""
        if refused.context and self.room > LEAST_ROOM:
            self.room = max(min(refused.context, self.room * 3 // 4), LEAST_ROOM)
            return True
        if self.proven:
            return False
        self.plain = not self.plain
        return self.plain


class RemoteEngine(Engine):
    """Several requests may be open at once, each on a connection of its own.

    >>> engine = RemoteEngine(record, Client(record.address))
    >>> *_, last = engine.fill(gap)
    """

    def __init__(self, record: ModelRecord, client: HttpClient, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._record = record
        self._client = client
        self._clock = clock
        self._protocol = protocol_named(record.protocol)
        self._ways = _ways_of(record, self._protocol)
        self._health = ServerHealth(is_loopback=client.site.is_loopback, clock=clock)
        self._terms = _Terms(record.context or DEFAULT_CONTEXT)
        self._has: list[str] = []
        self._open = 0
        self._late = 0
        self._slowness = NO_TEXT
        """How slow the last late answer was."""
        self._first_seconds: deque[float] = deque(maxlen=TIMED)

    def fill(self, gap: Gap) -> Generator[Draft]:
        """Drafts as they arrive. A step without news yields the last draft again, the same object."""
        if (way := self._ways.filling) is None:
            return super().fill(gap)
        attempts = partial(self._filling, way, gap)
        return self._answering(attempts, Draft(), gap.deadline_ms)

    def rewrite(self, regions: Regions) -> Generator[Rewrites]:
        """In the same manner."""
        if (way := self._ways.rewriting) is None:
            return super().rewrite(regions)
        untouched = Rewrites(0, (Rewritten(window_of(regions).old),))
        attempts = partial(self._rewriting, way, regions)
        return self._answering(attempts, untouched, regions.deadline_ms)

    def _answering(self, attempts: Attempts[Answer], untouched: Answer, deadline_ms: float | None) -> Generator[Answer]:
        due = self._clock() + (math.inf if deadline_ms is None else deadline_ms / 1000) - MARGIN_SECONDS
        self._health.ensure()
        for _ in self._right_model():
            yield untouched
        while True:
            try:
                latest = yield from self._asked(attempts, untouched, due)
                break
            except _RefusedError as error:
                if not self._terms.can_ease(error):
                    raise self._health.failed(error.trouble) from None
        yield replace(latest, final=True)

    def warm(self, question: Gap | Regions) -> Generator[None]:
        """Lets a server on this machine read the prompt; elsewhere that would cost money, or send code for nothing."""
        if self._protocol.warms is None or self._health.rests or not self._client.site.is_loopback:
            return
        try:
            for _ in self._right_model():
                yield
            yield from self._ended(self._opened(next(self._ahead(question)), self._protocol.warms))
        except EngineError:
            return  # the next request says why

    def info(self) -> EngineInfo:
        record = self._record
        notes = [self._health.note, self._lateness if self._late >= PATIENCE else ""]
        return EngineInfo(
            engine="server",
            model=record.name,
            device=f"{record.protocol} at {record.address}",
            context_tokens=min(self._terms.room, PROMPT_TOKENS),
            batch=BATCH,
            notes=tuple(filter(None, notes)),
            fills=self._ways.filling is not None,
            rewrites=self._ways.rewriting is not None,
            calibrated=False,
            bar=SHARED.bar,
            address=record.address,
            strong=True,
            grows=True,
            metered=bool(record.key or record.headers) and not is_own_network(self._client.site.host),
        )

    def look(self, seconds: float) -> None:
        """Waits at most this long to find out whether the server is there; `info` tells."""
        until = self._clock() + seconds
        try:
            for _ in self._right_model():
                if self._clock() >= until:
                    return
        except EngineError:
            return

    def close(self) -> None:
        self._client.close()

    @property
    def _lateness(self) -> str:
        address, pace = self._record.address, self._slowness
        return f"{address} is slower than engine.deadline_ms allows ({pace}): raise that, or use a smaller model there"

    def _ahead(self, question: Gap | Regions) -> Iterator[Attempt[Any]]:
        if isinstance(question, Gap) and (filling := self._ways.filling):
            return self._filling(filling, question)
        if isinstance(question, Regions) and (rewriting := self._ways.rewriting):
            return self._rewriting(rewriting, question)
        raise EngineError("there is nothing to read ahead")

    def _filling(self, way: Filling, gap: Gap) -> Iterator[Attempt[Draft]]:
        (protocol, dialect), address = way, self._record.address
        hides, budget = not self._client.site.is_loopback, min(self._terms.room, PROMPT_TOKENS)
        true, gap = gap, asking.masked_gap(gap) if hides else gap
        hides = gap != true
        if dialect is None:
            return asking.filling_unprompted(protocol, gap, hides=hides, address=address, budget=budget)
        is_quick = bool(self._first_seconds) and median(self._first_seconds) <= QUICK_SECONDS
        lines = None if is_quick else dialect.suffix_lines
        return asking.filling(protocol, dialect, gap, hides=hides, address=address, budget=budget, suffix_lines=lines)

    def _rewriting(self, way: Rewriting, regions: Regions) -> Iterator[Attempt[Rewrites]]:
        protocol, form = way
        sent = regions if self._client.site.is_loopback else asking.masked_regions(regions)
        budget = min(self._terms.room, REWRITE_TOKENS)
        return asking.rewriting(protocol, form, sent, regions, address=self._record.address, budget=budget)

    def _asked(self, attempts: Attempts[Answer], latest: Answer, due: float) -> Generator[Answer, None, Answer]:
        for attempt in attempts():
            latest = yield from self._answer(attempt, replace(latest, sent=attempt.sent), due)
            if latest.step:
                break
        self._terms.proven = True
        return latest

    def _answer(self, attempt: Attempt[Answer], latest: Answer, due: float) -> Generator[Answer, None, Answer]:
        """Drafts as the answer grows. Returns the last one, or the first if the answer begins with something else than
        what the user has typed."""
        stream, events, untouched = StreamedText(attempt.forced, attempt.ask.tokens), None, latest
        began = self._clock()
        until, first = began + LONGEST_SECONDS, 0.0
        exchange = self._opened(attempt, attempt.ask.tokens)
        self._open += 1
        try:
            while not (stream.end or stream.is_endless or stream.is_enough or self._clock() >= until):
                data = self._taken(exchange)
                if exchange.status not in (0, 200):
                    yield from self._refused(attempt.protocol.path, exchange, data, latest)
                if exchange.status and events is None:
                    events = Events(exchange.headers.get("content-type", ""))
                if exchange.done and events is not None and not (data or stream.text or stream.end or events.tells):
                    yield from self._silent(attempt, latest)
                if events is not None and self._hears(stream, events, data, exchange):
                    if stream.departs:
                        return untouched
                    if not first:
                        first = self._clock()
                        self._first_seconds.append(first - began)
                    if (shown := attempt.show(stream)) is not None:
                        latest = replace(shown, step=latest.step + 1, sent=attempt.sent)
                if self._clock() >= due and not latest.step and (attempt.rewrites or not (data or stream.text)):
                    if self._late < PATIENCE:  # what is told stays the same until it is over
                        self._slowness = _slowness(began, first, self._clock(), len(stream.text))
                    latest = self._when_due(attempt, stream, latest)
                yield latest
            self._health.worked()
            return latest
        finally:
            if self._clock() >= due and (attempt.rewrites or not stream.text):
                self._late += 1
            elif stream.text:
                self._late = 0
            self._open -= 1
            if stream.end:
                exchange.let_end()
            else:
                exchange.close()

    def _when_due(self, attempt: Attempt[Answer], stream: StreamedText, latest: Answer) -> Answer:
        """What there is of an answer when it is due: of a rewrite, what has come back to the old text at all."""
        stream.least = 1
        shown = attempt.show(stream) if stream.text else None
        if shown is None:
            raise EngineError(self._lateness)
        return replace(shown, step=latest.step + 1, sent=attempt.sent)

    def _hears(self, stream: StreamedText, events: Events, data: bytes, exchange: Exchange) -> bool:
        """Whether there is more than before."""
        address, secrets, before = self._record.address, self._client.secrets, (len(stream.text), stream.end)
        try:
            for event in chain(events.feed(data), events.finish() if exchange.done else ()):
                if event.error:
                    raise self._health.failed(Trouble(f"{address} gave up: {secrets.shown(event.error)}"))
                stream.add(event)
                if stream.is_endless:
                    break
            if stream.is_endless and not stream.text:
                raise WrongAnswerError("it goes on and on without any text")
        except WrongAnswerError as error:
            raise self._health.failed(wrong_answer(address, error, secrets)) from None
        if secrets.are_in(ForeignText(stream.text[max(before[0] - OVERLAP, 0) :])):
            raise EngineError(f"{address} sent back one of your keys as code, so its answer is hidden")
        if exchange.done and not (stream.end or stream.is_endless):
            if not events.ended:
                raise self._health.failed(link_trouble(address, BROKEN_OFF))
            stream.end = "length"  # it was broken off for another request, or nobody says why
        return before != (len(stream.text), stream.end)

    def _opened(self, attempt: Attempt[Any], tokens: int) -> Exchange:
        ask = replace(attempt.ask, model=self._record.model, context=self._terms.context, tokens=tokens)
        return self._client.open("POST", attempt.protocol.path, body(attempt.protocol, ask, plain=self._terms.plain))

    def _taken(self, exchange: Exchange) -> bytes:
        try:
            return exchange.take(SLICE_SECONDS / max(self._open, 1))
        except LinkError as error:
            raise self._health.failed(link_trouble(self._record.address, error)) from None

    def _ended(self, exchange: Exchange) -> Generator[None, None, bytes]:
        """All of an answer."""
        pieces: list[bytes] = []
        until = self._clock() + LONGEST_SECONDS
        self._open += 1
        try:
            while not exchange.done:
                if self._clock() >= until:
                    raise self._health.failed(link_trouble(self._record.address, ENDLESS))
                if piece := self._taken(exchange):
                    pieces.append(piece)
                yield
            return b"".join(pieces)
        finally:
            self._open -= 1
            exchange.close()

    def _refused(self, path: str, exchange: Exchange, data: bytes, latest: Answer) -> Generator[Answer]:
        """Raises what the server says about its refusal, once all of it is here."""
        reading, body = self._ended(exchange), b""
        while True:
            try:
                next(reading)
            except StopIteration as end:
                body = end.value
                break
            yield latest
        trouble = self._trouble(path, exchange, data + body)
        if exchange.status in PICKY:
            raise _RefusedError(trouble, _context_in(data + body))
        raise self._health.failed(trouble)

    def _silent(self, attempt: Attempt[Answer], latest: Answer) -> Generator[Answer]:
        """Raises what is behind an empty stream: some servers say it only to those who ask for no stream."""
        exchange = self._opened(replace(attempt, protocol=replace(attempt.protocol, streams=False)), 1)
        data = b""
        try:
            while not exchange.status:
                data += self._taken(exchange)
                yield latest
            if exchange.status != 200:
                yield from self._refused(attempt.protocol.path, exchange, data, latest)
        finally:
            exchange.close()
        nothing = WrongAnswerError("nothing at all")
        raise _RefusedError(wrong_answer(self._record.address, nothing, self._client.secrets))

    def _trouble(self, path: str, exchange: Exchange, body: bytes) -> Trouble:
        status, headers, secrets = exchange.status, exchange.headers, self._client.secrets
        return status_trouble(self._record, path, status, headers, body, secrets=secrets, has=self._has)

    def _right_model(self) -> Generator[None]:
        """Once after each failure: whether the server has the model that it is to be asked for."""
        path, model = self._protocol.models, self._record.model
        if self._health.checked or not path or not model:
            return
        exchange = self._client.open("GET", path)
        body = yield from self._ended(exchange)
        if exchange.status in (401, 403, 429) or exchange.status >= 500:
            raise self._health.failed(self._trouble(path, exchange, body))
        self._has = self._listed(body) if exchange.status == 200 else []
        if self._has and not any(self._serves(name) for name in self._has):
            raise self._health.failed(unknown_model(self._record, self._has))
        self._health.checked = True
        self._health.worked()

    def _listed(self, body: bytes) -> list[str]:
        try:
            names = model_names(decoded(body))
        except WrongAnswerError:
            return []
        return [name for name in names if is_name(name, self._client.secrets, self._record.model)]

    def _serves(self, name: str) -> bool:
        """A server that has one model and ignores names may have another one that reads the same prompts; one that has
        several goes by their names."""
        model = self._record.model
        if name in (model, f"{model}:latest"):
            return True
        filling = self._ways.filling
        if filling is None or not self._protocol.one_model or len(self._has) > 1:
            return False
        dialect = dialect_for((), name)
        return dialect is not None and dialect == filling[1]


def open_remote(record: ModelRecord, *, network: bool = False) -> RemoteEngine:
    """`network`: whether the user allows that code leaves this machine. A server that is not there is no error: it may
    be started later."""
    site_of(record.address)
    if record.protocol == "mercury":
        raise EngineError(
            f"{record.address} is an engine server of mercury-ls: set engine.address = {record.address!r} to use it"
        )
    if reason := why_not(record.address, network):
        raise EngineError(f"{record.address} {reason}")
    engine = RemoteEngine(record, client_for(record))
    engine.look(FIRST_LOOK_SECONDS)
    return engine


def _slowness(began: float, first: float, time: float, characters: int) -> str:
    """How slowly an answer came whose first text was there at `first`, or 0 if there was none."""
    if not characters:
        return NO_TEXT
    speed = f", then {characters / (time - first):.0f} characters/s" if time > first else ""
    return f"first text after {first - began:.1f} s{speed}"


def _ways_of(record: ModelRecord, protocol: ServerProtocol) -> Ways:
    """Inception has an endpoint for each kind of question."""
    inception = protocol_named("inception-edit"), INCEPTION_EDIT
    if protocol.name == "inception-edit":
        return Ways(None, inception)
    if protocol.name == "chat" and record.prompt in ("", CHAT_EDIT.name):
        return Ways(None, (protocol, CHAT_EDIT))
    form = _form_of(record, protocol)
    if isinstance(form, EditFormat):
        return Ways(None, (protocol, form))
    return Ways((protocol, form), inception if protocol.name == "inception" else None)


def _form_of(record: ModelRecord, protocol: ServerProtocol) -> Dialect | EditFormat | None:
    if not record.prompt:
        if protocol.shape == "gap":
            return None
        raise EngineError(
            f"{record.name}: the format of its prompts is not known: "
            f"`mercury-ls model add {record.address} --prompt NAME`, or `--prompt chat` for a "
            "model that only chats"
        )
    forms = {form.name: form for form in (*DIALECTS, *FORMATS)}
    if record.prompt not in forms:
        raise EngineError(f"{record.name}: no such prompt as {record.prompt!r}; use one of {', '.join(forms)}")
    return forms[record.prompt]


def _context_in(body: bytes) -> int:
    match = CONTEXT.search(body[:4096])
    return int(match[1]) if match else 0
