"""The engine server's connection limits: how many, and how long each may take to send a request."""

import asyncio
import ssl
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 256
"""Far below the number of files that a process may have open."""
HEAD_SECONDS = 10.0
READ_SECONDS = 30.0
"""How long a client may read nothing while more was sent to it than buffers hold: by then it has hung, or vanished."""
HEAD_BYTES = 16 << 10
LENGTHS = {b"content-length", b"transfer-encoding"}
TOO_LARGE = f"the head of the request is larger than {HEAD_BYTES} bytes\n"


def secured(context: ssl.SSLContext) -> Callable[..., asyncio.Protocol]:
    """Limited connections that begin with a TLS handshake."""
    waiting: dict[asyncio.Transport, None] = {}
    return lambda **options: _Handshake(LimitedConnection(**options), context, waiting)


class _Handshake(asyncio.Protocol):
    """A connection until its TLS handshake is over, which has as long as a request's head. If too many are `waiting`,
    each with buffers of 300 KiB, a new one replaces the oldest. asyncio itself limits neither."""

    def __init__(
        self, connection: "LimitedConnection", context: ssl.SSLContext, waiting: dict[asyncio.Transport, None]
    ) -> None:
        self._connection = connection
        self._context = context
        self._waiting = waiting
        self._early = b""
        self._is_lost = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.pause_reading()
        self._waiting[transport] = None
        if len(self._waiting) > MAX_CONNECTIONS:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.abort()
        self._task = asyncio.create_task(self._secure(transport))

    def data_received(self, data: bytes) -> None:
        self._early += data

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True

    async def _secure(self, transport: asyncio.Transport) -> None:
        if transport.is_closing():
            return
        loop, connection = asyncio.get_running_loop(), self._connection
        try:
            encrypted = await loop.start_tls(
                transport, self, self._context, server_side=True, ssl_handshake_timeout=HEAD_SECONDS
            )
        except OSError:  # the client left, speaks something else, or took too long
            return
        finally:
            self._waiting.pop(transport, None)
        if encrypted is None or self._is_lost:
            return
        encrypted.set_protocol(connection)
        connection.connection_made(encrypted)  # type: ignore[arg-type]
        if self._early:
            connection.data_received(self._early)


class _StrictConnection(h11.Connection):
    """Refuses a body with two lengths: a proxy in between may use the other one, and then read another request."""

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request) and LENGTHS.issubset(name for name, _ in event.headers):
            raise h11.RemoteProtocolError("a body has both a content-length and a transfer-encoding")
        return event


class LimitedConnection(H11Protocol):
    """Closes a connection whose client does not send its first request, or read its answer, in time. If there are too
    many connections, a new one replaces the oldest without a request, else the oldest idle one, else the oldest that
    waits for its client to send a body or to read: slow clients cannot keep others out."""

    def __init__(self, config: Config, *states: Any, **options: Any) -> None:
        super().__init__(config, *states, **options)
        self.conn = _StrictConnection(h11.SERVER, HEAD_BYTES)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._timeout = self.loop.call_later(HEAD_SECONDS, transport.abort)
        if len(self.connections) > MAX_CONNECTIONS:
            self._most_expendable().transport.abort()

    def data_received(self, data: bytes) -> None:
        """Feed h11 no more of a head than its limit: it measures only incomplete heads."""
        while data and not self.transport.is_closing():
            room = HEAD_BYTES + 1 - len(self.conn.trailing_data[0])
            size = room if room > 0 else len(data)
            super().data_received(data[:size])
            data = data[size:]
        if self.cycle is not None:
            self._timeout.cancel()

    def send_400_response(self, msg: str) -> None:
        """Send the status that h11 assigns to the error."""
        status = getattr(sys.exc_info()[1], "error_status_hint", 400)
        headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close")]
        body = TOO_LARGE if status == 431 else msg
        head = h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase.encode())
        events = head, h11.Data(data=body.encode()), h11.EndOfMessage()
        self.transport.writelines([self.conn.send(event) or b"" for event in events])
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._timeout.cancel()
        self._timeout = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._timeout.cancel()
        super().resume_writing()

    def connection_lost(self, exc: Any) -> None:
        self._timeout.cancel()
        super().connection_lost(exc)

    def _most_expendable(self) -> "LimitedConnection":
        """The longest silent one, else the longest idle one, else the one that reads or writes slowly for longest."""
        silent, idle, slow = list[LimitedConnection](), list[LimitedConnection](), list[LimitedConnection]()
        for other in cast("set[LimitedConnection]", self.connections):
            if other is self or other.transport.is_closing():
                continue
            if other.cycle is None:
                silent.append(other)
            elif other.cycle.response_complete:
                idle.append(other)
            elif other.cycle.more_body or other.flow.write_paused:
                slow.append(other)
        return min(silent or idle or slow or [self], key=lambda connection: connection._since)
