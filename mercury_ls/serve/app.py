"""The engine server's ASGI application: the engine protocol over HTTP, and the access checks that TCP needs."""

import asyncio
import ipaddress
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec

from mercury_engine.api import PROTOCOL_VERSION, ChatRequest, EngineError, InfillRequest
from mercury_ls import __version__
from mercury_ls.link.wire import (
    BODY_LIMIT,
    CLIENT_HEADER,
    FRAME_TYPE,
    PREFIX,
    AnswerFrame,
    Failure,
    Request,
    WireError,
    decode,
    frame,
)
from mercury_ls.serve.worker import DraftStream, Worker

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Handler = Callable[[Scope, Receive, Send], Awaitable[None]]

CLOSE = (b"connection", b"close")

log = logging.getLogger(__name__)


class RefusedError(Exception):
    """A refused request: its status, what is wrong and how to fix it."""

    def __init__(self, status: int, error: str, remedy: str) -> None:
        super().__init__(error)
        self.status = status
        self.body = {"error": error, "remedy": remedy}


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
    """`routes` maps (method, path) to a handler."""

    def __init__(self, worker: Worker, activity: Activity, stop: Callable[[], None]) -> None:
        self._worker = worker
        self._activity = activity
        self._stop = stop
        self.routes: dict[tuple[str, str], Handler] = {
            ("GET", "/health"): self.health,
            ("GET", f"{PREFIX}/info"): self.info,
            ("GET", f"{PREFIX}/lease"): self.lease,
            ("POST", f"{PREFIX}/infill"): self.infill,
            ("POST", f"{PREFIX}/chat"): self.chat,
            ("POST", f"{PREFIX}/warm"): self.warm,
            ("POST", f"{PREFIX}/stop"): self.stop,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _refusing(self._route, scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        handler = self.routes.get((scope["method"], scope["path"]))
        if handler is None:
            raise self._no_route(scope["method"], scope["path"])
        if handler == self.health:
            return await handler(scope, receive, send)
        with self._activity.active():
            return await handler(scope, receive, send)

    def _no_route(self, method: str, path: str) -> RefusedError:
        if path.startswith("/engine/v") and not path.startswith(f"{PREFIX}/"):
            version = path.removeprefix("/engine/v").partition("/")[0]
            return RefusedError(
                404,
                f"this server speaks engine protocol {PROTOCOL_VERSION}, but the request uses {version[:20]}",
                "install the same version of mercury-ls on both sides",
            )
        methods = sorted(method for method, other in self.routes if other == path)
        if methods:
            return RefusedError(405, f"{path} does not support {method}", f"use {' or '.join(methods)}")
        paths = ", ".join(sorted({path for _, path in self.routes}))
        return RefusedError(404, f"{path[:200]} does not exist", f"use one of {paths}")

    async def health(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Report health to anyone who can connect; this reveals nothing about the user or the model."""
        state = self._worker.status.state
        await _respond(send, 200, {"state": state, "protocol": PROTOCOL_VERSION, "version": __version__})

    async def info(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _respond(send, 200, self._worker.status)

    async def infill(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope, receive, send, InfillRequest)

    async def chat(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope, receive, send, ChatRequest)

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, kind: type[InfillRequest] | type[ChatRequest]
    ) -> None:
        """Send each draft as a frame, until the last one, or until the client is gone."""
        stream = self._worker.ask(header(scope, CLIENT_HEADER), await _read_request(scope, receive, kind))
        async with _closed_with_connection(stream, receive):
            started = False
            async for answer in stream:
                if not started:
                    await _start_frames(send)
                    started = True
                last = isinstance(answer, Failure) or answer.final
                await send({"type": "http.response.body", "body": frame(AnswerFrame.of(answer)), "more_body": not last})
                await asyncio.sleep(0)  # notice a client that has disconnected, even during a burst of drafts

    async def warm(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._worker.warm(header(scope, CLIENT_HEADER), await _read_request(scope, receive, InfillRequest))
        await _respond(send, 202, {})

    async def lease(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Keep the server alive for as long as the client holds the lease, and stream the engine's status."""
        await _start_frames(send)
        try:
            await until_disconnected(receive, self._send_statuses(send))
        finally:
            self._worker.forget(header(scope, CLIENT_HEADER))
        await send({"type": "http.response.body", "body": b""})

    async def _send_statuses(self, send: Send) -> None:
        async for status in self._worker.statuses():
            await send({"type": "http.response.body", "body": frame(status), "more_body": True})
            if status.state == "unavailable":
                return

    async def stop(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _respond(send, 202, {})
        self._stop()


def guarded(app: Handler, token: str, hosts: tuple[str, ...] = (), origins: tuple[str, ...] = ()) -> Handler:
    """Check what TCP makes necessary: web pages can reach loopback addresses, and DNS names can be rebound to them."""

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        check_host(header(scope, "host"), hosts)
        check_origin(header(scope, "origin"), origins)
        if scope["path"] == "/health":
            await app(scope, receive, _closing(send))
            return
        check_token(header(scope, "authorization"), token)
        await app(scope, receive, send)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await _refusing(guard, scope, receive, send)

    return application


def _closing(send: Send) -> Send:
    """Close the connection after the response: without the token, a client may not occupy one."""

    async def and_close(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], CLOSE]}
        await send(message)

    return and_close


def check_host(host: str, hosts: tuple[str, ...]) -> None:
    """Accept IP addresses, which cannot be rebound, and only the configured names."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name in ("localhost", *hosts) or _is_address(name):
        return
    raise RefusedError(
        403,
        f"the Host header is {name[:200]!r}",
        f"use the IP address, or start the server with --host-name {name[:200]}",
    )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def check_origin(origin: str, origins: tuple[str, ...]) -> None:
    if origin and origin not in origins:
        raise RefusedError(
            403, f"the request comes from a web page at {origin[:200]!r}", "only programs and the playground may ask"
        )


def check_token(authorization: str, token: str) -> None:
    scheme, _, presented = authorization.partition(" ")
    if scheme.lower() != "bearer" or not secrets.compare_digest(presented.strip().encode(), token.encode()):
        raise RefusedError(
            401, "the bearer token is missing or wrong", "send the header `Authorization: Bearer <your token>`"
        )


async def _refusing(handler: Handler, scope: Scope, receive: Receive, send: Send) -> None:
    """Run the handler, and send the response if it refuses the request."""
    try:
        await handler(scope, receive, send)
    except RefusedError as refusal:
        await _respond(send, refusal.status, refusal.body, CLOSE)


async def _read_request(scope: Scope, receive: Receive, kind: type[Request]) -> Request:
    body = await read_body(scope, receive)
    try:
        return decode(body, kind)
    except (WireError, EngineError) as error:
        remedy = "send an InfillRequest, or to /chat a ChatRequest, of mercury_engine.api as a msgpack map"
        raise RefusedError(400, str(error), remedy) from error


async def read_body(scope: Scope, receive: Receive) -> bytes:
    if int(header(scope, "content-length") or "0") > BODY_LIMIT:
        raise too_large()
    body = b""
    has_more = True
    while has_more:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > BODY_LIMIT:
            raise too_large()
        has_more = message.get("more_body", False)
    return body


def too_large() -> RefusedError:
    """A new error each time: an error raised again keeps the frames, and so the bodies, of every earlier time."""
    return RefusedError(
        413, f"the body is larger than {BODY_LIMIT} bytes", "send the text around the spans, not whole files"
    )


@asynccontextmanager
async def _closed_with_connection(stream: DraftStream, receive: Receive) -> AsyncIterator[None]:
    watch = asyncio.create_task(_disconnected(receive))
    watch.add_done_callback(lambda _: stream.close())
    try:
        yield
    finally:
        watch.cancel()


async def until_disconnected(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.create_task(work), asyncio.create_task(_disconnected(receive))]
    try:
        finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    for task in finished:
        task.result()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def header(scope: Scope, name: str) -> str:
    lowered = name.encode()
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == lowered), "")


async def _respond(send: Send, status: int, content: object, *headers: tuple[bytes, bytes]) -> None:
    body = msgspec.json.encode(content)
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def _start_frames(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", FRAME_TYPE.encode())]})
