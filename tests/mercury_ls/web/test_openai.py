"""The official `openai` package, as it is, against the application."""

import json
from contextlib import asynccontextmanager

import httpx2
import openai
import pytest
from msgspec.structs import replace

from mercury_engine.api import ToolCall, TooLongError
from mercury_engine.fake import FakeEngine
from mercury_ls.link.wire import Status
from mercury_ls.web import errors
from tests.mercury_ls.web.serving import LOCAL, TOKEN, served

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CITY = {"type": "object", "properties": {"city": {"type": "string"}, "people": {"type": "integer"}}}
HELLO = [{"role": "user", "content": "hello there"}]


@asynccontextmanager
async def asking(engine=None, key=TOKEN):
    async with (
        served(engine or FakeEngine()) as (_, app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http,
        openai.AsyncOpenAI(base_url=f"{LOCAL}/v1", api_key=key, http_client=http, max_retries=0) as client,
    ):
        yield client


async def test_models():
    async with asking() as client:
        assert [model.id async for model in client.models.list()] == ["copies what is already written"]


async def test_model_is_found_by_its_id():
    async with asking() as client:
        (known,) = [model async for model in client.models.list()]
        assert await client.models.retrieve(known.id) == known
        with pytest.raises(openai.NotFoundError, match="no model 'gpt-4'") as refused:
            await client.models.retrieve("gpt-4")
    assert (refused.value.code, refused.value.param) == ("model_not_found", "model")


async def test_loading_model_is_asked_again(monkeypatch):
    impatient = replace(errors.REFUSALS[503], headers={"retry-after": "0.001"})
    monkeypatch.setitem(errors.REFUSALS, 503, impatient)

    async with served() as (service, app), httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http:
        worker = service.engine._worker
        ready, worker.board.status = worker.board.status, Status("loading", "reading tiny")
        client = openai.AsyncOpenAI(base_url=f"{LOCAL}/v1", api_key=TOKEN, http_client=http, max_retries=1)
        with pytest.raises(openai.InternalServerError, match=r"the model is still loading \(reading tiny\): ask"):
            await client.completions.create(model="any", prompt="a = ")

        async def loaded(response):
            worker.board.status = ready

        http.event_hooks = {"response": [loaded]}
        assert (await client.completions.create(model="any", prompt="a = ")).choices


async def test_completions():
    async with asking(FakeEngine({"def area": "return w * h"})) as client:
        done = await client.completions.create(model="any", prompt="def area(w, h):\n    ", suffix="\n", max_tokens=20)
        assert done.choices[0].text == "return w * h"
        assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens
        stream = await client.completions.create(model="any", prompt="def area(w, h):\n    ", stream=True)
        assert "".join([chunk.choices[0].text async for chunk in stream]) == "return w * h"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"prompt": ["def area(w, h):\n    "]}, [(0, "return w * h")]),
        ({"prompt": ["def area(w, h):\n    ", "def side(w):\n    "]}, [(0, "return w * h"), (1, "return w")]),
        (
            {"prompt": ["def area(w, h):\n    ", "def side(w):\n    "], "n": 2},
            [(0, "return w * h"), (1, ""), (2, "return w"), (3, "")],
        ),
    ],
)
async def test_several_prompts_are_answered_at_once(asked, expected):
    async with asking(FakeEngine({"def area": "return w * h", "def side": "return w"})) as client:
        done = await client.completions.create(model="any", **asked)
        assert [(choice.index, choice.text) for choice in done.choices] == expected
        assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens > 0
        stream = await client.completions.create(model="any", **asked, stream=True)
        chunks = [chunk async for chunk in stream]
    assert [(choice.index, choice.text) for chunk in chunks for choice in chunk.choices] == expected
    assert len({chunk.id for chunk in chunks}) == 1


async def test_missing_choice_says_so():
    async with asking(FakeEngine({"def area": "return w * h"})) as client:
        done = await client.completions.create(model="any", prompt="def area(w, h):\n    ", n=3)
        said = [choice.mercury.get("silence", "") for choice in done.choices]
        assert said == ["", "there is no other suggestion", "there is no other suggestion"]


@pytest.mark.parametrize(
    ("asked", "said", "param"),
    [
        ({"prompt": [1, 2]}, r"prompt\[0\]: Expected a string, got a number", "prompt[0]"),
        ({"prompt": []}, "length >= 1", "prompt"),
        ({"prompt": ["a"] * 5, "n": 2}, "5 prompts with 2 choices each: at most 8 choices together", "prompt"),
    ],
)
async def test_prompts_that_cannot_be_answered(asked, said, param):
    async with asking() as client:
        with pytest.raises(openai.BadRequestError, match=said) as refused:
            await client.completions.create(model="any", **asked)
    assert refused.value.param == param


async def test_conversation_is_answered():
    async with asking() as client:
        done = await client.chat.completions.create(model="any", messages=HELLO, reasoning_effort="low")
    assert done.choices[0].message.content == "You said: hello there"
    assert done.choices[0].finish_reason == "stop"
    assert done.usage.completion_tokens > 0


async def test_stream_only_grows_and_ends_with_usage():
    async with asking() as client:
        stream = await client.chat.completions.create(
            model="any", messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(each.choices[0].delta.content or "" for each in chunks[:-1]) == "You said: hello there"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage.total_tokens > 0


async def test_diffusing_each_chunk_is_the_whole_draft():
    async with asking() as client:
        stream = await client.chat.completions.create(
            model="any", messages=HELLO, stream=True, extra_body={"diffusing": True}
        )
        frames = [chunk.choices[0].delta.content async for chunk in stream if chunk.choices[0].delta.content]
    assert frames[-1] == "You said: hello there"
    assert len(frames) == 4
    assert any("░" in frame for frame in frames[:-1])


async def test_tools_are_called_and_answered():
    async with asking(FakeEngine(says={"Paris": (ToolCall("call_1", "weather", '{"city": "Paris"}'),)})) as client:
        messages = [{"role": "user", "content": "How is it in Paris?"}]
        done = await client.chat.completions.create(model="any", messages=messages, tools=[WEATHER])
        assert done.choices[0].finish_reason == "tool_calls"
        message = done.choices[0].message
        (call,) = message.tool_calls
        assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "Paris"})
        messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        done = await client.chat.completions.create(model="any", messages=messages, tools=[WEATHER])
        assert done.choices[0].message.content == "You said: sunny"


async def test_required_tool_is_streamed_as_call():
    async with asking() as client:
        stream = await client.chat.completions.create(
            model="any",
            messages=HELLO,
            tools=[WEATHER],
            tool_choice={"type": "function", "function": {"name": "weather"}},
            stream=True,
        )
        deltas = [call async for chunk in stream for call in chunk.choices[0].delta.tool_calls or ()]
    assert [(call.function.name, json.loads(call.function.arguments)) for call in deltas] == [
        ("weather", {"city": "text"})
    ]


async def test_json_of_a_schema():
    async with asking() as client:
        shape = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY, "strict": True}}
        done = await client.chat.completions.create(model="any", messages=HELLO, response_format=shape)
        assert json.loads(done.choices[0].message.content) == {"city": "text", "people": 1}
        done = await client.chat.completions.create(
            model="any", messages=HELLO, response_format={"type": "json_object"}
        )
        assert json.loads(done.choices[0].message.content) == {}


async def test_completion_model_says_so():
    engine = FakeEngine()
    async with asking(FakeEngine(info=replace(engine.info(), chats=False))) as client:
        with pytest.raises(openai.NotFoundError, match="completes code and does not chat") as refused:
            await client.chat.completions.create(model="any", messages=HELLO)
    assert (refused.value.code, refused.value.param) == ("model_not_found", "model")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("asked", ["chat", "completions"])
async def test_overlong_request_has_the_openai_code(asked, stream):
    def refuse(asked):
        raise TooLongError("900 tokens, and 800 fit")

    async with asking(FakeEngine(refuse, says=refuse)) as client:
        create = client.chat.completions.create if asked == "chat" else client.completions.create
        body = {"messages": HELLO} if asked == "chat" else {"prompt": "x = ", "extra_body": {"path": "a.py"}}
        with pytest.raises(openai.BadRequestError, match="900 tokens, and 800 fit") as refused:
            await create(model="any", stream=stream, **body)
    assert (refused.value.status_code, refused.value.code) == (400, "context_length_exceeded")


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "king", "content": ""}]}, "messages[0].role"),
        ({"temperature": 9}, "temperature"),
        ({"tool_choice": "required"}, None),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
    ],
)
async def test_wrong_requests_say_where(wrong, param):
    async with asking() as client:
        with pytest.raises(openai.BadRequestError) as refused:
            await client.chat.completions.create(**({"model": "any", "messages": HELLO} | wrong))
    assert refused.value.param == param


async def test_wrong_key_is_refused():
    async with asking(key="wrong") as client:
        with pytest.raises(openai.AuthenticationError, match="bearer token"):
            await client.models.list()
