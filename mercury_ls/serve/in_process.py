"""A worker of this process, asked as another process would be."""

from collections.abc import AsyncGenerator, Sequence

from mercury_engine.api import Gap, Regions
from mercury_ls.link.client import failed
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
