"""Whatever a project, its code or a model's server say, nothing that an editor shows of it is a link or deceives."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pygls.exceptions import FeatureNotificationError

from mercury_engine.api import EngineError
from mercury_engine.fake import INFO
from mercury_ls.link.client import Status
from tests.mercury_ls.lsp.test_server import Client, place

LINK = re.compile(r"\[[^\]]+\]\((?:https?://|command:|file:)", re.IGNORECASE)
"""The beginning of what VS Code makes a link of in its notifications."""
DECEPTIVE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
CODE = frozenset({"uri", "newText", "oldText", "text", "draft", "insertText", "filterText"})
"""Keys of what is written into documents, or names them."""
ABLE = {
    "textDocument": {"inlineCompletion": {}},
    "window": {"showMessage": {}, "workDoneProgress": True},
    "workspace": {"workspaceEdit": {"documentChanges": True, "changeAnnotationSupport": {}}, "applyEdit": True},
    "experimental": {"mercury": {}},
}
ROWS = "class Rows:\n    def fetch(self):\n        return self.fetch()\n"
CALLS = 'a = call(1, "old")\nb = call(2, "old")\nc = call(3, "old")\n'


class AgreeingClient(Client):
    """Agrees to whatever the server asks."""

    def __init__(self, folder: Path, text: str):
        super().__init__(folder)
        self.said = text
        self.server.protocol.attach(self.heard)

    def heard(self, body: bytes) -> None:
        message = json.loads(body)
        self.sent.append(message)
        if {"id", "method"} <= message.keys():
            result = {"applied": False} if message["method"] == "workspace/applyEdit" else None
            asyncio.get_running_loop().call_soon(self.send, {"id": message["id"], "result": result})

    def replace(self, uri: str, version: int, line: int, columns: tuple[int, int], text: str) -> None:
        start, end = ({"line": line, "character": column} for column in columns)
        self.change(uri, version, {"range": {"start": start, "end": end}, "text": text})

    async def ask(self, uri: str, line: int) -> None:
        """All that there is to ask about a line."""
        at = place(uri, line, 2)
        by_hand = {"triggerKind": 1, "closedFiles": True}
        spot = {"start": at["position"], "end": at["position"]}
        questions = {
            "mercury/nextEdit": {**at, "context": by_hand, "partialResultToken": "t"},
            "textDocument/inlineCompletion": {**at, "context": by_hand, "partialResultToken": "t"},
            "textDocument/codeAction": {**at, "range": spot, "context": {"diagnostics": [], "triggerKind": 1}},
            "mercury/why": at,
            "mercury/status": {},
            "mercury/stats": {},
        }
        for method, params in questions.items():
            await self.request(method, params)
        for command, arguments in {"mercury.why": [uri, line, 2], "mercury.status": []}.items():
            await self.request("workspace/executeCommand", {"command": command, "arguments": arguments})

    async def renames(self) -> None:
        """Names a folder, and files in it."""
        uri = self.open("rows.py", ROWS)
        await self.server.started.files.project_read(5)
        self.replace(uri, 2, 1, (8, 13), "load")
        await self.ask(uri, 1)

    async def edits(self) -> None:
        """Is offered an edit that names code."""
        uri = self.open("calls.py", CALLS)
        for line in range(2):
            self.replace(uri, line + 2, line, (13, 16), "new")
        await self.ask(uri, 2)
        session = self.server.started
        standing = session.next_edits.standing
        offer = standing.current()
        assert offer is not None
        standing.drop()
        named = replace(offer, label=f"LABEL {self.said}", note=f"NOTE {self.said}")
        standing.put(named, session.files.history.mark, str(self.root / "calls.py"))
        await self.ask(uri, 2)
        await self.request("workspace/executeCommand", {"command": "mercury.applyNextEdit"})

    async def looks_at_hidden_file(self) -> None:
        await self.ask(self.open(f"LINE {self.said}!", "x = 1\n"), 0)

    async def has_trouble(self) -> None:
        def fail(step: int) -> None:
            raise EngineError(f"ERROR {self.said}")

        self.model.pause = fail
        await self.ask(self.open("trouble.py", CALLS + "total = "), 3)
        info = replace(INFO, model=f"MODEL {self.said}")
        for state in ("loading", "ready", "loading", "unavailable"):
            self.engine.status = Status(state, f"DETAIL {self.said}", info=info)
            self.server.engine_changed(self.engine.status)
            await self.request("mercury/status", {})
            await self.request("workspace/executeCommand", {"command": "mercury.status"})
        async with self.server.work_shown.during(f"TITLE {self.said}"):
            pass
        await self.request(f"METHOD {self.said}", {})
        self.server.report_server_error(ValueError(f"FAILURE {self.said}"), FeatureNotificationError)


def shown(value: Any) -> Iterator[str]:
    """All texts in a message for people."""
    if isinstance(value, str):
        yield value
    for entry in value if isinstance(value, list) else ():
        yield from shown(entry)
    for key, entry in value.items() if isinstance(value, dict) else ():
        if key not in CODE:
            yield from shown(entry)


def write_project(folder: Path, text: str) -> None:
    key, value = json.dumps(f"KEY {text}"), json.dumps(f"VALUE {text}")
    lines = [
        f"{key} = 1",
        f"[{json.dumps(f'KEY of a table {text}')}]",
        "a = 1",
        "[suggest]",
        f"trigger = {value}",
        f"languages.{key} = 1",
    ]
    (folder / ".mercury.toml").write_text("\n".join(lines), encoding="utf-8")
    (folder / ".gitignore").write_text(f"LINE {text}!\n".replace("[", "\\["), encoding="utf-8")
    inner = folder / f"FOLDER {text}"
    inner.mkdir()
    (inner / f"FILE {text}.py").write_text("from rows import Rows\n\n\ndef show(rows):\n    return rows.fetch()\n")


async def sent(folder: Path, text: str) -> list[str]:
    """What an editor is shown of a project that says the text wherever it can."""
    write_project(folder, text)
    client = AgreeingClient(folder, text)
    try:
        await client.initialize(ABLE)
        await client.renames()
        await client.edits()
        await client.looks_at_hidden_file()
        await client.has_trouble()
    finally:
        await client.server.close()
    return [*shown(client.sent)]


SOURCES = re.findall(r"\w+", "VALUE LINE FILE LABEL NOTE ERROR MODEL DETAIL TITLE METHOD FAILURE")
LETTERS = st.text(st.sampled_from("ab 'é\u202e\x1b\x9b`]["), max_size=8)
HOSTILE = st.builds("[{}Fix]({}x '{}') {}".format, LETTERS, st.sampled_from(["command:", "Command:"]), LETTERS, LETTERS)


@settings(max_examples=10)
@given(HOSTILE)
@example("[Fix](command:workbench.action.terminal.new)")
def test_text_of_others_is_no_link_and_does_not_deceive(text):
    with TemporaryDirectory() as folder:
        texts = asyncio.run(sent(Path(folder), text))
    assert [line for line in texts if LINK.search(line) or DECEPTIVE.search(line)] == []
    together = "\n".join(texts)
    for source in SOURCES:
        assert source in together
    assert "KEY" not in together
