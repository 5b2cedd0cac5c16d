"""An engine on a thread of this process, behind the interface of `EngineClient`."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from mercury_engine.api import ChatReply, ChatRequest, Draft, Engine, Gap, Opinions, Proposals, Regions, Rewrites
from mercury_ls.link.client import EngineUnavailable, failed
from mercury_ls.link.questioner import Answered, Questioner
from mercury_ls.link.requests import prepared
from mercury_ls.link.wire import Failure, Request, Status
from mercury_ls.serve.worker import Worker


class WorkerClient(Questioner):
    """One client's access to a shared worker of this process."""

    def __init__(self, worker: Worker, name: str = "", roots: Sequence[str] = ()) -> None:
        self.roots = roots
        self._worker = worker
        self._name = name

    @property
    def status(self) -> Status:
        return self._worker.board.status

    @property
    def latencies_ms(self) -> Sequence[float]:
        return tuple(self._worker.latencies_ms)

    def for_client(self, name: str) -> "WorkerClient":
        return WorkerClient(self._worker, name, self.roots)

    async def _answers(self, request: Request, kind: type[Answered]) -> AsyncGenerator[Answered]:
        stream = self._worker.ask(self._name, prepared(request, self.roots))
        try:
            async for answer in stream:
                if isinstance(answer, Failure):
                    raise failed(answer)
                assert isinstance(answer, kind), "each question has one kind of answer"
                yield answer
        finally:
            stream.close()

    async def warm(self, question: Gap | Regions) -> None:
        self._worker.warm(self._name, prepared(question, self.roots))


class InProcessClient:
    """For tests, benchmarks and demos, which need no server."""

    def __init__(self, engine: Engine, *, on_status: Callable[[Status], None] = lambda status: None) -> None:
        self.status = Status("starting")
        self.roots: Sequence[str] = ()
        self._engine = engine
        self._on_status = on_status
        self._worker: Worker | None = None

    async def start(self) -> None:
        self._worker = Worker(lambda report: self._engine)
        async with aclosing(self._worker.board.statuses()) as statuses:
            async for status in statuses:
                self.status = status
                if status.state != "loading":
                    break
        self._on_status(self.status)

    async def close(self) -> None:
        if self._worker is not None:
            await self._worker.close()

    def fill(self, gap: Gap) -> AsyncGenerator[Draft]:
        return self._client().fill(gap)

    def rewrite(self, regions: Regions) -> AsyncGenerator[Rewrites]:
        return self._client().rewrite(regions)

    def judge(self, proposals: Proposals) -> AsyncGenerator[Opinions]:
        return self._client().judge(proposals)

    def chat(self, request: ChatRequest) -> AsyncGenerator[ChatReply]:
        return self._client().chat(request)

    async def warm(self, question: Gap | Regions) -> None:
        await self._client().warm(question)

    def _client(self) -> WorkerClient:
        if self._worker is None or self.status.state != "ready":
            raise EngineUnavailable(self.status.reason)
        return WorkerClient(self._worker, roots=self.roots)
