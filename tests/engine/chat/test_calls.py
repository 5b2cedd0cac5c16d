"""How models write calls is told from their templates, and read from their answers."""

import json

import pytest

from mercury_engine.api import ChatRequest, Message, RequestError, Tool, ToolCall
from mercury_engine.chat.calls import HERMES, MAY_BE_JSON, CallFormat, called_in_json, dialogue_of
from mercury_engine.chat.template import ChatTemplate, Source
from mercury_engine.tokens.pretrained import PretrainedTokenizer
from tests.engine.chat.models import CHATML, LLAMA, TOKENS, WITH_TOOLS
from tests.engine.families.checkpoints import tokenizer

JSON_ALONE = """\
{%- if tools %}{{ tools | tojson(indent=2) }}{% endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\n' }}
    {%- if message.tool_calls %}
        {{- '{"name": "' + message.tool_calls[0].function.name + '", "parameters": ' }}
        {{- message.tool_calls[0].function.arguments | tojson }}{{- '}' }}
    {%- else %}{{- message.content }}{% endif %}
    {{- '<|im_end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}
"""
ONE_ONLY = CallFormat('{"name": "', '", "parameters": ', "}", "\n", '{"name": "')
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": "}"}}\n</tool_call>'


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens") / "tokenizer.json"
    path.write_text(json.dumps(tokenizer((*TOKENS, "<|eot_id|>"))), encoding="utf-8")
    return PretrainedTokenizer(path)


def dialogue(tokens, template):
    return dialogue_of(ChatTemplate(Source(template, template, {}), tokens))


@pytest.mark.parametrize(
    ("template", "calls", "has_tools", "end"),
    [
        (WITH_TOOLS, HERMES, True, "<|im_end|>"),
        (JSON_ALONE, ONE_ONLY, True, "<|im_end|>"),
        (CHATML, HERMES, False, "<|im_end|>"),
        (LLAMA, HERMES, False, "<|eot_id|>"),
    ],
)
def test_template_tells_how_its_model_calls_and_ends(tokens, template, calls, has_tools, end):
    found = dialogue(tokens, template)
    assert (found.calls, found.has_tools, found.end) == (calls, has_tools, end)


@pytest.mark.parametrize(
    ("text", "said", "calls"),
    [
        ("hello", "hello", []),
        (f"I add.\n{CALL}", "I add.", [("add", '{"a": "}"}')]),
        (f"{CALL}\n{CALL}", "", [("add", '{"a": "}"}')] * 2),
        (f"{CALL}\n{CALL[:40]}", "", [("add", '{"a": "}"}')]),
        ('<tool_call>\n{"name": "add", "argu', "", []),
    ],
)
def test_calls_are_read_as_far_as_they_are_complete(tokens, text, said, calls):
    heard = dialogue(tokens, WITH_TOOLS).read(text, 7)
    assert heard.text == said
    assert [(call.name, call.arguments) for call in heard.calls] == calls
    assert [len(call.id) for call in heard.calls] == [9] * len(calls)
    assert len({call.id for call in heard.calls}) == len(calls)


@pytest.mark.parametrize("template", [WITH_TOOLS, CHATML])
@pytest.mark.parametrize(("depth", "is_rendered"), [(200, True), (5_000, False), (50_000, False)])
def test_tools_and_arguments_that_are_too_deep_are_refused(tokens, template, depth, is_rendered):
    deep, spoken = '{"a":' * depth + "{}" + "}" * depth, dialogue(tokens, template)
    for arguments, parameters in ((deep, "{}"), ("{}", deep)):
        call, tools = ToolCall("1", "add", arguments), (Tool("add", "", parameters),)
        messages = (Message("user", "Hi"), Message("assistant", "", (call,)))
        request = ChatRequest(session="s", messages=messages, tools=tools)
        if is_rendered or (arguments == deep and not spoken.has_tools):  # such a template has them as a text
            assert deep.replace(" ", "") in spoken.render(request).replace(" ", "")
        else:
            with pytest.raises(RequestError, match="nested too deeply: flatten"):
                spoken.render(request)


ADDS = '{"name": "add", "arguments": {"a": 1}}'


@pytest.mark.parametrize(
    ("text", "is_call"),
    [
        (ADDS, True),
        (f"```json\n{ADDS}\n```\n", True),
        (f"```\n{ADDS}\n```", True),
        (f"For example:\n```json\n{ADDS}\n```", False),
        (ADDS.replace("add", "multiply"), False),
        (ADDS.replace('{"a": 1}', "1"), False),
        (ADDS.replace("arguments", "parameters"), False),
        (ADDS[:-1], False),
        ("{}", False),
        ("[" * 100_000, False),
        ("", False),
    ],
)
def test_call_in_plain_json_is_read_if_it_is_the_whole_answer(text, is_call):
    heard = called_in_json(text, [Tool("add")], 7)
    assert [(call.name, call.arguments) for call in (heard.calls if heard else ())] == [("add", '{"a": 1}')] * is_call
    if is_call:
        assert all(MAY_BE_JSON.match(text[:end]) for end in range(len(text) + 1)), (
            "no part of it is told before its end"
        )


@pytest.mark.parametrize("text", ["```python\nprint(1)\n```", "```js\nf()", "``` a", "Paris"])
def test_text_that_cannot_become_a_call_is_told_at_once(text):
    assert not MAY_BE_JSON.match(text)


def test_template_without_tools_has_them_in_system_message(tokens):
    messages = (
        Message("system", "Be brief."),
        Message("user", "Hi"),
        Message("assistant", "", (ToolCall("1", "add", '{"a": 1}'),)),
        Message("tool", "2", answers="1"),
    )
    request = ChatRequest(session="s", messages=messages, tools=(Tool("add", "Adds."),))
    rendered = dialogue(tokens, CHATML).render(request).replace("\ufdd0", "")
    assert "Be brief.\n\nYou may call these tools" in rendered
    assert '{"name": "add", "description": "Adds.", "parameters": {"type": "object"}}' in rendered
    assert '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>' in rendered
    assert "<tool_response>\n2\n</tool_response>" in rendered
