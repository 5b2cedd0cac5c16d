"""Real servers in processes of their own, with a private home and the fake engine."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from lsprotocol import types as lsp
from pytest_lsp import LanguageClient, make_test_lsp_client

from tests.e2e.environment import COMMAND, home, stop_engine
from tests.e2e.raw import Raw

SAMPLE = """\
def load(path):
    with open(path) as file:
        return file.read()


def store(path, text):
    with open(path, "w") as file:
        return file.write(text)


"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """One engine server for a module; it is stopped at the end."""
    folder = tmp_path_factory.mktemp("h")
    variables = home(folder)
    yield variables
    stop_engine(variables)


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("project").resolve()
    (root / "files.py").write_text(SAMPLE, encoding="utf-8")
    (root / ".gitignore").write_text("private.py\n", encoding="utf-8")
    return root


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(environment, project) -> AsyncIterator[Raw]:
    """One server process for all tests of a module that leave it as they found it."""
    async with Raw(environment, project) as server:
        yield server


def client_capabilities() -> lsp.ClientCapabilities:
    return lsp.ClientCapabilities(
        general=lsp.GeneralClientCapabilities(position_encodings=["utf-16"]),
        text_document=lsp.TextDocumentClientCapabilities(inline_completion=lsp.InlineCompletionClientCapabilities()),
        window=lsp.WindowClientCapabilities(work_done_progress=True),
        experimental={"mercury": {}},
    )


class Editor:
    """A client that types: what the end-to-end tests drive."""

    def __init__(self, client: LanguageClient, root: Path):
        self.client = client
        self.root = root
        self.versions: dict[str, int] = {}
        self.statuses: list = []
        self.messages: list[str] = []
        self.heard = asyncio.Event()
        client.feature("mercury/didChangeStatus")(lambda status: self.hear(status))

    def hear(self, status) -> None:
        self.statuses.append(status)
        self.heard.set()

    async def initialize(self, capabilities=None, **options) -> lsp.InitializeResult:
        return await self.client.initialize_session(
            lsp.InitializeParams(
                capabilities=capabilities or client_capabilities(),
                process_id=os.getpid(),
                root_uri=self.root.as_uri(),
                workspace_folders=[lsp.WorkspaceFolder(self.root.as_uri(), "project")],
                initialization_options=options,
            )
        )

    async def ready(self) -> None:
        """The engine answers: told by a notification, not by the clock."""
        await self.state("ready")

    async def state(self, wanted: str) -> None:
        async with asyncio.timeout(120):
            while not self.statuses or self.statuses[-1].state != wanted:
                self.heard.clear()
                await self.heard.wait()

    async def request(self, method: str, **params):
        return await self.client.protocol.send_request_async(method, params)

    def open(self, name: str, text: str, language: str = "python") -> str:
        uri = name if ":" in name else (self.root / name).as_uri()
        self.versions[uri] = 1
        item = lsp.TextDocumentItem(uri, language, 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return uri

    def type(self, uri: str, line: int, character: int, text: str) -> None:
        self.versions[uri] += 1
        where = lsp.Position(line, character)
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(self.versions[uri], uri),
                [lsp.TextDocumentContentChangePartial(lsp.Range(where, where), text)],
            )
        )

    async def inline(self, uri: str, line: int, character: int, invoked: bool = False, **context):
        kind = lsp.InlineCompletionTriggerKind
        result = await self.client.text_document_inline_completion_async(
            lsp.InlineCompletionParams(
                lsp.InlineCompletionContext(kind.Invoked if invoked else kind.Automatic, **context),
                lsp.TextDocumentIdentifier(uri),
                lsp.Position(line, character),
            )
        )
        return list(result.items)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def editor(environment, project):
    client = make_test_lsp_client()
    # What one test refuses must not change what the next one is shown.
    await client.start_io(*COMMAND, "--stdio", env={**environment, "MERCURY_SUGGEST_ADAPT": "false"})
    made = Editor(client, project)
    made.result = await made.initialize()
    await made.ready()
    yield made
    await client.shutdown_session()
    await client.stop()
