"""A model's own chat template: renders a conversation as the text and tokens that the model was trained to read."""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

from mercury_engine.api import EngineError, Message, RequestError, Tool
from mercury_engine.bounds import small_bytes
from mercury_engine.chat.kept import KeptProcess
from mercury_engine.installation import with_extra
from mercury_engine.tokens.pretrained import PretrainedTokenizer

CONFIG_FILE = "tokenizer_config.json"
TEMPLATE_FILE = "chat_template.jinja"

GUARD = "\ufdd0"
"""Inserted into the name of a special token in a message, which makes it text. No text has this noncharacter."""
RENDERING_SECONDS = 5.0
LONGEST_REASON = 300


class Source(Struct, frozen=True):
    """Published templates, with a separate one for conversations with tools if there is one, and the names of
    special tokens that they use."""

    template: str
    with_tools: str
    names: Mapping[str, str]


def read_source(folder: Path) -> Source | None:
    """The templates; None for a model that was not trained to chat."""
    config = _json_of(folder / CONFIG_FILE)
    template = config.get("chat_template")
    if (folder / TEMPLATE_FILE).exists():
        template = small_bytes(folder / TEMPLATE_FILE).decode()
    if isinstance(template, list):
        named = {str(entry.get("name")): entry.get("template") for entry in template if isinstance(entry, dict)}
        template = named.get("default")
        with_tools = named.get("tool_use", template)
    else:
        with_tools = template
    if not isinstance(template, str) or not isinstance(with_tools, str):
        return None
    return Source(template, with_tools, {name: text for name in config if (text := _name(config[name]))})


def _json_of(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(small_bytes(path))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise EngineError(f"{path}: cannot be read ({error}); add the model again: `mercury-ls model add`") from error
    return config if isinstance(config, dict) else {}


def _name(value: Any) -> str:
    """The name of a special token, which is written as its name, or as an object that has it."""
    text = value.get("content") if isinstance(value, dict) else value
    return text if isinstance(text, str) else ""


def _shown(reason: str) -> str:
    """What a template says, which is foreign text."""
    start = "".join(letter if letter.isprintable() else " " for letter in reason[:LONGEST_REASON])
    return start if len(reason) <= LONGEST_REASON else f"{start}…"


class ChatTemplate:
    """Renders conversations. A message is text: the name of a special token in it stays text."""

    def __init__(self, source: Source, tokenizer: PretrainedTokenizer) -> None:
        if find_spec("jinja2") is None:
            raise EngineError(f"to chat, mercury-ls needs its extra `chat`: {with_extra('chat')}")
        self._source = source
        self._process = KeptProcess("mercury_engine.chat.template_process", RENDERING_SECONDS)
        for template in {source.template, source.with_tools}:
            if reason := self._asked(template, None).get("error"):
                raise EngineError(f"the model's chat template cannot be read: {_shown(reason)}")
        names = {"bos_token": "", "eos_token": "", **source.names}
        self._names = {name: text for name, text in names.items() if name.endswith("_token")}
        self._tokenizer = tokenizer
        specials = sorted(filter(None, tokenizer.added), key=len, reverse=True)
        self._special = re.compile(f"({'|'.join(map(re.escape, specials))})" if specials else r"(?!)()")

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, answer: bool = True) -> str:
        """The conversation; with `answer`, up to where the model's answer begins."""
        names = {call.id: call.name for message in messages for call in message.calls}
        variables = {
            "messages": [self._message(message, names) for message in messages],
            "tools": [self._tool(tool) for tool in tools] or None,
            "add_generation_prompt": answer,
            **self._names,
        }
        said = self._asked(self._source.with_tools if tools else self._source.template, variables)
        if (reason := said.get("refusal", said.get("error"))) is not None:
            raise RequestError(f"the model's chat template does not accept this conversation: {_shown(reason)}")
        return said["text"]

    def _asked(self, template: str, variables: Mapping[str, Any] | None) -> dict[str, str]:
        """Render in a separate process: templates are third-party programs."""
        answer = self._process.answer(json.dumps({"template": template, "variables": variables}).encode())
        if answer is None:
            return {"error": f"it takes more than {RENDERING_SECONDS:.0f} s or too much memory"}
        return json.loads(answer)

    def encode(self, rendered: str) -> list[int]:
        ids: list[int] = []
        for at, part in enumerate(self._special.split(rendered)):
            if at % 2:
                ids.append(self._tokenizer.special(part))
            elif part:
                ids += self._tokenizer.encode(part.replace(GUARD, ""))
        return ids

    def first_special(self, rendered: str) -> str:
        """The first special token in a text, "" if there is none."""
        match = self._special.search(rendered)
        return match[0] if match else ""

    def guarded(self, text: str) -> str:
        return self._special.sub(lambda name: name[0][0] + GUARD + name[0][1:], text.replace(GUARD, "\ufffd"))

    def _message(self, message: Message, names: Mapping[str, str]) -> dict[str, Any]:
        fields: dict[str, Any] = {"role": message.role, "content": self.guarded(message.content)}
        if message.calls:
            fields["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": self._arguments(call.arguments)},
                }
                for call in message.calls
            ]
        if message.role == "tool":
            fields |= {"tool_call_id": message.answers, "name": names.get(message.answers, "")}
        return fields

    def _arguments(self, text: str) -> tuple[dict[str, Any], str]:
        """The object, and the model's spelling of it."""
        try:
            arguments = json.loads(text or "{}")
        except ValueError as error:
            raise RequestError(f"the arguments of an earlier call are not JSON ({error}): {text[:80]!r}") from error
        if not isinstance(arguments, dict):
            raise RequestError(f"the arguments of an earlier call are not a JSON object: {text[:80]!r}")
        return arguments, self.guarded(text or "{}")

    def _tool(self, tool: Tool) -> dict[str, Any]:
        function = {"name": tool.name, "description": tool.description, "parameters": json.loads(tool.parameters)}
        return {"type": "function", "function": json.loads(self.guarded(json.dumps(function, ensure_ascii=False)))}
