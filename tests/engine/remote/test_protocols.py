"""Recorded shapes of requests and answers, as each server has them."""

import json
import math
import re
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from mercury_engine.api import EngineError, Snippet
from mercury_engine.redaction import ForeignText, Secrets
from mercury_engine.remote.protocols import (
    Ask,
    Event,
    Events,
    WrongAnswerError,
    body,
    model_names,
    protocol_named,
    read,
)
from tests.model_servers import wrongly_typed

HERE = Path(__file__).parent
RAW = Ask(prompt="<P>a<S>b<M>", tokens=32, stops=("\n", "<E>"), model="qwen", context=4096)
GAP = Ask(
    prompt="a",
    suffix="b",
    snippets=(Snippet("u.py", "u"),),
    file="m.py",
    language="python",
    tokens=32,
    model="codestral",
)


QUESTIONS = re.findall(
    r"=== ([^\n]*), (raw|gap)\n(.*?)(?=\n===|\Z)", (HERE / "questions.txt").read_text("utf-8"), re.DOTALL
)


@pytest.mark.parametrize(("protocol", "ask", "sent"), QUESTIONS, ids=lambda part: part[:10])
def test_questions_follow_the_protocol_of_the_server(protocol, ask, sent):
    assert json.loads(body(protocol_named(protocol), {"raw": RAW, "gap": GAP}[ask])) == json.loads(sent)


def test_questions_have_only_what_a_server_takes():
    ask = Ask(prompt="", stops=("a", "b", "a", "c", "d", "e"))
    assert json.loads(body(protocol_named("openai"), ask))["stop"] == ["a", "b", "c", "d"]
    assert len(json.loads(body(protocol_named("ollama"), ask))["options"]["stop"]) == 5
    found = json.loads(body(protocol_named("openai"), RAW, plain=True))
    assert found.keys() == {"stream", "prompt", "model", "max_tokens", "stop", "temperature"}
    found = json.loads(body(protocol_named("ollama"), Ask(prompt="", seed=2)))["options"]
    assert found["seed"] == 2
    assert found["temperature"] > 0


def test_unknown_protocol_is_named_with_known_ones():
    with pytest.raises(EngineError, match="'grpc'; use one of llama, llama-infill, ollama"):
        protocol_named("grpc")


ANSWERS = re.findall(r"said (.*)\nread (.*)", (HERE / "answers.txt").read_text("utf-8"))


@pytest.mark.parametrize(("said", "event"), ANSWERS)
def test_answers_are_read_by_the_protocol_of_the_server(said, event):
    message = json.loads(said)
    assert read(message) == msgspec.json.decode(event, type=Event | None)
    for wrong in wrongly_typed(message):
        with suppress(WrongAnswerError):
            for part in heard("application/json", msgspec.json.encode(wrong))[0]:
                assert isinstance(part.text + Secrets().shown(part.error) + part.end, str)
                assert all(-math.inf < value <= 0 for value in part.log_probs)


def with_log_prob(value: str) -> bytes:
    probabilities = f'[{{"logprob": {value}}}, {{"logprob": -1}}]'
    return f'{{"content": "x", "stop": true, "completion_probabilities": {probabilities}}}'.encode()


@pytest.mark.parametrize("value", ["-" + "9" * 400, "9" * 400, "-1e308", "1e-9", "true"])
def test_impossible_log_probability_is_none(value):
    (event,), _ = heard("application/json", with_log_prob(value))
    assert event.log_probs == (-1.0,)


@pytest.mark.parametrize("value", ["-1e400", "-" + "9" * 9999, "NaN", "-Infinity"])
def test_log_probability_that_is_no_number_is_refused(value):
    with pytest.raises(WrongAnswerError):
        heard("application/json", with_log_prob(value))


def heard(kind: str, *pieces: bytes) -> tuple[list[Event], bool]:
    events = Events(kind)
    found = [event for piece in pieces for event in events.feed(piece)]
    return [*found, *events.finish()], events.ended


SAID = b'data: {"choices":[{"text":"a\xc3\xa9"}]}\n\n'
FINISHED = b'data: {"choices":[{"text":"","finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def test_stream_is_parsed_wherever_it_is_cut():
    whole = b": a comment\nevent: message\nid: 1\n" + SAID + FINISHED
    for at in range(len(whole)):
        found, ended = heard("text/event-stream", whole[:at], whole[at:])
        assert found == [Event("aé"), Event(end="stop")]
        assert ended


def test_end_of_an_answer_is_told_from_its_interruption():
    found, _ = heard("text/event-stream", SAID, b'error: {"error":{"message":"slot unavailable"}}\n\n')
    assert found[-1].error == ForeignText("slot unavailable")
    assert heard("text/event-stream", SAID) == ([Event("aé")], False)
    assert heard("application/x-ndjson", b'{"response":"a","done":false}\n') == ([Event("a")], False)
    assert heard("application/json; charset=utf-8", b'{\n "choices":', b'[{"text":"a"}]}') == (
        [Event("a", (), "stop")],
        True,
    )


DEEP = b'{"error":' + b"[" * 100_000


@pytest.mark.parametrize(
    "data", [b"<html>\n", b'data: {"a":\n', b"[1, 2]\n", b'{"status":"ok"}\n', b"", DEEP, b'{"a":' + DEEP]
)
def test_malformed_completion_is_refused(data):
    for kind in ("text/event-stream", "application/json"):
        with pytest.raises(WrongAnswerError):
            heard(kind, data)


def test_line_without_end_is_refused():
    with pytest.raises(WrongAnswerError, match="more than"):
        heard("text/event-stream", b"x" * (2 << 20))


def test_models_of_server_are_read():
    assert model_names({"object": "list", "data": [{"id": "a"}, {"id": "b"}]}) == ["a", "b"]
    assert model_names({"models": [{"name": "a:latest", "model": "a:latest", "size": 1}]}) == ["a:latest"]
    assert model_names([]) == model_names({"data": [1]}) == []
    assert len(model_names({"data": [{"id": "a"}] * 400_000})) == 1000
    assert model_names({"data": [{"id": "a" * 501}, {"id": "b"}]}) == ["b"]
    for wrong in wrongly_typed({"data": [{"id": "a"}], "models": [{"name": "b"}]}):
        assert all(isinstance(name, str) for name in model_names(wrong))
