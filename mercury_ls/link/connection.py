"""An HTTP/1.1 client connection to an engine server, kept alive, over a Unix socket or TCP."""

import asyncio
import socket
from collections.abc import AsyncIterator

from msgspec import Struct

from mercury_engine.redaction import ForeignText, Secrets
from mercury_ls.link.wire import WireError

HEAD_LIMIT = 64 << 10
CHUNK_LIMIT = 4 << 20
CONNECT_SECONDS = 5.0
SHOWN = 80
KEEP_ALIVE_SECONDS = 15
"""Keeps a lease from looking alive after a laptop slept or a network was lost."""


class Address(Struct, frozen=True):
    """A Unix socket at `path`, or `host` and `port`, with the token to send if there is one."""

    path: str = ""
    host: str = ""
    port: int = 0
    tls: bool = False
    token: str = ""

    def __str__(self) -> str:
        return self.path or f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"


class Response(Struct, frozen=True):
    """The head of a response; header names and values are in lower case."""

    status: int
    headers: dict[str, str]


async def connect(address: Address) -> "Connection":
    """Connect, or raise OSError if nobody is listening."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):  # wait_for can swallow a cancellation in Python 3.11
            reader, writer = await _open_streams(address)
    except TimeoutError as error:
        raise ConnectionError(
            f"{address} did not answer within {CONNECT_SECONDS:.0f} s: run `mercury-ls doctor`"
        ) from error
    return Connection(address, reader, writer)


async def _open_streams(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if address.path:  # never on Windows
        return await asyncio.open_unix_connection(address.path, limit=HEAD_LIMIT)  # pyright: ignore
    reader, writer = await asyncio.open_connection(
        address.host, address.port, ssl=address.tls or None, limit=HEAD_LIMIT
    )
    _keep_alive(writer.get_extra_info("socket"))
    return reader, writer


def _keep_alive(tcp: socket.socket) -> None:
    tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
        if hasattr(socket, option):  # macOS and Windows have other names for them, and keep their defaults
            tcp.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), KEEP_ALIVE_SECONDS)


class Connection:
    """One request at a time: `send`, then read `body` to its end before the next one."""

    def __init__(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        host = f"{address.host}:{address.port}" if address.host else "localhost"
        authorization = f"authorization: Bearer {address.token}\r\n" if address.token else ""
        self.secrets = Secrets([f"Bearer {address.token}"] if address.token else [])
        self._common = f"host: {host}\r\n{authorization}"
        self._idle = True

    @property
    def usable(self) -> bool:
        """True if neither side has closed it, and the last response was read to its end."""
        return self._idle and not self._writer.is_closing() and not self._reader.at_eof()

    async def send(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Response:
        self._idle = False
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"{method} {path} HTTP/1.1\r\n{self._common}{lines}content-length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        return _parse_head(await self._until(b"\r\n\r\n"), self.secrets)

    async def body(self, response: Response) -> AsyncIterator[bytes]:
        """The pieces as they arrive. A connection whose response is not read to its end cannot be used again."""
        if response.headers.get("transfer-encoding") == "chunked":
            while size := _chunk_size(await self._until(b"\r\n"), self.secrets):
                yield (await self._exactly(size + 2))[:-2]
            while await self._until(b"\r\n") != b"\r\n":
                pass  # trailers
        else:
            yield await self._exactly(int(response.headers.get("content-length", "0")))
        self._idle = response.headers.get("connection") != "close"

    async def read(self, response: Response) -> bytes:
        return b"".join([piece async for piece in self.body(response)])

    def close(self) -> None:
        """Close at once and drop unsent data: for the server, this cancels the request."""
        self._writer.transport.abort()

    async def _until(self, end: bytes) -> bytes:
        try:
            return await self._reader.readuntil(end)
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError("the engine server closed the connection") from error
        except asyncio.LimitOverrunError as error:
            raise WireError(f"the engine server sent more than {HEAD_LIMIT} bytes without an end of line") from error

    async def _exactly(self, count: int) -> bytes:
        try:
            return await self._reader.readexactly(count)
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError("the engine server closed the connection") from error


def _parse_head(head: bytes, secrets: Secrets) -> Response:
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    version, _, remainder = first.partition(" ")
    status = remainder[:3]
    if not version.startswith("HTTP/1.") or not status.isdigit():
        shown = secrets.shown(ForeignText(first), SHOWN)
        raise WireError(f"the engine server sent {shown!r}, which is not HTTP/1.1: check the address")
    pairs = (line.partition(":") for line in lines)
    return Response(int(status), {name.lower(): value.strip().lower() for name, _, value in pairs})


def _chunk_size(line: bytes, secrets: Secrets) -> int:
    digits = line.split(b";")[0].strip()
    try:
        size = int(digits, 16)
    except ValueError:
        shown = secrets.shown(ForeignText.of(line), SHOWN)
        raise WireError(f"the engine server sent {shown!r} instead of a chunk size") from None
    if not 0 <= size <= CHUNK_LIMIT:
        raise WireError(f"the engine server sent a chunk of {size} bytes, over the limit of {CHUNK_LIMIT}")
    return size
