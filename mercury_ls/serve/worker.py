"""One thread that owns a synchronous engine, and the event loop's way to give it work and take it back."""

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, islice, zip_longest
from threading import Condition, Thread

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Draft, Engine, EngineError, InfillRequest
from mercury_ls.link.wire import Failure, Status, final, untouched

__all__ = ["Answers", "LoadEngine", "Worker"]

LoadEngine = Callable[[Callable[[float, str], None]], Engine]
"""Gets a function to report progress with: the fraction done and what is being done."""

Job = Callable[[Engine], None]

WAITING_PER_CLIENT = 16
WAITING = 256
WARM = 32
SLICE_SECONDS = 0.05
"""Most answers take less."""
CLOSE_SECONDS = 5.0

SUPERSEDED = Failure("superseded", f"{WAITING_PER_CLIENT} newer requests of the same client are waiting")
BUSY = Failure("busy", f"{WAITING} requests are waiting already: ask again in a moment")
STOPPED = Failure("unavailable", "the engine server is stopping")

log = logging.getLogger(__name__)


class Worker:
    """Made on an event loop; loads the engine on its own thread and runs everything there, one forward at a time.

    Before each forward it is decided who goes on: the newest request of a client, clients in turn, and as many
    at once as the engine answers in one batch. Warm work gets what time is left, and never delays a batch by more
    than the forward that it is in. Each yield of the engine is where a closed or late request ends and where any
    other may be suspended.
    """

    def __init__(self, load_engine: LoadEngine, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.status = Status("loading")
        self._load_engine = load_engine
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._work = Condition()
        self._turns = Turns()
        self._wishes: OrderedDict[tuple[str, str], Warm] = OrderedDict()
        self._warming: Warm | None = None
        self._stopping = False
        self._notes: tuple[str, ...] = ()
        self._thread = Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    def infill(self, client: str, request: InfillRequest) -> "Answers":
        """The deadline counts from here, and the spans must lie inside of their windows."""
        wait = float("inf") if request.deadline_ms is None else request.deadline_ms / 1000
        answers = Answers(client, request, self._clock() + wait, self._loop, self._forget)
        if self._stopping:
            answers.deliver(STOPPED)
            return answers
        if self.status.state != "ready":
            reason = self.status.detail or f"the engine is {self.status.state}"
            answers.deliver(Failure("unavailable", reason))
            return answers
        with self._work:
            self._drop_warm(client, request.session)
            refused = self._turns.add(answers)
            self._work.notify()
        if refused is not None:
            refused.deliver(BUSY if refused is answers else SUPERSEDED)
        return answers

    def warm(self, client: str, request: InfillRequest) -> None:
        """Replaces what the same session wished before; the oldest wish goes when there are too many."""
        with self._work:
            self._drop_warm(client, request.session)
            self._wishes[client, request.session] = Warm(client, request)
            if len(self._wishes) > WARM:
                self._wishes.popitem(last=False)
            self._work.notify()

    def forget(self, client: str) -> None:
        """The client is gone, and nobody will use what was to be warmed for it."""
        with self._work:
            sessions = [session for owner, session in self._wishes if owner == client]
            if self._warming is not None:
                sessions.append(self._warming.request.session)
            for session in sessions:
                self._drop_warm(client, session)
            self._work.notify()

    async def statuses(self) -> AsyncIterator[Status]:
        """The status now and after each change, until the worker closes."""
        while not self._stopping:
            changed = self._changed
            yield self.status
            await changed.wait()

    async def close(self) -> None:
        """Ends every request with a `Failure`, then waits for the thread; not for a forward that hangs."""
        with self._work:
            self._stopping = True
            waiting = [answers for answers in self._turns if not answers.begun]
            for answers in waiting:
                self._turns.remove(answers)
            self._wishes.clear()
            self._work.notify()
        for answers in waiting:
            answers.deliver(STOPPED)
        self._changed.set()
        await asyncio.to_thread(self._thread.join, CLOSE_SECONDS)

    @property
    def pending(self) -> int:
        """Jobs that wait, run or are suspended."""
        with self._work:
            return len(self._turns) + len(self._wishes) + (self._warming is not None)

    def _forget(self, answers: "Answers") -> None:
        """Whoever has begun is ended by the engine's thread."""
        with self._work:
            if not answers.begun:
                self._turns.remove(answers)
            self._work.notify()

    def _drop_warm(self, client: str, session: str) -> None:
        self._wishes.pop((client, session), None)
        warming = self._warming
        if warming is not None and (warming.client, warming.request.session) == (client, session):
            warming.stale = True

    def _publish(self, status: Status) -> None:
        self.status = status
        self._changed.set()
        self._changed = asyncio.Event()

    # Everything below runs on the engine's thread.

    def _run(self) -> None:
        try:
            engine = self._load_engine(self._report)
            self._tell(Status("ready", info=engine.info()))
        except Exception as error:
            log.exception("the engine could not be loaded")
            self._tell(Status("unavailable", describe(error)))
            return
        batch = engine.info().batch
        while (job := self._next(batch)) is not None:
            job(engine)
            self._tell_notes(engine)
        with self._work:
            begun = list(self._turns)
        for answers in begun:
            self._end(answers, STOPPED)
        self._end_warm()

    def _report(self, progress: float, detail: str) -> None:
        self._tell(Status("loading", detail, progress))

    def _tell_notes(self, engine: Engine) -> None:
        """What is amiss with an engine that answers, as soon as it is, and until it no longer is."""
        info = engine.info()
        if info.notes != self._notes:
            self._notes = info.notes
            self._tell(Status("ready", "; ".join(info.notes), info=info))

    def _tell(self, status: Status) -> None:
        with suppress(RuntimeError):  # the loop has been closed: nobody is left to tell
            self._loop.call_soon_threadsafe(self._publish, status)

    def _next(self, batch: int) -> Job | None:
        while True:
            self._end_closed_and_late()
            with self._work:
                if self._stopping:
                    return None
                if self._warming is not None and self._warming.stale:
                    return self._end_warm
                if self._turns:
                    return partial(self._advance, self._turns.choose(batch))
                if self._warming is None and self._wishes:
                    _, self._warming = self._wishes.popitem()
                if self._warming is not None:
                    return partial(self._encode, self._warming)
                self._work.wait()

    def _end_closed_and_late(self) -> None:
        """Whoever has no more time gets the best draft so far: without any, the text as it stands."""
        with self._work:
            now = self._clock()
            over = [answers for answers in self._turns if answers.closed or now >= answers.deadline]
        for answers in over:
            self._end(answers, final(answers.best))

    def _advance(self, chosen: "list[Answers]", engine: Engine) -> None:
        """One draft of each; the engine computes the next forwards of all of them with the first."""
        began = self._clock()
        for answers in chosen:
            if not (answers.closed or self._stopping):
                self._draft(answers, engine)
        with self._work:
            self._turns.spent(chosen, self._clock() - began)

    def _draft(self, answers: "Answers", engine: Engine) -> None:
        try:
            if answers.drafts is None:
                answers.drafts = engine.infill(self._in_time(answers))
            draft = next(answers.drafts, None)
            if draft is None:
                raise EngineError("the engine stopped without a final draft")
        except Exception as error:
            if not isinstance(error, EngineError):
                log.exception("the engine failed on a request of session %r", answers.request.session)
            self._end(answers, Failure("engine", describe(error)))
            return
        answers.best = draft
        if draft.final or self._clock() >= answers.deadline:
            self._end(answers, final(draft))
        else:
            answers.deliver(draft)

    def _in_time(self, answers: "Answers") -> InfillRequest:
        request = answers.request
        if request.deadline_ms is None:
            return request
        return replace(request, deadline_ms=(answers.deadline - self._clock()) * 1000)

    def _end(self, answers: "Answers", last: Draft | Failure) -> None:
        """The last thing that is heard of it; the engine is told that nobody listens any longer."""
        try:
            if answers.drafts is not None:
                answers.drafts.close()
        except Exception:
            log.exception("the engine failed to end a request of session %r", answers.request.session)
        answers.deliver(last)
        with self._work:
            self._turns.remove(answers)

    def _encode(self, warm: "Warm", engine: Engine) -> None:
        try:
            if warm.steps is None:
                warm.steps = engine.warm(warm.request)
            for _ in warm.steps:
                if self._stopping or warm.stale or self._turns:
                    return
        except Exception:
            log.exception("the engine failed to warm session %r", warm.request.session)
        self._end_warm()

    def _end_warm(self, engine: Engine | None = None) -> None:
        with self._work:
            warm, self._warming = self._warming, None
        if warm is None or warm.steps is None:
            return
        try:
            warm.steps.close()
        except Exception:
            log.exception("the engine failed to end the warming of session %r", warm.request.session)


class Turns:
    """Who waits or has begun, and who goes on: clients in turn, the newest request of each first.

    A turn is an answer or a slice of the engine's time, whichever is shorter: what takes long does not hold up
    others, and what is short is not cut into pieces. With room for several the next clients go on too, then the
    second newest requests.
    """

    def __init__(self) -> None:
        self._clients: OrderedDict[str, list[Answers]] = OrderedDict()
        self._used: dict[str, float] = {}

    def __len__(self) -> int:
        return sum(map(len, self._clients.values()))

    def __iter__(self) -> "Iterator[Answers]":
        return chain.from_iterable(list(self._clients.values()))

    def add(self, answers: "Answers") -> "Answers | None":
        """Who has to go for it: nobody, the client's oldest that waits, or the new one when all is full."""
        if sum(not other.begun for other in self) >= WAITING:
            return answers
        queue = self._clients.setdefault(answers.client, [])
        queue.append(answers)
        waiting = [other for other in queue if not other.begun]
        if len(waiting) <= WAITING_PER_CLIENT:
            return None
        self.remove(waiting[0])
        return waiting[0]

    def choose(self, most: int) -> "list[Answers]":
        ranks = zip_longest(*(reversed(queue) for queue in self._clients.values()))
        chosen = list(islice((answers for rank in ranks for answers in rank if answers is not None), most))
        for answers in chosen:
            self._begin(answers)
        return chosen

    def _begin(self, answers: "Answers") -> None:
        """The oldest of too many has no more time: whoever asks that much wants to hear of the newest."""
        answers.begun = True
        begun = [other for other in self._clients[answers.client] if other.begun]
        if len(begun) > WAITING_PER_CLIENT:
            begun[0].deadline = float("-inf")

    def spent(self, chosen: "list[Answers]", seconds: float) -> None:
        """Those whose slice is over stand behind all others; an answer that was given ended its turn already."""
        unfinished = dict.fromkeys(answers.client for answers in self if answers in chosen)
        for client in unfinished:
            self._used[client] = self._used.get(client, 0.0) + seconds
            if self._used[client] >= SLICE_SECONDS:
                self._to_the_end(client)

    def remove(self, answers: "Answers") -> None:
        queue = self._clients.get(answers.client, [])
        if answers not in queue:
            return
        queue.remove(answers)
        if answers.begun:
            self._to_the_end(answers.client)
        if not queue:
            del self._clients[answers.client]

    def _to_the_end(self, client: str) -> None:
        self._clients.move_to_end(client)
        self._used.pop(client, None)


class Answers:
    """The loop's end of one request: drafts until the final one, or until a `Failure`.

    `close()` cancels: a waiting request is forgotten, one that has begun ends at the engine's next yield. What the
    engine's thread knows of it: the drafts once it has begun, and the best of them.
    """

    def __init__(
        self,
        client: str,
        request: InfillRequest,
        deadline: float,
        loop: asyncio.AbstractEventLoop,
        forget: Callable[["Answers"], None],
    ) -> None:
        self.client = client
        self.request = request
        self.deadline = deadline
        self.closed = False
        self.begun = False
        self.drafts: Iterator[Draft] | None = None
        self.best = untouched(request)
        self._loop = loop
        self._forget = forget
        self._arrived: deque[Draft | Failure] = deque()
        self._arrival: asyncio.Future[None] | None = None
        self._last = False

    def __aiter__(self) -> "Answers":
        return self

    async def __anext__(self) -> Draft | Failure:
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

    def deliver(self, answer: Draft | Failure) -> None:
        """Called on either thread."""
        with suppress(RuntimeError):  # the loop has been closed: nobody is left to read the answer
            self._loop.call_soon_threadsafe(self._arrive, answer)

    def _arrive(self, answer: Draft | Failure) -> None:
        if self.closed or self._last:
            return
        self._last = isinstance(answer, Failure) or answer.final
        self._arrived.append(answer)
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)


class Warm(Struct, eq=False):
    """Encoding ahead for one session; `steps` is the engine's generator once it has begun."""

    client: str
    request: InfillRequest
    stale: bool = False
    steps: Iterator[None] | None = None


def describe(error: Exception) -> str:
    return str(error) if isinstance(error, EngineError) else f"{type(error).__name__}: {error}"
