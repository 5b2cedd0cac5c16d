"""A small LSP client over standard input and output, which drives the real server in the demo and the benchmarks."""

import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.harness.wire import frame, received

COMMAND = (sys.executable, "-m", "mercury_ls", "--stdio")
GONE = "the server is gone"


class RequestError(Exception):
    """An error answer of the server; `code` is its number."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]


class Client:
    """One conversation with one server process: `offers` are its capabilities, `received` when answers were read.

    >>> async with running(root) as client:
    ...     client.open(uri, "python", text)
    ...     answer = await client.request("textDocument/inlineCompletion", {...})
    """

    def __init__(self, process: asyncio.subprocess.Process):
        self.process = process
        self.notifications: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.is_gone = False
        self.offers: dict[str, Any] = {}
        self.versions: dict[str, int] = {}
        self.received: dict[int, float] = {}
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future] = {}
        self._reading = asyncio.create_task(self._read())

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(frame(body))

    def notify(self, method: str, params: Any) -> None:
        self.send({"method": method, "params": params})

    def ask(self, method: str, params: Any) -> tuple[int, asyncio.Future]:
        """Send a request; return its id, for cancelling, and the future answer."""
        if self.is_gone:
            raise ConnectionError(GONE)
        id = next(self._ids)
        self._waiting[id] = asyncio.get_running_loop().create_future()
        self.send({"id": id, "method": method, "params": params})
        return id, self._waiting[id]

    async def request(self, method: str, params: Any) -> Any:
        return await self.ask(method, params)[1]

    def cancel(self, id: int) -> None:
        self.notify("$/cancelRequest", {"id": id})

    def open(self, uri: str, language: str, text: str) -> None:
        self.versions[uri] = 1
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def insert(self, uri: str, line: int, character: int, text: str) -> None:
        where = {"line": line, "character": character}
        self.change(uri, [{"range": {"start": where, "end": where}, "text": text}])

    def change(self, uri: str, changes: Sequence[dict[str, Any]]) -> None:
        self.versions[uri] += 1
        document = {"uri": uri, "version": self.versions[uri]}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    async def _read(self) -> None:
        while (body := await received(self.process.stdout)) is not None:
            self._arrived(json.loads(body), time.perf_counter())
        self._lost()

    def _arrived(self, message: dict[str, Any], now: float) -> None:
        if "method" in message and "id" in message:
            items = message["params"].get("items") if message["method"] == "workspace/configuration" else None
            self.send({"id": message["id"], "result": [None] * len(items) if items else None})
        elif "method" in message:
            self.notifications.put_nowait({**message, "received": now})
        elif (waiting := self._waiting.pop(message["id"], None)) and not waiting.done():
            self.received[message["id"]] = now
            if "error" in message:
                waiting.set_exception(RequestError(message["error"]))
            else:
                waiting.set_result(message["result"])

    def _lost(self) -> None:
        self.is_gone = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError(GONE))

    async def close(self) -> None:
        await self.request("shutdown", None)
        self.notify("exit", None)
        await self.process.wait()
        self._reading.cancel()


def capabilities(*, grows: bool) -> dict[str, Any]:
    """The capabilities of Neovim 0.12, as far as this server reads them, and whether it is told when an answer
    `grows`."""
    return {
        "general": {"positionEncodings": ["utf-8", "utf-16", "utf-32"]},
        "textDocument": {
            "synchronization": {"didSave": True},
            "inlineCompletion": {"dynamicRegistration": False},
            "diagnostic": {"dynamicRegistration": False},
        },
        "window": {"workDoneProgress": True},
        "workspace": {"configuration": True, "workspaceFolders": True},
        "experimental": {"mercury": {"grows": grows}},
    }


@asynccontextmanager
async def running(
    root: Path,
    options: dict[str, Any] | None = None,
    command: Sequence[str] = COMMAND,
    *,
    grows: bool = True,
    **environment: str,
) -> AsyncIterator[Client]:
    """A started and initialized server for the project at `root`, whose counts are not recorded as the user's."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 26,
        env={**os.environ, "MERCURY_RECORD_COUNTS": "false", **environment},
    )
    client = Client(process)
    try:
        client.offers = (await client.request("initialize", initialize(root, options, grows=grows)))["capabilities"]
        client.notify("initialized", {})
        yield client
        await client.close()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def initialize(root: Path, options: dict[str, Any] | None = None, *, grows: bool = True) -> dict[str, Any]:
    return {
        "processId": os.getpid(),
        "rootUri": root.as_uri(),
        "capabilities": capabilities(grows=grows),
        "workspaceFolders": [{"uri": root.as_uri(), "name": root.name}],
        "initializationOptions": options or {},
    }


async def until_ready(client: Client, seconds: float = 30.0) -> dict[str, Any]:
    """Wait for the engine; return the status that says it is ready, or why it never will be."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status = await client.request("mercury/status", {})
        if status["state"] in ("ready", "unavailable"):
            return status
        await _wait_for(client, "mercury/didChangeStatus", deadline - time.monotonic())
    raise TimeoutError(f"the engine was not ready within {seconds:g} s")


async def _wait_for(client: Client, method: str, seconds: float) -> dict[str, Any] | None:
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await client.notifications.get()
                if message["method"] == method:
                    return message["params"]
    except TimeoutError:
        return None


def isolated(root: Path) -> dict[str, str]:
    """The environment of a server that neither reads nor writes the user's own files."""
    runtime = root / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    return {
        "MERCURY_LS_RUNTIME_DIR": str(runtime),
        "MERCURY_ENGINE_MODEL": "fake",
        "XDG_CONFIG_HOME": str(root / "config"),
        "XDG_STATE_HOME": str(root / "state"),
    }


def own_home(root: Path) -> dict[str, str]:
    """The same with an empty home folder, where nothing was installed or added yet."""
    return isolated(root) | {
        "HOME": str(root),
        "XDG_CACHE_HOME": str(root / "cache"),
        "XDG_DATA_HOME": str(root / "data"),
    }
