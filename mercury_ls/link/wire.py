"""The protocol between an engine server and its clients: length-prefixed msgpack frames of frozen structs."""

from collections.abc import Iterator
from typing import Generic, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import PROTOCOL_VERSION, Draft, EngineError, EngineInfo, Filled, InfillRequest

__all__ = [
    "BODY_LIMIT",
    "CLIENT_HEADER",
    "FRAME_TYPE",
    "PREFIX",
    "Answer",
    "Failure",
    "Frames",
    "Status",
    "WireError",
    "check",
    "decode_request",
    "encode",
    "final",
    "frame",
    "untouched",
]

PREFIX = f"/engine/v{PROTOCOL_VERSION}"
CLIENT_HEADER = "mercury-client"
"""Identifies one language server: clients get equal shares of the engine, and warming ends with the lease."""
FRAME_TYPE = "application/vnd.mercury.frames+msgpack"
BODY_LIMIT = 4 << 20
FRAME_LIMIT = 4 << 20
LENGTH_BYTES = 4


class WireError(Exception):
    """The other side does not speak this protocol. The message says what was received, and what to do."""


class Failure(Struct, frozen=True):
    """Why one request has no final draft; the engine and the other requests carry on."""

    kind: Literal["engine", "busy", "superseded", "unavailable"]
    detail: str


class Answer(Struct, frozen=True, omit_defaults=True):
    """One frame of an infill response; exactly one of the two is set."""

    draft: Draft | None = None
    failure: Failure | None = None


class Status(Struct, frozen=True):
    """The state of the engine. If it is `unavailable`, `detail` says why."""

    state: Literal["starting", "loading", "ready", "unavailable"]
    detail: str = ""
    progress: float | None = None
    info: EngineInfo | None = None


encode = msgspec.msgpack.Encoder().encode
request_decoder = msgspec.msgpack.Decoder(InfillRequest)


def frame(value: Struct) -> bytes:
    payload = encode(value)
    return len(payload).to_bytes(LENGTH_BYTES, "big") + payload


Value = TypeVar("Value")


class Frames(Generic[Value]):
    """Splits a stream of bytes into frames of one type."""

    def __init__(self, kind: type[Value]) -> None:
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
            raise WireError(f"received a malformed frame ({error}): {NOT_AN_ENGINE}") from error


NOT_AN_ENGINE = f"check that a mercury-ls engine server of protocol {PROTOCOL_VERSION} listens at this address"


def decode_request(body: bytes) -> InfillRequest:
    try:
        request = request_decoder.decode(body)
    except msgspec.DecodeError as error:
        raise WireError(f"the body is not a msgpack InfillRequest of protocol {PROTOCOL_VERSION}: {error}") from error
    check(request)
    return request


def check(request: InfillRequest) -> None:
    """Raises `EngineError` unless every span lies inside its window, on which the engine relies."""
    for index, span in enumerate(request.spans):
        if not 0 <= span.window < len(request.windows):
            raise EngineError(f"spans[{index}].window is {span.window}, but there are {len(request.windows)} windows")
        length = len(request.windows[span.window].text)
        if not 0 <= span.start <= span.end <= length:
            raise EngineError(
                f"spans[{index}] is {span.start}:{span.end}, but its window has {length} characters:"
                " send offsets in code points with 0 <= start <= end"
            )
        if span.mode == "region" and not 0 <= request.cursor <= length:
            raise EngineError(
                f"spans[{index}] is a region, but the cursor is {request.cursor} in a window of {length} characters"
            )


def untouched(request: InfillRequest) -> Draft:
    """The answer before the first forward: every span keeps its text."""
    texts = (request.windows[span.window].text[span.start : span.end] for span in request.spans)
    return Draft(0, tuple(Filled(text) for text in texts), final=True)


def final(draft: Draft) -> Draft:
    return draft if draft.final else replace(draft, final=True)
