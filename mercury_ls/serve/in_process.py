"""An engine on a thread of this process, behind the interface of `EngineClient`."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from mercury_engine.api import ChatReply, ChatRequest, Draft, Engine, InfillRequest
from mercury_ls.link.client import EngineUnavailable, failed
from mercury_ls.link.requests import prepared
from mercury_ls.link.wire import Failure, Status
from mercury_ls.serve.worker import Worker


class WorkerClient:
    """One client's access to a shared worker of this process."""

    def __init__(self, worker: Worker, name: str = "", roots: Sequence[str] = ()) -> None:
        self.roots = roots
        self._worker = worker
        self._name = name

    @property
    def status(self) -> Status:
        return self._worker.status

    @property
    def latencies_ms(self) -> Sequence[float]:
        return tuple(self._worker.latencies_ms)

    def for_client(self, name: str) -> "WorkerClient":
        return WorkerClient(self._worker, name, self.roots)

    def infill(self, request: InfillRequest) -> AsyncGenerator[Draft]:
        return self._answers(request)

    def chat(self, request: ChatRequest) -> AsyncGenerator[ChatReply]:
        return self._answers(request)

    async def _answers(self, request: InfillRequest | ChatRequest) -> AsyncGenerator[Any]:
        stream = self._worker.ask(self._name, prepared(request, self.roots))
        try:
            async for answer in stream:
                if isinstance(answer, Failure):
                    raise failed(answer)
                yield answer
        finally:
            stream.close()

    async def warm(self, request: InfillRequest) -> None:
        self._worker.warm(self._name, prepared(request, self.roots))


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
        async with aclosing(self._worker.statuses()) as statuses:
            async for status in statuses:
                self.status = status
                if status.state != "loading":
                    break
        self._on_status(self.status)

    async def close(self) -> None:
        if self._worker is not None:
            await self._worker.close()

    def infill(self, request: InfillRequest) -> AsyncGenerator[Draft]:
        return self._client().infill(request)

    def chat(self, request: ChatRequest) -> AsyncGenerator[ChatReply]:
        return self._client().chat(request)

    async def warm(self, request: InfillRequest) -> None:
        await self._client().warm(request)

    def _client(self) -> WorkerClient:
        if self._worker is None or self.status.state != "ready":
            raise EngineUnavailable(self.status.reason)
        return WorkerClient(self._worker, roots=self.roots)
