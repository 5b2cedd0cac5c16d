"""What is encoded once is not encoded again, whatever the user does in between; and nothing changes by it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.api import Edit
from mercury_engine.decode.canvas import fuse
from mercury_engine.decode.sessions import (
    LAYOUTS,
    LIVE_SECONDS,
    PAST_ANSWERS,
    EngineSession,
    Layout,
    PastAnswer,
    Place,
    SessionPool,
    follow,
)
from mercury_engine.tokens.layout import Budget, Frozen
from mercury_engine.tokens.prefix import common_prefix
from tests.engine.tiny import random_runtime


def encode(session, ids):
    """Bring the session to these rows; the logits of the last one, and how many were encoded."""
    runtime, ids = random_runtime(), np.array(ids)
    cached = session.align(ids)
    fused = fuse(cached, ids, len(ids) - cached - 1)
    forward = runtime.forward(fused.rows, session.cache)
    session.keep(forward, ids)
    return forward.logits_WV[0], len(ids) - cached


def new_session():
    return EngineSession(random_runtime().cache())


def check(sequence, encoded):
    """How many rows each of a sequence of rows takes to encode."""
    session = new_session()
    assert [encode(session, ids)[1] for ids in sequence] == encoded


def test_rows_are_encoded_from_their_first_change_on():
    check([[70, 71, 72], [70, 71, 72, 73], [70, 71, 72, 73, 74, 75]], [3, 1, 2])
    check([[70, 71, 72, 73], [70, 99, 72, 73], [70, 99, 72]], [4, 3, 1])
    check([[70, 71, 72], [70, 71, 72]], [3, 1])


rows = st.lists(st.sampled_from([70, 71, 72]), min_size=1, max_size=12)


@settings(max_examples=40)
@given(st.lists(rows, min_size=1, max_size=6))
def test_cached_equals_uncached_after_any_edits(sequence):
    session = new_session()
    for ids in sequence:
        cached, _ = encode(session, ids)
        fresh, _ = encode(new_session(), ids)
        np.testing.assert_allclose(cached, fresh, rtol=0, atol=1e-4)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def kept_after(asked, *, memory, most=9):
    """The places that are still encoded, of clients named by letters at places named by digits; `-1` is a pause of
    more than a minute. Memory counts sessions."""
    clock = Clock()
    kept = SessionPool(random_runtime(), memory * size_of_one(), most * size_of_one(), clock=clock)
    for client, place in asked.split():
        if client == "-":
            clock.now += LIVE_SECONDS + 1
        else:
            encode(kept.open(client, ids_at(client, place)), ids_at(client, place))
            kept.trim()
    assert bool(kept.notes) == bool(kept.lost)
    clock.now += LIVE_SECONDS
    assert not kept.notes, "what was amiss is over"
    names = dict.fromkeys(name for name in asked.split() if name[0] != "-")
    return " ".join(name for name in sorted(names) if not kept.unread(ids_at(*name))), kept.lost


def ids_at(client, place):
    return np.array([ord(client), ord(place)] * 5)


@pytest.mark.parametrize(
    ("asked", "memory", "most", "left"),
    [
        ("a1 a2 a3 a2", 2, 9, "a2 a3"),
        ("a1 a2 a3", 9, 2, "a2 a3"),
        ("a1 a2 b1 b2 c1", 2, 9, "a2 b2 c1"),
        ("a1 b1 c1 -1 d1", 2, 9, "c1 d1"),
        ("a1 a2", 0, 0, "a2"),
    ],
    ids=["the oldest go", "there may be less in all", "nobody's place goes", "who is away has none", "the last stays"],
)
def test_memory_goes_to_where_clients_are_and_then_to_what_was_used_last(asked, memory, most, left):
    assert kept_after(asked, memory=memory, most=most) == (left, 0)


def test_evicted_client_is_counted_and_remedy_is_told_once(caplog):
    assert kept_after("a1 b1 c1 a1", memory=1, most=2) == ("a1 c1", 2)
    (record,) = caplog.records
    assert record.message.startswith("the keys and values of 3 clients do not fit into 0 MiB")
    assert record.message.endswith("raise engine.memory_mb")


def size_of_one():
    session = new_session()
    encode(session, [70] * 10)
    return session.cache.bytes


@pytest.mark.parametrize(("one", "other", "length"), [("abc", "abd", 2), ("ab", "abc", 2), ("", "a", 0), ("b", "a", 0)])
def test_common_prefix(one, other, length):
    arrays = [np.array(list(text.encode()), np.int32) for text in (one, other)]
    assert common_prefix(*arrays) == length


def sessions_used(*rows):
    """For each row, the number of the session that it is read in, and how many of its tokens are unread."""
    pool, seen = SessionPool(random_runtime(), 1 << 20, 1 << 20), []
    for row in rows:
        ids = np.array([ord(letter) for letter in row])
        unread, session = pool.unread(ids), pool.open("a", ids)
        seen += [session] if session not in seen else []
        encode(session, ids)
        yield seen.index(session), unread


def test_row_is_read_where_most_of_it_has_been_read():
    assert list(sessions_used("abcdef", "abcdxy", "abcdef")) == [(0, 6), (0, 2), (0, 2)]
    assert list(sessions_used("abcdef", "uvwxyz", "abcdefg")) == [(0, 6), (1, 6), (0, 1)]


def test_row_that_shares_little_displaces_nothing():
    assert list(sessions_used("abcdef", "abxyz", "abcdef")) == [(0, 6), (1, 5), (0, 0)]


def test_rows_for_edits_are_read_apart():
    pool, ids = SessionPool(random_runtime(), 1 << 20, 1 << 20), np.arange(70, 80)
    completing, editing = pool.open("a", ids), pool.open("a, edits", ids, edits=True)
    encode(editing, ids)
    assert pool.unread(ids) == len(ids)
    encode(completing, ids)
    assert pool.open("a, edits", ids, edits=True) is editing
    assert pool.open("a", ids) is completing


def following(read, now):
    """Whether edits follow those that were read: letters, each on a line of its own."""
    made = [[Edit("a.py", line, "", text) for line, text in enumerate(texts.split())] for texts in (now, read)]
    return follow(*made)


@pytest.mark.parametrize(
    ("read", "now", "follows"),
    [
        ("a b", "a b c d e", True),
        ("a b", "a b c d e f", False),
        ("a b", "a bb", True),
        ("a b c", "b c aa", True),
        ("a b c d e", "d e f g h", True),
        ("a b c d e", "e f g h i", False),
        ("a b", "a", False),
        ("a b c", "a c d", False),
        ("a", "", False),
        ("", "a b c", True),
        ("", "a b c d", False),
    ],
)
def test_edits_are_read_again_when_one_is_undone_or_many_are_new(read, now, follows):
    assert following(read, now) == follows


def test_layouts_that_make_the_same_rows_take_the_place_of_one():
    place, frozen = Place(), Frozen("a.py", (), (), 0)
    edits = [(Edit("b.py", line, "", "b"),) for line in range(LAYOUTS)]
    for layout in (
        Layout(Budget(), frozen, (), ()),
        *(Layout(Budget(context=256), frozen, (), made) for made in edits),
    ):
        place.keep(layout)
    assert [(layout.budget.context, layout.edits) for layout in place.layouts] == [(256, edits[-1]), (2048, ())]


def remembering(*answers):
    place = Place()
    for before, text in answers:
        place.remember(PastAnswer(before, text, True))
    return [(answered.before, answered.text) for answered in place.past_answers]


def test_past_answers_are_the_newest_at_each_place():
    assert remembering(("a", "1"), ("b", "2"), ("a", "3")) == [("a", "3"), ("b", "2")]
    assert len(remembering(*((str(n), "x") for n in range(PAST_ANSWERS + 3)))) == PAST_ANSWERS
    assert remembering(("a", "1"), ("a", "")) == [("a", "1")]


def past(before, text):
    return PastAnswer.of(before, text, complete=True)


@pytest.mark.parametrize(
    ("now", "left"),
    [("x = ", "foo(bar)"), ("x = foo(", "bar)"), ("x = foo(bar)", ""), ("x = fob", None), ("y = ", None)],
)
def test_past_answer_shrinks_by_what_was_typed(now, left):
    assert past("x = ", "foo(bar)").left_to_type(now) == left


def test_past_answer_is_found_again_in_window_that_moved():
    before = "".join(f"line {i}\n" for i in range(100))
    answer = past(before + "x = ", "foo")
    assert answer.left_to_type(before[50:] + "x = f") == "oo"
    assert answer.left_to_type("x = f") is None


@pytest.mark.parametrize(
    ("now", "again"),
    [("x = f", "oo(bar)"), ("x", " = foo(bar)"), ("", "x = foo(bar)"), ("x = fo", None), ("x = g", None), ("y", None)],
)
def test_past_answer_grows_by_what_was_deleted(now, again):
    assert past("x = fo", "o(bar)").deleted_and_left(now) == again


def test_deleting_is_followed_as_long_as_enough_is_left_to_tell_the_place():
    before = "".join(f"line {i}\n" for i in range(100))
    answer = past(before, "foo")
    assert answer.deleted_and_left(before[50:-20]) == before[-20:] + "foo"
    assert answer.deleted_and_left(before[:-101]) is None
