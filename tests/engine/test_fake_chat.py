"""What the engine without a model says, which tests of the HTTP port rely on."""

import json

from mercury_engine.api import ChatRequest, Message, Tool, ToolCall
from mercury_engine.fake import FakeEngine

ADD = Tool(
    "add",
    "adds",
    '{"properties": {"a": {"type": "integer", "minimum": 3}, "b": {"enum": ["x"]}}, "required": ["a", "b"]}',
)


def request(text="hello", *, role="user", **fields):
    return ChatRequest(session="s", messages=(Message(role, text),), **fields)


def check(asked, text="", *, engine=None, finish="stop", calls=()):
    *_, last = (engine or FakeEngine()).chat(asked)
    assert (last.text, last.finish, last.final) == (text, finish, True)
    assert [(call.name, json.loads(call.arguments)) for call in last.calls] == [*calls]
    return last


def test_fake_engine_echoes():
    check(request(), "You said: hello")


def test_scripted_text_is_said():
    check(request(), "hi", engine=FakeEngine(says={"hell": "hi"}))
    check(request(), "1 of 1", engine=FakeEngine(says=lambda asked: f"1 of {len(asked.messages)}"))
    called = (ToolCall("7", "add", "{}"),)
    check(request(tools=(ADD,)), engine=FakeEngine(says={"hell": called}), finish="tool_calls", calls=[("add", {})])


def test_text_ends_before_stop_and_at_limit():
    check(request(stops=(":", "said")), "You ")
    check(request(most_tokens=3), "You said", finish="length")


def test_json_has_the_shape_of_the_schema():
    check(request(schema="{}"), "{}")
    check(request(schema=ADD.parameters), '{"a": 3, "b": "x"}')


def test_tool_is_called_where_it_must_be_or_user_names_it():
    called = {"finish": "tool_calls", "calls": [("add", {"a": 3, "b": "x"})]}
    check(request(tools=(ADD,), tool_choice="required"), **called)
    check(request(tools=(ADD,), tool_choice="add"), **called)
    check(request("please add", tools=(ADD,)), **called)
    check(request("please add", tools=(ADD,), tool_choice="none"), "You said: please add")
    check(request("add: 5", tools=(ADD,), role="tool"), "You said: add: 5")


def test_drafts_are_revised_until_all_is_settled():
    *drafts, last = FakeEngine(passes=3).chat(request("one two three", slots=True))
    assert [draft.text for draft in drafts] == [" ░said░one░ ░three░", "░ ░:░one░two░three"]
    assert all("".join(slot.text or "░" for slot in draft.slots) == draft.text for draft in (*drafts, last))
    assert all(slot.settled for slot in last.slots)
    assert any(slot.revised for slot in last.slots)
    assert (last.settled, last.prompt_tokens, last.answer_tokens) == (len(last.text), 5, 10)
