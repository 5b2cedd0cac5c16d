"""How bytes become messages: stdio, TCP and WebSocket, each connection with a server of its own."""

import asyncio
import hmac
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, Protocol
from urllib.parse import parse_qs, urlsplit

from mercury_ls.serve.local import LOOPBACK

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.datastructures import Headers
    from websockets.http11 import Request, Response

__all__ = ["Connection", "FrameError", "Frames", "private_stdout", "serve_stdio", "serve_tcp", "serve_websocket"]

log = logging.getLogger(__name__)

LARGEST_MESSAGE = 64 << 20
LONGEST_HEADER = 8192
LAST_RESORT_SECONDS = 10
MOST_UNREAD, MOST_UNSENT = 64 << 20, 4096
"""Bytes, and messages: a client that reads no more is given up."""


class Connection(Protocol):
    """One client, seen from the transport."""

    def receive(self, body: bytes) -> None: ...
    def malformed(self, problem: str) -> None: ...
    async def closed(self) -> None: ...

    finished: asyncio.Event
    exit_code: int


class FrameError(Exception):
    """The header block is unusable; what follows it is read as the next one."""


class Frames:
    """Splits a byte stream into message bodies; header names in any case, unknown headers ignored."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._expected: int | None = None

    def feed(self, data: bytes) -> list[bytes | FrameError]:
        self._buffer += data
        found: list[bytes | FrameError] = []
        while (item := self._next()) is not None:
            found.append(item)
        return found

    def _next(self) -> bytes | FrameError | None:
        if self._expected is None:
            try:
                self._expected = self._header()
            except FrameError as error:
                return error
        if self._expected is None or len(self._buffer) < self._expected:
            return None
        body = bytes(self._buffer[: self._expected])
        del self._buffer[: self._expected]
        self._expected = None
        return body

    def _header(self) -> int | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > LONGEST_HEADER:
                self._buffer.clear()
                raise FrameError(f"no end of headers within {LONGEST_HEADER} bytes")
            return None
        block = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        return content_length(block)


def content_length(block: bytes) -> int:
    for line in block.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return checked_length(value.strip())
    raise FrameError(f"no Content-Length in the headers {block[:80]!r}")


def checked_length(value: bytes) -> int:
    if not value.isdigit():
        raise FrameError(f"Content-Length {value[:40]!r} is not a number")
    if (length := int(value)) > LARGEST_MESSAGE:
        raise FrameError(f"Content-Length {length} is over the limit of {LARGEST_MESSAGE} bytes")
    return length


def frame(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def deliver(connection: Connection, items: list[bytes | FrameError]) -> None:
    for item in items:
        if isinstance(item, FrameError):
            connection.malformed(str(item))
        else:
            connection.receive(item)


async def serve_stdio(stdout: BinaryIO, connect: Callable[[Callable[[bytes], None]], Connection]) -> int:
    """Speak with the one client on standard input and `stdout` until either side closes; the exit code.

    A thread reads: pipes of every platform can be read that way, and a message costs one hop to the loop.
    """

    def write(body: bytes) -> None:
        stdout.write(frame(body))
        stdout.flush()

    connection = connect(write)
    loop = asyncio.get_running_loop()
    threading.Thread(target=read_stdin, args=(connection, loop), daemon=True).start()
    await connection.finished.wait()
    await connection.closed()
    return connection.exit_code


def private_stdout() -> BinaryIO:
    """The protocol's own descriptor; whatever else prints to standard output ends on standard error."""
    own = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return own


def read_stdin(connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
    """By descriptor: a buffered reader would hold its lock while the interpreter ends around it."""
    frames = Frames()
    try:
        while data := os.read(0, 1 << 16):
            if items := frames.feed(data):
                loop.call_soon_threadsafe(deliver, connection, items)
        loop.call_soon_threadsafe(connection.finished.set)
    except (OSError, RuntimeError) as error:
        log.debug("standard input is gone: %s", error)
    time.sleep(LAST_RESORT_SECONDS)
    os._exit(1)  # whatever keeps the loop from ending, nobody is there any more to wait for it


async def serve_tcp(host: str, port: int, connect: Callable, listening: Callable) -> None:
    """One session for every connection. Plain LSP has no place for a token but `initialize`, which checks it."""

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer, connect)
        finally:
            writer.close()

    server = await asyncio.start_server(session, host, port)
    async with server:
        listening(server.sockets[0].getsockname())
        await server.serve_forever()


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connect: Callable) -> None:
    def write(body: bytes) -> None:
        if writer.is_closing() or writer.transport.get_write_buffer_size() > MOST_UNREAD:
            raise ConnectionError("the client no longer reads")
        writer.write(frame(body))

    connection: Connection = connect(write)
    reading = asyncio.create_task(read_stream(reader, connection))
    await connection.finished.wait()
    reading.cancel()
    await connection.closed()


async def read_stream(reader: asyncio.StreamReader, connection: Connection) -> None:
    frames = Frames()
    try:
        while data := await reader.read(1 << 16):
            deliver(connection, frames.feed(data))
    except ConnectionError as error:
        log.debug("client disappeared: %s", error)
    finally:
        connection.finished.set()


async def serve_websocket(host: str, port: int, token: str, connect: Callable, listening: Callable) -> None:
    """One session for every socket; a browser's page is let in only from loopback and with the token."""
    from websockets.asyncio.server import serve

    async def session(socket: "ServerConnection") -> None:
        outbox: asyncio.Queue[bytes] = asyncio.Queue(MOST_UNSENT)

        def write(body: bytes) -> None:
            if outbox.full():
                raise ConnectionError("the client no longer reads")
            outbox.put_nowait(body)

        connection: Connection = connect(write)
        tasks = [
            asyncio.create_task(read_socket(socket, connection)),
            asyncio.create_task(write_socket(socket, outbox)),
        ]
        await connection.finished.wait()
        for task in tasks:
            task.cancel()
        await connection.closed()

    def admit(socket: "ServerConnection", request: "Request") -> "Response | None":
        if problem := refusal(request.path, request.headers, token):
            log.warning("refused a WebSocket client: %s", problem)
            return socket.respond(403, problem + "\n")
        return None

    async with serve(session, host, port, process_request=admit, max_size=LARGEST_MESSAGE) as server:
        listening(next(iter(server.sockets)).getsockname())
        await server.serve_forever()


def refusal(path: str, headers: "Headers", token: str) -> str:
    """Why this handshake is refused: pages of other sites and names rebound to this machine, or a wrong token."""
    if not on_this_machine("//" + headers.get("Host", "")):
        return f"host {headers.get('Host')} is not this machine"
    if (origin := headers.get("Origin")) and not on_this_machine(origin):
        return f"origin {origin} is not this machine"
    given = headers.get("Authorization", "").removeprefix("Bearer ")
    given = given or parse_qs(urlsplit(path).query).get("token", [""])[0]
    return "" if hmac.compare_digest(given.encode(), token.encode()) else "the token is missing or wrong"


def on_this_machine(address: str) -> bool:
    return urlsplit(address).hostname in LOOPBACK


async def read_socket(socket: "ServerConnection", connection: Connection) -> None:
    from websockets.exceptions import ConnectionClosed

    try:
        while True:
            connection.receive(await socket.recv(decode=False))
    except ConnectionClosed:
        log.debug("WebSocket client closed")
    finally:
        connection.finished.set()


async def write_socket(socket: "ServerConnection", outbox: "asyncio.Queue[bytes]") -> None:
    from websockets.exceptions import ConnectionClosed

    try:
        while True:
            await socket.send((await outbox.get()).decode(), text=True)
    except ConnectionClosed:
        log.debug("WebSocket client closed while it was written to")
