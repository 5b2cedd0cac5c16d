"""Owners take turns on a thread, however much each has for it."""

from threading import Event

import pytest

from mercury_engine.chat.fair_thread import FairThread


def order(*owners, cancelled=()):
    """In which order the work of these owners is done, which all comes while the thread is busy."""
    thread, go, done = FairThread("test"), Event(), []
    busy = thread.submit("busy", lambda: go.wait(60))
    futures = [thread.submit(owner[0], lambda owner=owner: done.append(owner)) for owner in owners]
    for number in cancelled:
        futures[number].cancel()
    go.set()
    for future in (busy, *futures):
        if not future.cancelled():
            future.result(60)
    return " ".join(done)


def test_owner_with_much_work_holds_up_nobody_for_more_than_one_piece():
    assert order("a1", "a2", "a3", "b1", "c1", "b2") == "a1 b1 c1 a2 b2 a3"


def test_cancelled_work_is_left_out():
    assert order("a1", "a2", "b1", cancelled=[0]) == "b1 a2"


def test_error_is_the_owners_and_the_thread_goes_on():
    thread = FairThread("test")
    failing = thread.submit("a", lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failing.result(60)
    assert thread.submit("a", lambda: 5).result(60) == 5
