"""Conversations in OpenAI's dialect: /v1/chat/completions."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import get_args

import msgspec
from msgspec.structs import replace

from mercury_engine.api import ChatReply, ChatRequest, Effort, Message, Tool, ToolCall
from mercury_ls.serve.worker import CANNOT_CHAT
from mercury_ls.web import chat_schemas as schemas
from mercury_ls.web.chat_schemas import ChatBody, ChatChunk, ChatDelta, ChatMessage, ChatResponse, ChunkChoice
from mercury_ls.web.completions import new_id
from mercury_ls.web.endpoints import EndpointCall
from mercury_ls.web.errors import ApiError
from mercury_ls.web.schemas import Usage

USUAL_TOKENS, MOST_TOKENS = 1024, 50_000
ANSWER_SECONDS = 120.0
"""The time limit of an answer, which then ends where it is: by then most clients have given up."""

EFFORTS: dict[str, Effort] = {effort: effort for effort in get_args(Effort)}
EFFORTS |= {"none": "instant", "minimal": "instant", "xhigh": "high", "max": "high"}
ANY_JSON = "{}"


async def chat(call: EndpointCall) -> ChatResponse | AsyncGenerator[ChatChunk]:
    body: ChatBody = call.body
    info = call.service.engine.status.info
    if info is not None and not info.chats:
        raise ApiError(
            404,
            CANNOT_CHAT.format(call.service.model),
            "model",
            "model_not_found",
        )
    request = _request_of(call, body)
    return _chunks(call, request, body) if body.stream else await _answer(call, request)


def _request_of(call: EndpointCall, body: ChatBody) -> ChatRequest:
    stops = [body.stop] if isinstance(body.stop, str) else body.stop or []
    choice = body.tool_choice or "auto"
    return ChatRequest(
        session=call.client.session,
        messages=tuple(map(_message_of, body.messages)),
        tools=tuple(_tool_of(tool.function) for tool in body.tools or ()),
        tool_choice=choice if isinstance(choice, str) else choice.function.name,
        schema=_schema_of(body.response_format),
        stops=tuple(filter(None, stops)),
        most_tokens=int(min(body.max_completion_tokens or body.max_tokens or USUAL_TOKENS, MOST_TOKENS)),
        temperature=body.temperature or 0.0,
        effort=EFFORTS[body.reasoning_effort or "medium"],
        deadline_ms=ANSWER_SECONDS * 1000,
        seed=int(body.seed or 0) & 0x7FFFFFFF,
        slots=bool(body.stream and body.diffusing),
    )


def _message_of(message: ChatMessage) -> Message:
    content = message.content or ""
    return Message(
        "system" if message.role == "developer" else message.role,
        content if isinstance(content, str) else "".join(part.text for part in content),
        tuple(ToolCall(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()),
        message.tool_call_id or "",
    )


def _tool_of(function: schemas.Function) -> Tool:
    parameters = {"type": "object"} if function.parameters is None else function.parameters
    return Tool(function.name, function.description or "", msgspec.json.encode(parameters).decode())


def _schema_of(form: schemas.TextFormat | schemas.JsonFormat | schemas.SchemaFormat | None) -> str:
    if isinstance(form, schemas.SchemaFormat):
        return msgspec.json.encode(form.json_schema.schema).decode()
    return ANY_JSON if isinstance(form, schemas.JsonFormat) else ""


async def _answer(call: EndpointCall, request: ChatRequest) -> ChatResponse:
    last = ChatReply(0, "", final=True, finish="length")
    async with aclosing(call.service.chat(request, call.client)) as answers:
        async for reply in answers:
            last = reply
    calls = [schemas.ToolCallBody(id=call.id, function=_function_of(call)) for call in last.calls]
    message = schemas.Said(content=last.text if last.text or not calls else None, tool_calls=calls or None)
    return ChatResponse(
        id=new_id(),
        created=int(time.time()),
        model=call.service.model,
        choices=[schemas.ChatChoice(message=message, finish_reason=last.finish or "stop")],
        usage=_usage_of(last),
    )


async def _chunks(call: EndpointCall, request: ChatRequest, body: ChatBody) -> AsyncGenerator[ChatChunk]:
    """Text that will not change any more, as it becomes known; with `diffusing`, the whole draft each time."""
    blank = ChatChunk(id=new_id(), created=int(time.time()), model=call.service.model, choices=[])
    is_first, sent = True, 0
    async with aclosing(call.service.chat(request, call.client)) as answers:
        async for reply in answers:
            if not (reply.step or reply.final):
                continue  # it is still being prepared, and may be refused
            if is_first:
                yield _with_delta(blank, ChatDelta(role="assistant", content=""))
                is_first = False
            if body.diffusing:
                detail = schemas.ChatDetail(reply.step, reply.slots)
                yield replace(_with_delta(blank, ChatDelta(content=reply.text)), mercury=detail)
            elif (settled := len(reply.text) if reply.final else reply.settled) > sent:
                yield _with_delta(blank, ChatDelta(content=reply.text[sent:settled]))
                sent = settled
            if reply.final:
                for last in _endings(blank, reply, body):
                    yield last


def _endings(blank: ChatChunk, reply: ChatReply, body: ChatBody) -> list[ChatChunk]:
    calls = [
        schemas.CallDelta(index=index, id=call.id, function=_function_of(call))
        for index, call in enumerate(reply.calls)
    ]
    choice = ChunkChoice(delta=ChatDelta(tool_calls=calls or None), finish_reason=reply.finish or "stop")
    wants_usage = body.stream_options is not None and body.stream_options.include_usage
    return [replace(blank, choices=[choice]), *([replace(blank, usage=_usage_of(reply))] if wants_usage else [])]


def _with_delta(blank: ChatChunk, delta: ChatDelta) -> ChatChunk:
    return replace(blank, choices=[ChunkChoice(delta=delta)])


def _function_of(call: ToolCall) -> schemas.FunctionCall:
    return schemas.FunctionCall(call.name, call.arguments)


def _usage_of(reply: ChatReply) -> Usage:
    return Usage(reply.prompt_tokens, reply.answer_tokens, reply.prompt_tokens + reply.answer_tokens)
