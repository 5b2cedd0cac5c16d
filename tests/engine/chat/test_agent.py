"""An agent's loop: fifty calls of tools in a conversation that grows, with what was read of it kept between turns."""

import json
from itertools import pairwise

import jsonschema
import pytest

from mercury_engine.api import ChatRequest, Message, Tool
from tests.engine.chat.models import opened

TOOLS = (
    Tool(
        "read_file",
        "The lines of a file.",
        '{"type": "object", "properties": {"path": {"enum": ["a.py", "src/b.py"]}, "first": {"type": "integer",'
        ' "minimum": 0, "maximum": 999}}, "required": ["path", "first"], "additionalProperties": false}',
    ),
    Tool(
        "run_tests",
        "Runs tests.",
        '{"type": "object", "properties": {"only": {"type": "array", "items": {"enum": ["unit", "slow"]}, "maxItems":'
        ' 2}, "verbose": {"type": "boolean"}}, "required": ["only", "verbose"], "additionalProperties": false}',
    ),
)
SCHEMAS = {tool.name: json.loads(tool.parameters) for tool in TOOLS}
TURNS = 50


@pytest.mark.slow
def test_fifty_calls_are_true_to_their_schemas_and_read_only_what_is_new(tmp_path):
    engine = opened(tmp_path, "dream")
    messages = [Message("user", "Find out why the tests fail.")]
    prompts, read, called = [], [], set()
    for turn in range(TURNS):
        before = engine._talker.rows
        request = ChatRequest(
            session="agent",
            messages=tuple(messages),
            tools=TOOLS,
            tool_choice=("required", "read_file", "run_tests")[turn % 3],
            most_tokens=96,
            effort="instant",
            temperature=1.0,
            seed=turn,
        )
        *_, last = engine.chat(request)
        assert last.finish == "tool_calls"
        for call in last.calls:
            jsonschema.validate(json.loads(call.arguments), SCHEMAS[call.name])
            called.add(call.name)
        prompts.append(last.prompt_tokens)
        read.append(engine._talker.rows - before)
        messages.append(Message("assistant", last.text, calls=last.calls))
        messages += [Message("tool", f"result {turn}", answers=call.id) for call in last.calls]
    grown = [new - old for old, new in pairwise(prompts)]
    again = [rows - new for rows, new in zip(read[1:], grown, strict=True)]
    assert called == set(SCHEMAS)
    assert max(again) < 200, "rows of drafts, and no earlier turns"
    assert sum(read) < sum(prompts) / 8
