"""A model's own chat template: a conversation as the text and the tokens that the model was trained to read."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from mercury_engine.api import EngineError, Message, RequestError, Tool
from mercury_engine.bounds import small_bytes
from mercury_engine.tokens.pretrained import PretrainedTokenizer

__all__ = ["CONFIG_FILE", "TEMPLATE_FILE", "ChatTemplate", "Source", "read_source"]

CONFIG_FILE = "tokenizer_config.json"
TEMPLATE_FILE = "chat_template.jinja"
EXTRA = "mercury-ls needs its extra `chat`: `pip install 'mercury-ls[chat]'`"

GUARD = "\ufdd0"
"""Put into the name of a special token where a message has it: there it is text. No text has this noncharacter."""

GENERATION = re.compile(r"\{%(-?)\s*(end)?generation\s*(-?)%\}")
"""What transformers marks answers with while it trains; here it marks nothing."""


class Source(Struct, frozen=True):
    """Templates as they are published, the one for conversations with tools apart where there is one, and the names of
    special tokens that they use."""

    template: str
    with_tools: str
    names: Mapping[str, str]


def read_source(folder: Path) -> Source | None:
    """None for a model that was not trained to chat."""
    config = _json_of(folder / CONFIG_FILE)
    found = config.get("chat_template")
    if (folder / TEMPLATE_FILE).exists():
        found = small_bytes(folder / TEMPLATE_FILE).decode()
    if isinstance(found, list):
        named = {str(each.get("name")): each.get("template") for each in found if isinstance(each, dict)}
        found = named.get("default")
        with_tools = named.get("tool_use", found)
    else:
        with_tools = found
    if not isinstance(found, str) or not isinstance(with_tools, str):
        return None
    return Source(found, with_tools, {name: text for name in config if (text := _name(config[name]))})


def _json_of(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(small_bytes(path))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise EngineError(f"{path}: cannot be read ({error}); add the model again: `mercury-ls model add`") from error
    return found if isinstance(found, dict) else {}


def _name(value: Any) -> str:
    """Special tokens are written as their names, or as objects with them."""
    text = value.get("content") if isinstance(value, dict) else value
    return text if isinstance(text, str) else ""


class ChatTemplate:
    """Renders conversations. What a message says is text: the name of a special token in it stays text."""

    def __init__(self, source: Source, tokenizer: PretrainedTokenizer) -> None:
        environment = _environment()
        try:
            self._plain = environment.from_string(GENERATION.sub(_no_mark, source.template))
            self._with_tools = environment.from_string(GENERATION.sub(_no_mark, source.with_tools))
        except Exception as error:  # of a template by somebody else
            raise EngineError(f"the model's chat template cannot be read: {error}") from error
        names = {"bos_token": "", "eos_token": "", **source.names}
        self._names = {name: text for name, text in names.items() if name.endswith("_token")}
        self._tokenizer = tokenizer
        known = sorted(filter(None, tokenizer.added), key=len, reverse=True)
        self._special = re.compile(f"({'|'.join(map(re.escape, known))})" if known else r"(?!)()")

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, answer: bool = True) -> str:
        """With `answer`, up to where the model's answer begins."""
        template = self._with_tools if tools else self._plain
        names = {call.id: call.name for message in messages for call in message.calls}
        try:
            return template.render(
                messages=[self._message(message, names) for message in messages],
                tools=[self._tool(tool) for tool in tools] or None,
                add_generation_prompt=answer,
                **self._names,
            )
        except RequestError:
            raise
        except Exception as error:  # of a template by somebody else
            raise RequestError(f"the model's chat template does not take this conversation: {error}") from error

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
        found = self._special.search(rendered)
        return found[0] if found else ""

    def guarded(self, text: str) -> str:
        return self._special.sub(lambda name: name[0][0] + GUARD + name[0][1:], text.replace(GUARD, "\ufffd"))

    def _message(self, message: Message, names: Mapping[str, str]) -> dict[str, Any]:
        written: dict[str, Any] = {"role": message.role, "content": self.guarded(message.content)}
        if message.calls:
            written["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": self._arguments(call.arguments)},
                }
                for call in message.calls
            ]
        if message.role == "tool":
            written |= {"tool_call_id": message.answers, "name": names.get(message.answers, "")}
        return written

    def _arguments(self, text: str) -> "_Verbatim":
        try:
            found = json.loads(text or "{}")
        except ValueError as error:
            raise RequestError(f"the arguments of an earlier call are not JSON ({error}): {text[:80]!r}") from error
        if not isinstance(found, dict):
            raise RequestError(f"the arguments of an earlier call are not a JSON object: {text[:80]!r}")
        return _Verbatim(found, self.guarded(text or "{}"))

    def _tool(self, tool: Tool) -> dict[str, Any]:
        function = {"name": tool.name, "description": tool.description, "parameters": json.loads(tool.parameters)}
        return {"type": "function", "function": json.loads(self.guarded(json.dumps(function, ensure_ascii=False)))}


class _Verbatim(dict):
    """A JSON object that is written as it was read, so that what the model said is found in its cache again."""

    def __init__(self, value: dict[str, Any], text: str) -> None:
        super().__init__(value)
        self.text = text


def _no_mark(found: re.Match[str]) -> str:
    return f"{{%{found[1]} {'endif' if found[2] else 'if true'} {found[3]}%}}"


def _environment() -> Any:
    """As transformers renders templates: sandboxed, since they are programs of somebody else."""
    try:
        from jinja2.ext import loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError as error:
        raise EngineError(f"to chat, {EXTRA}") from error
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = _to_json
    environment.globals |= {"raise_exception": _refuse, "strftime_now": _now}
    return environment


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **options: Any) -> str:
    if isinstance(value, _Verbatim) and indent is None:
        return value.text
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


def _now(pattern: str) -> str:
    return datetime.now().strftime(pattern)


def _refuse(message: str) -> None:
    raise RequestError(f"the model's chat template does not take this conversation: {message}")
