"""A process that renders chat templates, which are third-party programs: `python -m
mercury_engine.chat.template_process`. Each input line is a template and its variables, each answer the text or an
error."""

import json
import re
import sys
from datetime import datetime
from functools import lru_cache
from typing import Any

from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from mercury_engine.chat.kept import requests

MOST_BYTES = 1 << 30
"""Of address space: a usual template needs a hundredth."""
LONGEST_TEXT = 1 << 23
GENERATION = re.compile(r"\{%(-?)\s*(end)?generation\s*(-?)%\}")
"""Marks answers during training with transformers; here it does nothing."""


class _Verbatim(dict[str, Any]):
    """A JSON object written as it was read, so that the model's own output is found in its cache again."""

    def __init__(self, value: dict[str, Any], text: str) -> None:
        super().__init__(value)
        self.text = text


class _TemplateRefusedError(Exception):
    """The template reports that it does not accept this conversation."""


def _main() -> None:
    _limit_memory()
    for line in requests():
        try:
            answer = _answer(**json.loads(line))
        except _TemplateRefusedError as error:
            answer = {"refusal": str(error)}
        except MemoryError:
            answer = {"error": "it takes too much memory"}
        except Exception as error:  # of a third-party template
            answer = {"error": str(error) or type(error).__name__}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _answer(template: str, variables: dict[str, Any] | None) -> dict[str, str]:
    """Render the variables; without any, the template is only parsed."""
    compiled = _compiled(template)
    if variables is None:
        return {"text": ""}
    for message in variables["messages"]:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = _Verbatim(*call["function"]["arguments"])
    text = compiled.render(**variables)
    return {"text": text} if len(text) <= LONGEST_TEXT else {"error": f"its text has {len(text):,} characters"}


@lru_cache(maxsize=8)
def _compiled(template: str) -> Any:
    return _environment().from_string(GENERATION.sub(_no_mark, template))


def _no_mark(match: re.Match[str]) -> str:
    return f"{{%{match[1]} {'endif' if match[2] else 'if true'} {match[3]}%}}"


@lru_cache(maxsize=1)
def _environment() -> ImmutableSandboxedEnvironment:
    """The environment in which transformers renders templates."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = _to_json
    environment.globals |= {
        "raise_exception": _refuse,
        "strftime_now": lambda pattern: datetime.now().strftime(pattern),
    }
    return environment


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **options: Any) -> str:
    if isinstance(value, _Verbatim) and indent is None:
        return value.text
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


def _refuse(message: str) -> None:
    raise _TemplateRefusedError(message)


def _limit_memory() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


if __name__ == "__main__":
    _main()
