import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_ls.transport import LARGEST_MESSAGE, LONGEST_HEADER, FrameError, Frames, frame, refusal


def check(stream: bytes, expected: list[bytes | str]) -> None:
    """Bodies come out as bytes, unusable headers as the problem's beginning."""
    found = Frames().feed(stream)
    assert len(found) == len(expected)
    for item, wanted in zip(found, expected, strict=True):
        if isinstance(wanted, str):
            assert isinstance(item, FrameError)
            assert str(item).startswith(wanted)
        else:
            assert item == wanted


def test_messages_are_split_by_their_length():
    check(b"Content-Length: 2\r\n\r\n{}Content-Length: 3\r\n\r\n[1]", [b"{}", b"[1]"])


def test_header_names_come_in_any_case_and_company():
    check(b"content-length: 2\r\nContent-Type: x\r\n\r\n{}", [b"{}"])
    check(b"X-Other: 1\r\nCONTENT-LENGTH:2\r\n\r\n{}", [b"{}"])


def test_a_bad_header_is_reported_and_the_next_message_read():
    good = frame(b"{}")
    check(b"Nothing: here\r\n\r\n" + good, ["no Content-Length", b"{}"])
    check(b"Content-Length: many\r\n\r\n" + good, ["Content-Length b'many' is not a number", b"{}"])
    check(b"Content-Length: -1\r\n\r\n" + good, ["Content-Length b'-1' is not a number", b"{}"])
    check(
        b"Content-Length: %d\r\n\r\n" % (LARGEST_MESSAGE + 1) + good,
        ["Content-Length 67108865 is over", b"{}"],
    )


def test_headers_without_end_do_not_fill_the_memory():
    frames = Frames()
    (error,) = frames.feed(b"x" * (LONGEST_HEADER + 1))
    assert "no end of headers" in str(error)
    assert frames.feed(frame(b"{}")) == [b"{}"]


@settings(deadline=None, max_examples=100)
@given(bodies=st.lists(st.binary(max_size=40), max_size=5), cuts=st.lists(st.integers(0, 300), max_size=8))
def test_however_the_stream_is_cut_the_messages_are_the_same(bodies, cuts):
    stream = b"".join(map(frame, bodies))
    points = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    frames = Frames()
    found = [item for a, b in itertools.pairwise(points) for item in frames.feed(stream[a:b])]
    assert found == bodies


@pytest.mark.parametrize(
    ("path", "headers", "problem"),
    [
        ("/", {"Host": "127.0.0.1:9", "Authorization": "Bearer secret"}, ""),
        ("/?token=secret", {"Host": "localhost"}, ""),
        ("/", {"Host": "[::1]:9", "Authorization": "Bearer secret", "Origin": "http://localhost:3000"}, ""),
        ("/", {"Host": "127.0.0.1"}, "the token is missing or wrong"),
        ("/?token=guess", {"Host": "127.0.0.1"}, "the token is missing or wrong"),
        ("/?token=secret", {"Host": "evil.example"}, "host evil.example is not this machine"),
        (
            "/?token=secret",
            {"Host": "localhost", "Origin": "https://evil.example"},
            "origin https://evil.example",
        ),
        ("/?token=secret", {"Host": "localhost", "Origin": "null"}, "origin null"),
    ],
)
def test_a_socket_opens_only_for_this_machine_and_with_the_token(path, headers, problem):
    found = refusal(path, headers, "secret")
    assert found.startswith(problem) if problem else found == ""
