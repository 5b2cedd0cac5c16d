"""Who says nothing is sent away, and nobody who has something to say is kept out for it."""

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from mercury_engine.fake import FakeEngine
from mercury_ls.serve import doorkeeper, local
from tests.mercury_ls.test_client import connected, everything, request, serving


@pytest.fixture
def directory():
    """Short enough for a socket's path."""
    with tempfile.TemporaryDirectory(prefix="m") as path:
        yield path


async def silent(directory):
    return await asyncio.open_unix_connection(local.address(Path(directory)).path)


async def ended(reader):
    with suppress(ConnectionResetError):
        assert await asyncio.wait_for(reader.read(), 10) == b""


async def test_who_says_nothing_or_half_a_request_is_sent_away(directory, monkeypatch):
    monkeypatch.setattr(doorkeeper, "HEAD_SECONDS", 0.05)
    async with serving(FakeEngine({"x": "answer"}), directory), connected(directory) as (client, _):
        for said in (b"", b"GET /health HTTP/1.1\r\nHost: "):
            reader, writer = await silent(directory)
            writer.write(said)
            await ended(reader)
            writer.close()
        assert client.status.state == "ready", "a lease is long, and has been asked for"
        assert (await everything(client.infill(request())))[-1].spans[0].text == "answer"


async def test_too_many_connections_keep_nobody_out_who_is_in(directory, monkeypatch):
    monkeypatch.setattr(doorkeeper, "MOST_CONNECTIONS", 4)
    async with serving(FakeEngine({"x": "answer"}), directory), connected(directory) as (client, _):
        await everything(client.infill(request()))
        opened = [await silent(directory) for _ in range(6)]
        await asyncio.gather(*(ended(reader) for reader, _ in opened[2:]))
        assert (await everything(client.infill(request())))[-1].spans[0].text == "answer"
        for _, writer in opened:
            writer.close()
