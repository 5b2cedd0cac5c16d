"""The engine server's connection limits: how many connections, and how long they may take to send a request."""

import asyncio
import sys
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["HEAD_BYTES", "LimitedConnection"]

MAX_CONNECTIONS = 256
"""Far below the number of files that a process may have open."""
HEAD_SECONDS = 10.0
HEAD_BYTES = 16 << 10
TOO_LARGE = f"the head of the request is larger than {HEAD_BYTES} bytes\n"


class LimitedConnection(H11Protocol):
    """Closes a connection that does not send its first request in time. If there are too many connections, a new one
    replaces the oldest without a request, or else the oldest idle one."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._timeout = self.loop.call_later(HEAD_SECONDS, transport.abort)
        if len(self.connections) > MAX_CONNECTIONS:
            self._most_expendable().transport.abort()

    def data_received(self, data: bytes) -> None:
        """h11 measures only what it has to wait for the rest of, so that it gets no more of a head than it may have."""
        while data and not self.transport.is_closing():
            room = HEAD_BYTES + 1 - len(self.conn.trailing_data[0])
            size = room if room > 0 else len(data)
            super().data_received(data[:size])
            data = data[size:]
        if self.cycle is not None:
            self._timeout.cancel()

    def send_400_response(self, msg: str) -> None:
        """With the status that h11 has for what is wrong."""
        status = getattr(sys.exc_info()[1], "error_status_hint", 400)
        headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close")]
        body = TOO_LARGE if status == 431 else msg
        head = h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase.encode())
        events = head, h11.Data(data=body.encode()), h11.EndOfMessage()
        self.transport.writelines([self.conn.send(event) or b"" for event in events])
        self.transport.close()

    def connection_lost(self, exc: Any) -> None:
        self._timeout.cancel()
        super().connection_lost(exc)

    def _most_expendable(self) -> "LimitedConnection":
        others = [one for one in self.connections if one is not self and not one.transport.is_closing()]
        silent = [one for one in others if one.cycle is None]
        idle = [one for one in others if one.cycle is not None and one.cycle.response_complete]
        return min(silent or idle or [self], key=lambda one: one._since)
