"""One endpoint: its path, the types it takes and returns, its handler; limits and cancelling are the same for all."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from mercury_engine.api import EngineError, RequestError, TooLongError
from mercury_ls.link.client import BusyError, EngineUnavailable
from mercury_ls.serve.app import until_disconnected
from mercury_ls.web.access import user_of
from mercury_ls.web.errors import ApiError, Problem, problem, refusal_of
from mercury_ls.web.service import ApiClient, Service

MOST_BODY = 2 << 20
"""In bytes: more than the largest text for which anything is suggested, with its other files."""
BODY_SECONDS = 10.0
"""How long a client may take to send a body of that size."""
MOST_AT_ONCE = 64
"""Requests answered at a time; the engine works on a few, and more would only wait."""
RETRY_SECONDS = {429: 1, 503: 3}
"""When a client should ask again, by status: OpenAI's packages do so twice, and small models are loaded by then."""

log = logging.getLogger(__name__)


class EndpointCall(Struct, frozen=True):
    """An admitted request: its body as data, its user, and the parameters in its path."""

    service: Service
    client: ApiClient
    body: Any
    given: Mapping[str, str]


Answer = Struct | Response | AsyncGenerator[Struct] | dict | list
Handler = Callable[[EndpointCall], Awaitable[Answer]]


class Endpoint(Struct, frozen=True, kw_only=True):
    """`takes` and `gives` are types of bodies; `takes` is None for a request without one, `gives` None for plain text.
    `also` are alternative paths. It `streams` events on request. `refuses` are statuses that few other endpoints use.
    """

    method: str
    path: str
    about: str
    handler: Handler
    gives: Any
    takes: Any = None
    also: tuple[str, ...] = ()
    streams: bool = False
    refuses: tuple[str, ...] = ()


class Crowd:
    """The number of requests being read and answered, for all clients and for each named user."""

    def __init__(self, limit: int | None = None, per_user: int | None = None) -> None:
        self.most = MOST_AT_ONCE if limit is None else limit
        self.per_user = self.most if per_user is None else per_user
        self._now: Counter[str] = Counter()

    @contextmanager
    def one_more(self, user: str) -> Iterator[None]:
        whose = [("", self.most, "requests")] + ([(user, self.per_user, f"requests of {user}")] if user else [])
        for name, limit, noun in whose:
            if self._now[name] >= limit:
                raise ApiError(429, f"{limit} {noun} are being answered: ask again in a moment", code="busy")
        names = [name for name, _, _ in whose]
        self._now.update(names)
        try:
            yield
        finally:
            self._now.subtract(names)
            self._now += Counter()  # keeps no names of users who left


def routes(endpoints: tuple[Endpoint, ...], service: Service, crowd: Crowd) -> list[Route]:
    return [
        Route(path, _Answering(endpoint, service, crowd), methods=[endpoint.method])
        for endpoint in endpoints
        for path in (endpoint.path, *endpoint.also)
    ]


class _Answering:
    """The ASGI application of one endpoint."""

    def __init__(self, endpoint: Endpoint, service: Service, crowd: Crowd) -> None:
        self.endpoint = endpoint
        self.service = service
        self.crowd = crowd
        self.path = endpoint.path
        self._decode = msgspec.json.Decoder(endpoint.takes).decode if endpoint.takes is not None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if self._decode is None:
                await self._answered(self._call(scope, None), scope, receive, send)
                return
            with self.crowd.one_more(user_of(scope)):
                call = self._call(scope, self._decode(await read(Request(scope, receive))))
                await until_disconnected(receive, self._answered(call, scope, receive, send))
        except ClientDisconnect:
            return
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            await problem(refusal_of(error))(scope, receive, send)
        except ApiError as error:
            headers = {"retry-after": str(RETRY_SECONDS[error.status])} if error.status in RETRY_SECONDS else {}
            closes = {"connection": "close"} if error.status in (408, 413) else {}
            await problem(error, headers | closes)(scope, receive, send)

    def _call(self, scope: Scope, body: Any) -> EndpointCall:
        return EndpointCall(self.service, _client_of(scope), body, scope["path_params"])

    async def _answered(self, call: EndpointCall, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self.endpoint.handler(call)
            if isinstance(answer, AsyncGenerator):
                answer = EventStream(answer, await anext(answer))
        except (EngineError, EngineUnavailable) as error:
            raise _failure_of(error) from error
        if not isinstance(answer, Response):
            answer = Response(msgspec.json.encode(answer), media_type="application/json")
        await answer(scope, receive, send)


def _failure_of(error: Exception) -> ApiError:
    if isinstance(error, TooLongError):
        return ApiError(400, str(error), code="context_length_exceeded")
    if isinstance(error, RequestError):
        return ApiError(400, str(error), code="invalid_request")
    if isinstance(error, BusyError):
        return ApiError(429, str(error), code="busy")
    if isinstance(error, EngineUnavailable):
        return ApiError(503, f"the engine is not available: {error}", code="engine_unavailable")
    return ApiError(500, f"the engine could not answer: {error}", code="engine_error")


class EventStream(Response):
    """A stream of events, whose first is known already, so that what fails before it has a status."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[Struct], first: Struct) -> None:
        super().__init__(headers={"cache-control": "no-store"})
        del self.headers["content-length"]
        self._events = events
        self._first = first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._events):
            await self._send(send, msgspec.json.encode(self._first))
            try:
                async for event in self._events:
                    await self._send(send, msgspec.json.encode(event))
            except (EngineError, EngineUnavailable) as error:
                await self._send(send, msgspec.json.encode(Problem(_failure_of(error).body)))
        await self._send(send, b"[DONE]", has_more=False)

    async def _send(self, send: Send, data: bytes, has_more: bool = True) -> None:
        await send({"type": "http.response.body", "body": b"data: " + data + b"\n\n", "more_body": has_more})
        await asyncio.sleep(0)  # notice a client that has disconnected, even during a burst of drafts


async def read(request: Request) -> bytes:
    """The body, if its size and the time it takes are reasonable."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > MOST_BODY:
        raise too_large()
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > MOST_BODY:
                    raise too_large()
    except TimeoutError as error:
        raise ApiError(408, f"the body took longer than {BODY_SECONDS:.0f} s: send it at once", code="slow") from error
    return bytes(body)


def too_large() -> ApiError:
    """A new error each time: an error raised again keeps the frames, and so the bodies, of every earlier time."""
    return ApiError(
        413, f"the body is larger than {MOST_BODY} bytes: send the text around the cursor", code="too_large"
    )


def _client_of(scope: Scope) -> ApiClient:
    """Each connection is a client, unless its user has a name: a program has one request at a time on each. Caches
    outlive a connection: some programs open one for each request."""
    host, port = scope["client"] or ("", 0)
    user = user_of(scope)
    program = next((value for name, value in scope["headers"] if name == b"user-agent"), b"").decode("latin-1")
    return ApiClient(user or f"{host}:{port}", f"http {user or host} {program[:80]}", user)
