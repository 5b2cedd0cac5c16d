"""The real language server before an oracle, with a home of its own, and the buffers that are edited there."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from msgspec import Struct

from bench.harness.client import Client, RequestError, own_home, running, until_ready
from bench.oracle.rows import Row
from bench.oracle.server import Options, OracleServer, serving
from bench.oracle.truth import common
from mercury_ls.code.documents import Document, Snapshot

INLINE = "textDocument/inlineCompletion"
INVOKED, AUTOMATIC = 1, 2
NAME = "oracle"
PATIENCE_SECONDS = 60.0


Setup = Callable[..., AbstractAsyncContextManager[tuple[OracleServer, "Desk"]]]
"""Begins a measurement: from texts, options of the oracle and settings of the language server to both of them."""


class _Oracle(Protocol):
    address: str


class Answer(Struct, frozen=True):
    """A suggestion: the buffer's text would become `text`, of which what stands behind `tail` characters from its end
    stays. `accept` is the command to say so."""

    text: str
    tail: int
    accept: dict[str, Any]

    def inserted(self, before: str, behind: str) -> str | None:
        """What it puts between two texts; None if it changes one of them."""
        fits = self.text.startswith(before) and self.text.endswith(behind)
        return self.text[len(before) : len(self.text) - len(behind)] if fits else None


class Buffer:
    """An open document as its editor has it."""

    def __init__(self, client: Client, path: Path, language: str, text: str) -> None:
        self.client = client
        self.uri = path.as_uri()
        self.unit: Any = client.offers.get("positionEncoding", "utf-16")
        self._document = Document(self.uri, path.name, language, 1, text)
        client.open(self.uri, language, text)

    @property
    def text(self) -> str:
        return self._document.text

    def snapshot(self) -> Snapshot:
        return self._document.snapshot()

    def replace(self, start: int, end: int, text: str) -> None:
        here = self.snapshot()
        ends = [here.position(offset, self.unit) for offset in (start, end)]
        first, last = ({"line": line, "character": character} for line, character in ends)
        self.client.change(self.uri, [{"range": {"start": first, "end": last}, "text": text}])
        self._document.apply([((*ends[0], *ends[1]), text)], self._document.version + 1, self.unit)

    def ask(self, offset: int, kind: int) -> tuple[int, asyncio.Future]:
        line, character = self.snapshot().position(offset, self.unit)
        place = {"textDocument": {"uri": self.uri}, "position": {"line": line, "character": character}}
        return self.client.ask(INLINE, {**place, "context": {"triggerKind": kind}})

    async def asked(self, offset: int, kind: int) -> list[Answer]:
        """All that is answered to a request, in the text as it is now."""
        here = self.snapshot()
        _, answer = self.ask(offset, kind)
        try:
            return self.answers(await asyncio.wait_for(answer, PATIENCE_SECONDS), here)
        except RequestError:
            return []

    async def grown(self, seconds: float) -> bool:
        """Whether the server says within this time that there is more than it has answered."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    told = await self.client.notifications.get()
                    if told["method"] == "mercury/didGrow" and told["params"]["uri"] == self.uri:
                        return True
        return False

    def answers(self, result: Any, here: Snapshot) -> list[Answer]:
        """Those of a result whose ranges count in this text."""
        found = []
        for item in (result or {}).get("items", ()):
            ends = item["range"]["start"], item["range"]["end"]
            start, end = (here.offset(each["line"], each["character"], self.unit) for each in ends)
            text = here.text[:start] + item["insertText"] + here.text[end:]
            found.append(Answer(text, len(here.text) - end, item["command"]))
        return found

    def accept(self, answer: Answer, offset: int) -> int:
        """As an editor does: the text, and then the command. Returns where the cursor is then."""
        start, text = common(self.text[:offset], answer.text), answer.text
        self.replace(start, len(self.text) - answer.tail, text[start : len(text) - answer.tail])
        command = {"command": answer.accept["command"], "arguments": answer.accept["arguments"]}
        self.client.ask("workspace/executeCommand", command)
        return len(text) - answer.tail

    def close(self) -> None:
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": self.uri}})


class Desk(Struct, frozen=True):
    """`opened` counts the buffers, whose files have folders of their own so that no name is used twice."""

    client: Client
    root: Path
    opened: list[str] = []

    def open(self, name: str, language: str, text: str) -> Buffer:
        self.opened.append(name)
        return Buffer(self.client, self.root / f"part{len(self.opened)}" / name, language, text)

    def open_row(self, row: Row) -> Buffer:
        return self.open(row.file, row.language, row.before + row.behind)


@asynccontextmanager
async def desk(oracle: "_Oracle", *options: str, **settings: str) -> AsyncIterator[Desk]:
    """A language server whose model was added by the oracle's address, as a user adds one, with these `options`.
    `settings` are those of its environment."""
    with TemporaryDirectory() as folder:
        home, root = Path(folder).resolve(), Path(folder).resolve() / "project"
        (root / ".git").mkdir(parents=True)
        environment = own_home(home) | {"MERCURY_LOG_LEVEL": "error", **settings}
        del environment["MERCURY_ENGINE_MODEL"]
        await _mercury(environment, "model", "add", oracle.address, "--name", NAME, "--yes", *options)
        environment["MERCURY_ENGINE_MODEL"] = NAME
        try:
            async with running(root, **environment) as client:
                await until_ready(client)
                yield Desk(client, root, [])
        finally:
            await _mercury(environment, "serve", "--stop")


@asynccontextmanager
async def real(
    texts: Sequence[str], options: Options | None = None, **settings: str
) -> AsyncIterator[tuple[OracleServer, Desk]]:
    """An oracle, and a language server that asks it, as users run them."""
    async with serving(texts, options) as oracle, desk(oracle, **settings) as at:
        yield oracle, at


async def _mercury(environment: dict[str, str], *arguments: str) -> None:
    """Runs a command; the oracle goes on answering meanwhile."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mercury_ls", *arguments),
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    if process.returncode:
        raise SystemExit(f"mercury-ls {' '.join(arguments)}: {said.decode(errors='replace').strip()}")
