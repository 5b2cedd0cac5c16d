"""HTTP connections as the engine server bears them: not too many, and none that says nothing."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Doorkeeper"]

MOST_CONNECTIONS = 256
"""Far below the files that a process may have open: whoever comes later is sent away, and nobody else notices."""
HEAD_SECONDS = 10.0


class Doorkeeper(H11Protocol):
    """Ends a connection whose first request is not there in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._patience = self.loop.call_later(HEAD_SECONDS, transport.abort)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None:
            self._patience.cancel()

    def connection_lost(self, exc: Any) -> None:
        self._patience.cancel()
        super().connection_lost(exc)
