"""Chat answers of the engine without a model: scripted texts and calls, JSON of a shape, or an echo."""

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from mercury_engine.api import ChatReply, ChatRequest, Finish, Slot, Tool, ToolCall

Says = Callable[[ChatRequest], str | tuple[ToolCall, ...] | None] | Mapping[str, str | tuple[ToolCall, ...]]

TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
MASK = "░"


def conversation(request: ChatRequest, says: Says | None, passes: int) -> Generator[ChatReply]:
    """Half of the tokens appear in the first of several passes, and every fourth is wrong at first."""
    answer = _scripted(says, request)
    if answer is None:
        answer = _called(request) or (_of_schema(request.schema) if request.schema else f"You said: {_last(request)}")
    calls, text = (answer, "") if isinstance(answer, tuple) else ((), answer)
    tokens, finish = _cut(text, request)
    prompt_tokens = sum(len(TOKEN.findall(message.content)) for message in request.messages)
    answer_tokens = len(tokens) + sum(len(TOKEN.findall(call.name + call.arguments)) for call in calls)
    for step in range(1, passes + 1):
        slots = tuple(_slot(tokens, at, passes - step) for at in range(len(tokens)))
        last = step == passes
        yield ChatReply(
            step,
            "".join(slot.text or MASK for slot in slots),
            settled=len("".join(tokens)) if last else 0,
            calls=calls if last else (),
            final=last,
            finish=("tool_calls" if calls else finish) if last else "",
            prompt_tokens=prompt_tokens,
            answer_tokens=answer_tokens if last else sum(bool(slot.text) for slot in slots),
            slots=slots if request.slots else (),
        )


def _scripted(says: Says | None, request: ChatRequest) -> str | tuple[ToolCall, ...] | None:
    if says is None or callable(says):
        return None if says is None else says(request)
    return next((answer for marker, answer in says.items() if marker in _last(request)), None)


def _called(request: ChatRequest) -> tuple[ToolCall, ...]:
    """The tool that must be called, or one that the user's last message names."""
    tool = next(iter(_callable_tools(request)), None)
    if tool is None:
        return ()
    return (ToolCall(f"call_{len(request.messages)}", tool.name, _of_schema(tool.parameters)),)


def _callable_tools(request: ChatRequest) -> Sequence[Tool]:
    match request.tool_choice:
        case "none":
            return ()
        case "required":
            return request.tools
        case "auto":
            is_asked = request.messages[-1].role == "user"
            return [tool for tool in request.tools if is_asked and tool.name in _last(request)]
        case name:
            return [tool for tool in request.tools if tool.name == name]


def _last(request: ChatRequest) -> str:
    return request.messages[-1].content


def _cut(text: str, request: ChatRequest) -> tuple[list[str], Finish]:
    end = min((at for stop in request.stops if (at := text.find(stop)) >= 0), default=len(text))
    tokens = TOKEN.findall(text[:end])
    return tokens[: request.most_tokens], "length" if len(tokens) > request.most_tokens else "stop"


def _slot(tokens: list[str], at: int, remaining: int) -> Slot:
    """A token with `remaining` passes to come."""
    odd = at % 4 == 0
    if not remaining:
        return Slot(tokens[at], 0.9, settled=True, revised=odd)
    if (at + remaining) % 2:
        return Slot("")
    return Slot(tokens[(at + 1) % len(tokens)], 0.4) if odd else Slot(tokens[at], 0.7)


def _of_schema(schema: str) -> str:
    return json.dumps(_instance(json.loads(schema)))


def _instance(schema: Any) -> Any:
    """A small value of the shape; constraints on values are ignored."""
    if not isinstance(schema, dict) or not schema:
        return {}
    if "const" in schema or "enum" in schema:
        return schema.get("const", next(iter(schema.get("enum", ())), None))
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return _instance(options[0])
    kind = schema.get("type", "object")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            properties = schema.get("properties", {})
            return {name: _instance(properties.get(name)) for name in schema.get("required", properties)}
        case "array":
            return [_instance(schema.get("items"))] * schema.get("minItems", 1)
        case "string":
            return "text"
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
    return None
