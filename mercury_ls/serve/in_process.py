"""An engine on a thread of this process, behind the interface of `EngineClient`."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing

from mercury_engine.api import Draft, Engine, InfillRequest
from mercury_ls.link.client import EngineUnavailable, failed
from mercury_ls.link.requests import normalized
from mercury_ls.link.wire import Failure, Status, check
from mercury_ls.serve.worker import Worker

__all__ = ["InProcessClient", "WorkerClient"]


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

    async def infill(self, request: InfillRequest) -> AsyncIterator[Draft]:
        check(request)
        stream = self._ready().infill("", normalized(request, self.roots))
        try:
            async for answer in stream:
                if isinstance(answer, Failure):
                    raise failed(answer)
                yield answer
        finally:
            stream.close()

    async def warm(self, request: InfillRequest) -> None:
        check(request)
        self._ready().warm("", normalized(request, self.roots))

    def _ready(self) -> Worker:
        if self._worker is None or self.status.state != "ready":
            raise EngineUnavailable(self.status.detail or f"the engine is {self.status.state}")
        return self._worker


class WorkerClient:
    """One client's way to a worker of this process, which others use too."""

    def __init__(self, worker: Worker, name: str = "") -> None:
        self.roots: Sequence[str] = ()
        self._worker = worker
        self._name = name

    @property
    def status(self) -> Status:
        return self._worker.status

    def for_client(self, name: str) -> "WorkerClient":
        return WorkerClient(self._worker, name)

    async def infill(self, request: InfillRequest) -> AsyncIterator[Draft]:
        check(request)
        stream = self._worker.infill(self._name, normalized(request, self.roots))
        try:
            async for answer in stream:
                if isinstance(answer, Failure):
                    raise failed(answer)
                yield answer
        finally:
            stream.close()

    async def warm(self, request: InfillRequest) -> None:
        check(request)
        self._worker.warm(self._name, normalized(request, self.roots))
