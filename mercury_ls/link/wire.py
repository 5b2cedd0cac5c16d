"""The protocol between an engine server and its clients: length-prefixed msgpack frames of frozen structs."""

from collections import Counter
from collections.abc import Iterator
from types import UnionType
from typing import Generic, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import (
    PROTOCOL_VERSION,
    ChatReply,
    ChatRequest,
    Draft,
    EngineError,
    EngineInfo,
    Gap,
    Opinions,
    Proposals,
    Question,
    Regions,
    RequestError,
    Rewrites,
    Rewritten,
)
from mercury_engine.redaction import ForeignText, Secrets

PREFIX = f"/engine/v{PROTOCOL_VERSION}"
CLIENT_HEADER = "mercury-client"
"""Identifies one language server: clients get equal shares of the engine, and warming ends with the lease."""
FRAME_TYPE = "application/vnd.mercury.frames+msgpack"
BODY_LIMIT = 4 << 20
FRAME_LIMIT = 4 << 20
LENGTH_BYTES = 4


class WireError(Exception):
    """The peer does not speak this protocol. The message says what was received, and what to do."""


class Failure(Struct, frozen=True, tag=True):
    """Why one request has no final draft; the engine and the other requests carry on. The kinds "request" and "length"
    mean that the request itself is at fault."""

    kind: Literal["engine", "request", "length", "busy", "superseded", "unavailable"]
    detail: str


Request = Question | ChatRequest
Answer = Draft | Rewrites | Opinions | ChatReply
Frame = Answer | Failure
"""One frame of a response: what there is of an answer, or why there is none."""


class Status(Struct, frozen=True):
    """The state of the engine. If it is `unavailable`, `detail` says why."""

    state: Literal["starting", "loading", "ready", "unavailable"]
    detail: str = ""
    progress: float | None = None
    info: EngineInfo | None = None

    @property
    def reason(self) -> str:
        """Why nothing is answered, in words, while the engine is not ready."""
        if self.state == "loading":
            return f"the model is still loading{f' ({self.detail})' if self.detail else ''}: ask again in a moment"
        return self.detail or f"the engine is {self.state}"


encode = msgspec.msgpack.Encoder().encode


def frame(value: Struct) -> bytes:
    payload = encode(value)
    return len(payload).to_bytes(LENGTH_BYTES, "big") + payload


Value = TypeVar("Value")


class FrameReader(Generic[Value]):
    """Splits a stream of bytes into frames of one type, or of several. What is wrong with one is said without the
    secrets."""

    def __init__(self, kind: type[Value] | UnionType, secrets: Secrets | None = None) -> None:
        self._secrets = secrets or Secrets()
        self._decode = msgspec.msgpack.Decoder(kind).decode
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Value]:
        self._rest += data
        while len(self._rest) >= LENGTH_BYTES:
            end = LENGTH_BYTES + int.from_bytes(self._rest[:LENGTH_BYTES], "big")
            if end > FRAME_LIMIT:
                raise WireError(f"received a frame of {end} bytes, over the limit of {FRAME_LIMIT}: {NOT_AN_ENGINE}")
            if len(self._rest) < end:
                return
            payload, self._rest = self._rest[LENGTH_BYTES:end], self._rest[end:]
            yield self._value(payload)

    def _value(self, payload: bytes) -> Value:
        try:
            return self._decode(payload)
        except msgspec.DecodeError as error:
            problem = self._secrets.shown(ForeignText(str(error)))
            raise WireError(f"received a malformed frame ({problem}): {NOT_AN_ENGINE}") from None


NOT_AN_ENGINE = f"check that a mercury-ls engine server of protocol {PROTOCOL_VERSION} listens at this address"


def decode(body: bytes) -> Request:
    """The request, or an error that says why the engine could not rely on it."""
    try:
        request = msgspec.msgpack.decode(body, type=Request)
    except msgspec.DecodeError as error:
        raise WireError(f"the body is no request of protocol {PROTOCOL_VERSION}: {error}") from error
    check(request)
    return request


def check(request: Request) -> None:
    if isinstance(request, ChatRequest):
        _check_chat(request)
    elif not request.paths:
        raise EngineError("the question is about nothing: send at least one region or proposal")
    elif isinstance(request, Regions):
        _check_cursor(request.cursor, len(request.regions[0].old))


def _check_cursor(cursor: int, length: int) -> None:
    if not 0 <= cursor <= length:
        raise EngineError(
            f"the cursor is {cursor}, but the first region has {length} characters: send an offset in code points"
        )


CHOICES = ("auto", "none", "required")


def _check_chat(request: ChatRequest) -> None:
    """Raise `RequestError` unless there is a message to answer, and all names are unambiguous."""
    if not request.messages:
        raise RequestError("messages is empty: send at least one")
    if request.most_tokens < 1:
        raise RequestError(f"most_tokens is {request.most_tokens}: allow at least 1")
    names = Counter(tool.name for tool in request.tools)
    if twice := next((name for name, count in names.items() if count > 1), None):
        raise RequestError(f"tools has {twice!r} twice: give every tool a name of its own")
    if name := next((name for name in CHOICES if name in names), None):
        raise RequestError(f"tools has {name!r}, which tool_choice uses for itself: give the tool another name")
    if request.tool_choice not in (*CHOICES, *names):
        raise RequestError(
            f"tool_choice is {request.tool_choice!r}: use {', '.join(CHOICES)}, or the name of one of the tools"
        )
    if request.tool_choice not in ("auto", "none") and not names:
        raise RequestError(f"tool_choice is {request.tool_choice!r}, but there are no tools: send them in tools")


def untouched(request: Request) -> Answer:
    """The answer before the first forward: nothing is written, and no opinion formed."""
    if isinstance(request, Gap):
        return Draft(final=True)
    if isinstance(request, Regions):
        return Rewrites(0, tuple(Rewritten(region.old) for region in request.regions), final=True)
    if isinstance(request, Proposals):
        return Opinions(0, (None,) * len(request.proposals), final=True)
    return ChatReply(0, "", final=True, finish="length")


def final(answer: Answer) -> Answer:
    """An answer with no more to come. A chat answer without an end ran out of time."""
    if answer.final:
        return answer
    if isinstance(answer, ChatReply):
        return replace(answer, final=True, finish=answer.finish or "length")
    return replace(answer, final=True)
