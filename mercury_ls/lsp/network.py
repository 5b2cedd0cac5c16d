"""LSP over TCP and WebSocket: every client with the token gets its own server process, and others get nothing."""

import asyncio
import hmac
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from msgspec import Struct

from mercury_engine.addresses import is_here
from mercury_ls.lsp.transport import END_OF_HEADERS, FrameError, content_length, frame

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from asyncio.subprocess import Process

    from websockets.datastructures import Headers
    from websockets.http11 import Request, Response

__all__ = ["ClientRefusedError", "Unauthenticated", "refusal", "serve_tcp", "serve_websocket"]

log = logging.getLogger(__name__)

FIRST_BYTES = 64 << 10
FIRST_SECONDS = 5.0
MOST_WAITING = 64
LARGEST_WEBSOCKET_MESSAGE = 16 << 20
"""The process that all clients share buffers whole messages: this much takes less than a tenth of a second."""
ENDING_SECONDS = 15.0
"""More than a server takes to exit after its input has ended."""

UNREADABLE = (msgspec.ValidationError, ValueError, RecursionError)
TOKEN_REMEDY = "send the one in the file that the server names when it starts"
INVALID_REQUEST, INVALID_PARAMS, NOT_INITIALIZED = -32600, -32602, -32002


class ClientRefusedError(Exception):
    """The client has not presented the token. The reply says why."""

    def __init__(self, problem: str, code: int = INVALID_REQUEST, id: int | str | None = None) -> None:
        super().__init__(problem)
        self.reply = msgspec.json.encode({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": problem}})


class Unauthenticated:
    """The connections that have not presented the token yet. Their number is limited: the oldest makes room for a new
    one, so that nobody can lock others out by waiting."""

    def __init__(self, limit: int = MOST_WAITING) -> None:
        self._most = limit
        self._waiting: dict[object, Callable[[], None]] = {}

    def add(self, connection: object, abort: Callable[[], None]) -> None:
        self._waiting[connection] = abort
        if len(self._waiting) > self._most:
            oldest = next(iter(self._waiting))
            self._waiting.pop(oldest)()

    def remove(self, connection: object) -> None:
        self._waiting.pop(connection, None)

    def __contains__(self, connection: object) -> bool:
        return connection in self._waiting


# TCP


class InitializeOptions(Struct):
    token: str = ""


class InitializeParams(Struct, rename="camel"):
    initialization_options: InitializeOptions | None = None


class FirstMessage(Struct):
    method: str = ""
    id: int | str | None = None
    params: Any = None


async def serve_tcp(host: str, port: int, token: str, command: Sequence[str], listening: Callable) -> None:
    """The token comes with `initialize`, since plain LSP has no other place for it; nothing else is accepted before."""
    unauthenticated = Unauthenticated()

    async def session(reader: "StreamReader", writer: "StreamWriter") -> None:
        unauthenticated.add(writer, writer.transport.abort)
        try:
            first = await first_message(reader, token)
            unauthenticated.remove(writer)
            async with server_process(command) as process:
                process.stdin.write(first)
                await converse(process, received(reader), sending(writer))
        except ClientRefusedError as error:
            log.warning("refused a TCP client: %s", error)
            writer.write(frame(error.reply))
        except ConnectionError as error:
            log.debug("a TCP client has disconnected: %s", error)
        finally:
            unauthenticated.remove(writer)
            writer.close()

    server = await asyncio.start_server(session, host, port, limit=FIRST_BYTES)
    async with server:
        listening(server.sockets[0].getsockname())
        await server.serve_forever()


async def first_message(reader: "StreamReader", token: str, seconds: float = FIRST_SECONDS) -> bytes:
    """The `initialize` that presents the token, as received; RefusedError for anything else."""
    try:
        async with asyncio.timeout(seconds):
            head = await reader.readuntil(END_OF_HEADERS)
            length = content_length(head.removesuffix(END_OF_HEADERS))
            if len(head) + length > FIRST_BYTES:
                raise ClientRefusedError(f"a first message of {length} bytes is over the limit of {FIRST_BYTES} bytes")
            body = await reader.readexactly(length)
    except TimeoutError:
        raise ClientRefusedError(f"no initialize within {seconds:g} s") from None
    except asyncio.LimitOverrunError:
        raise ClientRefusedError(f"no end of headers within {FIRST_BYTES} bytes") from None
    except FrameError as error:
        raise ClientRefusedError(str(error)) from None
    except asyncio.IncompleteReadError as error:
        raise ConnectionError("it was closed before the first message") from error
    check_first(body, token)
    return head + body


def check_first(body: bytes, token: str) -> None:
    try:
        message = msgspec.convert(json.loads(body), FirstMessage)  # as the server does, accepting lone surrogates
    except UNREADABLE as error:
        raise ClientRefusedError(f"the first message is not an LSP message: {error}") from None
    if message.method != "initialize":
        raise ClientRefusedError("the first message must be initialize", NOT_INITIALIZED, message.id)
    try:
        options = msgspec.convert(message.params, InitializeParams).initialization_options or InitializeOptions()
    except UNREADABLE:
        options = InitializeOptions()
    if not hmac.compare_digest(options.token.encode(errors="replace"), token.encode()):
        raise ClientRefusedError(
            f"initializationOptions.token is missing or wrong: {TOKEN_REMEDY}", INVALID_PARAMS, message.id
        )


async def received(reader: "StreamReader") -> AsyncIterator[bytes]:
    while data := await reader.read(FIRST_BYTES):
        yield data


def sending(writer: "StreamWriter") -> Callable[["Process"], Awaitable[None]]:
    async def send(process: "Process") -> None:
        async for data in received(process.stdout):
            writer.write(data)
            await writer.drain()

    return send


# WebSocket


async def serve_websocket(host: str, port: int, token: str, command: Sequence[str], listening: Callable) -> None:
    """Web pages are accepted from loopback only, and with the token."""
    from websockets.asyncio.server import ServerConnection, serve
    from websockets.exceptions import ConnectionClosed

    unauthenticated = Unauthenticated()

    class Caller(ServerConnection):
        """Limits the data before the handshake is done: the library allows a megabyte of headers."""

        _count = 0

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            unauthenticated.add(self, self.transport.abort)

        def data_received(self, data: bytes) -> None:
            if self in unauthenticated:
                self._count += len(data)
            if self._count > FIRST_BYTES:
                self.transport.abort()
            else:
                super().data_received(data)

        def connection_lost(self, error: Exception | None) -> None:
            unauthenticated.remove(self)
            super().connection_lost(error)

    def admit(socket: ServerConnection, request: "Request") -> "Response | None":
        if problem := refusal(request.path, request.headers, token):
            log.warning("refused a WebSocket client: %s", problem)
            return socket.respond(403, problem + "\n")
        unauthenticated.remove(socket)
        return None

    async def session(socket: ServerConnection) -> None:
        async def bodies() -> AsyncIterator[bytes]:
            with suppress(ConnectionClosed):
                while True:
                    yield frame(await socket.recv(decode=False))

        async def send(process: "Process") -> None:
            with suppress(asyncio.IncompleteReadError, ConnectionClosed):
                while True:
                    head = await process.stdout.readuntil(END_OF_HEADERS)
                    body = await process.stdout.readexactly(content_length(head.removesuffix(END_OF_HEADERS)))
                    await socket.send(body, text=True)

        async with server_process(command) as process:
            await converse(process, bodies(), send)

    async with serve(
        session,
        host,
        port,
        process_request=admit,
        create_connection=Caller,
        open_timeout=FIRST_SECONDS,
        close_timeout=FIRST_SECONDS,
        compression=None,
        max_size=LARGEST_WEBSOCKET_MESSAGE,
        max_queue=1,
    ) as server:
        listening(next(iter(server.sockets)).getsockname())
        await server.serve_forever()


def refusal(path: str, headers: "Headers", token: str) -> str:
    """Why this handshake is refused: web pages of other sites, DNS names rebound to this machine, or a wrong token."""
    if not is_here("//" + headers.get("Host", "")):
        return f"the Host header is {headers.get('Host')}: use localhost or 127.0.0.1"
    if (origin := headers.get("Origin")) and not is_here(origin):
        return f"the request comes from a web page at {origin}: only pages on this machine are accepted"
    presented = headers.get("Authorization", "").removeprefix("Bearer ")
    presented = presented or parse_qs(urlsplit(path).query).get("token", [""])[0]
    right = hmac.compare_digest(presented.encode("utf-8", "surrogateescape"), token.encode())
    return "" if right else f"the token is missing or wrong: {TOKEN_REMEDY}"


# The server of one client


@asynccontextmanager
async def server_process(command: Sequence[str]) -> AsyncIterator["Process"]:
    """Each client has a process of its own, so that no message of one, however large, delays another."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=FIRST_BYTES)
    try:
        yield process
    finally:
        process.stdin.close()
        try:
            async with asyncio.timeout(ENDING_SECONDS):
                async for _ in received(process.stdout):  # unread output would keep it from exiting
                    pass
                await process.wait()
        except TimeoutError:
            process.kill()


async def converse(
    process: "Process", incoming: AsyncIterator[bytes], send: Callable[["Process"], Awaitable[None]]
) -> None:
    """Pass messages on in both directions until the server exits or the client disconnects."""

    async def forward() -> None:
        with suppress(ConnectionError):
            async for data in incoming:
                process.stdin.write(data)
                await process.stdin.drain()
        process.stdin.close()

    forwarding = asyncio.create_task(forward())
    try:
        await send(process)
    finally:
        forwarding.cancel()
