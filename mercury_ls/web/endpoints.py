"""One endpoint: its path, the types it takes and returns, its handler; limits and cancelling are the same for all."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

import msgspec
from msgspec import Struct

from mercury_engine.api import EngineError, RequestError, TooLongError
from mercury_ls.link.client import BusyError, EngineUnavailable
from mercury_ls.serve.asgi import (
    Receive,
    Response,
    Scope,
    Send,
    as_json,
    disconnected,
    header,
    read_body,
    start,
)
from mercury_ls.serve.race import first_of
from mercury_ls.web.errors import ApiError, body_of, refusal_of
from mercury_ls.web.service import ApiClient, Service

MOST_BODY = 2 << 20
"""In bytes: more than the largest text for which anything is suggested, with its other files."""
BODY_SECONDS = 10.0
"""How long a client may take to send a body of that size."""
MOST_AT_ONCE = 64
"""Requests answered at a time; the engine works on a few, and more would only wait."""


class EndpointCall(Struct, frozen=True):
    """An admitted request: its body as data, its user, and the `{id}` in its path."""

    service: Service
    client: ApiClient
    body: Any
    id: str = ""


Answer = Struct | Response | AsyncGenerator[Struct] | dict | list
Handler = Callable[[EndpointCall], Awaitable[Answer]]


class Endpoint(Struct, frozen=True):
    """`takes` and `gives` are types of bodies; `takes` is None for a request without one, `gives` None for plain text.
    `also` are alternative paths. It `streams` events on request. `refuses` are statuses that few other endpoints use.
    One that `converses` takes long, and leaves places to the others.
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
    converses: bool = False


class Place:
    """A request among those being read and answered."""

    def __init__(self, user: str, *, converses: bool) -> None:
        self.user = user
        self.converses = converses
        self._sending: asyncio.Timeout | None = None
        self._is_lost = False

    async def read(self, scope: Scope, receive: Receive) -> bytes:
        """The body, if its size and the time it takes are reasonable."""
        try:
            async with asyncio.timeout(BODY_SECONDS) as self._sending:
                return await read_body(scope, receive, MOST_BODY)
        except TimeoutError as error:
            reason = "was not complete when others came" if self._is_lost else f"took longer than {BODY_SECONDS:.0f} s"
            raise ApiError(408, f"the body {reason}: send it at once") from error
        finally:
            self._sending = None

    @property
    def is_waiting(self) -> bool:
        """Whether its client has not sent all of its body yet."""
        return self._sending is not None and not self._sending.expired()

    def lose(self) -> None:
        self._is_lost = True
        if self._sending is not None:
            self._sending.reschedule(asyncio.get_running_loop().time())


class Crowd:
    """The requests being read and answered, of all clients and of each named user. If there are too many, a new one
    replaces the oldest whose body has not arrived: slow clients cannot keep others out. Conversations take at most half
    of the places."""

    def __init__(self, limit: int | None = None, per_user: int | None = None) -> None:
        self.most = MOST_AT_ONCE if limit is None else limit
        self.per_user = self.most if per_user is None else per_user
        self._places: dict[Place, None] = {}

    @contextmanager
    def one_more(self, user: str, *, converses: bool = False) -> Iterator[Place]:
        if user:
            own = [place for place in self._places if place.user == user]
            self._make_room(own, self.per_user, f"requests of {user}")
        if converses:
            conversations = [place for place in self._places if place.converses]
            self._make_room(conversations, max(1, self.most // 2), "conversations")
        self._make_room([*self._places], self.most, "requests")
        place = Place(user, converses=converses)
        self._places[place] = None
        try:
            yield place
        finally:
            self._places.pop(place, None)

    def _make_room(self, places: Sequence[Place], limit: int, noun: str) -> None:
        if len(places) < limit:
            return
        slowest = next((place for place in places if place.is_waiting), None)
        if slowest is None:
            raise ApiError(429, f"{limit} {noun} are being answered: ask again in a moment")
        del self._places[slowest]
        slowest.lose()


class Answering:
    """The ASGI application of one endpoint."""

    def __init__(self, endpoint: Endpoint, service: Service, crowd: Crowd) -> None:
        self.endpoint = endpoint
        self.service = service
        self.crowd = crowd
        self._decode = msgspec.json.Decoder(endpoint.takes).decode if endpoint.takes is not None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["endpoint"] = self.endpoint.path
        client = _client_of(scope)
        try:
            if self._decode is None:
                await self._answer(EndpointCall(self.service, client, None, scope["id"]), send)
                return
            with self.crowd.one_more(client.user, converses=self.endpoint.converses) as place:
                call = EndpointCall(self.service, client, self._decode(await place.read(scope, receive)))
                await first_of(self._answer(call, send), disconnected(receive))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise refusal_of(error) from error

    async def _answer(self, call: EndpointCall, send: Send) -> None:
        try:
            answer = await self.endpoint.handler(call)
            first = await anext(answer) if isinstance(answer, AsyncGenerator) else None
        except (EngineError, EngineUnavailable) as error:
            raise _failure_of(error) from error
        if isinstance(answer, AsyncGenerator):
            await _send_events(answer, first, send)
        else:
            await (answer if isinstance(answer, Response) else as_json(answer)).send(send)


def _failure_of(error: Exception) -> ApiError:
    if isinstance(error, TooLongError):
        return ApiError(400, str(error), code="context_length_exceeded")
    if isinstance(error, RequestError):
        return ApiError(400, str(error), code="invalid_request")
    if isinstance(error, BusyError):
        return ApiError(429, str(error))
    if isinstance(error, EngineUnavailable):
        return ApiError(503, f"the engine is not available: {error}", code="engine_unavailable")
    return ApiError(500, f"the engine could not answer: {error}", code="engine_error")


async def _send_events(events: AsyncGenerator[Struct], first: Struct | None, send: Send) -> None:
    """The first event is known already, so that what fails before it has a status."""
    await start(send, {"cache-control": "no-store"}, "text/event-stream; charset=utf-8")
    async with aclosing(events):
        await _send_event(send, msgspec.json.encode(first))
        try:
            async for event in events:
                await _send_event(send, msgspec.json.encode(event))
        except (EngineError, EngineUnavailable) as error:
            await _send_event(send, msgspec.json.encode(body_of(_failure_of(error))))
    await _send_event(send, b"[DONE]", has_more=False)


async def _send_event(send: Send, data: bytes, has_more: bool = True) -> None:
    await send({"type": "http.response.body", "body": b"data: " + data + b"\n\n", "more_body": has_more})
    await asyncio.sleep(0)  # notice a client that has disconnected, even during a burst of drafts


def _client_of(scope: Scope) -> ApiClient:
    """Each connection is a client, unless its user has a name: a program has one request at a time on each. Caches
    outlive a connection: some programs open one for each request."""
    host, port = scope["client"] or ("", 0)
    user, program = scope["user"], header(scope, "user-agent")
    return ApiClient(user or f"{host}:{port}", f"http {user or host} {program[:80]}", user)
