"""What is encoded once is not encoded again, whatever the user does in between; and nothing changes by it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.cache import ANSWERS, Answered, Session, Sessions, common_prefix
from mercury_engine.canvas import fuse
from tests.engine.tiny import random_runtime


def encode(session, ids, positions=None):
    """Bring the session to these rows; the logits of the last one, and how many were encoded."""
    runtime = random_runtime()
    ids = np.array(ids, np.int32)
    positions = np.arange(len(ids), dtype=np.int32) if positions is None else np.array(positions, np.int32)
    cached = session.align(ids, positions)
    fused = fuse(cached, ids[cached:], positions[cached:], len(ids) - cached - 1)
    forward = runtime.forward(fused.rows, session.cache)
    session.keep(forward, ids[cached:], positions[cached:])
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


def sessions(memory):
    return Sessions(random_runtime().cache, memory)


def test_the_sessions_used_last_stay_within_the_memory():
    kept = sessions(2 * size_of_one())
    for key in "abcb":
        encode(kept.open(key), [70] * 10)
        kept.trim()
    assert kept.bytes == 2 * size_of_one()
    assert [kept.open(key).cache.length for key in "abc"] == [0, 10, 10]


def test_a_session_larger_than_the_memory_still_works():
    kept = sessions(1)
    encode(kept.open("a"), [70] * 10)
    kept.trim()
    assert kept.open("a").cache.length == 10
    kept.open("b")
    kept.trim()
    assert len(kept) == 1


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
