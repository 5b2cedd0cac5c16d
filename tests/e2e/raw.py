"""A client that may send anything at all: bytes on a pipe."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.harness.wire import frame, received
from tests.e2e.environment import COMMAND

BETWEEN_QUESTIONS_SECONDS = 0.02


class Raw:
    """One server process. Replies that nobody has asked for yet are kept."""

    def __init__(
        self,
        environment: dict[str, str],
        root: Path,
        *,
        initialize: bool = True,
        options: Any = None,
        arguments: Sequence[str] = (),
        command: Sequence[str] = COMMAND,
    ):
        self.environment = environment
        self.root = root
        self.options = options or {}
        self.states: list[str] = []
        self.notified: list[dict[str, Any]] = []
        self.versions: dict[str, int] = {}
        self._initialize = initialize
        self._command = (*command, "--stdio", *arguments)
        self._replies: dict[Any, dict] = {}
        self._next = 100_000

    async def __aenter__(self) -> "Raw":
        self.process = await asyncio.create_subprocess_exec(
            *self._command,
            env=self.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        if self._initialize:
            await self.initialize()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.process.returncode is None and not self.process.stdin.is_closing():
            self.send({"jsonrpc": "2.0", "id": 1, "method": "shutdown"})
            self.send({"jsonrpc": "2.0", "method": "exit"})
        await asyncio.wait_for(self.process.wait(), 20)

    async def initialize(self) -> None:
        await self.request(
            "initialize",
            {
                "processId": None,
                "rootUri": self.root.as_uri(),
                "capabilities": {
                    "textDocument": {"inlineCompletion": {}},
                    "experimental": {"mercury": {}},
                },
                "initializationOptions": self.options,
            },
        )
        self.send({"jsonrpc": "2.0", "method": "initialized", "params": {}})

    def write(self, data: bytes) -> None:
        self.process.stdin.write(data)

    def send(self, message: Any) -> None:
        self.write(frame(json.dumps(message).encode()))

    async def read(self) -> dict[str, Any]:
        """The next reply; notifications are kept aside."""
        while True:
            message = await asyncio.wait_for(self._message(), 30)
            if "method" not in message:
                return message
            self.notified.append(message)
            if message["method"] == "mercury/didChangeStatus":
                self.states.append(message["params"]["state"])

    async def _message(self) -> dict[str, Any]:
        body = await received(self.process.stdout)
        assert body is not None, "the server has ended"
        return json.loads(body)

    async def answer(self, id: Any) -> dict[str, Any]:
        while id not in self._replies:
            message = await self.read()
            self._replies[message["id"]] = message
        return self._replies.pop(id)

    async def error(self, id: Any) -> int:
        return (await self.answer(id))["error"]["code"]

    async def request(self, method: str, params: Any) -> Any:
        self._next += 1
        self.send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return (await self.answer(self._next))["result"]

    async def until(self, state: str) -> None:
        """Ask on until the engine is in this state, or has been since the last state that was waited for."""
        async with asyncio.timeout(60):
            while state not in self.states:
                await self.request("mercury/status", {})
                await asyncio.sleep(BETWEEN_QUESTIONS_SECONDS)  # the engine starts by the same processor
        del self.states[: self.states.index(state)]

    def open(self, name: str, text: str) -> str:
        uri = (self.root / name).as_uri()
        self.versions[uri] = 1
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.send({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}})
        return uri

    def close(self, uri: str) -> None:
        self.send({"jsonrpc": "2.0", "method": "textDocument/didClose", "params": {"textDocument": {"uri": uri}}})

    def change(self, uri: str, line: int, character: int, text: str) -> None:
        self.replace(uri, (line, character, line, character), text)

    def replace(self, uri: str, where: tuple[int, int, int, int], text: str) -> None:
        self.versions[uri] += 1
        ends = [{"line": line, "character": character} for line, character in (where[:2], where[2:])]
        params = {
            "textDocument": {"uri": uri, "version": self.versions[uri]},
            "contentChanges": [{"range": {"start": ends[0], "end": ends[1]}, "text": text}],
        }
        self.send({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": params})

    def inline_message(self, id: int, uri: str, line: int, character: int) -> dict[str, Any]:
        params = {
            "textDocument": {"uri": uri},
            "position": {"line": line, "character": character},
            "context": {"triggerKind": 2},
        }
        return {"jsonrpc": "2.0", "id": id, "method": "textDocument/inlineCompletion", "params": params}

    async def inline(self, uri: str, line: int, character: int) -> list[dict[str, Any]]:
        self._next += 1
        self.send(self.inline_message(self._next, uri, line, character))
        return (await self.answer(self._next))["result"]["items"]

    async def why(self, uri: str, line: int = 0, character: int = 0) -> str:
        place = {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}
        return (await self.request("mercury/why", place))["reason"]
