"""An agent's loop and JSON of a schema, by the official `openai` package over HTTP, with a tiny random model."""

import json

import jsonschema
import openai
import pytest

from tests.engine.chat.models import opened
from tests.mercury_ls.web.test_openai import asking

TURNS = 50
TOOL = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Lines of a file.",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"enum": ["a.py", "src/b.py"]},
                "lines": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 99}, "maxItems": 2},
            },
            "required": ["path", "lines"],
            "additionalProperties": False,
        },
    },
}
POINT = {
    "type": "object",
    "properties": {"x": {"type": "number"}, "name": {"type": "string", "maxLength": 8}},
    "required": ["x", "name"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return opened(tmp_path_factory.mktemp("dream"), "dream")


@pytest.mark.slow
async def test_fifty_calls_are_true_to_their_schema(engine):
    messages, prompted = [{"role": "user", "content": "Find the bug."}], 0
    before, calls = engine._talker.rows, 0
    async with asking(engine) as client:
        for turn in range(TURNS):
            done = await client.chat.completions.create(
                model="any",
                messages=messages,
                tools=[TOOL],
                tool_choice="required",
                reasoning_effort="instant",
                max_tokens=72,
                seed=turn,
            )
            (choice,) = done.choices
            assert choice.finish_reason == "tool_calls"
            prompted += done.usage.prompt_tokens
            messages.append(choice.message.model_dump(exclude_none=True))
            for call in choice.message.tool_calls:
                jsonschema.validate(json.loads(call.function.arguments), TOOL["function"]["parameters"])
                messages.append({"role": "tool", "tool_call_id": call.id, "content": "x = 1"})
                calls += 1
    assert calls >= TURNS
    assert engine._talker.rows - before < prompted / 8, "earlier turns are not read again"


async def test_json_matches_its_schema_at_once_and_as_a_stream(engine):
    asked = {
        "model": "any",
        "messages": [{"role": "user", "content": "A point."}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "point", "schema": POINT, "strict": True}},
        "max_tokens": 60,
        "reasoning_effort": "low",
    }
    async with asking(engine) as client:
        done = await client.chat.completions.create(**asked)
        stream = [chunk async for chunk in await client.chat.completions.create(**asked, stream=True)]
    said = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    for text in (done.choices[0].message.content, said):
        jsonschema.validate(json.loads(text), POINT)


async def test_unsupported_schema_is_a_bad_request(engine):
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    async with asking(engine) as client:
        with pytest.raises(openai.BadRequestError, match="uniqueItems"):
            await client.chat.completions.create(
                model="any",
                messages=[{"role": "user", "content": "Numbers."}],
                response_format={"type": "json_schema", "json_schema": {"name": "numbers", "schema": schema}},
            )


async def test_refusal_before_any_text_has_a_status_in_a_stream_as_well(engine):
    form = {"type": "json_schema", "json_schema": {"name": "endless", "schema": {"$ref": "#"}}}
    async with asking(engine) as client:
        with pytest.raises(openai.BadRequestError, match="refers to itself"):
            await client.chat.completions.create(
                model="any", messages=[{"role": "user", "content": "x"}], response_format=form, stream=True
            )
