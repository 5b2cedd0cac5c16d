"""The protocol between an engine server and its clients: length-prefixed msgpack frames of frozen structs."""

from collections import Counter
from collections.abc import Iterator
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
    Filled,
    InfillRequest,
    RequestError,
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


class Failure(Struct, frozen=True):
    """Why one request has no final draft; the engine and the other requests carry on. The kinds "request" and "length"
    mean that the request itself is at fault."""

    kind: Literal["engine", "request", "length", "busy", "superseded", "unavailable"]
    detail: str


class AnswerFrame(Struct, frozen=True, omit_defaults=True):
    """One frame of a response: a draft of an infill or of a chat answer, or why there is none."""

    draft: Draft | None = None
    failure: Failure | None = None
    said: ChatReply | None = None

    @classmethod
    def of(cls, answer: Draft | ChatReply | Failure) -> "AnswerFrame":
        if isinstance(answer, Failure):
            return cls(failure=answer)
        return cls(said=answer) if isinstance(answer, ChatReply) else cls(draft=answer)

    @property
    def answer(self) -> Draft | ChatReply | None:
        return self.draft or self.said


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
    """Splits a stream of bytes into frames of one type. What is wrong with one is said without the secrets."""

    def __init__(self, kind: type[Value], secrets: Secrets | None = None) -> None:
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


Request = TypeVar("Request", bound=InfillRequest | ChatRequest)


def decode(body: bytes, kind: type[Request]) -> Request:
    """The request, or an error that says why the engine could not rely on it."""
    try:
        request = msgspec.msgpack.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise WireError(f"the body is not a msgpack {kind.__name__} of protocol {PROTOCOL_VERSION}: {error}") from error
    check(request)
    return request


def check(request: InfillRequest | ChatRequest) -> None:
    if isinstance(request, ChatRequest):
        _check_chat(request)
    else:
        _check_infill(request)


def _check_infill(request: InfillRequest) -> None:
    """Raise `EngineError` unless every span lies inside its window."""
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


def untouched(request: InfillRequest | ChatRequest) -> Draft | ChatReply:
    """The answer before the first forward: every span keeps its text, and chat has none."""
    if isinstance(request, ChatRequest):
        return ChatReply(0, "", final=True, finish="length")
    texts = (request.windows[span.window].text[span.start : span.end] for span in request.spans)
    return Draft(0, tuple(Filled(text) for text in texts), final=True)


Draftlike = TypeVar("Draftlike", bound=Draft | ChatReply)


def final(draft: Draftlike) -> Draftlike:
    """A draft with no more to come. A chat answer without an end ran out of time."""
    if draft.final:
        return draft
    if isinstance(draft, ChatReply):
        return replace(draft, final=True, finish=draft.finish or "length")
    return replace(draft, final=True)
