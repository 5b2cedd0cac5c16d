"""The server with its client in the same process: what comes in as JSON, and what goes out."""

import asyncio
import hashlib
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from _pytest.logging import LogCaptureHandler
from lsprotocol import types as lsp
from msgspec.structs import replace
from pygls.exceptions import JsonRpcInvalidParams

from bench.harness.in_process import InProcessClient
from mercury_engine.api import EngineInfo
from mercury_engine.fake import FakeEngine
from mercury_ls import __version__
from mercury_ls.link.client import Status
from mercury_ls.lsp import progress as progress_module
from mercury_ls.lsp import server as server_module
from mercury_ls.lsp.app import create_server
from mercury_ls.lsp.transport import OversizedError
from mercury_ls.session.wiring import Wiring

TEXT = "total = compute(1)\nother = 2\ntotal = "
START = {"line": 0, "character": 0}
NO_EDIT = lsp.ApplyWorkspaceEditParams(lsp.WorkspaceEdit())
INLINE = {"textDocument": {"inlineCompletion": {}}}


class Client:
    """Speaks JSON with a server of its own; `sent` is all that the server has said."""

    def __init__(self, folder: Path):
        wiring = Wiring(user_file=folder / "none", environ={}, make_engine=self.make_engine)
        self.server = create_server(wiring)
        self.root = folder.resolve()
        self.sent: list[dict[str, Any]] = []
        self.server.protocol.attach(lambda body: self.sent.append(json.loads(body)))
        self.model = FakeEngine()
        self._next = 100

    def make_engine(self, settings, on_status) -> InProcessClient:
        self.engine = InProcessClient(self.model, on_status=on_status)
        return self.engine

    async def initialize(self, capabilities: dict[str, Any], options: Any = None, **more: Any) -> dict[str, Any]:
        params = {"capabilities": capabilities, "rootUri": self.root.as_uri(), "initializationOptions": options, **more}
        reply = await self.request("initialize", params)
        self.send({"method": "initialized", "params": {}})
        await self.until(lambda: self.engine.status.state == "ready")
        return reply["result"]["capabilities"]

    def send(self, message: Any) -> None:
        self.server.protocol.receive(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def request(self, method: str, params: Any) -> dict[str, Any]:
        self._next += 1
        self.send({"id": self._next, "method": method, "params": params})
        return await self.answer(self._next)

    async def answer(self, id: Any) -> dict[str, Any]:
        def replies() -> list[dict[str, Any]]:
            return [m for m in self.sent if m.get("id") == id and "method" not in m]

        await self.until(replies)
        return replies()[0]

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0)

    def open(self, name: str, text: str) -> str:
        uri = (self.root / name).as_uri()
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        return uri

    def change(self, uri: str, version: int, *changes: dict[str, Any]) -> None:
        changed = {"textDocument": {"uri": uri, "version": version}, "contentChanges": changes}
        self.send({"method": "textDocument/didChange", "params": changed})

    def told(self, method: str) -> list[Any]:
        """What the server has said by this method."""
        return [message["params"] for message in self.sent if message.get("method") == method]


@pytest.fixture
async def client(tmp_path):
    made = Client(tmp_path)
    yield made
    await made.server.close()


def place(uri: str, line: int, character: int) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}


@pytest.mark.parametrize(
    "message",
    [
        {"id": [1], "result": 1},
        {"id": {"a": 1}, "error": {"code": 1, "message": "x"}},
        {"id": "nobody asked", "error": "nope"},
        {"id": "busy", "result": None},
        {"method": "$/cancelRequest", "params": {"id": [1]}},
        {"method": "$/cancelRequest", "params": None},
    ],
)
async def test_bad_messages_do_not_harm_those_that_follow(client, message):
    await client.initialize(INLINE, {"mercury": {"suggest": {"delayMs": 5000}}})
    uri = client.open("a.py", TEXT)
    client.send({"id": "busy", "method": "textDocument/inlineCompletion", "params": place(uri, 2, 8)})
    client.send(message)
    assert (await client.request("mercury/status", {}))["result"]["version"]


@pytest.mark.parametrize("answer", [{"result": 1}, {"error": "nope"}, {"error": {"code": 1, "message": "x"}}])
async def test_answer_to_own_request_of_client_ends_nothing(client, answer):
    await client.initialize(INLINE)
    uri = client.open("a.py", TEXT)
    client.send({"id": "own", "method": "textDocument/inlineCompletion", "params": place(uri, 2, 8)})
    client.send({"id": "own", **answer})
    assert (await client.answer("own"))["result"]["items"]


@pytest.mark.parametrize(
    "uri", ["file:///a%00b.py", "file:///\ud800.py", "file://[x/a.py", "http://[::1", "\ud800", "\0", ""]
)
async def test_impossible_document_name_harms_no_other(client, uri):
    await client.initialize(INLINE)
    document = {"uri": uri, "languageId": "python", "version": 1, "text": TEXT}
    client.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
    good = client.open("a.py", TEXT)
    assert (await client.request("textDocument/inlineCompletion", place(good, 2, 8)))["result"]["items"]
    changes = [{"uri": uri, "type": kind} for kind in (1, 2, 3)]
    client.send({"method": "workspace/didChangeWatchedFiles", "params": {"changes": changes}})
    reply = await client.request("textDocument/inlineCompletion", place(uri, 2, 8))
    assert "result" in reply or reply["error"]["code"] == -32602


PLACE = {"textDocument": {"uri": "URI", "version": 1}, "position": {"line": 2, "character": 8}}
RANGE = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
ITEM = {"command": {"title": "x", "command": "x", "arguments": ["x"]}, "insertText": "x", "label": "x"}
SAID = {
    "textDocument/didOpen": {"textDocument": {"uri": "file:///b.py", "languageId": "x", "version": 1, "text": "x"}},
    "textDocument/didChange": {"textDocument": {"uri": "URI", "version": 2}, "contentChanges": [{"text": TEXT}]},
    "textDocument/didSave": {"textDocument": {"uri": "URI"}, "text": "x"},
    "textDocument/didFocus": {"textDocument": {"uri": "URI"}},
    "textDocument/didClose": {"textDocument": {"uri": "file:///b.py"}},
    "notebookDocument/didOpen": {
        "notebookDocument": {
            "uri": "file:///n.ipynb", "notebookType": "x", "version": 1, "cells": [{"kind": 2, "document": "cell:x"}]
        },
        "cellTextDocuments": [{"uri": "cell:x", "languageId": "x", "version": 1, "text": "x"}],
    },
    "workspace/didChangeConfiguration": {"settings": {"mercury": {"suggest": {"languages": {"x": True}}, "x": "x"}}},
    "workspace/didChangeWatchedFiles": {"changes": [{"uri": "file:///b.py", "type": 1}]},
    "workspace/didRenameFiles": {"files": [{"oldUri": "file:///b.py", "newUri": "file:///c.py"}]},
    "workspace/didChangeWorkspaceFolders": {"event": {"added": [{"uri": "file:///d", "name": "x"}], "removed": []}},
    "workspace/executeCommand": {"command": "mercury.didAccept", "arguments": ["x"]},
    "textDocument/inlineCompletion": {
        **PLACE,
        "context": {"triggerKind": 1, "renameProvider": "x", "selectedCompletionInfo": {"range": RANGE, "text": "x"}},
        "partialResultToken": "x",
    },
    "textDocument/completion": {**PLACE, "context": {"triggerKind": 2, "triggerCharacter": "."}},
    "textDocument/codeAction": {
        "textDocument": {"uri": "URI"}, "range": RANGE, "context": {"diagnostics": [{"range": RANGE, "message": "x"}]}
    },
    "textDocument/copilotInlineEdit": {**PLACE, "context": {"triggerKind": 2}, "partialResultToken": "x"},
    "textDocument/didShowCompletion": {"item": ITEM},
    "textDocument/didPartiallyAcceptCompletion": {"item": ITEM, "acceptedLength": 2},
    "textDocument/didShowInlineEdit": {"item": ITEM},
    "mercury/nextEdit": {**PLACE, "context": {"triggerKind": 1, "renameProvider": "x"}, "partialResultToken": "x"},
    "mercury/didChangeDiagnostics": {
        "textDocument": {"uri": "URI"}, "diagnostics": [{"range": RANGE, "message": "x", "source": "x"}]
    },
    "mercury/why": PLACE,
    "mercury/didAccept": {"id": "x"},
    "mercury/didReject": {"id": "x"},
    "signIn": {"x": "x"},
    "$/setTrace": {"value": "off"},
    "window/workDoneProgress/cancel": {"token": "x"},
}  # fmt: skip
ANSWERED = ("Completion", "Action", "InlineEdit", "nextEdit", "why", "Command", "signIn")


def with_surrogates(value: Any) -> list[Any]:
    """The JSON value with each of its strings, and of its names, in turn, made one that cannot be encoded."""
    if isinstance(value, str):
        return ["\ud800", value + "\udfff"]
    if isinstance(value, dict):
        names = [{**value, name + "\ud800": value[name]} for name in value]
        return names + [{**value, name: odd} for name, part in value.items() for odd in with_surrogates(part)]
    if isinstance(value, list):
        return [[*value[:at], odd, *value[at + 1 :]] for at, part in enumerate(value) for odd in with_surrogates(part)]
    return []


@pytest.mark.parametrize("method", SAID)
async def test_unencodable_string_breaks_nothing(client, method, monkeypatch):
    """Wherever it stands: half an emoji that an editor has cut. pytest-xdist could not send such a log on."""
    handler = LogCaptureHandler()
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    await client.initialize(INLINE)
    uri = client.open("a.py", TEXT)
    params = json.loads(json.dumps(SAID[method]).replace("URI", uri))
    for odd in with_surrogates(params):
        if method.endswith(ANSWERED):
            assert (await client.request(method, odd)).get("error", {"code": 0})["code"] in (0, -32602, -32601)
        else:
            client.send({"method": method, "params": odd})
    client.send({"method": "no/\ud800", "params": {}})
    assert (await client.request("no/\ud800", {}))["error"]["code"] == -32601
    assert (await client.request("mercury/status", {"digests": True}))["result"]["digests"]
    failed = [record.exc_info[1] for record in handler.records if record.exc_info]
    assert [error for error in failed if not isinstance(error, JsonRpcInvalidParams)] == []


async def test_uris_of_all_kinds_are_documents_with_digests_for_who_asks(client):
    await client.initialize(INLINE)
    for uri in ("http://[::1", "file://[x/a.py", "untitled:", "vscode-notebook-cell://[x#a"):
        document = {"uri": uri, "languageId": "python", "version": 1, "text": TEXT}
        client.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        digests = (await client.request("mercury/status", {"digests": True}))["result"]["digests"]
        assert digests[uri] == hashlib.sha256(TEXT.encode()).hexdigest()
    assert "digests" not in (await client.request("mercury/status", {}))["result"]


async def test_whatever_the_project_file_holds_the_server_starts_and_says_so(client):
    def told(words: str) -> bool:
        return any(words in message for message in shown(client))

    file = client.root / ".mercury.toml"
    file.write_text("x = " + "[" * 3000, encoding="utf-8")
    await client.initialize(INLINE, {"mercury": {"suggest": {"inComments": False}}})
    assert told("nested more than 32 levels deep")
    file.write_text("[suggest]\ndelay_ms = " + "9" * 5000, encoding="utf-8")
    client.send(
        {"method": "workspace/didChangeWatchedFiles", "params": {"changes": [{"uri": file.as_uri(), "type": 2}]}}
    )
    assert told("is not valid TOML")
    assert not client.server.session.settings.suggest.in_comments


async def test_log_names_the_state_of_the_engine_once(client, caplog):
    caplog.set_level("INFO")
    await client.initialize(INLINE)
    for reads_per_second in (100.0, 200.0):
        info = EngineInfo("mercury", "tiny", "cpu", 2048, reads_per_second=reads_per_second)
        client.server.engine_changed(Status("ready", "as tested", info=info))
    assert caplog.text.count("engine ready as tested") == 1


async def test_status_and_why_know_the_users_file_as_it_is(client):
    await client.initialize(INLINE)
    uri = client.open("a.py", TEXT)
    file = client.root / "none"
    file.write_text("[suggest]\nenabled = 1", encoding="utf-8")
    reply = await client.request("mercury/status", {})
    assert "suggest.enabled" in reply["result"]["problems"][0]
    file.write_text("[suggest]\nenabled = false", encoding="utf-8")
    os.utime(file, (0, 0))
    reply = await client.request("mercury/why", place(uri, 2, 8))
    assert "suggest.enabled" in reply["result"]["reason"]
    assert not (await client.request("mercury/status", {}))["result"]["problems"]


async def problem_with(client, settings: str) -> str:
    """The only one that the status tells of these settings of a project."""
    (client.root / ".mercury.toml").write_text(settings, encoding="utf-8")
    await client.initialize(INLINE)
    client.open("a.py", TEXT)
    await client.until(lambda: shown(client))
    (problem,) = (await client.request("mercury/status", {}))["result"]["problems"]
    return problem


async def test_settings_file_of_a_project_is_named_within_it(client):
    problem = await problem_with(client, "suggest.enabled = 1\n")
    assert problem == f"project file {client.root.name}/.mercury.toml: suggest.enabled = 1: must be true or false"
    assert shown(client) == [f"mercury: {problem}"]


async def test_settings_of_a_project_show_nothing_that_is_not_there(client):
    problem = await problem_with(client, 'engine.effort = "a\\u001b[2J\\u202e"\n')
    assert not {"\x1b", "\u202e"} & {*problem, *"".join(shown(client))}


async def test_document_whose_change_was_too_large_is_left_alone(client):
    """Its text is not known any more: nothing is suggested in it until it is opened again."""
    await client.initialize(INLINE)
    uri, other = client.open("a.py", TEXT), client.open("b.py", TEXT)
    ends = json.dumps({"params": {"contentChanges": [{"text": '"uri": "b"'}], "textDocument": {"uri": uri}}}).encode()
    client.server.protocol.malformed(OversizedError(70 << 20, 64 << 20, ends))
    assert client.sent[-1]["error"]["code"] == -32600
    assert client.sent[-1]["id"] is None
    reply = await client.request("mercury/why", place(uri, 2, 8))
    assert "73400320 bytes is over the limit" in reply["result"]["reason"]
    client.change(uri, 2, {"range": {"start": START, "end": START}, "text": "x"})
    assert (await client.request("textDocument/inlineCompletion", place(uri, 2, 8)))["result"]["items"] == []
    assert (await client.request("textDocument/inlineCompletion", place(other, 2, 8)))["result"]["items"]
    client.open("a.py", TEXT)
    assert (await client.request("textDocument/inlineCompletion", place(uri, 2, 8)))["result"]["items"]


@pytest.mark.parametrize("ends", [b"", b'"uri": 5', b'"uri": "\\x"', b'"uri": "\xff"', b'"uri": "not open"'])
async def test_message_too_large_to_read_may_be_about_anything(client, ends):
    client.server.protocol.malformed(OversizedError(70 << 20, 64 << 20, ends))
    await client.initialize(INLINE)
    client.server.protocol.malformed(OversizedError(70 << 20, 64 << 20, ends))
    assert (await client.request("mercury/status", {}))["result"]["version"]


async def test_notification_with_id_is_refused_and_not_done(client):
    await client.initialize(INLINE)
    document = {"uri": "untitled:a", "languageId": "python", "version": 1, "text": ""}
    reply = await client.request("textDocument/didOpen", {"textDocument": document})
    assert reply["error"]["code"] == -32600
    assert client.server.session.files.documents == {}


async def test_initialize_is_answered_once(client):
    await client.initialize(INLINE)
    session = client.server.session
    assert (await client.request("initialize", {"capabilities": {}}))["error"]["code"] == -32600
    assert client.server.session is session


@pytest.mark.parametrize("method", ["textDocument/inlineCompletion", "textDocument/completion"])
async def test_position_is_of_text_that_it_was_sent_for(client, method):
    await client.initialize(INLINE, {"mercury": {"suggest": {"completionFallback": "on"}}})
    uri = client.open("a.py", TEXT)
    assert (await client.request(method, place(uri, 2, 8)))["result"]["items"]
    client.send({"id": 1, "method": method, "params": place(uri, 2, 8)})
    above = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    client.change(uri, 2, {"range": above, "text": "total = compute(1)\nnext = 3\ntotal = \nlast = 4\n"})
    assert (await client.answer(1))["result"]["items"] == []


@pytest.mark.parametrize(
    ("fallback", "capabilities", "offered"),
    [
        ("auto", INLINE, False),
        ("auto", {}, True),
        ("on", INLINE, True),
        ("off", {}, False),
    ],
)
async def test_menu_is_for_clients_that_need_it_or_ask_for_it(client, fallback, capabilities, offered):
    found = await client.initialize(capabilities, {"mercury": {"suggest": {"completionFallback": fallback}}})
    assert ("completionProvider" in found) == offered


async def test_progress_that_begins_late_still_ends(client):
    await client.initialize({"window": {"workDoneProgress": True}})
    for state in ("loading", "ready"):
        client.engine.status = Status(state)
        client.server.engine_changed(client.engine.status)
    await client.until(lambda: client.told("window/workDoneProgress/create"))
    (create,) = [m for m in client.sent if m.get("method") == "window/workDoneProgress/create"]
    client.send({"id": create["id"], "result": None})
    await client.until(lambda: len(progress(client)) >= 2)
    assert progress(client) == ["begin", "end"]


def progress(client: Client) -> list[str]:
    return [told["value"]["kind"] for told in client.told("$/progress")]


async def test_renamed_files_are_followed(client):
    await client.initialize(INLINE)
    uri = client.open("a.py", TEXT)
    client.send({"method": "textDocument/didClose", "params": {"textDocument": {"uri": uri}}})
    files = [{"oldUri": uri, "newUri": uri.replace("a.py", "b.py")}]
    client.send({"method": "workspace/didRenameFiles", "params": {"files": files}})
    assert client.server.session.files.neighbours("untitled:x") == []


ELSEWHERE = replace(FakeEngine().info(), calibrated=False, address="https://models.example")


async def test_data_for_another_program_is_announced_and_logged(client, caplog):
    caplog.set_level("INFO")
    client.model = FakeEngine(info=ELSEWHERE)
    await client.initialize(INLINE)
    uri = client.open("a.py", TEXT)
    assert (await client.request("textDocument/inlineCompletion", place(uri, 2, 8)))["result"]["items"]
    assert [record.message for record in caplog.records].count("sent a.py to https://models.example") == 1
    status = (await client.request("mercury/status", {}))["result"]
    assert status["sent"] == "a.py to https://models.example"
    assert [each.partition(":")[0] for each in status["remarks"]] == [
        "prompts go to https",
        "not calibrated",
    ]
    why = (await client.request("mercury/why", place(uri, 2, 8)))["result"]
    assert why["reason"].endswith("; sent a.py to https://models.example")
    assert "not calibrated" in why["model"]


async def test_strong_model_requests_are_described_when_asked(client):
    client.model = FakeEngine(info=replace(FakeEngine().info(), strong=True))
    await client.initialize(INLINE)
    uri = client.open("a.py", TEXT)
    why = (await client.request("mercury/why", place(uri, 2, 8)))["result"]
    assert "tokens within 5.0 s" in why["model"]


async def test_slow_model_is_called_slow_once_in_log_and_when_asked(client, caplog):
    caplog.set_level("INFO")
    client.model = FakeEngine(info=replace(FakeEngine().info(), first_line_ms=9000.0))
    await client.initialize(INLINE)
    uri = client.open("a.py", TEXT)
    client.server.engine_changed(client.engine.status)
    assert sum("mercury-ls model recommend" in record.message for record in caplog.records) == 1
    assert not [each for each in client.sent if "recommend" in str(each.get("params"))]
    why = (await client.request("mercury/why", place(uri, 2, 8)))["result"]
    assert "mercury-ls model recommend" in why["model"]
    assert why["reason"].startswith("the model is too slow here to follow your typing")
    arguments = {"command": "mercury.why"}
    said = (await client.request("workspace/executeCommand", arguments))["result"]
    assert said.count("mercury-ls model recommend") == 1
    assert "\n" not in said


@pytest.mark.parametrize(
    ("rewrites", "metered", "eager"), [(True, False, True), (True, True, False), (False, False, False)]
)
async def test_next_edits_are_asked_for_at_once_where_rewriting_is_free(client, rewrites, metered, eager):
    client.model = FakeEngine(info=replace(FakeEngine().info(), rewrites=rewrites, metered=metered))
    await client.initialize(INLINE)
    assert (await client.request("mercury/status", {}))["result"]["eager"] is eager


async def test_model_that_rewrites_lines_is_asked_at_rest(client):
    client.model = FakeEngine(info=replace(FakeEngine().info(), rewrites=True, rewrites_lines=True))
    await client.initialize(INLINE)
    status = (await client.request("mercury/status", {}))["result"]
    assert (status["eager"], status["atRest"]) == (False, True)


async def test_silence_instead_of_a_next_edit_has_a_reason_on_request(client):
    await client.initialize(INLINE)
    uri = client.open("a.py", "x = 1\n")
    token = {"partialResultToken": "why"}
    assert (await client.request("mercury/nextEdit", {**place(uri, 0, 0), **token}))["result"] is None
    (told,) = client.told("$/progress")
    assert told["value"] == {"kind": "nextEdit", "silence": "nothing has been edited yet"}


async def test_drafts_say_how_many_tokens_they_are(client):
    await client.initialize(INLINE)
    uri = client.open("a.py", TEXT)
    await client.request("textDocument/inlineCompletion", {**place(uri, 2, 8), "partialResultToken": "drafts"})
    drafts = [told["value"] for told in client.told("$/progress")]
    assert drafts[-1]["final"]
    assert 0 < drafts[-1]["tokens"] <= len(drafts[-1]["text"])


def shown(client: Client) -> list[str]:
    return [told["message"] for told in client.told("window/showMessage")]


@pytest.mark.parametrize(
    ("plugin", "is_told"),
    [("0.0.9", True), ("0.0", True), (__version__, False), ("99.0.0", False), ("newest", False), (1, False)],
    ids=str,
)
async def test_plugin_older_than_server_is_named(client, plugin, is_told):
    await client.initialize({**INLINE, "experimental": {"mercury": {"version": plugin}}})
    told = [message for message in shown(client) if "update the plugin" in message]
    assert len(told) == is_told
    assert all(plugin in message and __version__ in message for message in told)


@pytest.mark.parametrize(
    ("plugin", "named"),
    [("0.0.9", "update the plugin"), (__version__, ""), ("99.0.0", "update the server"), ("newest", ""), (1, "")],
    ids=str,
)
async def test_plugin_that_compares_nothing_is_told_what_to_update(client, plugin, named):
    await client.initialize(INLINE, {"pluginVersion": plugin})
    assert [bool(named) and named in message for message in shown(client)] == [True] * bool(named)


@pytest.mark.parametrize(
    ("version", "other", "older"),
    [
        ("0.9.9", "0.10.0", True),
        ("0.10.0", "0.9.0", False),
        ("0.1.0", "0.1.5", False),
        ("0.1.0", "1.0.0", True),
        ("1", "2.0", False),
        ("0.1x", "9.0", False),
    ],
)
def test_versions_that_do_not_fit_are_the_only_older_ones(version, other, older):
    assert server_module.is_older(version, other) == older


@pytest.mark.parametrize("capabilities", [INLINE, {**INLINE, "experimental": {"mercury": {}}}])
async def test_client_without_engine_status_is_told_once_of_its_absence(client, capabilities):
    await client.initialize(capabilities)
    client.server._was_ready = False
    for state in ("unavailable", "starting", "unavailable", "ready", "unavailable"):
        client.server.engine_changed(Status(state, "the weights are damaged" if state == "unavailable" else ""))
    told = shown(client)
    assert told == ([] if "experimental" in capabilities else ["mercury: the weights are damaged"])


async def test_another_model_than_the_one_that_was_chosen_is_told_of_once(client):
    await client.initialize(INLINE)
    for _ in range(2):
        client.server.engine_changed(Status("ready", "the server that runs answers with another model"))
    assert shown(client) == ["mercury: the server that runs answers with another model"]


async def test_why_is_asked_without_naming_a_place(client):
    await client.initialize(INLINE)
    command = {"command": "mercury.why"}
    assert (await client.request("workspace/executeCommand", command))["result"] == "no document is open"
    uri = client.open("a.py", TEXT)
    await client.request("textDocument/inlineCompletion", place(uri, 2, 8))
    named = (await client.request("workspace/executeCommand", {**command, "arguments": [uri, 2, 8]}))["result"]
    assert (await client.request("workspace/executeCommand", command))["result"] == named
    assert named.startswith("a suggestion is ready here")
    assert named.endswith("; next edits: nothing has been edited yet")
    assert "next edits" in (await client.request("workspace/executeCommand", {**command, "arguments": [uri]}))["result"]


@pytest.mark.parametrize("arguments", [{}, {"arguments": None}, {"arguments": []}])
@pytest.mark.parametrize("command", ["mercury.why", "mercury.status", "mercury.snooze", "mercury.applyNextEdit"])
async def test_command_does_without_arguments_that_have_default(client, command, arguments):
    await client.initialize(INLINE)
    assert "result" in await client.request("workspace/executeCommand", {"command": command, **arguments})


async def test_end_of_session_stops_what_waits_for_client(client):
    """The client was asked to apply an edit, and asks its user."""
    await client.initialize({**INLINE, "workspace": {"applyEdit": True}})
    uri = client.open("a.py", "basket = 1\nprint(basket)\nprint(basket + 1)\n")
    change = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 6}}, "text": "cart"}
    client.change(uri, 2, change)
    for number in range(2):
        apply = {"command": "mercury.applyNextEdit", "arguments": [uri, 0, 4]}
        client.send({"id": f"apply {number}", "method": "workspace/executeCommand", "params": apply})
    await client.until(lambda: len(client.told("workspace/applyEdit")) == 2)
    assert "error" not in await client.request("shutdown", None)


async def test_unreadable_answer_is_an_error_for_its_caller(client):
    await client.initialize({**INLINE, "workspace": {"applyEdit": True}})
    task = asyncio.ensure_future(client.server.workspace_apply_edit_async(NO_EDIT))
    await client.until(lambda: client.told("workspace/applyEdit"))
    (asked,) = [m for m in client.sent if m.get("method") == "workspace/applyEdit"]
    client.send({"id": asked["id"], "result": None})
    with pytest.raises(Exception, match="the client's answer"):
        await asyncio.wait_for(task, 5)


ENDS = ("shown", "typedThrough", "accepted", "rejected", "characters")


def counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    """What became of suggestions of all kinds, where that is not nought."""
    sums = {name: sum(row[name] for row in rows) for name in ENDS}
    return {name: number for name, number in sums.items() if number}


@pytest.mark.parametrize("reports", [True, False])
async def test_outcome_of_a_suggestion_is_counted(client, reports):
    await client.initialize(INLINE)
    uri = client.open("a.py", TEXT)
    (item,) = (await client.request("textDocument/inlineCompletion", place(uri, 2, 8)))["result"]["items"]
    if reports:
        client.send({"method": "textDocument/didShowCompletion", "params": {"item": item}})
    change = {"range": item["range"], "text": item["insertText"]}
    client.change(uri, 2, change)
    await client.request("workspace/executeCommand", item["command"])
    found = (await client.request("mercury/stats", {}))["result"]
    assert counts(found["days"]) == {"shown": 1, "accepted": 1, "characters": len(item["insertText"])}
    assert "| python | inline | 1 |" in found["page"]
    assert (await client.request("mercury/status", {}))["result"]["today"] == found["days"]


async def test_typed_part_of_a_suggestion_is_not_saved(client):
    await client.initialize(INLINE)
    uri = client.open("a.py", TEXT)
    (item,) = (await client.request("textDocument/inlineCompletion", place(uri, 2, 8)))["result"]["items"]
    start, text = item["range"]["start"], item["insertText"]
    for version, typed in enumerate((text[0], text[1:]), 2):
        change = {"range": {"start": start, "end": start}, "text": typed}
        start = {"line": 2, "character": 9}
        client.change(uri, version, change)
    await client.request("workspace/executeCommand", item["command"])
    assert counts((await client.request("mercury/stats", {}))["result"]["days"])["characters"] == len(text) - 1


NOWHERE = {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 4}}
RENAMED = "basket = 1\nprint(basket)\nprint(basket + 1)\n"


async def renamed(client: Client, **context: Any) -> dict[str, Any]:
    """The offer after `basket` became `cart` in its first line."""
    uri = client.uri = client.open("a.py", RENAMED)
    change = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 6}}, "text": "cart"}
    client.change(uri, 2, change)
    asked = {**place(uri, 0, 4), "context": {"triggerKind": 1, **context}}
    return (await client.request("mercury/nextEdit", asked))["result"]


async def test_next_edit_and_its_code_action_say_where_they_are(client):
    await client.initialize(INLINE)
    offer = await renamed(client)
    assert (offer["summary"], offer["note"]) == ("2 here", "")
    assert [(edit["oldText"], edit["newText"]) for edit in offer["edits"]] == [("basket", "cart")] * 2
    asked = {"textDocument": {"uri": client.uri}, "range": NOWHERE, "context": {"diagnostics": []}}
    (action,) = (await client.request("textDocument/codeAction", asked))["result"]
    assert action["title"] == "mercury: rename `basket` → `cart` (2 here)"
    assert "changeAnnotations" not in action["edit"]


@pytest.mark.parametrize(
    ("severity", "expected"), [(None, "error"), (1, "error"), (2, "warning"), (3, "info"), (4, "hint"), (9, "hint")]
)
async def test_diagnostics_are_known_with_their_severity(client, severity, expected):
    await client.initialize(INLINE)
    uri = client.uri = client.open("a.py", "import abc\n\nvalue = json.dumps(abc)\n")
    found = {"range": {"start": {"line": 2, "character": 8}, "end": {"line": 2, "character": 12}}, "message": "unknown"}
    said = [found if severity is None else {**found, "severity": severity}]
    client.send(
        {"method": "mercury/didChangeDiagnostics", "params": {"textDocument": {"uri": uri}, "diagnostics": said}}
    )
    await client.request("mercury/nextEdit", {**place(uri, 2, 8), "context": {"triggerKind": 1}})
    ((_, (known,)),) = client.server.started.next_edits.next_questions._diagnosed.values()
    assert (known.message, known.severity) == ("unknown", expected)


def reported(uri, version, *lines):
    errors = [
        {"range": {"start": {"line": n, "character": 0}, "end": {"line": n, "character": 5}}, "message": "wrong"}
        for n in lines
    ]
    params = {"textDocument": {"uri": uri, "version": version}, "diagnostics": errors}
    return {"method": "mercury/didChangeDiagnostics", "params": params}


async def test_client_is_told_of_errors_that_came_with_an_edit(client):
    await client.initialize(INLINE)
    uri = client.uri = client.open("a.py", "value = 1\n\nprint(value)\n")
    client.send(reported(uri, 1, 2))
    edited = {"start": {"line": 0, "character": 8}, "end": {"line": 0, "character": 9}}
    client.change(uri, 2, {"range": edited, "text": "2"})
    client.send(reported(uri, 2))
    client.send(reported(uri, 2, 2))
    client.send(reported(uri, 2, 2, 1))
    client.send(reported(uri, 2, 2, 1))
    asked = {**place(uri, 2, 5), "context": {"triggerKind": 2, "places": True}}
    offer = (await client.request("mercury/nextEdit", asked))["result"]
    assert (offer["kind"], offer["label"], offer["summary"]) == ("diagnostic", "new error", "1 here")
    assert [(edit["range"]["start"]["line"], edit["newText"]) for edit in offer["edits"]] == [(1, "")]
    assert client.told("mercury/didChangePlaces") == [{}]


async def test_accept_command_may_say_how_many_edits_were_made(client):
    await client.initialize(INLINE)
    command = {**(await renamed(client))["command"]}
    command["arguments"].append(1)
    await client.request("workspace/executeCommand", {"command": command["command"], "arguments": command["arguments"]})
    page = (await client.request("mercury/stats", {}))["result"]
    assert counts(page["days"]) == {"shown": 1, "accepted": 1, "characters": 3}


async def test_late_accept_counts_once(client):
    """The edits have arrived, and the client has asked for something else since."""
    await client.initialize(INLINE)
    offer = await renamed(client)
    changes = [{"range": edit["range"], "text": edit["newText"]} for edit in reversed(offer["edits"])]
    client.change(client.uri, 3, *changes)
    asked = {"textDocument": {"uri": client.uri}, "range": NOWHERE, "context": {"diagnostics": []}}
    assert (await client.request("textDocument/codeAction", asked))["result"] == []
    page = (await client.request("mercury/stats", {}))["result"]
    assert counts(page["days"]) == {"shown": 1, "typedThrough": 1}
    client.send({"method": "mercury/didAccept", "params": {"id": offer["id"]}})
    page = (await client.request("mercury/stats", {}))["result"]
    assert counts(page["days"]) == {"shown": 1, "accepted": 1, "characters": 6}


@pytest.mark.parametrize(("experimental", "is_looked_for"), [({}, True), ({"mercury": {}}, False)])
async def test_code_action_from_our_plugin_supersedes_nothing(client, experimental, is_looked_for):
    await client.initialize({**INLINE, "experimental": experimental})
    await renamed(client)
    end = {"line": RENAMED.count("\n"), "character": 0}
    client.change(client.uri, 3, {"range": {"start": end, "end": end}, "text": "x = 1\n"})
    assert client.server.started.next_edits.is_outdated
    asked = {"textDocument": {"uri": client.uri}, "range": NOWHERE, "context": {"diagnostics": [], "triggerKind": 2}}
    assert (await client.request("textDocument/codeAction", asked))["result"]
    assert client.server.started.next_edits.is_outdated != is_looked_for


async def test_all_edits_of_an_offer_are_applied_in_one_step(client):
    await client.initialize({**INLINE, "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}})
    await renamed(client)
    client.send({"id": 1, "method": "workspace/executeCommand", "params": {"command": "mercury.applyNextEdit"}})
    await client.until(lambda: client.told("workspace/applyEdit"))
    (asked,) = client.told("workspace/applyEdit")
    assert asked["label"] == "rename `basket` → `cart` (2 here)"
    (changed,) = asked["edit"]["documentChanges"]
    assert [edit["newText"] for edit in changed["edits"]] == ["cart", "cart"]


@pytest.mark.parametrize(
    ("method", "params", "counted"),
    [
        ("mercury/didAccept", {}, {"shown": 1, "accepted": 1, "characters": 6}),
        ("mercury/didAccept", {"edits": 1}, {"shown": 1, "accepted": 1, "characters": 3}),
        ("mercury/didAccept", {"edits": 0}, {"shown": 1, "rejected": 1}),
        ("mercury/didReject", {}, {"shown": 1, "rejected": 1}),
    ],
)
async def test_outcome_of_a_next_edit_is_counted(client, method, params, counted):
    await client.initialize(INLINE)
    offer = await renamed(client)
    client.send({"method": method, "params": {"id": offer["id"], **params}})
    assert counts((await client.request("mercury/stats", {}))["result"]["days"]) == counted


@pytest.mark.parametrize("grows", [True, False])
async def test_growth_is_told_to_clients_that_ask_again(client, grows):
    await client.initialize({**INLINE, "experimental": {"mercury": {"grows": grows}}})
    uri = client.open("a.py", TEXT)
    client.server.started.following._tell_growth(uri)
    assert client.told("mercury/didGrow") == ([{"uri": uri}] if grows else [])


@pytest.mark.parametrize(("kind", "is_shown"), [(1, True), (2, False)])
async def test_work_on_an_explicit_request_is_shown_while_it_takes_long(client, monkeypatch, kind, is_shown):
    monkeypatch.setattr(progress_module, "WORK_SHOWN_SECONDS", 0.0)
    go_on = threading.Event()
    client.model.pause = lambda step: go_on.wait(10)
    await client.initialize({**INLINE, "window": {"workDoneProgress": True}})
    uri = client.open("a.py", TEXT)
    params = {**place(uri, 2, 8), "context": {"triggerKind": kind}}
    client.send({"id": "asked", "method": "textDocument/inlineCompletion", "params": params})
    if is_shown:
        await client.until(lambda: client.told("window/workDoneProgress/create"))
        (create,) = [m for m in client.sent if m.get("method") == "window/workDoneProgress/create"]
        client.send({"id": create["id"], "result": None})
        await client.until(lambda: client.told("$/progress"))
    go_on.set()
    assert (await client.answer("asked"))["result"]["items"]
    assert progress(client) == (["begin", "end"] if is_shown else [])


async def test_failure_is_answered_without_its_traceback(client, monkeypatch, caplog):
    await client.initialize(INLINE)

    async def fail(uri: str, offset: int) -> str:
        raise RuntimeError("not today")

    monkeypatch.setattr(client.server.started.completions, "why", fail)
    error = (await client.request("mercury/why", place(client.open("a.py", TEXT), 0, 0)))["error"]
    assert "not today" in error["message"]
    assert "data" not in error
    assert "Traceback" in caplog.text
