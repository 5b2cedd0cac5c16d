"""The thread that owns the synchronous engine, and how the event loop gives it work and cancels it."""

import asyncio
import gc
import logging
import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, filterfalse, zip_longest
from threading import Condition, Thread
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import (
    ChatEngine,
    ChatReply,
    ChatRequest,
    Engine,
    EngineError,
    EngineInfo,
    Gap,
    Proposals,
    Regions,
    RequestError,
)
from mercury_ls.link.wire import Answer, Failure, Frame, Request, Status, final, untouched

LoadEngine = Callable[[Callable[[float, str], None]], Engine]
"""Takes a function to report progress with: the fraction done, and the current step."""

Job = Callable[[Engine], None]

WAITING_PER_CLIENT = 16
WAITING = 256
WARM = 32
LATENCIES = 1024
SLICE_SECONDS = 0.05
"""Longer than most answers take."""
PATIENCE_SECONDS = 0.8
"""For so long somebody who types waits for an answer while others wait too."""
CROWD_SECONDS = 10.0
"""For so long clients that have asked count as busy ones."""
CONVERSATION_SECONDS = 1.0
"""So often one conversation gets one step, however many completions wait."""
CLOSE_SECONDS = 5.0
REST_SECONDS = 600.0
"""Without work for so long, the engine is closed, which frees its memory, and loaded again for the next request."""
SLACK = 1.25
"""So much slower or faster reading is no news."""

SUPERSEDED = Failure("superseded", f"{WAITING_PER_CLIENT} newer requests of the same client are waiting")
CANNOT_CHAT = (
    "the model {} completes code and does not chat: add an instruct model with `mercury-ls model add SOURCE`, "
    "and choose it with `mercury-ls model use NAME`"
)
BUSY = Failure("busy", f"{WAITING} requests are waiting already: ask again in a moment")
STOPPED = Failure("unavailable", "the engine server is stopping")

log = logging.getLogger(__name__)


class Worker:
    """Created on an event loop; loads the engine on its own thread and runs everything there, one forward at a time.

    Before each forward it schedules the newest request of each client, round robin, and as many at once as the engine
    can batch; conversations wait until no completion does, but for a step a second. Warming gets the remaining time,
    and never delays a batch by more than one forward. At each yield of the engine, a closed or late request ends, and
    any other may be suspended. Without work for `rest_seconds` the engine is closed until there is some.

    Of more clients than the engine can batch, those come first whose request is begun, then the newest. What was asked
    while typing and takes too long gets the best answer so far, or ends before it is read; the status then says how
    many ask.
    """

    def __init__(
        self,
        load_engine: LoadEngine,
        *,
        clock: Callable[[], float] = time.monotonic,
        rest_seconds: float = REST_SECONDS,
    ) -> None:
        self.latencies_ms: deque[float] = deque(maxlen=LATENCIES)
        """Of the last answers to all clients: from the arrival of a request to its final draft."""
        self._load_engine = load_engine
        self._clock = clock
        self._rest_seconds = rest_seconds
        self._loop = asyncio.get_running_loop()
        self.board = StatusBoard(self._loop)
        self._work = Condition()
        self._schedule = _Schedule()
        self._warmings: OrderedDict[tuple[str, str], _Warm] = OrderedDict()
        self._warming: _Warm | None = None
        self._stopping = False
        self._crashed = ""
        self._thread = Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    def ask(self, client: str, request: Request) -> "DraftStream":
        """Start a request, and its deadline. `wire.check` must have accepted it."""
        wait = float("inf") if request.deadline_ms is None else request.deadline_ms / 1000
        time = self._clock()
        stream = DraftStream(client, request, time, time + wait, self._loop, self._forget)
        if self._stopping:
            stream.deliver(STOPPED)
            return stream
        if self.board.status.state != "ready":
            stream.deliver(Failure("unavailable", self.board.status.reason))
            return stream
        with self._work:
            if self._crashed:
                stream.deliver(Failure("unavailable", self._crashed))
                return stream
            self._drop_warm(client, request.session)
            refused = self._schedule.add(stream)
            self._work.notify()
        if refused is not None:
            refused.deliver(BUSY if refused is stream else SUPERSEDED)
        return stream

    def warm(self, client: str, question: Gap | Regions) -> None:
        """Replace the previous question of the same session; the oldest is dropped if there are too many."""
        with self._work:
            self._drop_warm(client, question.session)
            self._warmings[client, question.session] = _Warm(client, question)
            if len(self._warmings) > WARM:
                self._warmings.popitem(last=False)
            self._work.notify()

    def forget(self, client: str) -> None:
        """Drop all warming for a client that is gone."""
        with self._work:
            sessions = [session for owner, session in self._warmings if owner == client]
            if self._warming is not None:
                sessions.append(self._warming.question.session)
            for session in sessions:
                self._drop_warm(client, session)
            self._work.notify()

    async def close(self) -> None:
        """End every request with a `Failure`, then wait for the thread, but not for a forward that hangs."""
        with self._work:
            self._stopping = True
            waiting = [stream for stream in self._schedule if not stream.started]
            for stream in waiting:
                self._schedule.remove(stream)
            self._warmings.clear()
            self._work.notify()
        for stream in waiting:
            stream.deliver(STOPPED)
        self.board.close()
        await asyncio.to_thread(self._thread.join, CLOSE_SECONDS)

    @property
    def pending(self) -> int:
        """The number of jobs that are waiting, running or suspended."""
        with self._work:
            return len(self._schedule) + len(self._warmings) + (self._warming is not None)

    def _forget(self, stream: "DraftStream") -> None:
        """Remove a waiting request; a started one is ended by the engine's thread."""
        with self._work:
            if not stream.started:
                self._schedule.remove(stream)
            self._work.notify()

    def _drop_warm(self, client: str, session: str) -> None:
        self._warmings.pop((client, session), None)
        warming = self._warming
        if warming is not None and (warming.client, warming.question.session) == (client, session):
            warming.stale = True

    # Everything below runs on the engine's thread.

    def _run(self) -> None:
        """However the thread ends, its streams end with it: a panic of a Rust library is no `Exception`."""
        try:
            self._run_engine()
        except BaseException as error:
            log.critical("the engine's thread has ended", exc_info=error)
            crashed = f"the engine crashed ({_describe(error)})"
            self.board.publish(Status("unavailable", crashed))
            with self._work:
                self._crashed, streams = crashed, list(self._schedule)
            for stream in streams:
                stream.deliver(Failure("unavailable", crashed))

    def _run_engine(self) -> None:
        while not self._stopping and (engine := self._loaded()) is not None:
            batch = engine.info().batch
            while (job := self._next(engine, batch)) is not None:
                job(engine)
                self._publish_info(engine)
            with self._work:
                started = list(self._schedule)
            for stream in started:
                self._end(stream, STOPPED)
            self._end_warm()
            if not self._stopping:
                _close(engine)
                del engine
                gc.collect()
                self._rest()

    def _loaded(self) -> Engine | None:
        try:
            engine = self._load_engine(self._report)
            self._publish_info(engine)
        except Exception as error:
            log.error("the engine could not be loaded: %s", error, exc_info=not isinstance(error, EngineError))
            self.board.publish(Status("unavailable", _describe(error)))
            return None
        return engine

    def _rest(self) -> None:
        """Until there is work: whoever brings it learns that the model is loading."""
        with self._work:
            while not (self._stopping or self._schedule or self._warmings):
                self._work.wait()
            waiting = list(self._schedule)
            for stream in waiting:
                self._schedule.remove(stream)
        if not self._stopping:
            self.board.publish(Status("loading"))
        for stream in waiting:
            stream.deliver(STOPPED if self._stopping else Failure("unavailable", Status("loading").reason))

    def _report(self, progress: float, detail: str) -> None:
        self.board.publish(Status("loading", detail, progress))

    def _publish_info(self, engine: Engine) -> None:
        info = engine.info()
        if crowd := self._schedule.crowd(self._clock()):
            info = replace(info, notes=(*info.notes, crowd))
        self.board.publish_info(info)

    def _next(self, engine: Engine, batch: int) -> Job | None:
        """What to do next; None if there is nothing to do for long, or the worker stops."""
        while True:
            if self._end_closed_and_late(engine):
                self._publish_info(engine)
            with self._work:
                if self._stopping:
                    return None
                if self._warming is not None and self._warming.stale:
                    return self._end_warm
                if self._schedule:
                    return partial(self._advance, self._schedule.choose(batch, self._clock()))
                if self._warming is None and self._warmings:
                    _, self._warming = self._warmings.popitem()
                if self._warming is not None:
                    return partial(self._encode, self._warming)
                if self._schedule.crowd(self._clock()):
                    self._work.wait(CROWD_SECONDS)
                    return self._publish_info
                if not self._work.wait(self._rest_seconds):
                    return None

    def _end_closed_and_late(self, engine: Engine) -> bool:
        """End late requests: a question with the best draft so far, or the text as it stands; a chat by the engine,
        which needs no forward for it. True if any ended."""
        with self._work:
            time = self._clock()
            thinned = self._schedule.thinned(time)
            over = [stream for stream in self._schedule if stream.closed or time >= stream.deadline]
        for stream in thinned:
            busy = Failure("busy", f"{self._schedule.crowd(time)} ask for more than this machine can answer")
            self._end(stream, final(stream.best) if stream.started else busy)
        for stream in filterfalse(thinned.__contains__, over):
            if isinstance(stream.best, ChatReply) and stream.drafts is not None and not stream.closed:
                self._draft(stream, engine)
            else:
                self._end(stream, final(stream.best))
        return bool(over or thinned)

    def _advance(self, chosen: "list[DraftStream]", engine: Engine) -> None:
        """One draft for each; the engine batches their forwards with the first one."""
        began = self._clock()
        for stream in chosen:
            if not (stream.closed or self._stopping):
                self._draft(stream, engine)
        with self._work:
            self._schedule.spent(chosen, self._clock() - began)

    def _draft(self, stream: "DraftStream", engine: Engine) -> None:
        """Deliver a new draft: an engine without anything new yields the same draft again."""
        try:
            if stream.drafts is None:
                stream.drafts = _answers(engine, self._in_time(stream))
            draft = next(stream.drafts, None)
            if draft is None:
                raise EngineError("the engine stopped without a final draft")
        except Exception as error:
            if not isinstance(error, EngineError):
                log.exception("the engine failed on a request of session %r", stream.request.session)
            self._end(stream, Failure(error.kind if isinstance(error, EngineError) else "engine", _describe(error)))
            return
        is_news, stream.best = draft is not stream.best, draft
        if draft.final or self._clock() >= stream.deadline:
            self._end(stream, final(draft))
        elif is_news:
            stream.deliver(draft)

    def _in_time(self, stream: "DraftStream") -> Request:
        request = stream.request
        if request.deadline_ms is None:
            return request
        return replace(request, deadline_ms=(stream.deadline - self._clock()) * 1000)

    def _end(self, stream: "DraftStream", last: Frame) -> None:
        """Close the engine's generator and deliver the last message of a request."""
        try:
            if stream.drafts is not None:
                stream.drafts.close()
        except Exception:
            log.exception("the engine failed to end a request of session %r", stream.request.session)
        if not (isinstance(last, ChatReply | Failure) or stream.closed):
            self.latencies_ms.append((self._clock() - stream.began) * 1000)
        stream.deliver(last)
        with self._work:
            self._schedule.remove(stream)

    def _encode(self, warm: "_Warm", engine: Engine) -> None:
        try:
            if warm.steps is None:
                warm.steps = engine.warm(warm.question)
            for _ in warm.steps:
                if self._stopping or warm.stale or self._schedule:
                    return
        except EngineError as error:
            log.info("session %r is not warmed: %s", warm.question.session, error)
        except Exception:
            log.exception("the engine failed to warm session %r", warm.question.session)
        self._end_warm()

    def _end_warm(self, engine: Engine | None = None) -> None:
        with self._work:
            warm, self._warming = self._warming, None
        if warm is None or warm.steps is None:
            return
        try:
            warm.steps.close()
        except Exception:
            log.exception("the engine failed to end the warming of session %r", warm.question.session)


def _by_urgency(queue: "list[DraftStream]") -> "list[DraftStream]":
    """Opinions hold up no completion of the same user."""
    newest_first = queue[::-1]
    return sorted(newest_first, key=_is_opinion)


def _order_in_a_crowd(stream: "DraftStream", time: float) -> tuple[int, float]:
    """Of what was asked while typing, what is begun comes first, then the newest. Whoever asked by hand takes turns
    with others who did, between those; what takes long gets a turn a second."""
    is_long = stream.spent >= PATIENCE_SECONDS and time - stream.chosen_at < PATIENCE_SECONDS
    if is_long:
        return 3, 0.0
    if not stream.is_of_typing:
        return 1, 0.0
    return (0, 0.0) if stream.started else (2, -stream.began)


def _is_opinion(stream: "DraftStream") -> bool:
    return isinstance(stream.request, Proposals)


class StatusBoard:
    """What clients are told of the engine: published on its thread, read on the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.status = Status("loading")
        """What clients were told last."""
        self._loop = loop
        self._changed = asyncio.Event()
        self._closed = False
        self._info: EngineInfo | None = None
        self._published: EngineInfo | None = None

    @property
    def latest(self) -> Status:
        """The status with what the engine says of itself now."""
        return replace(self.status, info=self._info) if self.status.info else self.status

    async def statuses(self) -> AsyncGenerator[Status]:
        """The current status, and each new one until the board is closed."""
        while not self._closed:
            changed = self._changed
            yield self.status
            await changed.wait()

    def close(self) -> None:
        self._closed = True
        self._changed.set()

    def publish(self, status: Status) -> None:
        self._published = status.info
        with suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(self._set, status)

    def publish_info(self, info: EngineInfo) -> None:
        """What the engine says of itself is told to all clients when its notes about what does not work as it should,
        how much it reads or how quickly have changed."""
        self._info = info
        if self._published is None or _is_news(info, self._published):
            self.publish(Status("ready", "; ".join(info.notes), info=info))

    def _set(self, status: Status) -> None:
        self.status = status
        self._changed.set()
        self._changed = asyncio.Event()


def _is_news(info: EngineInfo, told: EngineInfo) -> bool:
    """True if clients should decide otherwise than by what they were told."""
    if _behaviour(info) != _behaviour(told):
        return True
    speeds = info.reads_per_second, told.reads_per_second
    return min(speeds) * SLACK < max(speeds)


def _behaviour(info: EngineInfo) -> tuple[object, ...]:
    return info.notes, info.context_tokens, info.awaited_tokens, info.follows_typing


class _Schedule:
    """The open requests, and which of them run next: completions before conversations, clients round robin, the newest
    request of each first, but opinions of next edits last. Where completions never end, the conversation that has
    waited longest gets a step now and then.

    A turn lasts for one answer or one slice of engine time, whichever is shorter: long requests do not hold up others,
    and short ones are not interrupted. If the engine has room for several, the next clients' requests run too, then the
    clients' second newest.
    """

    def __init__(self) -> None:
        self._clients: OrderedDict[str, list[DraftStream]] = OrderedDict()
        self._used: dict[str, float] = {}
        self._asked: dict[str, float] = {}
        """When each client asked last."""
        self._conversed_at = self._thinned_at = float("-inf")

    def __len__(self) -> int:
        return sum(map(len, self._clients.values()))

    def __iter__(self) -> "Iterator[DraftStream]":
        return chain.from_iterable(list(self._clients.values()))

    def add(self, stream: "DraftStream") -> "DraftStream | None":
        """The request that must go, if any: the client's oldest waiting one, or the new one if the server is full."""
        time = stream.began
        self._asked = {client: moment for client, moment in self._asked.items() if time - moment < CROWD_SECONDS}
        self._asked[stream.client] = time
        if sum(not other.started for other in self) >= WAITING:
            return stream
        queue = self._clients.setdefault(stream.client, [])
        queue.append(stream)
        waiting = [other for other in queue if not other.started]
        if len(waiting) <= WAITING_PER_CLIENT:
            return None
        self.remove(waiting[0])
        return waiting[0]

    def thinned(self, time: float) -> "list[DraftStream]":
        """What was asked while typing and nobody waits for any more, if several clients ask: then they are a crowd."""
        if len(self._clients) < 2:
            return []
        thinned = [stream for stream in self if stream.is_of_typing and time - stream.began >= PATIENCE_SECONDS]
        if thinned:
            self._thinned_at = time
        return thinned

    def crowd(self, now: float) -> str:
        """What to tell clients while requests are given up; nothing otherwise."""
        return f"busy: {len(self._asked)} editors" if now - self._thinned_at < CROWD_SECONDS else ""

    def choose(self, limit: int, now: float) -> "list[DraftStream]":
        queues = [_by_urgency(queue) for queue in self._clients.values()]
        if len(queues) > limit:
            queues.sort(key=lambda queue: _order_in_a_crowd(queue[0], now))
        ranks = zip_longest(*queues)
        streams = [stream for rank in ranks for stream in rank if stream is not None]
        conversations = [stream for stream in streams if isinstance(stream.request, ChatRequest)]
        completions = [stream for stream in streams if stream not in conversations]
        first = [*self._overdue(conversations, now), *completions] if completions else conversations
        chosen = first[:limit]
        for stream in chosen:
            self._begin(stream)
            stream.chosen_at = now
            if stream in conversations:
                self._conversed_at = now
        return chosen

    def _overdue(self, conversations: "list[DraftStream]", now: float) -> "list[DraftStream]":
        """The one that has waited longest, if that was too long and none had a step meanwhile."""
        longest = min(conversations, key=lambda stream: stream.chosen_at, default=None)
        if longest is None or now - max(longest.chosen_at, self._conversed_at) < CONVERSATION_SECONDS:
            return []
        return [longest]

    def _begin(self, stream: "DraftStream") -> None:
        """Start a request. If a client has too many running, the oldest one ends: the client wants the newest."""
        stream.started = True
        started = [other for other in self._clients[stream.client] if other.started]
        if len(started) > WAITING_PER_CLIENT:
            started[0].deadline = float("-inf")

    def spent(self, chosen: "list[DraftStream]", seconds: float) -> None:
        """Move clients whose slice is used up to the end; those that got their answer are already there."""
        for stream in chosen:
            stream.spent += seconds
        unfinished = dict.fromkeys(stream.client for stream in self if stream in chosen)
        for client in unfinished:
            self._used[client] = self._used.get(client, 0.0) + seconds
            if self._used[client] >= SLICE_SECONDS:
                self._to_the_end(client)

    def remove(self, stream: "DraftStream") -> None:
        queue = self._clients.get(stream.client, [])
        if stream not in queue:
            return
        queue.remove(stream)
        if stream.started:
            self._to_the_end(stream.client)
        if not queue:
            del self._clients[stream.client]

    def _to_the_end(self, client: str) -> None:
        self._clients.move_to_end(client)
        self._used.pop(client, None)


class DraftStream:
    """The answers to one request, for the event loop: until the final one, or until a `Failure`.

    `close()` cancels: a waiting request is removed, a running one ends at the engine's next yield. The engine's thread
    owns `_drafts` and `best`.
    """

    def __init__(
        self,
        client: str,
        request: Request,
        began: float,
        deadline: float,
        loop: asyncio.AbstractEventLoop,
        forget: Callable[["DraftStream"], None],
    ) -> None:
        self.client = client
        self.request = request
        self.began = began
        self.chosen_at = began
        """When it got a step last."""
        self.deadline = deadline
        self.spent = 0.0
        """Seconds of the engine."""
        self.closed = False
        self.started = False
        self.drafts: Generator[Answer] | None = None
        self.best = untouched(request)
        self._loop = loop
        self._forget = forget
        self._arrived: deque[Frame] = deque()
        self._arrival: asyncio.Future[None] | None = None
        self._last = False

    @property
    def is_of_typing(self) -> bool:
        """Whether it was not asked by hand."""
        return isinstance(self.request, Proposals) or (isinstance(self.request, Gap) and not self.request.invoked)

    def __aiter__(self) -> "DraftStream":
        return self

    async def __anext__(self) -> Frame:
        while not self._arrived:
            if self._last or self.closed:
                raise StopAsyncIteration
            self._arrival = self._loop.create_future()
            await self._arrival
        return self._arrived.popleft()

    def close(self) -> None:
        self.closed = True
        self._arrived.clear()
        self._forget(self)
        self._wake()

    def deliver(self, answer: Frame) -> None:
        """Deliver a message, from either thread."""
        with suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(self._arrive, answer)

    def _arrive(self, answer: Frame) -> None:
        if self.closed or self._last:
            return
        self._last = isinstance(answer, Failure) or answer.final
        self._arrived.append(answer)
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)


class _Warm(Struct, eq=False):
    """A question to read ahead for one session; `steps` is the engine's generator once it is running."""

    client: str
    question: Gap | Regions
    stale: bool = False
    steps: Generator[None] | None = None


def _close(engine: Engine) -> None:
    if close := getattr(engine, "close", None):
        close()


def _answers(engine: Engine, request: Request) -> Generator[Answer]:
    if isinstance(request, Gap):
        return engine.fill(request)
    if isinstance(request, Regions):
        return engine.rewrite(request)
    if isinstance(request, Proposals):
        return engine.judge(request)
    info = engine.info()
    if not info.chats:
        raise RequestError(CANNOT_CHAT.format(info.model))
    return cast("ChatEngine", engine).chat(request)


def _describe(error: BaseException) -> str:
    return str(error) if isinstance(error, EngineError) else f"{type(error).__name__}: {error}"
