"""Who says nothing is sent away, and nobody who has something to say is kept out for it."""

import asyncio
import re
import socket
import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from mercury_engine.fake import FakeEngine
from mercury_ls.link import local
from mercury_ls.link.connection import Address, connect
from mercury_ls.serve import daemon, limits
from tests.mercury_ls.link.test_client import CERTIFICATE, connected, everything, free_address, gap, serving


async def silent(directory):
    return await asyncio.open_unix_connection(local.address(directory).path)


async def ended(reader):
    with suppress(ConnectionResetError):
        assert await asyncio.wait_for(reader.read(), 10) == b""


async def test_silent_or_half_finished_request_is_disconnected(directory, monkeypatch):
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.05)
    async with serving(FakeEngine({"x": "answer"}), directory), connected(directory) as (client, _):
        for said in (b"", b"GET /health HTTP/1.1\r\nHost: "):
            reader, writer = await silent(directory)
            writer.write(said)
            await ended(reader)
            writer.close()
        assert client.status.state == "ready", "a lease is long, and has been asked for"
        assert (await everything(client.fill(gap())))[-1].text == "answer"


async def test_too_many_connections_keep_nobody_out(directory, monkeypatch):
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 4)
    async with serving(FakeEngine({"x": "answer"}), directory), connected(directory) as (client, _):
        await everything(client.fill(gap()))
        opened = [await silent(directory) for _ in range(6)]
        await asyncio.gather(*(ended(reader) for reader, _ in opened[:3]))
        assert client.status.state == "ready", "the lease is at work"
        assert (await everything(client.fill(gap())))[-1].text == "answer"
        newcomer = await connect(local.address(directory))
        assert (await newcomer.send("GET", "/engine/v2/info", {})).status == 200
        newcomer.close()
        for _, writer in opened:
            writer.close()


async def test_client_without_token_keeps_no_connection(directory, monkeypatch):
    """300 that were kept after asking for what needs none shut everybody else out."""
    address = free_address()
    options = daemon.Options(directory=directory, http=address, token="secret")
    host, port = daemon.split_address(address)
    async with serving(FakeEngine({"x": "answer"}), directory, options):
        for path, token, status in (("/health", "", 200), ("/engine/v2/info", "guessed", 401)):
            stranger = await connect(Address(host=host, port=port, token=token))
            response = await stranger.send("GET", path, {})
            await stranger.read(response)
            assert (response.status, response.headers["connection"], stranger.usable) == (status, "close", False)
            stranger.close()
        friend = await connect(Address(host=host, port=port, token="secret"))
        for _ in range(2):
            await friend.read(await friend.send("GET", "/engine/v2/info", {}))
            assert friend.usable
        friend.close()


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_body_with_two_lengths_is_refused(directory, method):
    """A proxy in between may read the other one, and take the rest for a request of somebody else."""
    options = daemon.Options(directory=directory, http=free_address(), token="secret")
    async with serving(FakeEngine(), directory, options):
        reader, writer = await asyncio.open_connection(*daemon.split_address(options.http))
        lengths = "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"
        begun = f"{method} /health HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n"
        writer.write(f"{begun}{lengths}\r\n0\r\n\r\nGET /engine/v2/info HTTP/1.1\r\n\r\n".encode())
        answer = await asyncio.wait_for(reader.read(), 10)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1 ") == 1
        writer.close()


def encrypted(directory):
    return daemon.Options(
        directory=directory,
        http=free_address(),
        token="secret",
        certificate=str(CERTIFICATE / "localhost.pem"),
        key=str(CERTIFICATE / "key.pem"),
    )


async def check_served(strangers, host, port, **secured):
    """A new client is answered beside the strangers, who then leave."""
    reader, writer = await asyncio.open_connection(host, port, **secured)
    writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (await reader.readline()).split()[1] == b"200"
    for each in (writer, *(writer for _, writer in strangers)):
        each.close()


async def test_client_without_handshake_costs_a_place_among_few(directory, monkeypatch):
    """6,000 of them took 2 GB."""
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 4)
    options = encrypted(directory)
    host, port = daemon.split_address(options.http)
    async with serving(FakeEngine(), directory, options):
        strangers = [await asyncio.open_connection(host, port) for _ in range(9)]
        await asyncio.gather(*(ended(reader) for reader, _ in strangers[:5]))
        trusting = ssl.create_default_context(cafile=options.certificate)
        await check_served(strangers, host, port, ssl=trusting, server_hostname="localhost")


async def test_handshake_has_to_be_over_in_time(directory, monkeypatch):
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.05)
    options = encrypted(directory)
    async with serving(FakeEngine(), directory, options):
        for said in (b"", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            reader, writer = await asyncio.open_connection(*daemon.split_address(options.http))
            writer.write(said)
            await ended(reader)
            writer.close()


async def reading_nothing(address):
    """A client that asks for more than buffers hold."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    opened.connect(daemon.split_address(address))
    reader, writer = await asyncio.open_connection(sock=opened, limit=1024)
    writer.transport.pause_reading()
    writer.write(b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 200)
    return reader, writer


async def test_idle_reader_does_not_block_others(directory, monkeypatch):
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 4)
    options = daemon.Options(directory=directory, http=free_address(), token="secret")
    async with serving(FakeEngine({"x": "answer"}), directory, options):
        strangers = [await reading_nothing(options.http) for _ in range(4)]
        for _, writer in strangers:
            await writer.drain()
        await check_served(strangers, *daemon.split_address(options.http))


async def test_slow_reader_is_disconnected(directory, monkeypatch):
    monkeypatch.setattr(limits, "READ_SECONDS", 0.05)
    options = daemon.Options(directory=directory, http=free_address(), token="secret")
    async with serving(FakeEngine(), directory, options):
        _, writer = await reading_nothing(options.http)
        async with asyncio.timeout(10):
            with suppress(ConnectionResetError):
                while not writer.is_closing():
                    writer.write(b" ")
                    await writer.drain()
                    await asyncio.sleep(0)
        assert writer.is_closing()
        writer.transport.abort()


ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("page", ["SECURITY.md", "ARCHITECTURE.md"])
def test_limits_are_those_that_the_pages_promise(page):
    told = f"{limits.HEAD_BYTES >> 10} KiB, {limits.HEAD_SECONDS:.0f} seconds and one of {limits.MAX_CONNECTIONS} conn"
    assert told in (ROOT / page).read_text(encoding="utf-8")


def test_options_that_promises_name_are_there():
    named = re.findall(r"`(?:mercury-ls serve )?(--[\w-]+)", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    manual = (ROOT / "docs/CLI.md").read_text(encoding="utf-8")
    assert named
    assert [option for option in named if not re.search(rf"{option}\b", manual)] == []
