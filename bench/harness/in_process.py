"""An engine on a thread of this process, behind the interface of `EngineClient`: for tests and benchmarks, which need
no server."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from mercury_engine.api import Engine, Gap, Regions
from mercury_ls.link.client import EngineUnavailable
from mercury_ls.link.questioner import Answered, Questioner
from mercury_ls.link.wire import Request, Status
from mercury_ls.serve.in_process import WorkerClient
from mercury_ls.serve.worker import Worker


class InProcessClient(Questioner):
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

    def _answers(self, request: Request, kind: type[Answered]) -> AsyncGenerator[Answered]:
        return self._client()._answers(request, kind)

    async def warm(self, question: Gap | Regions) -> None:
        await self._client().warm(question)

    def _client(self) -> WorkerClient:
        if self._worker is None or self.status.state != "ready":
            raise EngineUnavailable(self.status.reason)
        return WorkerClient(self._worker, roots=self.roots)
