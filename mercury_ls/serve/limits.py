"""HTTP connections as the engine server bears them: not too many, and none that says nothing."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Doorkeeper"]

MOST_CONNECTIONS = 256
"""Far below the files that a process may have open."""
HEAD_SECONDS = 10.0


class Doorkeeper(H11Protocol):
    """Ends a connection whose first request is not there in time. Where there are too many, the oldest of those that
    have asked nothing yet gives way, then the oldest that waits for its next request: a newcomer is at work."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._patience = self.loop.call_later(HEAD_SECONDS, transport.abort)
        if len(self.connections) > MOST_CONNECTIONS:
            self._least_missed().transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None:
            self._patience.cancel()

    def connection_lost(self, exc: Any) -> None:
        self._patience.cancel()
        super().connection_lost(exc)

    def _least_missed(self) -> "Doorkeeper":
        others = [one for one in self.connections if one is not self and not one.transport.is_closing()]
        silent = [one for one in others if one.cycle is None]
        idle = [one for one in others if one.cycle is not None and one.cycle.response_complete]
        return min(silent or idle or [self], key=lambda one: one._since)
