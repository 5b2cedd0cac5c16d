"""Messages of the protocol on a stream, and where a listening server says that it is."""

import asyncio
import re
from pathlib import Path

__all__ = ["frame", "listening", "received"]

LISTENING = re.compile(r"listening on (.*?):(\d+), token in (.*)")


def frame(body: bytes, header: bytes = b"") -> bytes:
    return (header or b"Content-Length: %d\r\n\r\n" % len(body)) + body


async def received(reader: asyncio.StreamReader) -> bytes | None:
    """The body of the next message, None at the end. Anything else on the stream is an error of the server."""
    try:
        header = await reader.readuntil(b"\r\n\r\n")
        return await reader.readexactly(int(header.removeprefix(b"Content-Length: ")))
    except (asyncio.IncompleteReadError, OSError):
        return None


def listening(text: str) -> tuple[int, str] | None:
    """The port and the token of a server that says so on standard error."""
    if (match := LISTENING.search(text)) is None:
        return None
    return int(match[2]), Path(match[3].strip()).read_text(encoding="utf-8").strip()
