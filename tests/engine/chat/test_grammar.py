"""What a grammar lets an answer say, how it is brought to an end, and which schemas are refused."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import jsonschema
import pytest

from bench.harness.random_schemas import random_schema
from mercury_engine.api import ChatRequest, Message, RequestError, Tool
from mercury_engine.chat import grammar, schemas
from tests.engine.chat.random_answers import talker_of, validity

ADD = Tool(
    "add",
    parameters='{"type": "object", "properties": {"a": {"type": "integer"}, "to": {"type": "string"}},'
    ' "required": ["a", "to"], "additionalProperties": false}',
)
RED = Tool("red", parameters='{"enum": [{"red": true}]}')


@pytest.fixture(scope="module")
def talker():
    with TemporaryDirectory() as folder:
        return talker_of(Path(folder))


def request(schema=None, **fields):
    text = "" if schema is None else json.dumps(schema)
    return ChatRequest(session="s", messages=(Message("user", "x"),), schema=text, **fields)


def guide_of(talker, *arguments, **fields):
    return talker.grammars.guide(request(*arguments, **fields), talker.dialogue.calls)


def ending_of(guide):
    steps = guide.closing()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def say(talker, guide, text):
    return all(guide.take(token) for token in talker.vocabulary.encode(text))


def spelled(talker, tokens):
    return talker.vocabulary.spell(tokens).decode()


CASES = (
    ({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, '{"a": ', '{"a": 0}'),
    ({"type": "array", "items": {"const": "x"}, "minItems": 2}, '["x", "x"', '["x", "x"]'),
    ({"type": "string", "format": "date"}, '"', None),
    ({"type": "string", "format": "email"}, '"', None),
    ({"type": "string", "pattern": "^[ab]*c{3}$"}, '"', '"abccc"'),
    ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"n": {"anyOf": [{"$ref": "#/$defs/n"},
        {"type": "null"}]}}, "required": ["n"], "additionalProperties": False}}}, '{"n": ', '{"n": null}'),
)  # fmt: skip


@pytest.mark.parametrize(("schema", "forced", "closed"), CASES)
def test_answer_can_be_forced_and_ended_at_any_time(talker, schema, forced, closed):
    guide = guide_of(talker, schema)
    assert forced.startswith(spelled(talker, guide.forced()))
    ending = spelled(talker, ending_of(guide))
    jsonschema.validate(json.loads(ending), schema)
    if closed:
        assert ending == closed


def optional(count):
    return {"type": "object", "properties": {f"p{number}": {"type": "boolean"} for number in range(count)}}


def test_schema_may_have_a_thousand_optional_properties(talker):
    guide = guide_of(talker, optional(1000))
    assert say(talker, guide, '{"p7": true, "p900": false}')
    assert ending_of(guide) == []


def test_schema_with_far_more_optional_properties_is_refused(talker):
    guide = guide_of(talker, optional(2000))
    with pytest.raises(RequestError, match=r"this schema cannot be enforced: .* items; max is 5000"):
        say(talker, guide, '{"p7": true}')


@pytest.mark.parametrize("answer", ["{}", '{"p7": true}'])
def test_schema_that_passes_a_limit_in_the_answer_is_refused(talker, monkeypatch, answer):
    monkeypatch.setattr(grammar, "MOST_ALTERNATIVES", 1000)
    guide = guide_of(talker, optional(300))
    with pytest.raises(RequestError, match=r"this schema cannot be enforced: .* items; max is 1000"):
        say(talker, guide, answer)


def test_schema_whose_ending_passes_a_limit_is_refused(talker):
    tools = (Tool("add", parameters=json.dumps({"type": "string", "pattern": "a?" * 900 + "a" * 900})),)
    guide = guide_of(talker, tools=tools, tool_choice="required")
    assert ending_of(guide) is None
    with pytest.raises(RequestError, match="this schema cannot be enforced"):
        say(talker, guide, "<tool")


def test_undone_token_was_never_accepted(talker):
    guide = guide_of(talker, {"type": "object", "additionalProperties": {"type": "integer"}})
    fresh = guide.allowed().tolist()
    tokens = talker.vocabulary.encode('{"a": 12, "é')
    assert [guide.take(token) for token in tokens] == [True] * len(tokens)
    before = ending_of(guide)
    assert guide.take(talker.vocabulary.of_byte[ord("x")])
    guide.back(1)
    assert ending_of(guide) == before
    guide.back(len(tokens))
    assert guide.allowed().tolist() == fresh


def test_begun_character_is_finished(talker):
    guide = guide_of(talker, {"type": "string"})
    first, second = "é".encode()
    assert say(talker, guide, '"')
    assert guide.take(talker.vocabulary.of_byte[first])
    ending = talker.vocabulary.spell(ending_of(guide))
    assert json.loads(b'"' + bytes([first]) + ending)
    assert guide.take(talker.vocabulary.of_byte[second])


@pytest.mark.parametrize("seed", range(40))
def test_schemas_have_endings_that_are_true_to_them(talker, seed):
    schema = random_schema(seed)
    ending = spelled(talker, ending_of(guide_of(talker, schema)))
    jsonschema.Draft202012Validator(schema).validate(json.loads(ending))


@pytest.mark.parametrize(
    ("schema", "match"),
    [
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"not": {"type": "string"}}, "not"),
        ({"if": {"type": "string"}, "then": {"minLength": 2}}, "if"),
        ({"oneOf": [{"type": "string"}, {"minLength": 2}]}, "oneOf"),
        ({"type": "string", "format": "iri"}, "Unknown format: iri"),
        ({"type": "string", "pattern": "^(?=a)b"}, "regex"),
        ({"$ref": "https://example.org/schema"}, "example.org"),
        ({"$ref": "#/nowhere"}, "nowhere"),
        ({"type": "object", "propertyNames": {"minLength": 3}}, "propertyNames"),
        ({"minimum": 5, "maximum": 2, "type": "integer"}, "minimum"),
        ([], "it must be an object"),
        (False, "it must be an object"),
    ],
)
def test_unsupported_schema_is_refused(talker, schema, match):
    with pytest.raises(RequestError, match=match):
        guide_of(talker, schema)


def test_tool_with_unsupported_parameters_is_refused(talker):
    with pytest.raises(RequestError, match="not JSON"):
        guide_of(talker, tools=(Tool("t", parameters="{"),), tool_choice="t")


@pytest.mark.parametrize(
    ("choice", "schema", "starts"),
    [
        ("required", None, ['<tool_call>\n{"name": "add"', '<tool_call>\n{"name": "red"']),
        ("add", None, ['<tool_call>\n{"name": "add"']),
        ("auto", {"type": "null"}, ["null", '<tool_call>\n{"name": "add"', '<tool_call>\n{"name": "red"']),
        ("none", {"type": "null"}, ["null"]),
    ],
)
def test_tool_choice_says_how_answer_may_begin(talker, choice, schema, starts):
    fields = {"tools": (ADD, RED), "tool_choice": choice}
    assert all(say(talker, guide_of(talker, schema, **fields), start) for start in starts)
    others = {"null", '<tool_call>\n{"name": "add"', '<tool_call>\n{"name": "red"', "text"} - {*starts}
    assert not any(say(talker, guide_of(talker, schema, **fields), other) for other in others)


LINKED = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
WIDE = {"type": "object", "properties": {f"p{number}": {"type": "integer"} for number in range(5000)}}


def nested(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ('{"$ref": "#"}', "it refers to itself"),
        ('{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}', "to itself"),
        ('{"$ref": "http://127.0.0.1:9/other.json"}', "enforced: Resource 'http://127.0.0.1:9/other.json'"),
        ('{"$dynamicRef": "#a"}', "enforced: Unimplemented keys"),
        (json.dumps(WIDE), "too big"),
        ('{"a": ' + nested(100_000) + "}", "nested too deeply"),
        ('{"const": "\\ud800"}', "hex escape"),
    ],
)  # fmt: skip
def test_hostile_schema_is_refused_with_its_reason(talker, schema, reason):
    """5,000 properties of which none is required took 10 s to compile, 10,000 took 50."""
    asked = ChatRequest(session="s", messages=(Message("user", "x"),), schema=schema)
    with pytest.raises(RequestError, match=reason):
        talker.grammars.guide(asked, talker.dialogue.calls)


def test_endless_schema_has_no_ending(talker):
    assert ending_of(guide_of(talker, LINKED)) is None


def test_text_may_turn_into_calls_and_calls_end_it(talker):
    guide = guide_of(talker, tools=(ADD, RED))
    assert guide.allowed() is None
    assert say(talker, guide, "I add.\n<tool_call>")
    assert spelled(talker, guide.forced()) == '\n{"name": "'
    assert say(talker, guide, '\n{"name": "red", "arguments": {"red": true}}\n</tool_call>')
    assert set(guide.allowed().tolist()) & talker.vocabulary.ends
    assert not say(talker, guide, "and so on")


def test_undone_call_leaves_text(talker):
    guide = guide_of(talker, tools=(ADD,))
    tokens = talker.vocabulary.encode("x <tool_call>\n")
    assert all(guide.take(token) for token in tokens)
    guide.back(len(tokens) - 1)
    assert guide.allowed() is None
    assert ending_of(guide) == []


def test_answers_under_random_schemas_are_valid_or_cut(talker):
    found = validity(talker, 8)
    assert found["wrong"] == []
    assert found["valid"] > 0


def chain(length):
    steps = {f"d{number}": {"$ref": f"#/$defs/d{number + 1}"} for number in range(length)}
    return {"$ref": "#/$defs/d0", "$defs": {**steps, f"d{length}": {"type": "integer"}}}


def test_long_chain_of_references_is_refused_before_it_is_compiled(talker):
    with pytest.raises(
        RequestError, match=r"the schema is too deep: .* 5,00\d levels together, and the limit is 2,000"
    ):
        guide_of(talker, chain(5000))


@pytest.mark.parametrize("length", [50, 600, 1900])
def test_chain_of_references_within_the_limit_is_followed(talker, length):
    assert spelled(talker, ending_of(guide_of(talker, chain(length)))) == "0"


def test_schema_that_crashes_compiler_costs_nobody_else_anything(talker, monkeypatch):
    monkeypatch.setattr(schemas, "MOST_DEPTH", 10**9)
    with pytest.raises(RequestError, match="the compiler took more than 10 s, or crashed; make it simpler"):
        guide_of(talker, chain(50_000))
    assert guide_of(talker, {"const": "after a crash"}) is not None


def test_very_long_pattern_is_refused(talker):
    with pytest.raises(RequestError, match="a pattern of 20,000 characters; the limit is 10,000"):
        guide_of(talker, {"type": "string", "pattern": "a" * 20_000})
