"""How many threads compute."""

import os

import pytest

from mercury_engine.model import threads


@pytest.mark.parametrize(
    ("alone", "together", "expected"),
    [
        pytest.param(1.0, 1.0, 2, id="two cores"),
        pytest.param(1.0, 1.2, 2, id="two cores, one of them busy"),
        pytest.param(1.0, 1.4, 1, id="one core's hyperthreads"),
        pytest.param(1.0, 2.0, 1, id="pinned to one"),
    ],
)
def test_second_thread_has_to_be_worth_it(alone, together, expected):
    assert threads.worthwhile({1: alone, 2: together}.__getitem__) == expected


def test_slow_trial_decides_nothing():
    trials = {1: iter([9.0, *[1.0] * threads.TRIALS]), 2: iter([9.0, *[1.1] * threads.TRIALS])}
    assert threads.worthwhile(lambda count: next(trials[count])) == 2


def test_single_processor_is_not_tried(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    threads.usual_threads.cache_clear()
    assert threads.usual_threads() == 1
    threads.usual_threads.cache_clear()


def test_this_machine_is_tried_quickly():
    threads.usual_threads.cache_clear()
    assert threads.usual_threads() in (1, 2)
