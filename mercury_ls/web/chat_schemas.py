"""Requests and answers of /v1/chat/completions: OpenAI's, with Inception's `diffusing`."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from mercury_engine.api import Effort, Slot
from mercury_ls.web.schemas import Stops, Tokens, Usage

Name = Annotated[str, Meta(pattern="^[a-zA-Z0-9_.-]{1,64}$(?!\\n)")]
Finish = Literal["stop", "length", "tool_calls"]


class _Part(Struct, frozen=True):
    text: str
    type: Literal["text"] = "text"


class FunctionCall(Struct, frozen=True):
    """`arguments` are JSON."""

    name: str
    arguments: str


class ToolCallBody(Struct, frozen=True, kw_only=True):
    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class ChatMessage(Struct, frozen=True, kw_only=True):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    tool_calls: list[ToolCallBody] | None = None
    tool_call_id: str | None = None


class Function(Struct, frozen=True, kw_only=True):
    """`parameters` is a JSON schema of an object."""

    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class _ToolBody(Struct, frozen=True, kw_only=True):
    type: Literal["function"] = "function"
    function: Function


class _FunctionName(Struct, frozen=True):
    name: Name


class _ToolChoice(Struct, frozen=True, kw_only=True):
    type: Literal["function"] = "function"
    function: _FunctionName


class _Shape(Struct, frozen=True, kw_only=True):
    """`schema` is a JSON schema."""

    name: Name = "answer"
    description: str | None = None
    schema: dict[str, Any] = {}
    strict: bool | None = None


class TextFormat(Struct, frozen=True, tag_field="type", tag="text"):
    pass


class JsonFormat(Struct, frozen=True, tag_field="type", tag="json_object"):
    pass


class SchemaFormat(Struct, frozen=True, kw_only=True, tag_field="type", tag="json_schema"):
    json_schema: _Shape


class _StreamOptions(Struct, frozen=True):
    include_usage: bool | None = None


class ChatBody(Struct, frozen=True, kw_only=True):
    """Continue a conversation."""

    messages: Annotated[list[ChatMessage], Meta(min_length=1)]
    model: Annotated[str, Meta(description="Any name: one engine answers all.")] = ""
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    stop: Stops | None = None
    seed: Annotated[float, Meta(multiple_of=1)] | None = None
    n: Annotated[float, Meta(multiple_of=1, ge=1, le=1)] | None = None
    tools: list[_ToolBody] | None = None
    tool_choice: Literal["auto", "none", "required"] | _ToolChoice | None = None
    response_format: TextFormat | JsonFormat | SchemaFormat | None = None
    reasoning_effort: Effort | Literal["none", "minimal", "xhigh", "max"] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    diffusing: Annotated[
        bool, Meta(description="Each chunk of a stream is the whole draft: replace, do not append.")
    ] = False


class Said(Struct, frozen=True, kw_only=True):
    role: Literal["assistant"] = "assistant"
    content: str | None = None
    tool_calls: list[ToolCallBody] | None = None
    refusal: None = None


class ChatChoice(Struct, frozen=True, kw_only=True):
    index: int = 0
    message: Said
    finish_reason: Finish
    logprobs: None = None


class ChatResponse(Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage


class CallDelta(Struct, frozen=True, kw_only=True):
    index: int
    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class ChatDelta(Struct, frozen=True, kw_only=True, omit_defaults=True):
    role: Literal["", "assistant"] = ""
    content: str | None = None
    tool_calls: list[CallDelta] | None = None


class ChunkChoice(Struct, frozen=True, kw_only=True):
    index: int = 0
    delta: ChatDelta
    finish_reason: Finish | None = None


class ChatDetail(Struct, frozen=True):
    """An extension of mercury-ls: the number of the forward, and the contents of each slot of the draft."""

    step: int
    slots: tuple[Slot, ...] = ()


class ChatChunk(Struct, frozen=True, kw_only=True):
    """One event of a stream."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: Usage | None = None
    mercury: ChatDetail | None = None
