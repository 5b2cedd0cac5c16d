"""The engine protocol as an ASGI application."""

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from mercury_engine.api import PROTOCOL_VERSION, EngineError, Gap, Regions
from mercury_ls import __version__
from mercury_ls.link.wire import (
    BODY_LIMIT,
    CLIENT_HEADER,
    FRAME_TYPE,
    PREFIX,
    Failure,
    Request,
    WireError,
    decode,
    frame,
)
from mercury_ls.serve.access import Access
from mercury_ls.serve.asgi import (
    CLOSE,
    DisconnectedError,
    Handler,
    Receive,
    RefusedError,
    Scope,
    Send,
    as_json,
    disconnected,
    header,
    read_body,
    routed,
    start,
)
from mercury_ls.serve.race import first_of
from mercury_ls.serve.worker import Worker

REMEDY = (
    "send a Gap, Regions, Proposals or a ChatRequest of mercury_engine.api as a msgpack map; to /warm a Gap or Regions"
)


class Activity:
    """Counts open leases and running requests. The server exits after long enough without any."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._active = 0
        self._since = clock()

    @contextmanager
    def active(self) -> Generator[None]:
        self._active += 1
        try:
            yield
        finally:
            self._active -= 1
            self._since = self._clock()

    def idle_seconds(self) -> float:
        return 0.0 if self._active else self._clock() - self._since


class App:
    """Without `access`, file permissions say who may ask."""

    def __init__(
        self, worker: Worker, activity: Activity, stop: Callable[[], None], access: Access | None = None
    ) -> None:
        self._worker = worker
        self._activity = activity
        self._stop = stop
        self._access = access
        self.routes: dict[str, dict[str, Handler]] = {
            "/health": {"GET": self.health},
            f"{PREFIX}/info": {"GET": self.info},
            f"{PREFIX}/lease": {"GET": self.lease},
            f"{PREFIX}/ask": {"POST": self.ask},
            f"{PREFIX}/warm": {"POST": self.warm},
            f"{PREFIX}/stop": {"POST": self.stop},
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with suppress(DisconnectedError):
                await self._route(scope, receive, send)
        except RefusedError as refusal:
            said = {"error": str(refusal), "remedy": refusal.remedy}
            await as_json(said, refusal.status, {**refusal.headers, **CLOSE}).send(send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._access is not None:
            self._access.admitted(scope)
        path = scope["path"]
        if path.startswith("/engine/v") and not path.startswith(f"{PREFIX}/"):
            version = path.removeprefix("/engine/v").partition("/")[0]
            raise RefusedError(
                404,
                f"this server speaks engine protocol {PROTOCOL_VERSION}, but the request uses {version[:20]}",
                "install the same version of mercury-ls on both sides",
            )
        handler = routed(self.routes, scope["method"], path)
        if handler == self.health:
            return await handler(scope, receive, send)
        with self._activity.active():
            return await handler(scope, receive, send)

    async def health(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Report health to anyone who can connect; this reveals nothing about the user or the model. Without the token,
        a client may not occupy a connection."""
        said = {"state": self._worker.board.status.state, "protocol": PROTOCOL_VERSION, "version": __version__}
        await as_json(said, headers=CLOSE if self._access else None).send(send)

    async def info(self, scope: Scope, receive: Receive, send: Send) -> None:
        await as_json(self._worker.board.latest).send(send)

    async def ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send each draft as a frame, until the last one, or until the client is gone."""
        request = await _read_request(scope, receive)
        stream = self._worker.ask(header(scope, CLIENT_HEADER), request)
        watch = asyncio.create_task(disconnected(receive))
        watch.add_done_callback(lambda _: stream.close())
        started = False
        try:
            async for answer in stream:
                if not started:
                    await start(send, {}, FRAME_TYPE)
                    started = True
                last = isinstance(answer, Failure) or answer.final
                body = frame(answer)
                await send({"type": "http.response.body", "body": body, "more_body": not last})
                await asyncio.sleep(0)  # notice a client that has disconnected, even during a burst of drafts
        finally:
            watch.cancel()

    async def warm(self, scope: Scope, receive: Receive, send: Send) -> None:
        question = await _read_request(scope, receive)
        if not isinstance(question, Gap | Regions):
            raise RefusedError(400, f"there is nothing to read ahead for {type(question).__name__}", REMEDY)
        self._worker.warm(header(scope, CLIENT_HEADER), question)
        await as_json({}, 202).send(send)

    async def lease(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Keep the server alive for as long as the client holds the lease, and stream the engine's status."""
        await start(send, {}, FRAME_TYPE)
        try:
            await first_of(self._send_statuses(send), disconnected(receive))
        finally:
            self._worker.forget(header(scope, CLIENT_HEADER))
        await send({"type": "http.response.body", "body": b""})

    async def _send_statuses(self, send: Send) -> None:
        async for status in self._worker.board.statuses():
            await send({"type": "http.response.body", "body": frame(status), "more_body": True})
            if status.state == "unavailable":
                return

    async def stop(self, scope: Scope, receive: Receive, send: Send) -> None:
        await as_json({}, 202).send(send)
        self._stop()


async def _read_request(scope: Scope, receive: Receive) -> Request:
    body = await read_body(scope, receive, BODY_LIMIT)
    try:
        return decode(body)
    except (WireError, EngineError) as error:
        raise RefusedError(400, str(error), REMEDY) from error
