import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_ls.lsp.transport import LONGEST_HEADER, FrameError, MessageReader, OversizedError, frame, pump


def check(stream: bytes, expected: list[bytes | str]) -> None:
    """Bodies come out as bytes, unusable headers as the problem's beginning."""
    found = MessageReader().feed(stream)
    assert len(found) == len(expected)
    for item, wanted in zip(found, expected, strict=True):
        if isinstance(wanted, str):
            assert isinstance(item, FrameError)
            assert str(item).startswith(wanted)
        else:
            assert item == wanted


def test_messages_are_split_by_their_length():
    check(b"Content-Length: 2\r\n\r\n{}Content-Length: 3\r\n\r\n[1]", [b"{}", b"[1]"])
    check(b"content-length: 2\r\nContent-Type: x\r\n\r\n{}", [b"{}"])
    check(b"X-Other: 1\r\nCONTENT-LENGTH:2\r\n\r\n{}", [b"{}"])


def test_bad_header_is_reported_and_next_message_read():
    good = frame(b"{}")
    frames = MessageReader()
    assert [str(error)[:17] for error in frames.feed(b"x" * (LONGEST_HEADER + 1))] == ["no end of headers"]
    assert frames.feed(good) == [b"{}"]
    check(b"Nothing: here\r\n\r\n" + good, ["no Content-Length", b"{}"])
    check(b"Content-Length: many\r\n\r\n" + good, ["Content-Length b'many' is not a number", b"{}"])
    check(b"Content-Length: -1\r\n\r\n" + good, ["Content-Length b'-1' is not a number", b"{}"])
    for digits in (11, 5000):
        header = b"Content-Length: " + b"9" * digits + b"\r\n\r\n"
        check(header + good, ["Content-Length b'9999", b"{}"])
        check(header + b'{"jsonrpc": "2.0"}' + good, ["Content-Length b'9999", b"{}"])


def test_after_rubbish_the_next_header_is_found():
    good = frame(b"{}")
    check(b"a program printed this\n" + good, ["no Content-Length", b"{}"])
    check(b'Content-Length: 3\r\n\r\n{"a": 1}' + good + good, [b'{"a', "no Content-Length", b"{}", b"{}"])
    check(b"Content-Length: 9\r\n\r\n{}" + good + good, [b"{}Content", "no Content-Length", b"{}"])


def test_body_over_limit_is_skipped_and_not_held():
    frames, body = MessageReader(largest=100_000), b'{"uri": "a"' + b"x" * 1_000_000 + b'"uri": "b"}'
    frames.feed(b"Content-Length: %d\r\n\r\n" % len(body))
    found = []
    for start in range(0, len(body), 1000):
        found += frames.feed(body[start : start + 1000])
        assert len(frames) <= 1000
    (error,) = found
    assert isinstance(error, OversizedError)
    assert "1000022 bytes is over the limit of 100000 bytes" in str(error)
    assert error.ends.startswith(b'{"uri": "a"')
    assert error.ends.endswith(b'"uri": "b"}')
    assert frames.feed(frame(b"{}")) == [b"{}"]


@given(bodies=st.lists(st.binary(max_size=40), max_size=5), cuts=st.lists(st.integers(0, 300), max_size=8))
def test_however_the_stream_is_cut_the_messages_are_the_same(bodies, cuts):
    stream = b"".join(map(frame, bodies))
    points = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    frames = MessageReader()
    found = [item for a, b in itertools.pairwise(points) for item in frames.feed(stream[a:b])]
    assert found == bodies


@settings(max_examples=200)
@given(
    rubbish=st.lists(st.sampled_from([b"Content-Length: ", b"5 ", b"-1", b"\r\n", b"{}", b"\xff", b":", b"9" * 30])),
    cut=st.integers(1, 50),
)
def test_rubbish_loses_no_later_message(rubbish, cut):
    """A message that the rubbish claims as its own body is lost, and none after it."""
    frames = MessageReader()
    stream = b"".join([*rubbish, frame(b"[1]"), frame(b"[2]"), frame(b"[2]"), b" " * LONGEST_HEADER, frame(b"[3]")])
    found = [item for at in range(0, len(stream), cut) for item in frames.feed(stream[at : at + cut])]
    assert b"[3]" in found


def test_reading_ends_with_the_input_or_with_what_no_one_expected():
    for ending in (b"", OSError("gone"), ValueError("anything else")):
        said, heard = iter([frame(b"{}"), ending]), []
        pump(lambda said=said: spoken(next(said)), heard.append)
        assert heard == [[b"{}"]]


def spoken(said: bytes | Exception) -> bytes:
    if isinstance(said, Exception):
        raise said
    return said
