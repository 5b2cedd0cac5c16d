"""Who says nothing is sent away, and nobody who has something to say is kept out for it."""

import asyncio
from contextlib import suppress

from mercury_engine.fake import FakeEngine
from mercury_ls.link import local
from mercury_ls.link.connection import Address, connect
from mercury_ls.serve import daemon, limits
from tests.mercury_ls.link.test_client import connected, everything, free_address, request, serving


async def silent(directory):
    return await asyncio.open_unix_connection(local.address(directory).path)


async def ended(reader):
    with suppress(ConnectionResetError):
        assert await asyncio.wait_for(reader.read(), 10) == b""


async def test_who_says_nothing_or_half_a_request_is_sent_away(directory, monkeypatch):
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.05)
    async with serving(FakeEngine({"x": "answer"}), directory), connected(directory) as (client, _):
        for said in (b"", b"GET /health HTTP/1.1\r\nHost: "):
            reader, writer = await silent(directory)
            writer.write(said)
            await ended(reader)
            writer.close()
        assert client.status.state == "ready", "a lease is long, and has been asked for"
        assert (await everything(client.infill(request())))[-1].spans[0].text == "answer"


async def test_too_many_connections_keep_nobody_out(directory, monkeypatch):
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 4)
    async with serving(FakeEngine({"x": "answer"}), directory), connected(directory) as (client, _):
        await everything(client.infill(request()))
        opened = [await silent(directory) for _ in range(6)]
        await asyncio.gather(*(ended(reader) for reader, _ in opened[:3]))
        assert client.status.state == "ready", "the lease is at work"
        assert (await everything(client.infill(request())))[-1].spans[0].text == "answer"
        newcomer = await connect(local.address(directory))
        assert (await newcomer.send("GET", "/engine/v1/info", {})).status == 200
        newcomer.close()
        for _, writer in opened:
            writer.close()


async def test_who_has_no_token_keeps_no_connection(directory, monkeypatch):
    """300 that were kept after asking for what needs none shut everybody else out."""
    address = free_address()
    options = daemon.Options(directory=directory, http=address, token="secret")
    host, port = daemon.split_address(address)
    async with serving(FakeEngine({"x": "answer"}), directory, options):
        for path, token, status in (("/health", "", 200), ("/engine/v1/info", "guessed", 401)):
            stranger = await connect(Address(host=host, port=port, token=token))
            response = await stranger.send("GET", path, {})
            await stranger.read(response)
            assert (response.status, response.headers["connection"], stranger.usable) == (status, "close", False)
            stranger.close()
        friend = await connect(Address(host=host, port=port, token="secret"))
        for _ in range(2):
            await friend.read(await friend.send("GET", "/engine/v1/info", {}))
            assert friend.usable
        friend.close()
