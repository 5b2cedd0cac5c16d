"""How a model calls tools: read from its own chat template, or else as Hermes models do."""

import json
import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import ChatRequest, Message, RequestError, Tool, ToolCall
from mercury_engine.chat.template import ChatTemplate


class CallFormat(Struct, frozen=True):
    """A call is `before`, the name, `between`, the arguments and `after`; `apart` separates two calls. Calls begin
    where a text has the `trigger`."""

    before: str
    between: str
    after: str
    apart: str
    trigger: str


HERMES = CallFormat('<tool_call>\n{"name": "', '", "arguments": ', "}\n</tool_call>", "\n", "<tool_call>")

JSON_ALONE = re.compile(r"\s*(?:```(?:json)?\s*(\{.*\})\s*```|(\{.*\}))\s*", re.DOTALL)
MAY_BE_JSON = re.compile(r"\s*(?:\{|`{0,3}\Z|```(?:j|js|jso)\Z|```(?:json)?\s*(?:\{|\Z))")
"""The beginning of a text that may become a call as JSON."""

TOOLS = """\
You may call these tools, each described by a JSON schema:
<tools>
{}
</tools>
To call a tool, write its name and its arguments like this:
<tool_call>
{{"name": NAME, "arguments": ARGUMENTS}}
</tool_call>"""


class ParsedAnswer(Struct, frozen=True):
    """The contents of an answer: its text, and the complete calls."""

    text: str
    calls: tuple[ToolCall, ...] = ()


class Dialogue(Struct, frozen=True, eq=False):
    """A template with its call format: `calls` and, unless it `has_tools` itself, tools described in a system
    message; `end` is the special token that ends an answer."""

    template: ChatTemplate
    calls: CallFormat
    has_tools: bool
    end: str

    def render(self, request: ChatRequest) -> str:
        tools = () if request.tool_choice == "none" else request.tools
        try:
            if self.has_tools:
                return self.template.render(request.messages, tools)
            return self.template.render([*_described(request.messages, tools)])
        except RecursionError:
            nested = "a tool, or the arguments of an earlier call, are nested too deeply"
            raise RequestError(f"{nested}: flatten them") from None

    def read(self, text: str, turn: int) -> ParsedAnswer:
        """Parse an answer; `turn` makes the ids of calls unique in a conversation."""
        said, trigger, remainder = text.partition(self.calls.trigger)
        if not trigger:
            return ParsedAnswer(text)
        form, remainder = self.calls, trigger + remainder
        opening = form.before[form.before.index(form.trigger) :]
        calls: list[ToolCall] = []
        while remainder.startswith(opening):
            name, _, arguments = remainder[len(opening) :].partition(form.between)
            end = _end_of_object(arguments)
            if not end or not arguments[end:].startswith(form.after):
                break
            calls.append(ToolCall(f"{turn:06x}{len(calls):03x}"[-9:], name, arguments[:end]))
            remainder = arguments[end + len(form.after) :].removeprefix(form.apart)
            opening = form.before if remainder.startswith(form.before) else opening
        return ParsedAnswer(said.rstrip("\n"), tuple(calls))


def called_in_json(text: str, tools: Sequence[Tool], turn: int) -> ParsedAnswer | None:
    """A whole answer that is one call as plain JSON, or as JSON in a fence: small models write that instead of what
    their template says. None if it is anything else."""
    match = JSON_ALONE.fullmatch(text)
    try:
        called = json.loads(match[1] or match[2]) if match else None
        if not isinstance(called, dict) or called.keys() != {"name", "arguments"}:
            return None
        name, arguments = called["name"], json.dumps(called["arguments"], ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    if name not in [tool.name for tool in tools] or not isinstance(called["arguments"], dict):
        return None
    return ParsedAnswer("", (ToolCall(f"{turn:06x}000"[-9:], name, arguments),))


def _end_of_object(text: str) -> int:
    """The length of the JSON value that a text begins with, 0 if it is not complete."""
    try:
        return json.JSONDecoder().raw_decode(text)[1]
    except (ValueError, RecursionError):
        return 0


def dialogue_of(template: ChatTemplate) -> Dialogue:
    end = _end(template)
    calls = _format_of(template, end)
    return Dialogue(template, calls or HERMES, calls is not None, end)


NAME, KEY, TEXT = "get_probe", "probed", "probed text"
PROBE = Tool(NAME, "", json.dumps({"type": "object", "properties": {KEY: {"type": "string"}}}))
ASKED = Message("user", "probe")
CALLED = ToolCall("000000000", NAME, json.dumps({KEY: "it"}))


def _end(template: ChatTemplate) -> str:
    rendered = template.render([ASKED, Message("assistant", TEXT)], answer=False)
    return template.first_special(rendered.rpartition(TEXT)[2])


def _format_of(template: ChatTemplate, end: str) -> CallFormat | None:
    """None if the template does not support tools, or writes calls other than as name, then arguments."""

    def written(*calls: ToolCall) -> str:
        message = Message("assistant", calls=calls)
        whole = template.render([ASKED, message], [PROBE], answer=False)
        return whole.removeprefix(rendered).partition(end)[0] if end else whole.removeprefix(rendered)

    try:
        rendered = template.render([ASKED], [PROBE])
        first, two = written(CALLED), written(CALLED, replace(CALLED, id="000000001"))
    except RequestError:
        return None
    match = re.fullmatch(f"(?>(.*?){NAME})(?>(.*?){re.escape(CALLED.arguments)})(.*)", first, re.DOTALL)
    if NAME not in rendered or match is None or not match[1].strip() or not match[2].strip():
        return None
    before, between, after = match.groups()
    second = two[len(before + NAME + between + CALLED.arguments + after) :] if two.startswith(first) else ""
    apart = second.partition(before.lstrip("\n") or before)[0] if NAME in second else "\n"
    trigger = template.first_special(before) or before.strip("\n")
    return CallFormat(before.lstrip("\n"), between, after, apart, trigger)


def _described(messages: Sequence[Message], tools: Sequence[Tool]) -> Sequence[Message]:
    """The conversation for a template without tools."""
    plain = [_told(message) for message in messages]
    if not tools:
        return plain
    call_texts = [
        json.dumps({"name": tool.name, "description": tool.description, "parameters": json.loads(tool.parameters)})
        for tool in tools
    ]
    system = TOOLS.format("\n".join(call_texts))
    if plain and plain[0].role == "system":
        return [replace(plain[0], content=f"{plain[0].content}\n\n{system}"), *plain[1:]]
    return [Message("system", system), *plain]


def _told(message: Message) -> Message:
    if message.role == "tool":
        return Message("user", f"<tool_response>\n{message.content}\n</tool_response>")
    calls = HERMES.apart.join(_spelled(HERMES, call.name, call.arguments) for call in message.calls)
    content = "\n".join(filter(None, (message.content, calls)))
    return Message(message.role, content) if message.calls else message


def _spelled(form: CallFormat, name: str, arguments: str) -> str:
    return f"{form.before}{name}{form.between}{arguments}{form.after}"
