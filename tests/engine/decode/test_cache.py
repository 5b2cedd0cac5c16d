"""What is encoded once is not encoded again, whatever the user does in between; and nothing changes by it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.decode.cache import ANSWERS, LIVE_SECONDS, Answered, Session, Sessions
from mercury_engine.decode.canvas import fuse
from mercury_engine.tokens.prefix import HintedPrefix, common_prefix
from tests.engine.tiny import random_runtime


def encode(session, ids, positions=None):
    """Bring the session to these rows; the logits of the last one, and how many were encoded."""
    runtime = random_runtime()
    trail = HintedPrefix.without_hints(ids, range(len(ids)) if positions is None else positions)
    cached = session.align(trail)
    fused = fuse(cached, trail, len(ids) - cached - 1)
    forward = runtime.forward(fused.rows, session.cache)
    session.keep(forward, trail)
    return forward.logits_WV[0], len(ids) - cached


def new_session():
    return Session(random_runtime().cache())


def check(sequence, encoded):
    """How many rows each of a sequence of rows takes to encode."""
    session = new_session()
    assert [encode(session, ids)[1] for ids in sequence] == encoded


def test_typing_encodes_what_was_typed():
    check([[70, 71, 72], [70, 71, 72, 73], [70, 71, 72, 73, 74, 75]], [3, 1, 2])


def test_a_change_encodes_from_there_on():
    check([[70, 71, 72, 73], [70, 99, 72, 73], [70, 99, 72]], [4, 3, 1])


def test_the_same_row_again_encodes_its_last_token():
    check([[70, 71, 72], [70, 71, 72]], [3, 1])


def test_the_same_tokens_elsewhere_are_other_rows():
    session = new_session()
    encode(session, [70, 71, 72], [0, 1, 2])
    assert encode(session, [70, 71, 72], [0, 65, 66])[1] == 2


rows = st.lists(st.sampled_from([70, 71, 72]), min_size=1, max_size=12)


@settings(deadline=None, max_examples=40)
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
    kept = Sessions(random_runtime().cache, memory * size_of_one(), most * size_of_one(), clock=clock)
    for client, place in asked.split():
        if client == "-":
            clock.now += LIVE_SECONDS + 1
        else:
            encode(kept.open(client, place), [70] * 10)
            kept.trim()
    assert kept.crowded == bool(kept.lost)
    clock.now += LIVE_SECONDS
    assert not kept.crowded, "what was amiss is over"
    names = dict.fromkeys(name for name in asked.split() if name[0] != "-")
    return " ".join(name for name in sorted(names) if kept.open(*name).cache.length), kept.lost


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


def test_a_client_that_loses_its_place_is_counted_and_the_remedy_is_said_once(caplog):
    assert kept_after("a1 b1 c1 a1", memory=1, most=2) == ("a1 c1", 2)
    (record,) = caplog.records
    assert record.message.startswith("3 clients do not fit 0 MiB of keys and values")
    assert record.message.endswith("raise engine.memory_mb")


def size_of_one():
    session = new_session()
    encode(session, [70] * 10)
    return session.cache.bytes


@pytest.mark.parametrize(("one", "other", "length"), [("abc", "abd", 2), ("ab", "abc", 2), ("", "a", 0), ("b", "a", 0)])
def test_common_prefix(one, other, length):
    arrays = [np.array(list(text.encode()), np.int32) for text in (one, other)]
    assert common_prefix([arrays[0]], [arrays[1]]) == length


def remembering(*answers):
    session = new_session()
    for before, text in answers:
        session.remember([Answered(before, text, True)])
    return [(answered.before, answered.text) for answered in session.answered]


def test_the_newest_answers_are_remembered_one_at_each_place():
    assert remembering(("a", "1"), ("b", "2"), ("a", "3")) == [("a", "3"), ("b", "2")]
    assert len(remembering(*((str(n), "x") for n in range(ANSWERS + 3)))) == ANSWERS


def test_an_answer_that_was_cancelled_before_it_began_hides_none():
    assert remembering(("a", "1"), ("a", "")) == [("a", "1")]
