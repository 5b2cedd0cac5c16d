import hashlib
import json
import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.api import (
    PROTOCOL_VERSION,
    ChatReply,
    ChatRequest,
    Draft,
    EngineError,
    Gap,
    Message,
    Proposals,
    Region,
    Regions,
    RequestError,
    Tool,
)
from mercury_ls.link.wire import (
    FRAME_LIMIT,
    Failure,
    Frame,
    FrameReader,
    Request,
    Status,
    WireError,
    decode,
    encode,
    final,
    frame,
)

DRAFT = Draft(3, "return x\n", (0.9, 0.5), 0.7, True, final=True)
GAP = Gap(session="s", path="a.py", language="python", before="x = ", after="\n", block=True)
REGIONS = Regions(session="s", regions=(Region("a.py", "python", "x = 1\n"),), cursor=2)
DIGEST = {2: "0119a2b865fe6f53"}
"""Of the types that cross the socket in each version of the protocol."""


def test_protocol_has_another_number_when_its_types_change():
    types, named = msgspec.json.schema_components([Request, Frame, Status])
    digest = hashlib.sha256(json.dumps(without_words([*types, named]), sort_keys=True).encode()).hexdigest()[:16]
    assert DIGEST.get(PROTOCOL_VERSION) == digest, (
        "a type that crosses the socket has changed: raise PROTOCOL_VERSION in mercury_engine/api.py, so that an editor"
        f" asks no server of the version before, and keep {digest!r} here with the new number; the digest alone, if no "
        f"release speaks version {PROTOCOL_VERSION}"
    )


def without_words(schema):
    """Docstrings are no part of the protocol."""
    if isinstance(schema, dict):
        return {key: without_words(value) for key, value in schema.items() if key != "description"}
    return [without_words(value) for value in schema] if isinstance(schema, list) else schema


@settings(max_examples=50)
@given(st.lists(st.text(max_size=40), max_size=6), st.lists(st.integers(1, 60), min_size=1))
def test_frames_survive_any_cut_of_the_stream(texts, cuts):
    sent = [Failure("engine", text) for text in texts]
    stream = b"".join(frame(answer) for answer in sent)
    frames, received = FrameReader(Frame), []
    while stream:
        for size in cuts:
            received += frames.feed(stream[:size])
            stream = stream[size:]
    assert received == sent


def test_draft_comes_back_as_it_was():
    assert list(FrameReader(Frame).feed(frame(DRAFT))) == [DRAFT]


def test_frame_of_absurd_length_is_refused_before_it_is_read():
    with pytest.raises(WireError, match=r"over the limit.*engine server of protocol"):
        list(FrameReader(Frame).feed((FRAME_LIMIT + 1).to_bytes(4, "big")))


@pytest.mark.parametrize("garbage", [b"\xff\xff", b"\x01", encode(DRAFT)[:-1]])
def test_garbage_in_a_frame_is_named(garbage):
    with pytest.raises(WireError, match="received a malformed frame"):
        list(FrameReader(Frame).feed(len(garbage).to_bytes(4, "big") + garbage))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -0.5, 2.0])
@pytest.mark.parametrize(
    "told", [lambda chance: Draft(1, "a", p_accept=chance), lambda chance: Draft(1, "a", confidence=(0.5, chance))]
)
def test_confidence_that_is_no_probability_is_refused(told, wrong):
    with pytest.raises(WireError, match="malformed frame"):
        list(FrameReader(Draft).feed(frame(told(wrong))))
    assert list(FrameReader(Draft).feed(frame(told(1.0))))


def test_questions_come_back_as_they_were():
    for asked in (GAP, REGIONS):
        assert decode(encode(asked)) == asked


def test_malformed_question_is_named():
    with pytest.raises(WireError, match="the body is no request of protocol"):
        decode(b"{}")


def test_question_about_nothing_is_refused():
    for asked in (msgspec.structs.replace(REGIONS, regions=()), Proposals(session="s", proposals=())):
        with pytest.raises(EngineError, match="about nothing"):
            decode(encode(asked))


@pytest.mark.parametrize("cursor", [-1, 7])
def test_cursor_outside_of_its_region_is_refused(cursor):
    with pytest.raises(EngineError, match=f"the cursor is {cursor}, but the first region has 6 characters"):
        decode(encode(msgspec.structs.replace(REGIONS, cursor=cursor)))


def chat(**fields):
    return ChatRequest(**{"session": "s", "messages": (Message("user", "hello"),)} | fields)


def test_conversations_come_back_as_they_were():
    asked = chat(tools=(Tool("add"),), tool_choice="add", schema="{}", stops=("\n",), effort="instant")
    assert decode(encode(asked)) == asked


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
        decode(encode(chat(**fields)))


def test_endless_message_is_reported_as_too_long():
    assert final(ChatReply(3, "a")) == ChatReply(3, "a", final=True, finish="length")
    assert final(said := ChatReply(3, "a", final=True, finish="stop")) is said
