"""The engine server's connection limits: how many connections, and how long they may take to send a request."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["LimitedConnection"]

MAX_CONNECTIONS = 256
"""Far below the number of files that a process may have open."""
HEAD_SECONDS = 10.0


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
        super().data_received(data)
        if self.cycle is not None:
            self._timeout.cancel()

    def connection_lost(self, exc: Any) -> None:
        self._timeout.cancel()
        super().connection_lost(exc)

    def _most_expendable(self) -> "LimitedConnection":
        others = [one for one in self.connections if one is not self and not one.transport.is_closing()]
        silent = [one for one in others if one.cycle is None]
        idle = [one for one in others if one.cycle is not None and one.cycle.response_complete]
        return min(silent or idle or [self], key=lambda one: one._since)
