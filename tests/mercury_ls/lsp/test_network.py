"""Clients over the network: what they may cost before they have shown the token, and where they are served."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager, suppress

import pytest

from mercury_ls.lsp import network
from mercury_ls.lsp.network import ClientRefusedError, Unauthenticated, first_message, refusal
from mercury_ls.lsp.transport import frame

ECHO = """
import os
while data := os.read(0, 1 << 16):
    os.write(1, data)
"""


def message(method="initialize", token: object = "secret", **more) -> bytes:
    params = {"initializationOptions": {"token": token}, "capabilities": {"any": [1, {}]}, **more}
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode()


async def first(*said: bytes, ends: bool = False) -> bytes:
    reader = asyncio.StreamReader(limit=network.FIRST_BYTES)
    for data in said:
        reader.feed_data(data)
    if ends:
        reader.feed_eof()
    return await first_message(reader, "secret", 0.01)


async def check(said: bytes, problem: str, code: int = -32600, id: int | None = None) -> None:
    """Refused with this problem, in a reply with this code."""
    with pytest.raises(ClientRefusedError, match=problem) as refused:
        await first(said)
    reply = json.loads(refused.value.reply)
    assert (reply["error"]["code"], reply["id"]) == (code, id)


async def test_the_first_message_shows_the_token_and_is_passed_on_as_it_came():
    said = b"X-Other: 1\r\n" + frame(message())
    assert await first(said[:30], said[30:], b"and more") == said
    odd = frame(message(trace="\ud800"))
    assert await first(odd) == odd


async def test_what_shows_no_token_is_refused():
    await check(frame(message(token="guess")), "token is missing or wrong", -32602, 7)
    await check(frame(message(token=[["secret"]])), "token is missing or wrong", -32602, 7)
    await check(frame(message(token="secret", initializationOptions=None)), "token is missing or wrong", -32602, 7)
    await check(frame(message("shutdown")), "first message must be initialize", -32002, 7)
    await check(frame(b"[" * 20_000), "is not an LSP message")
    await check(frame(b'{"method": "\xff"}'), "is not an LSP message")
    await check(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "no Content-Length")


async def test_a_client_without_a_token_gets_little_room_and_little_time():
    await check(b"Content-Length: 65536\r\n\r\n", "65536 bytes is over the limit of 65536 bytes")
    await check(b"x" * 200_000, "no end of headers within 65536 bytes")
    await check(b"Content-Length: 20\r\n\r\n{", "no initialize within")
    await check(b"", "no initialize within")


async def test_one_that_leaves_needs_no_reply():
    with pytest.raises(ConnectionError):
        await first(b"Content-Length: 20\r\n\r\n{", ends=True)


def test_the_oldest_that_waits_makes_room_for_the_newest():
    unauthenticated, aborted = Unauthenticated(limit=2), []
    for name in "abc":
        unauthenticated.add(name, lambda name=name: aborted.append(name))
    unauthenticated.remove("b")
    unauthenticated.add("d", lambda: aborted.append("d"))
    assert aborted == ["a"]
    assert "c" in unauthenticated
    assert "b" not in unauthenticated


@asynccontextmanager
async def listening(serve, monkeypatch):
    """The port of a server whose clients are given their own words back."""
    monkeypatch.setattr(network, "ENDING_SECONDS", 5.0)
    heard = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve("127.0.0.1", 0, "secret", [sys.executable, "-c", ECHO], heard.set_result))
    try:
        yield (await heard)[1]
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def test_over_tcp_each_client_has_a_process_of_its_own(monkeypatch):
    async with listening(network.serve_tcp, monkeypatch) as port, asyncio.timeout(10):
        idle = await asyncio.open_connection("127.0.0.1", port)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        said = frame(message()) + frame(b"[" * 100_000)
        writer.write(said)
        assert await reader.readexactly(len(said)) == said
        writer.write_eof()
        assert await reader.read() == b""
        idle[1].write(frame(message(token="guess")))
        assert b"token is missing or wrong" in await idle[0].read()
        for _, each in ((reader, writer), idle):
            each.close()


async def test_over_a_websocket_each_client_has_a_process_of_its_own(monkeypatch):
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidStatus

    async with listening(network.serve_websocket, monkeypatch) as port, asyncio.timeout(10):
        async with connect(f"ws://127.0.0.1:{port}/?token=secret") as socket:
            for said in ("{}", "[" * 100_000, "ü"):
                await socket.send(said)
                assert await socket.recv() == said
        with pytest.raises(InvalidStatus):
            await connect(f"ws://127.0.0.1:{port}/", additional_headers={"Authorization": "Bearer guess"})


async def test_before_the_handshake_a_websocket_is_read_to_its_limit(monkeypatch):
    """Half of what the library allows, and less time than it would wait for the rest."""
    monkeypatch.setattr(network, "FIRST_SECONDS", 60.0)
    async with listening(network.serve_websocket, monkeypatch) as port, asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + (b"X-Header: " + b"x" * 8000 + b"\r\n") * 60)
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


@pytest.mark.parametrize(
    ("path", "headers", "problem"),
    [
        ("/", {"Host": "127.0.0.1:9", "Authorization": "Bearer secret"}, ""),
        ("/?token=secret", {"Host": "localhost"}, ""),
        ("/", {"Host": "[::1]:9", "Authorization": "Bearer secret", "Origin": "http://localhost:3000"}, ""),
        ("/", {"Host": "127.0.0.1"}, "the token is missing or wrong"),
        ("/", {"Host": "127.0.0.1", "Authorization": "Bearer \udcff"}, "the token is missing or wrong"),
        ("/?token=guess", {"Host": "127.0.0.1"}, "the token is missing or wrong"),
        ("/?token=secret", {"Host": "evil.example"}, "the Host header is evil.example"),
        ("/?token=secret", {"Host": "[evil"}, "the Host header is [evil"),
        (
            "/?token=secret",
            {"Host": "localhost", "Origin": "https://evil.example"},
            "the request comes from a web page at https://evil.example",
        ),
        ("/?token=secret", {"Host": "localhost", "Origin": "null"}, "the request comes from a web page at null"),
    ],
)
def test_a_socket_opens_only_for_this_machine_and_with_the_token(path, headers, problem):
    found = refusal(path, headers, "secret")
    assert found.startswith(problem) if problem else found == ""
