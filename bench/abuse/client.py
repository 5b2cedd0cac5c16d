"""The real process under abuse and one conversation with it."""

import asyncio
import json
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from bench.abuse.oracle import due
from bench.abuse.sandbox import PYTHON, REPOSITORY, Playground
from bench.harness.usage import peak_mb, resident_mb
from bench.harness.wire import frame, received

LARGEST_REPLY = 1 << 27
READ_SECONDS = ANSWER_SECONDS = 20.0
TRACE = re.compile(r"Traceback|Task exception was never|was never awaited|Fatal Python|Segmentation")


class ServerProcess:
    """One process of ours: what it says on standard error goes to a file."""

    def __init__(self, process: asyncio.subprocess.Process, errors: Path) -> None:
        self.process = process
        self.errors = errors

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def said(self) -> str:
        return self.errors.read_text(encoding="utf-8", errors="replace")

    def complaints(self) -> list[str]:
        """What went wrong inside, each once: the last lines of each traceback say what and where."""
        said = self.said
        found = (said[match.start() : match.start() + 8000] for match in TRACE.finditer(said))
        return list(dict.fromkeys(shortened(each) for each in found))

    def memory_mb(self) -> tuple[float, float]:
        """Resident now, and at most since it started."""
        return resident_mb(self.pid) or 0.0, peak_mb(self.pid) or 0.0

    async def ended(self, seconds: float) -> int | None:
        """Its exit code, None where it lives on: then it is killed."""
        try:
            async with asyncio.timeout(seconds):
                return await self.process.wait()
        except TimeoutError:
            await self.kill()
            return None

    async def kill(self) -> None:
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGCONT)
                self.process.kill()
            await self.process.wait()


def shortened(trace: str) -> str:
    """The last place in it and what was raised there."""
    place, error = "", trace.partition("\n")[0]
    for line in trace.splitlines()[1:]:
        text = line.strip(" |+-")
        if text.startswith('File "'):
            place = text
        elif place and not line.startswith(" ") and text:
            return f"{place}: {text}"[:300]
    return f"{place}: {error}"[:300]


async def start(
    sandbox: Playground,
    *arguments: str,
    environment: dict[str, str] | None = None,
    command: Sequence[str] = PYTHON,
    cwd: Path | None = None,
) -> ServerProcess:
    errors = sandbox.root / f"stderr-{time.monotonic_ns()}"
    with open(errors, "wb") as file:  # noqa: ASYNC230  a small local file
        process = await asyncio.create_subprocess_exec(
            *command,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=file,
            env=sandbox.environment() if environment is None else environment,
            limit=LARGEST_REPLY,
            cwd=cwd or (REPOSITORY if command[0] != "/" else None),
        )
    return ServerProcess(process, errors)


class Link(Protocol):
    """Bytes to the server and messages from it."""

    async def write(self, data: bytes) -> None: ...
    async def message(self) -> bytes | None: ...
    async def close(self) -> None: ...


class Pipe:
    """Standard input and output of the server."""

    def __init__(self, server: ServerProcess) -> None:
        self._reader: Any = server.process.stdout
        self._writer: Any = server.process.stdin

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        try:
            async with asyncio.timeout(READ_SECONDS):
                await self._writer.drain()
        except TimeoutError:
            raise TimeoutError(f"the server has read nothing for {READ_SECONDS:g} s") from None

    async def message(self) -> bytes | None:
        return await received(self._reader)

    async def close(self) -> None:
        """Without waiting: asyncio never says that a pipe is closed whose reader died first."""
        with suppress(OSError):
            self._writer.close()


class Conversation:
    """What was asked and what was answered: each id, in the spelling of JSON, as often as it has to be."""

    def __init__(self, wire: Link, answer: Callable[[dict[str, Any]], Any] = lambda message: None) -> None:
        self.wire = wire
        self.due: Counter[str] = Counter()
        self.may: Counter[str] = Counter()
        self.got: Counter[str] = Counter()
        self.offers: list[str] = []
        self.wrong: list[str] = []
        self.replies: dict[str, dict[str, Any]] = {}
        self.is_gone = False
        self._answer = answer
        self._heard = asyncio.Event()
        self._open: set[str] = set()
        self._reading = asyncio.create_task(self._read())

    def expect(self, body: bytes) -> None:
        """Before it is sent."""
        must, may = due(body)
        if must:
            self.due[must] += 1
            self._open.add(must)
        self.may.update(may)

    async def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.expect(body)
        await self.wire.write(frame(body))

    async def request(self, method: str, params: Any, seconds: float, id: str = "") -> dict[str, Any]:
        """The whole reply, error or not."""
        id = id or f"ask {len(self.due)} {time.monotonic_ns()}"
        await self.send({"id": id, "method": method, "params": params})
        return await self.reply(id, seconds)

    async def reply(self, id: str, seconds: float) -> dict[str, Any]:
        key = json.dumps(id)
        await self.until(lambda: key in self.replies, seconds, f"{id} is not answered")
        return self.replies.pop(key)

    async def settled(self, seconds: float) -> None:
        """Until nothing is due any more."""
        await self.until(lambda: not self._open, seconds, "requests are not answered")

    async def until(self, condition: Callable[[], bool], seconds: float, problem: str) -> None:
        until = time.monotonic() + seconds
        while not condition():
            self._heard.clear()
            if self.is_gone:
                raise ConnectionError(f"the server is gone: {problem}")
            try:
                async with asyncio.timeout(until - time.monotonic()):
                    await self._heard.wait()
            except TimeoutError:
                raise TimeoutError(f"{problem} within {seconds:g} s") from None

    def unanswered(self) -> list[str]:
        return [id for id, n in (self.due - self.got).items() if n]

    def unasked(self) -> list[str]:
        """Answers that nobody is owed, or twice."""
        return [id for id, n in (self.got - self.due - self.may).items() if n]

    async def _read(self) -> None:
        try:
            while (body := await self.wire.message()) is not None:
                await self._arrived(json.loads(body))
        except (ValueError, AssertionError) as error:
            self.wrong.append(f"what the server sent is not the protocol: {error}")
        self.is_gone = True
        self._heard.set()

    async def _arrived(self, message: dict[str, Any]) -> None:
        if "method" in message:
            if "id" in message and (reply := self._answer(message)) is not None:
                await self.wire.write(frame(reply))
        else:
            key = json.dumps(message.get("id"))
            self.got[key] += 1
            if self.got[key] >= self.due[key]:
                self._open.discard(key)
            self.replies[key] = message
            if len(self.replies) > 5000:
                self.replies.pop(next(iter(self.replies)))
            self.offers += _offered(message.get("result"))[:1]
        self._heard.set()

    async def end(self) -> None:
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading
        await self.wire.close()


def _offered(result: Any) -> list[str]:
    """The ids of what is offered, of ghost text and of next edits alike."""
    if not isinstance(result, dict):
        return []
    items = result.get("items") or result.get("edits") or []
    commands = (item.get("command") for item in items if isinstance(item, dict))
    return [str(command["arguments"][0]) for command in commands if command and command.get("arguments")]
