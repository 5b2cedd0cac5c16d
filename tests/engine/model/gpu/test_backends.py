"""The choice of backends, by a clock that runs as the test says."""

import pytest

pytest.importorskip("triton")

from mercury_engine.model.gpu.backends import CHUNK, KEYSTROKE, chosen_backends
from mercury_engine.model.gpu.step import Backends

OURS, THEIRS = Backends("triton", "triton"), Backends("torch", "torch")
MIXED = Backends("torch", "triton")


def chosen(seconds):
    """`seconds` of each backend for so many rows; what is not named cannot be computed."""
    asked = []

    def timed(backends, rows, clock):
        asked.append((backends, rows))
        started = clock()
        if (backends, rows) not in seconds:
            raise ImportError("no such backend")
        return clock() - started + seconds[backends, rows]

    return chosen_backends(timed, lambda: 0.0), asked


def test_fastest_backend_is_chosen_for_short_and_long_passes():
    every = {(backends, rows): 9.0 for backends in (OURS, THEIRS, MIXED) for rows in (KEYSTROKE, CHUNK)}
    found, asked = chosen(every | {(OURS, KEYSTROKE): 1.0, (MIXED, CHUNK): 2.0})
    assert found == {KEYSTROKE: OURS, CHUNK: MIXED}
    assert len(asked) == 8


def test_among_equals_ours_is_chosen():
    assert chosen({(backends, rows): 1.0 for backends in (THEIRS, OURS) for rows in (KEYSTROKE, CHUNK)})[0] == {
        KEYSTROKE: OURS,
        CHUNK: OURS,
    }


def test_backend_that_cannot_compute_is_not_chosen_and_is_logged(caplog):
    assert chosen({(THEIRS, KEYSTROKE): 5.0, (THEIRS, CHUNK): 5.0})[0] == {KEYSTROKE: THEIRS, CHUNK: THEIRS}
    assert len(caplog.records) == 6
    assert "triton products and torch attention cannot be computed here" in caplog.text
    assert "no such backend" in caplog.text


def test_lack_of_any_backend_is_an_error():
    with pytest.raises(RuntimeError, match="with Triton or torch"):
        chosen({})
