"""Messages of the protocol on a stream."""

import asyncio


def frame(body: bytes, header: bytes = b"") -> bytes:
    return (header or b"Content-Length: %d\r\n\r\n" % len(body)) + body


async def received(reader: asyncio.StreamReader) -> bytes | None:
    """The body of the next message, None at the end. Anything else on the stream is an error of the server."""
    try:
        header = await reader.readuntil(b"\r\n\r\n")
        return await reader.readexactly(int(header.removeprefix(b"Content-Length: ")))
    except (asyncio.IncompleteReadError, OSError):
        return None
