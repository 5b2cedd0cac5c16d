"""Next edits as each kind of client asks for them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from bench.harness.servers import FakeServer, document, serving
from mercury_engine.fake import FakeEngine
from mercury_engine.record import ModelRecord, write_record
from mercury_ls.serve import daemon
from tests.e2e.environment import home, stop_engine
from tests.e2e.raw import Raw
from tests.repositories import committed, git

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

TEXT = """\
def area(width, height):
    return width * height


def volume(width, height, depth):
    return area(width, height) * depth


print(area(1, 2))
"""


async def renamed(server: Raw, name: str) -> str:
    """The user has renamed `area` where it is defined."""
    await server.until("ready")
    uri = server.open(name, TEXT)
    server.replace(uri, (0, 4, 0, 8), "surface")
    return uri


@pytest_asyncio.fixture(loop_scope="module")
async def uri(request, server) -> AsyncIterator[str]:
    """A file of this test alone, which is closed afterwards: an open one would be part of the next offer."""
    uri = await renamed(server, f"{request.node.name}.py")
    yield uri
    server.close(uri)


def place(uri: str, version: int | None = None) -> dict:
    document = {"uri": uri} if version is None else {"uri": uri, "version": version}
    return {"textDocument": document, "position": {"line": 0, "character": 11}, "context": {"triggerKind": 2}}


def applied(text: str, edits: list[dict]) -> str:
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda e: -e["range"]["start"]["line"]):
        start, end = edit["range"]["start"], edit["range"]["end"]
        assert start["line"] == end["line"]
        line = lines[start["line"]]
        new = edit.get("newText", edit.get("text"))
        lines[start["line"]] = line[: start["character"]] + new + line[end["character"] :]
    return "\n".join(lines)


AFTER = TEXT.replace("area", "surface")
NOW = TEXT.replace("area", "surface", 1)


async def test_rename_is_carried_on_in_one_answer(server, uri):
    answer = await server.request("mercury/nextEdit", place(uri, 2))
    assert applied(NOW, answer["edits"]) == AFTER
    assert {edit["textDocument"]["version"] for edit in answer["edits"]} == {2}
    assert "surface" in answer["label"]
    assert answer["command"]["command"] == "mercury.didAccept"


async def test_sidekick_gets_it_in_copilots_words(environment, project):
    options = {"editorInfo": {"name": "Neovim"}, "editorPluginInfo": {"name": "sidekick"}}
    async with Raw(environment, project, options=options) as server:
        assert (await server.request("signIn", {}))["status"] == "AlreadySignedIn"
        uri = await renamed(server, "shapes.py")
        answer = await server.request("textDocument/copilotInlineEdit", place(uri, 2))
        assert applied(NOW, answer["edits"]) == AFTER
        assert {edit["command"]["command"] for edit in answer["edits"]} == {"github.copilot.didAcceptCompletionItem"}


async def test_answer_for_another_version_is_none(server, uri):
    assert (await server.request("textDocument/copilotInlineEdit", place(uri, 1)))["edits"] == []
    assert await server.request("mercury/nextEdit", place(uri, 1)) is None


async def test_code_actions_offer_only_what_is_there_already(server, uri):
    asked = {"textDocument": {"uri": uri}, "range": whole(), "context": {"diagnostics": []}}
    assert await server.request("textDocument/codeAction", asked) == []
    await server.request("mercury/nextEdit", place(uri))
    (action,) = await server.request("textDocument/codeAction", asked)
    assert action["kind"] == "refactor.rewrite"
    assert applied(NOW, action["edit"]["changes"][uri]) == AFTER


@pytest.mark.parametrize("context", [{"triggerKind": 1}, {"only": ["refactor.rewrite"]}], ids=["Helix", "Eglot"])
async def test_code_action_that_user_asks_for_is_looked_for(server, uri, context):
    cursor = place(uri)["position"]
    here = {"start": cursor, "end": cursor}
    asked = {"textDocument": {"uri": uri}, "range": here, "context": {"diagnostics": [], **context}}
    (action,) = await server.request("textDocument/codeAction", asked)
    assert applied(NOW, action["edit"]["changes"][uri]) == AFTER


async def test_code_actions_asked_for_at_every_move_look_for_nothing(server, uri):
    context = {"diagnostics": [], "triggerKind": 2, "only": ["refactor.rewrite"]}
    asked = {"textDocument": {"uri": uri}, "range": whole(), "context": context}
    assert await server.request("textDocument/codeAction", asked) == []


async def test_rejected_edit_is_not_offered_again(server, uri):
    answer = await server.request("mercury/nextEdit", place(uri))
    server.send({"jsonrpc": "2.0", "method": "mercury/didReject", "params": {"id": answer["id"]}})
    assert await server.request("mercury/nextEdit", place(uri)) is None


def reload(server: Raw, uri: str, how: str) -> None:
    """The editor shows what another program has written."""
    if how == "a change":
        server.replace(uri, (0, 4, 0, 8), "surface")
    elif how == "a new text":
        server.replace(uri, (0, 0, 9, 0), NOW)
    else:
        server.close(uri)
        server.open("shapes.py", NOW)


@pytest.mark.parametrize(
    ("how", "typed"),
    [
        ("a change", ""),
        ("a new text", ""),
        ("a new text", "size"),
        ("another opening", ""),
        ("another opening", "size"),
    ],
)
async def test_file_that_git_writes_is_no_edit(environment, tmp_path, how, typed):
    """And what the user had typed and saved, and it discards, is none any more."""
    committed(tmp_path, {"shapes.py": NOW})
    (tmp_path / "shapes.py").write_text(TEXT)
    async with Raw(environment, tmp_path) as server:
        await server.until("ready")
        uri = server.open("shapes.py", TEXT)
        if typed:
            server.replace(uri, (1, 11, 1, 16), typed)
            (tmp_path / "shapes.py").write_text(TEXT.replace("return width", f"return {typed}"))
            server.send({"jsonrpc": "2.0", "method": "textDocument/didSave", "params": {"textDocument": {"uri": uri}}})
        await server.request("mercury/status", {})  # it has read what the file was
        git(tmp_path, "checkout", "--quiet", "shapes.py")
        reload(server, uri, how)
        assert await server.request("mercury/nextEdit", place(uri)) is None


@pytest_asyncio.fixture(loop_scope="module")
async def rewriting(tmp_path_factory) -> AsyncIterator[dict[str, str]]:
    """A home in which the engine server, which this process runs, has a next-edit model."""
    variables = home(tmp_path_factory.mktemp("r"))
    options = daemon.Options(directory=variables["MERCURY_LS_RUNTIME_DIR"])
    info = replace(FakeEngine().info(), fills=False, rewrites=True, calibrated=False)
    engine = FakeEngine({"return width * height": "return abs(width * height)"}, info=info)
    with daemon.endpoints(options, Path(options.directory)) as endpoints:
        task = asyncio.create_task(daemon.serve(options, endpoints, lambda report: engine))
        yield variables
        await daemon.ask(options.directory, "POST", "/engine/v2/stop")
        await task


async def test_next_edit_model_rewrites_around_cursor(rewriting, project):
    async with Raw(rewriting, project) as server:
        await server.until("ready")
        uri = server.open("signed.py", TEXT)
        server.replace(uri, (8, 14, 8, 15), "3")
        answer = await server.request("mercury/nextEdit", place(uri, 2))
        assert [edit["oldText"] + "→" + edit["newText"] for edit in answer["edits"]] == [
            "width * height→abs(width * height)"
        ]
        assert "only proposes next edits" in (await server.request("mercury/why", place(uri)))["reason"]
        assert "not calibrated" in (await server.request("mercury/status", {}))["remarks"][0]


@pytest_asyncio.fixture(loop_scope="module")
async def zeta(tmp_path_factory) -> AsyncIterator[tuple[dict[str, str], FakeServer]]:
    """A home in which the model is Zeta 2 on a server of somebody else, which rewrites what is between its markers."""

    def answer(line, asked) -> None:
        region = asked.json["prompt"].rpartition("<<<<<<< CURRENT\n")[2].partition("=======\n")[0]
        new = region.replace("<|user_cursor|>", "").replace("width * height", "abs(width * height)")
        logprobs = {"tokens": ["x"], "token_logprobs": [-0.01]}
        choice = {"text": f"{new}>>>>>>> UPDATED\n", "finish_reason": "stop", "logprobs": logprobs}
        document({"choices": [choice]})(line, asked)

    folder = tmp_path_factory.mktemp("z")
    (folder / "zeta").mkdir()
    with serving({"/v1/completions": answer}) as server:
        known = {"kind": "server", "prompt": "zeta-2", "protocol": "openai", "address": server.address}
        write_record(ModelRecord(name="zeta", **known), folder / "zeta")
        variables = home(folder, MERCURY_ENGINE_MODEL=str(folder / "zeta"))
        yield variables, server
        stop_engine(variables)


async def test_next_edit_model_behind_foreign_server_proposes_edits(zeta, project):
    variables, theirs = zeta
    async with Raw(variables, project) as server:
        await server.until("ready")
        uri = server.open("remote.py", TEXT)
        server.replace(uri, (8, 14, 8, 15), "3")
        answer = await server.request("mercury/nextEdit", place(uri, 2))
        assert [edit["oldText"] + "→" + edit["newText"] for edit in answer["edits"]] == [
            "width * height→abs(width * height)"
        ]
        status = await server.request("mercury/status", {})
        assert status["model"] == "zeta"
        assert status["sent"].endswith(f"to {theirs.address}")
        assert "remote.py" in status["sent"]


def whole() -> dict:
    return {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
