"""What clients, files and crashes can do to a server, and that it goes on."""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.environment import COMMAND, home, stop_engine
from tests.e2e.raw import Raw

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


async def test_malformed_messages_get_an_error_and_the_server_goes_on(server):
    server.write(b"Content-Length: 9\r\n\r\nnot json!")
    assert (await server.read())["error"]["code"] == -32700
    server.write(b"Content-Length: nine\r\n\r\n")
    assert (await server.read())["error"]["code"] == -32600
    server.write(b"Rubbish\r\n\r\nand more of it\r\n\r\n")  # no second error before the next message
    assert (await server.request("mercury/status", {}))["version"]
    server.write(b"Rubbish\r\n\r\n")
    assert (await server.read())["error"]["code"] == -32600
    server.send({"jsonrpc": "1.0", "id": 5, "method": "shutdown"})
    assert await server.error(5) == -32600
    server.send([{"jsonrpc": "2.0", "id": 6, "method": "shutdown"}])
    assert (await server.read())["error"]["code"] == -32600
    assert (await server.request("mercury/status", {}))["version"]


@pytest.mark.parametrize("header", [b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", b"rubbish " * 2000])
async def test_process_whose_input_was_rubbish_ends_with_it(environment, project, header):
    async with Raw(environment, project) as server:
        server.write(header)
        assert (await server.read())["error"]["code"] == -32600
        assert (await server.request("mercury/status", {}))["version"]
        server.process.stdin.close()
        assert await asyncio.wait_for(server.process.wait(), 20) in (0, 1)


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("no/such/method", {}, -32601),
        ("textDocument/inlineCompletion", {}, -32602),
        ("textDocument/inlineCompletion", {"textDocument": {"uri": 5}, "position": {}}, -32602),
        ("mercury/why", {"textDocument": {"uri": "a"}}, -32602),
        ("mercury/snooze", {"minutes": "long"}, -32602),
        ("workspace/executeCommand", {}, -32602),
        ("workspace/executeCommand", {"command": "no.such"}, -32602),
        ("workspace/executeCommand", {"command": "mercury.didAccept", "arguments": []}, -32602),
        ("workspace/executeCommand", {"command": "mercury.didAccept"}, -32602),
        ("workspace/executeCommand", {"command": "mercury.didAccept", "arguments": [5]}, -32602),
    ],
)
async def test_bad_requests_are_answered(server, method, params, code):
    server.send({"jsonrpc": "2.0", "id": 77, "method": method, "params": params})
    assert await server.error(77) == code
    server.send({"jsonrpc": "2.0", "method": method, "params": params})
    assert (await server.request("mercury/status", {}))["version"]


async def test_requests_before_initialize_and_after_shutdown_go_unanswered(environment, project):
    async with Raw(environment, project, initialize=False) as server:
        server.send({"jsonrpc": "2.0", "id": 1, "method": "mercury/status", "params": {}})
        assert await server.error(1) == -32002
        server.send({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {}})
        assert await server.error(2) == -32602
        server.send({"jsonrpc": "2.0", "id": 3, "method": "mercury/status", "params": {}})
        assert await server.error(3) == -32002
        await server.initialize()
        await server.request("shutdown", None)
        server.send({"jsonrpc": "2.0", "id": 2, "method": "mercury/status", "params": {}})
        assert await server.error(2) == -32600
        server.send({"jsonrpc": "2.0", "method": "exit", "params": None})
        assert await server.process.wait() == 0


async def test_engine_crashes_in_mid_request_and_comes_back(environment, project):
    async with Raw(environment, project) as server:
        await server.until("ready")
        uri = server.open("crash.py", "total = compute(1)\nother = 2\ntotal = ")
        assert await server.inline(uri, 2, 8)
        engine = engine_process(environment)
        os.kill(engine, signal.SIGSTOP)
        server.change(uri, 0, 0, "# asked of an engine that never answers\n")
        server.change(uri, 3, 8, "z")
        server.send(server.inline_message(9, uri, 3, 9))
        assert (await server.request("mercury/status", {}))["pendingWork"] == 1
        os.kill(engine, signal.SIGKILL)
        assert (await server.answer(9))["result"]["items"] == []
        server.change(uri, 0, 0, "# once more\n")
        await server.until("unavailable")
        assert await server.inline(uri, 4, 9) == []
        assert re.match("the engine|unsure", await server.why(uri, 4, 9))  # it may be back already
        await server.until("ready")
        again = server.open("again.py", "total = compute(1)\nother = 2\ntotal = ")
        assert await server.inline(again, 2, 8)


@pytest.mark.parametrize("lost", ["engine-v2.sock", "engine.lock", ""])
async def test_files_of_the_engine_may_be_deleted(environment, project, lost):
    """The socket, the lock, or the folder with both."""
    run = Path(environment["MERCURY_LS_RUNTIME_DIR"])
    async with Raw(environment, project) as first:
        await first.until("ready")
        if lost:
            (run / lost).unlink()
        else:
            shutil.rmtree(run)
        async with Raw(environment, project) as second:
            await second.until("ready")
        uri = first.open("lost.py", "total = compute(1)\nother = 2\ntotal = ")
        while not await first.inline(uri, 2, 8):
            await first.request("mercury/status", {})


@pytest.mark.skipif(sys.platform != "linux", reason="stops a process")
async def test_stopped_engine_is_replaced(environment, project):
    async with Raw(environment, project) as first:
        await first.until("ready")
        stopped = engine_process(environment)
        os.kill(stopped, signal.SIGSTOP)
        async with Raw(environment, project) as second:
            await second.until("ready")
            assert engine_process(environment) != stopped
            await first.until("unavailable")
            await first.until("ready")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no ulimit")
async def test_server_and_its_engine_work_with_32_open_files(tmp_path_factory, project):
    alone = home(tmp_path_factory.mktemp("few"))
    few_files = ["sh", "-c", 'ulimit -n 32; exec "$@"', "sh", *COMMAND]
    async with Raw(alone, project, command=few_files) as server:
        await server.until("ready")
        uri = server.open("few.py", "total = compute(1)\nother = 2\ntotal = ")
        assert await server.inline(uri, 2, 8)
    stop_engine(alone)


async def test_client_that_disappears_takes_its_server_along(environment, project):
    async with Raw(environment, project) as server:
        server.open("gone.py", "x = 1\n")
        server.process.stdin.close()
        assert await asyncio.wait_for(server.process.wait(), 20) == 0


async def test_thousand_keystrokes_leave_nothing_behind(environment, project):
    text = "".join(f"value_{number} = compute({number})\n" for number in range(2000)) + "value = "
    async with Raw(environment, project) as server:
        await server.until("ready")
        uri = server.open("fast.py", text)
        for number in range(1000):
            server.change(uri, 2000, 8 + number, "x")
            server.send(server.inline_message(1000 + number, uri, 2000, 9 + number))
            if number == 200:
                settled = await memory(server)
        for number in range(1000):
            await server.answer(1000 + number)
        status = await server.request("mercury/status", {})
        assert status["pendingWork"] == 0
        assert len(status["decisions"]) <= 64
        assert await memory(server) < settled + 12


async def memory(server: Raw) -> float:
    await server.request("mercury/status", {})
    lines = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


async def test_standard_output_carries_only_the_protocol(environment, project):
    noisy = {**environment, "PYTHONPATH": str(noisy_site(project)), "PYTHONUNBUFFERED": "1"}
    async with Raw(noisy, project) as server:
        assert (await server.request("mercury/status", {}))["version"]


def noisy_site(project):
    """A `sitecustomize` that prints when the server is imported: by then standard output is the client's."""
    folder = project / "noisy"
    folder.mkdir(exist_ok=True)
    code = """
import sys

def noise(event, arguments):
    if event == "import" and arguments[0] == "mercury_ls.lsp.app":
        print("noise", flush=True)

sys.addaudithook(noise)
"""
    (folder / "sitecustomize.py").write_text(code, encoding="utf-8")
    return folder


async def test_cancelled_request_is_answered_as_cancelled(environment, project):
    options = {"mercury": {"suggest": {"delayMs": 5000}}}
    async with Raw(environment, project, options=options) as server:
        uri = server.open("cancel.py", "total = compute(1)\nother = 2\ntotal = ")
        server.send(server.inline_message(9, uri, 2, 8))
        server.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 9}})
        assert await server.error(9) == -32800
        assert (await server.request("mercury/status", {}))["pendingWork"] == 0


def engine_process(environment) -> int:
    with open(os.path.join(environment["MERCURY_LS_RUNTIME_DIR"], "engine.lock"), encoding="ascii") as file:
        return int(file.read())


async def test_recording_is_a_session_file(environment, tmp_path):
    root = tmp_path.resolve()
    options = {"mercury": {"record": {"enabled": True, "directory": str(root / "recordings")}}}
    async with Raw(environment, root, options=options) as server:
        uri = server.open("typed.py", 'API_TOKEN = "abcd1234efgh5678ijkl"\nx = ')
        server.change(uri, 1, 4, "1")
        await server.inline(uri, 1, 5)
        (root / ".env").write_text("A=1", encoding="utf-8")
        server.open(".env", "PASSWORD=hunter2")
    (file,) = (root / "recordings").glob("*.jsonl")
    events = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [e["ev"] for e in events[:4]] == ["header", "open", "change", "answer"]
    assert events[2]["c"] == [[1, 4, 1, 4, "1"]]
    assert "abcd1234" not in file.read_text(encoding="utf-8")
    assert "hunter2" not in file.read_text(encoding="utf-8")
    assert file.stat().st_mode & 0o077 == 0


async def test_malformed_message_is_worth_one_line_of_log(environment, project):
    log = project / "malformed.log"
    async with Raw(environment, project, arguments=["--log-file", str(log), "--log-level", "warning"]) as server:
        server.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 900}})
        server.send({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": {"uri": 5}}})
        await server.request("mercury/status", {})
        command = {"command": "mercury.snooze", "arguments": [[]]}
        server.send({"jsonrpc": "2.0", "id": 8, "method": "workspace/executeCommand", "params": command})
        assert await server.error(8) == -32602
    opened, commanded = log.read_text(encoding="utf-8").splitlines()
    assert "textDocument/didOpen has unusable parameters" in opened
    assert "Invalid Params" in commanded


async def test_notifications_before_initialize_are_ignored(environment, project):
    log = project / "early.log"
    arguments = ["--log-file", str(log), "--log-level", "warning"]
    async with Raw(environment, project, initialize=False, arguments=arguments) as server:
        server.open("early.py", "x = 1\n")
        await server.initialize()
        assert (await server.request("mercury/status", {}))["documents"] == 0
    (line,) = log.read_text(encoding="utf-8").splitlines()
    assert "textDocument/didOpen arrived before initialize" in line
