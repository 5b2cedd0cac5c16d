import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bench.replay.session import (
    Changed,
    Closed,
    Cursor,
    Ended,
    Header,
    Opened,
    RecordedSession,
    Saved,
    SessionError,
    Texts,
    capped,
    check,
    ended,
    read,
    write,
)

COMMITTED = Path(__file__).parents[3] / "bench/sessions"
OPENED = Opened(t=0, d=0, text="a😀b\nc\n", path="a.py", lang="python")
LARGEST = 1 << 20


def changed(t: int = 5, ver: int = 2, c: list | None = None, **more) -> Changed:
    return Changed(t=t, d=0, ver=ver, c=c or [[0, 3, 0, 4, "x"]], **more)


def test_columns_count_in_the_unit_of_the_header_or_of_the_change():
    texts = Texts(RecordedSession(Header(v=1), ()))
    texts.apply(OPENED)
    assert texts.apply(changed()) == [(2, 3, "x")]
    assert texts.apply(changed(ver=3, c=[[0, 5, 0, 6, "y"]], pos="utf-8")) == [(2, 3, "y")]
    assert texts.documents[0].text == "a😀y\nc\n"


def test_written_session_is_read_again(tmp_path):
    events = [OPENED, changed(), Cursor(t=6, d=0, sel=[(0, 4, 0, 4)]), Saved(t=9, d=0)]
    session = ended(Header(v=1, id="one", source="git"), events, "one")
    write(session, tmp_path / "one.jsonl")
    assert read(tmp_path / "one.jsonl") == session
    assert session.events[-1].sha256 == {"0": hashlib.sha256("a😀x\nc\n".encode()).hexdigest()}


def test_recording_may_say_what_came_after_it(tmp_path):
    session, path = ended(Header(v=1), [OPENED], "one"), tmp_path / "one.jsonl"
    write(session, path)
    *lines, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, b'{"t":0,"ev":"expect","d":0,"edits":[[0,0,0,1,"x"]]}\n', last]))
    assert [type(event).__name__ for event in read(path).events] == ["Opened", "Expected", "Ended"]


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([OPENED, changed(c=[[0, 9, 0, 9, "x"]])], r"3: \[0, 9, 0, 9\] lies outside of the text"),
        ([OPENED, changed(c=[[0, 2, 0, 2, "x"]])], "lies outside of the text"),
        ([OPENED, changed(ver=1)], "version 1 comes after 1"),
        ([OPENED, Closed(t=3, d=0), changed()], "document 0 is closed"),
        ([changed()], "2: document 0 was not opened"),
        ([OPENED, changed(t=5), changed(t=4, ver=3, c=[[0, 0, 0, 0, "x"]])], "4: time runs backwards"),
        ([OPENED, changed(c=[[0, 0, "x"]])], "is no"),
    ],
)
def test_unplayable_session_is_refused_with_its_line(events, problem):
    last = Ended(t=9, sha256={})
    with pytest.raises(SessionError, match=problem):
        check(RecordedSession(Header(v=1), (*events, last)), "s.jsonl")


def test_truncated_or_changed_session_is_refused():
    with pytest.raises(SessionError, match="not `end`"):
        check(RecordedSession(Header(v=1), (OPENED,)))
    session = ended(Header(v=1), [OPENED, changed()])
    other = replace(session, events=(OPENED, changed(c=[[0, 3, 0, 4, "y"]]), session.events[-1]))
    with pytest.raises(SessionError, match="document 0 does not have the digest"):
        check(other)


def test_damaged_line_is_named(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"ev":"header","v":1}\n{"ev":"open","t":0}\n')
    with pytest.raises(SessionError, match=r"bad.jsonl:2: not a line of mls-session/1 .*`d`"):
        read(path)


def test_pauses_are_capped_from_the_first_event_on():
    events = [replace(OPENED, t=507_000), changed(t=507_040), changed(t=600_000, ver=3)]
    assert [moment for moment, _ in capped(events, 2000)] == [0, 40, 2040]
    assert [moment for moment, _ in capped(events, None)] == [0, 40, 93_000]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 8), st.text("ab😀\n\r", max_size=4)), max_size=12))
@settings(max_examples=60)
def test_texts_follow_edits_at_any_offsets(edits):
    texts, text = Texts(RecordedSession(Header(v=1), ())), "one😀\ntwo\r\nthree"
    events = [replace(OPENED, text=text)]
    texts.apply(events[0])
    for start, length, new in edits:
        start = min(start, len(text))
        end = min(start + length, len(text))
        if "\r" in text[max(0, start - 1) : end + 1] or "\r" in new:
            continue  # half of a line break has no position
        snapshot = texts.documents[0].snapshot()
        place = [*snapshot.position(start, "utf-16"), *snapshot.position(end, "utf-16")]
        events.append(changed(ver=len(events) + 1, c=[[*place, new]]))
        assert texts.apply(events[-1]) == [(start, end, new)]
        text = text[:start] + new + text[end:]
        assert texts.documents[0].text == text
    check(ended(Header(v=1), events))


def test_committed_sessions_check_and_stay_small():
    paths = sorted(COMMITTED.glob("*.jsonl"))
    assert {read(path).header.source for path in paths} == {"git", "neovim-0.12"}
    assert sum(path.stat().st_size for path in COMMITTED.iterdir()) <= LARGEST
