"""Recorded shapes of requests and answers, as each server has them."""

import json
import math
from contextlib import suppress

import msgspec
import pytest

from mercury_engine.api import EngineError, Snippet
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


@pytest.mark.parametrize(
    ("protocol", "ask", "sent"),
    [
        (
            "llama",
            RAW,
            {
                "stream": True,
                "cache_prompt": True,
                "prompt": "<P>a<S>b<M>",
                "model": "qwen",
                "n_predict": 32,
                "stop": ["\n", "<E>"],
                "n_probs": 1,
                "temperature": 0,
            },
        ),
        (
            "llama-infill",
            GAP,
            {
                "stream": True,
                "cache_prompt": True,
                "prompt": "",
                "input_prefix": "a",
                "input_suffix": "b",
                "input_extra": [{"filename": "u.py", "text": "u"}],
                "model": "codestral",
                "n_predict": 32,
                "n_probs": 1,
                "temperature": 0,
            },
        ),
        (
            "ollama",
            RAW,
            {
                "stream": True,
                "raw": True,
                "think": False,
                "keep_alive": "30m",
                "prompt": "<P>a<S>b<M>",
                "model": "qwen",
                "logprobs": True,
                "options": {
                    "num_predict": 32,
                    "num_ctx": 4096,
                    "stop": ["\n", "<E>"],
                    "temperature": 0,
                    "repeat_penalty": 1.0,
                },
            },
        ),
        (
            "openai",
            RAW,
            {
                "stream": True,
                "prompt": "<P>a<S>b<M>",
                "model": "qwen",
                "max_tokens": 32,
                "stop": ["\n", "<E>"],
                "logprobs": 1,
                "repeat_penalty": 1.0,
                "temperature": 0,
            },
        ),
        (
            "mistral",
            GAP,
            {"stream": True, "prompt": "a", "suffix": "b", "model": "codestral", "max_tokens": 32, "temperature": 0},
        ),
        ("inception", GAP, {"stream": True, "prompt": "a", "suffix": "b", "model": "codestral", "max_tokens": 32}),
        (
            "inception-edit",
            RAW,
            {"messages": [{"role": "user", "content": RAW.prompt}], "model": "qwen", "max_tokens": 32},
        ),
        ("tabby", GAP, {"segments": {"prefix": "a", "suffix": "b", "filepath": "m.py"}, "language": "python"}),
    ],
)
def test_questions_follow_the_protocol_of_the_server(protocol, ask, sent):
    assert json.loads(body(protocol_named(protocol), ask)) == sent


def test_stops_are_limited_to_what_a_server_takes():
    ask = Ask(prompt="", stops=("a", "b", "a", "c", "d", "e"))
    assert json.loads(body(protocol_named("openai"), ask))["stop"] == ["a", "b", "c", "d"]
    assert len(json.loads(body(protocol_named("ollama"), ask))["options"]["stop"]) == 5


def test_plain_question_has_nothing_unknown_to_servers():
    found = json.loads(body(protocol_named("openai"), RAW, plain=True))
    assert found.keys() == {"stream", "prompt", "model", "max_tokens", "stop", "temperature"}


def test_alternative_is_another_sample():
    found = json.loads(body(protocol_named("ollama"), Ask(prompt="", seed=2)))["options"]
    assert found["seed"] == 2
    assert found["temperature"] > 0


def test_unknown_protocol_is_named_with_known_ones():
    with pytest.raises(EngineError, match="'grpc'; use one of llama, llama-infill, ollama"):
        protocol_named("grpc")


@pytest.mark.parametrize(
    ("message", "event"),
    [
        # llama-server
        (
            {
                "content": " x",
                "stop": False,
                "completion_probabilities": [{"id": 5, "token": " x", "logprob": -0.25, "top_logprobs": []}],
            },
            Event(" x", (-0.25,)),
        ),
        ({"content": "", "stop": True, "stop_type": "eos", "stopping_word": "", "timings": {}}, Event(end="stop")),
        ({"content": "", "stop": True, "stop_type": "limit", "truncated": False}, Event(end="length")),
        ({"content": "", "stop": True, "stop_type": "word", "stopping_word": "\n"}, Event(end="stop")),
        ({"content": "x", "stop": True, "stopped_limit": True}, Event("x", end="length")),
        # Ollama
        (
            {"model": "q", "response": "x", "done": False, "logprobs": [{"token": "x", "logprob": -1}]},
            Event("x", (-1.0,)),
        ),
        ({"model": "q", "response": "", "done": True, "done_reason": "length"}, Event(end="length")),
        ({"error": "model requires more system memory"}, Event(error="model requires more system memory")),
        # OpenAI's completions: vLLM, LM Studio, llama-cpp-python
        (
            {
                "choices": [
                    {
                        "index": 0,
                        "text": "xy",
                        "finish_reason": None,
                        "logprobs": {"tokens": ["x", "y"], "token_logprobs": [-0.5, -0.1], "top_logprobs": None},
                    }
                ]
            },
            Event("xy", (-0.5, -0.1)),
        ),
        ({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}], "usage": {}}, Event(end="stop")),
        ({"choices": [], "usage": {"total_tokens": 3}}, Event()),
        ({"error": {"message": "too long", "type": "invalid_request_error"}}, Event(error="too long")),
        # Mistral's FIM, in the shape of a chat
        (
            {"object": "chat.completion.chunk", "choices": [{"delta": {"content": "x"}, "finish_reason": None}]},
            Event("x"),
        ),
        (
            {"choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "length"}]},
            Event("x", (), "length"),
        ),
        ({"choices": [{"delta": {"content": [{"type": "text", "text": "x"}]}}]}, Event("x")),
        (
            {"choices": [{"message": {"content": "x"}, "logprobs": {"content": [{"token": "x", "logprob": -0.5}]}}]},
            Event("x", (-0.5,)),
        ),
        # Inception
        (
            {"object": "text_completion", "choices": [{"index": 0, "text": "x", "finish_reason": "stop"}]},
            Event("x", (), "stop"),
        ),
        # Tabby
        ({"id": "cmpl-1", "choices": [{"index": 0, "text": "x"}]}, Event("x")),
        # nothing of the kind
        ({"status": "ok"}, None),
    ],
)
def test_answers_are_read_by_the_protocol_of_the_server(message, event):
    assert read(message) == event
    for wrong in wrongly_typed(message):
        with suppress(WrongAnswerError):
            for part in heard("application/json", msgspec.json.encode(wrong))[0]:
                assert isinstance(part.text + part.error + part.end, str)
                assert all(-math.inf < value <= 0 for value in part.log_probs)


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


def test_error_in_stream_is_read():
    found, _ = heard("text/event-stream", SAID, b'error: {"error":{"message":"slot unavailable"}}\n\n')
    assert found[-1].error == "slot unavailable"


def test_interrupted_stream_has_not_ended():
    assert heard("text/event-stream", SAID) == ([Event("aé")], False)
    assert heard("application/x-ndjson", b'{"response":"a","done":false}\n') == ([Event("a")], False)


def test_document_that_is_complete_ends_the_answer():
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
