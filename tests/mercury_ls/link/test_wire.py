import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.api import (
    ChatReply,
    ChatRequest,
    Draft,
    EngineError,
    Filled,
    InfillRequest,
    Message,
    RequestError,
    Span,
    Tool,
    Window,
)
from mercury_ls.link.wire import (
    FRAME_LIMIT,
    AnswerFrame,
    Failure,
    FrameReader,
    WireError,
    decode,
    encode,
    final,
    frame,
)

DRAFT = Draft(3, (Filled("return x\n", (0.9, 0.5), 0.7, True),), final=True)


def request(*spans):
    return InfillRequest(session="s", windows=(Window("a.py", "python", "x = 1\n"),), spans=spans)


@settings(max_examples=50)
@given(st.lists(st.text(max_size=40), max_size=6), st.lists(st.integers(1, 60), min_size=1))
def test_frames_survive_any_cut_of_the_stream(texts, cuts):
    sent = [AnswerFrame(failure=Failure("engine", text)) for text in texts]
    stream = b"".join(frame(answer) for answer in sent)
    frames, received = FrameReader(AnswerFrame), []
    while stream:
        for size in cuts:
            received += frames.feed(stream[:size])
            stream = stream[size:]
    assert received == sent


def test_draft_comes_back_as_it_was():
    assert list(FrameReader(AnswerFrame).feed(frame(AnswerFrame(draft=DRAFT)))) == [AnswerFrame(draft=DRAFT)]


def test_frame_of_absurd_length_is_refused_before_it_is_read():
    with pytest.raises(WireError, match=r"over the limit.*engine server of protocol"):
        list(FrameReader(AnswerFrame).feed((FRAME_LIMIT + 1).to_bytes(4, "big")))


@pytest.mark.parametrize("garbage", [b"\xff\xff", b"\x01", encode(DRAFT)[:-1]])
def test_garbage_in_a_frame_is_named(garbage):
    with pytest.raises(WireError, match="received a malformed frame"):
        list(FrameReader(AnswerFrame).feed(len(garbage).to_bytes(4, "big") + garbage))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -0.5, 2.0])
@pytest.mark.parametrize(
    "filled", [lambda chance: Filled("a", p_accept=chance), lambda chance: Filled("a", confidence=(0.5, chance))]
)
def test_confidence_that_is_no_probability_is_refused(filled, wrong):
    with pytest.raises(WireError, match="malformed frame"):
        list(FrameReader(Draft).feed(frame(Draft(1, (filled(wrong),)))))
    assert list(FrameReader(Draft).feed(frame(Draft(1, (filled(1.0),)))))


def test_requests_come_back_as_they_were():
    asked = request(Span(0, 2, 4, "edit"))
    assert decode(encode(asked), InfillRequest) == asked


def test_malformed_request_is_named():
    with pytest.raises(WireError, match="is not a msgpack InfillRequest"):
        decode(b"{}", InfillRequest)


@pytest.mark.parametrize("span", [(1, 0, 0), (-1, 0, 0), (0, 4, 2), (0, 0, 7), (0, -1, 0)])
def test_spans_outside_of_their_windows_are_refused(span):
    with pytest.raises(EngineError, match=r"spans\[0\]"):
        decode(encode(request(Span(*span, "line"))), InfillRequest)


def chat(**fields):
    return ChatRequest(**{"session": "s", "messages": (Message("user", "hello"),)} | fields)


def test_conversations_come_back_as_they_were():
    asked = chat(tools=(Tool("add"),), tool_choice="add", schema="{}", stops=("\n",), effort="instant")
    assert decode(encode(asked), ChatRequest) == asked


def test_malformed_conversation_is_named():
    with pytest.raises(WireError, match="is not a msgpack ChatRequest"):
        decode(b"{}", ChatRequest)


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"messages": ()}, "messages is empty"),
        ({"most_tokens": 0}, "most_tokens is 0"),
        ({"tools": (Tool("add"), Tool("add"))}, "tools has 'add' twice"),
        ({"tools": (Tool("none"),), "tool_choice": "none"}, "tools has 'none', which tool_choice uses for itself"),
        ({"tool_choice": "add"}, "tool_choice is 'add': use auto, none, required"),
        ({"tool_choice": "required"}, "there are no tools"),
    ],
)
def test_conversations_that_nobody_can_answer_are_refused(fields, match):
    with pytest.raises(RequestError, match=match):
        decode(encode(chat(**fields)), ChatRequest)


def test_endless_message_is_reported_as_too_long():
    assert final(ChatReply(3, "a")) == ChatReply(3, "a", final=True, finish="length")
    assert final(said := ChatReply(3, "a", final=True, finish="stop")) is said
