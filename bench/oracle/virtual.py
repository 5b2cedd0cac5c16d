"""The desk in one process and in virtual time: nothing is waited for, and every run is the same.

Only the sockets are left out: the oracle's answers go through the engine for servers, the session and the server's
protocol. What processes and clocks do besides, `desk` measures.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from selectors import DefaultSelector
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from bench.harness.client import Client, initialize
from bench.harness.wire import frame
from bench.oracle.desk import NAME, Desk
from bench.oracle.server import Options, OracleServer, Piece, answered, gap_of, oracle_of, spoken
from mercury_engine.api import Draft, Gap, Opinions, Proposals, Regions, Rewrites
from mercury_engine.record import ModelRecord
from mercury_engine.remote.engine import SLICE_SECONDS, RemoteEngine
from mercury_engine.remote.http import HttpClient
from mercury_ls.link.wire import Status
from mercury_ls.lsp.app import create_server
from mercury_ls.session.wiring import OnStatus, Wiring
from mercury_ls.settings.schema import Settings

Result = TypeVar("Result")

ADDRESS = "http://127.0.0.1:1"


class _VirtualLoop(asyncio.SelectorEventLoop):
    """Its clock stands still while anything is to be done, and else goes on to the next timer at once."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_HastySelector(self))

    def time(self) -> float:
        return self.now


class _HastySelector(DefaultSelector):
    def __init__(self, loop: _VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(None if timeout is None else 0)
        if timeout and not ready:
            self._loop.now += timeout
        return ready


def at_once(measuring: Coroutine[Any, Any, Result]) -> Result:
    """Runs a measurement in virtual time."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(measuring)


class _VirtualExchange:
    """One answer of the oracle, as far as it has arrived by now."""

    def __init__(self, wire: "_VirtualWire", body: dict[str, Any]) -> None:
        self.status = 0
        self.headers = {"content-type": "text/event-stream"}
        self.done = False
        self._wire = wire
        self._due = 0.0
        self._pieces: list[Piece] = wire.answer(body)
        self._tells = "n_probs" in body

    def take(self, wait: float = 0.0) -> bytes:
        """There is nothing to wait for: the time of others stands still meanwhile."""
        now, options = self._wire.now(), self._wire.oracle.options
        if not self._due and self._wire.takes_slot(self):
            self._due = now + options.first_ms / 1000
        data = b""
        while self._due and now >= self._due and self._pieces:
            piece = self._pieces.pop(0)
            self.status = 200
            self._due += 1 / options.tokens_per_second
            self._wire.oracle.counts.tokens += bool(piece.text)
            data += f"data: {json.dumps(spoken(piece, as_openai=False, told=self._tells))}\n\n".encode()
        if not self._pieces:
            self.done = True
            self._wire.leaves_slot(self)
        return data

    def close(self) -> None:
        if not self.done:
            self._wire.oracle.counts.stopped += self.status == 200
            self._wire.oracle.counts.vain += self.status != 200
        self.done = True
        self._wire.leaves_slot(self)

    let_end = close


class _VirtualWire(HttpClient):
    """What the engine takes for the way to a server; `slots` requests are answered at a time."""

    def __init__(self, oracle: OracleServer) -> None:
        super().__init__(ADDRESS, {})
        self.oracle = oracle
        self.now = asyncio.get_running_loop().time
        self._answering: list[_VirtualExchange] = []

    def open(self, method: str, path: str, body: bytes = b"") -> Any:
        return _VirtualExchange(self, json.loads(body))

    def answer(self, body: dict[str, Any]) -> list[Piece]:
        self.oracle.counts.requests += 1
        place = self.oracle.truths.place(*gap_of(body))
        sampled = body.get("seed", 0) if body.get("temperature") else 0
        stops = body.get("stop", ())
        return [*answered(place, self.oracle.options, most=body["n_predict"], stops=stops, sampled=sampled)]

    def takes_slot(self, exchange: _VirtualExchange) -> bool:
        if len(self._answering) < self.oracle.options.slots:
            self._answering.append(exchange)
        return exchange in self._answering

    def leaves_slot(self, exchange: _VirtualExchange) -> None:
        if exchange in self._answering:
            self._answering.remove(exchange)


class _VirtualEngine:
    """The engine for servers, a step at a time on the loop of whoever asks."""

    roots: Sequence[str] = ()

    def __init__(self, oracle: OracleServer, on_status: OnStatus) -> None:
        record = ModelRecord(name=NAME, kind="server", prompt="qwen", protocol="llama", address=ADDRESS, context=32_768)
        self._engine = RemoteEngine(record, _VirtualWire(oracle), clock=asyncio.get_running_loop().time)
        self.status = Status("starting")
        self._on_status = on_status

    async def start(self) -> None:
        self.status = Status("ready", info=self._engine.info())
        self._on_status(self.status)

    async def close(self) -> None: ...

    async def warm(self, question: Gap | Regions) -> None: ...

    def rewrite(self, regions: Regions) -> AsyncGenerator[Rewrites]:
        raise AssertionError("it only fills gaps")

    def judge(self, proposals: Proposals) -> AsyncGenerator[Opinions]:
        raise AssertionError("it only fills gaps")

    async def fill(self, gap: Gap) -> AsyncGenerator[Draft]:
        latest, drafts = None, self._engine.fill(gap)
        try:
            for draft in drafts:
                if draft is not latest and (draft.step or draft.final):
                    yield draft
                latest = draft
                await asyncio.sleep(0 if draft.final else SLICE_SECONDS)
        finally:
            drafts.close()


class _VirtualProcess:
    """A language server as its client knows it: messages go in and come out."""

    def __init__(self, wiring: Wiring) -> None:
        self.server = create_server(wiring)
        self.stdout = asyncio.StreamReader(limit=1 << 26)
        self.stdin = self
        self.server.protocol.attach(lambda body: self.stdout.feed_data(frame(body)))

    def write(self, data: bytes) -> None:
        self.server.protocol.receive(data.partition(b"\r\n\r\n")[2])


@asynccontextmanager
async def virtual(
    texts: Sequence[str], options: Options | None = None, **settings: str
) -> AsyncIterator[tuple[OracleServer, Desk]]:
    """An oracle, and a language server that asks it."""
    oracle = oracle_of(texts, options)

    def make_engine(_: Settings, on_status: OnStatus) -> _VirtualEngine:
        return _VirtualEngine(oracle, on_status)

    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        environment = {"MERCURY_RECORD_COUNTS": "false", "MERCURY_CONTEXT_ANALYSED_NAMES": "false", **settings}
        process = _VirtualProcess(Wiring(user_file=root / "none", environ=environment, make_engine=make_engine))
        client: Any = Client(process)  # pyright: ignore[reportArgumentType]
        client.offers = (await client.request("initialize", initialize(root)))["capabilities"]
        client.notify("initialized", {})
        try:
            yield oracle, Desk(client, root, [])
        finally:
            await process.server.close()
            client._reading.cancel()
