"""LSP framing on standard input and output, robust against whatever else the streams contain."""

import asyncio
import logging
import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, Protocol

log = logging.getLogger(__name__)

LARGEST_MESSAGE = 64 << 20
LARGEST_SKIPPED = 1 << 30
LONGEST_HEADER = 8192
LONGEST_START = 64
ENDS = 4096
LAST_RESORT_SECONDS = 10
END_OF_HEADERS = b"\r\n\r\n"
START = re.compile(rb"content-length:[ \t]*\d{1,10}[ \t]*\r\n", re.IGNORECASE)
"""Never part of a message: JSON has no line ends in strings, and no colon after a bare word."""


class FrameError(Exception):
    """A malformed header block; reading continues at the next one."""


class OversizedError(FrameError):
    """A body over the limit, which was skipped. `ends`, its first and last bytes, show what it was about."""

    def __init__(self, length: int, limit: int, ends: bytes) -> None:
        super().__init__(f"a message of {length} bytes is over the limit of {limit} bytes and was skipped")
        self.ends = ends


class ClientConnection(Protocol):
    """One client, as the transport sees it."""

    def receive(self, body: bytes) -> None: ...
    def malformed(self, error: FrameError) -> None: ...
    async def closed(self) -> None: ...

    finished: asyncio.Event
    exit_code: int


class MessageReader:
    """Splits a byte stream into message bodies. Header names may be in any case; unknown headers are ignored.

    Buffers one message at most: a body over the limit, and data without a header, are dropped as they arrive.
    """

    def __init__(self, largest: int = LARGEST_MESSAGE) -> None:
        self._largest = largest
        self._buffer = bytearray()
        self._expected: int | None = None
        self._skipping: _SkippedBody | None = None
        self._lost = False

    def __len__(self) -> int:
        """The number of buffered bytes."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes | FrameError]:
        self._buffer += data
        frames: list[bytes | FrameError] = []
        while (item := self._next()) is not None:
            frames.append(item)
        return frames

    def _next(self) -> bytes | FrameError | None:
        try:
            if self._skipping is not None:
                return self._skip(self._skipping)
            if self._expected is None:
                self._expected = self._header()
        except FrameError as error:
            return error
        if self._expected is None:
            return None
        if self._expected > self._largest:
            self._skipping, self._expected = _SkippedBody(self._expected), None
            return self._next()
        return self._body(self._expected)

    def _body(self, length: int) -> bytes | None:
        if len(self._buffer) < length:
            return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        self._expected = None
        return body

    def _skip(self, skipping: "_SkippedBody") -> FrameError | None:
        skipping.take(self._buffer)
        if skipping.left:
            return None
        self._skipping = None
        return OversizedError(skipping.length, self._largest, skipping.head + b"\n" + skipping.tail)

    def _header(self) -> int | None:
        if self._lost and not self._resynchronized():
            return None
        end = self._buffer.find(END_OF_HEADERS)
        if end < 0:
            if len(self._buffer) > LONGEST_HEADER:
                self._lose(len(self._buffer) - LONGEST_START)
                raise FrameError(f"no end of headers within {LONGEST_HEADER} bytes")
            return None
        try:
            length = _content_length(bytes(self._buffer[:end]))
        except FrameError:
            self._lose(1)
            raise
        del self._buffer[: end + len(END_OF_HEADERS)]
        return length

    def _lose(self, count: int) -> None:
        del self._buffer[:count]
        self._lost = True

    def _resynchronized(self) -> bool:
        start = START.search(self._buffer)
        self._lost = start is None
        del self._buffer[: start.start() if start else -LONGEST_START]
        return not self._lost


class _SkippedBody:
    """A body of which only the ends are kept."""

    def __init__(self, length: int) -> None:
        self.length = self.left = length
        self.head = self.tail = b""

    def take(self, buffer: bytearray) -> None:
        part = bytes(buffer[: self.left])
        del buffer[: self.left]
        self.left -= len(part)
        self.head += part[: ENDS - len(self.head)]
        self.tail = (self.tail + part)[-ENDS:]


def _content_length(block: bytes) -> int:
    for line in block.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return _checked_length(value.strip())
    raise FrameError(f"no Content-Length in the headers {block[:80]!r}")


def _checked_length(value: bytes) -> int:
    if not value.isdigit():
        raise FrameError(f"Content-Length {value[:40]!r} is not a number")
    if len(value) > 10 or int(value) > LARGEST_SKIPPED:
        raise FrameError(f"Content-Length {value[:40]!r} is implausible: no message is longer than 1 GiB")
    return int(value)


def frame(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _deliver(connection: ClientConnection, items: list[bytes | FrameError]) -> None:
    for item in items:
        if isinstance(item, FrameError):
            connection.malformed(item)
        else:
            connection.receive(item)


async def serve_stdio(stdout: BinaryIO, connect: Callable[[Callable[[bytes], None]], ClientConnection]) -> int:
    """Serve the one client on standard input and `stdout` until either side closes; returns the exit code.

    A thread reads the input: that works for pipes on every platform, and costs one hop to the loop per message.
    """

    def write(body: bytes) -> None:
        stdout.write(frame(body))
        stdout.flush()

    connection = connect(write)
    loop = asyncio.get_running_loop()
    threading.Thread(target=_read_stdin, args=(connection, loop), daemon=True).start()
    await connection.finished.wait()
    await connection.closed()
    return connection.exit_code


def private_stdout() -> BinaryIO:
    """A descriptor for the protocol alone; whatever else is printed to standard output goes to standard error."""
    own = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return own


def _read_stdin(connection: ClientConnection, loop: asyncio.AbstractEventLoop) -> None:
    """Reads the descriptor: a buffered reader would hold its lock while the interpreter shuts down."""
    try:
        pump(lambda: os.read(0, 1 << 16), lambda items: loop.call_soon_threadsafe(_deliver, connection, items))
    finally:
        with suppress(RuntimeError):  # the loop is already closed
            loop.call_soon_threadsafe(connection.finished.set)
        time.sleep(LAST_RESORT_SECONDS)
        os._exit(1)  # the client is gone, and something keeps the loop from ending


def pump(read: Callable[[], bytes], deliver: Callable[[list[bytes | FrameError]], object]) -> None:
    """Deliver what is read until the input ends or reading fails."""
    frames = MessageReader()
    try:
        while data := read():
            if items := frames.feed(data):
                deliver(items)
    except (OSError, RuntimeError) as error:
        log.debug("standard input was closed: %s", error)
    except Exception:
        log.exception("cannot read standard input any further")
