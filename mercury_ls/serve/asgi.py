"""HTTP as ASGI has it: reading a body within limits, answering, refusing, and noticing that a client is gone."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import msgspec
from msgspec import Struct

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Handler = Callable[[Scope, Receive, Send], Awaitable[None]]
Routes = Mapping[str, Mapping[str, Handler]]
"""Handlers by path and method."""

CLOSE = {"connection": "close"}


class RefusedError(Exception):
    """A refused request: its status, what is wrong and how to fix it; for programs, a code and the part of the request
    that is wrong."""

    param: str | None = None
    code: str | None = None

    def __init__(self, status: int, error: str, remedy: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(error)
        self.status = status
        self.remedy = remedy
        self.headers = headers or {}


class DisconnectedError(Exception):
    """The client left before its request was complete."""


class Response(Struct, frozen=True):
    body: bytes
    status: int = 200
    headers: Mapping[str, str] = {}
    media_type: str = "application/json"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The same response to any request."""
        await self.send(send)

    async def send(self, send: Send) -> None:
        await start(send, {"content-length": str(len(self.body)), **self.headers}, self.media_type, self.status)
        await send({"type": "http.response.body", "body": self.body})


def as_json(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(content), status, headers or {})


async def start(send: Send, headers: Mapping[str, str], media_type: str, status: int = 200) -> None:
    named = {"content-type": media_type, **headers}
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in named.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})


def routed(routes: Routes, method: str, path: str) -> Handler:
    methods = routes.get(path)
    if methods is None:
        raise RefusedError(404, f"{path[:200]} does not exist", f"use one of {', '.join(routes)}")
    if method not in methods:
        allowed = ", ".join(methods)
        raise RefusedError(405, f"{path} does not support {method}", f"use {allowed}", {"allow": allowed})
    return methods[method]


def header(scope: Scope, name: str) -> str:
    lowered = name.encode()
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == lowered), "")


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    announced = header(scope, "content-length")
    if announced.isdecimal() and int(announced) > limit:
        raise _too_large(limit)
    body, has_more = bytearray(), True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise DisconnectedError
        body += message.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit)
        has_more = message.get("more_body", False)
    return bytes(body)


def _too_large(limit: int) -> RefusedError:
    """A new error each time: an error raised again keeps the frames, and so the bodies, of every earlier time."""
    return RefusedError(
        413, f"the body is larger than {limit} bytes", "send the text around the cursor, not whole files"
    )


async def disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
