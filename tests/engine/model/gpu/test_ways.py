"""The choice between ways of computing, by a clock that runs as the test says."""

import pytest

pytest.importorskip("triton")

from mercury_engine.model.gpu.step import Ways
from mercury_engine.model.gpu.ways import CHUNK, KEYSTROKE, chosen_ways

OURS, THEIRS = Ways("triton", "triton"), Ways("torch", "torch")
MIXED = Ways("torch", "triton")


def chosen(seconds):
    """`seconds` of each way for so many rows; what is not named cannot be computed."""
    asked = []

    def timed(ways, rows, clock):
        asked.append((ways, rows))
        started = clock()
        if (ways, rows) not in seconds:
            raise ImportError("no such way")
        return clock() - started + seconds[ways, rows]

    return chosen_ways(timed, lambda: 0.0), asked


def test_the_fastest_way_is_chosen_for_short_passes_and_for_long_ones():
    every = {(ways, rows): 9.0 for ways in (OURS, THEIRS, MIXED) for rows in (KEYSTROKE, CHUNK)}
    found, asked = chosen(every | {(OURS, KEYSTROKE): 1.0, (MIXED, CHUNK): 2.0})
    assert found == {KEYSTROKE: OURS, CHUNK: MIXED}
    assert len(asked) == 8


def test_among_equals_ours_is_chosen():
    assert chosen({(ways, rows): 1.0 for ways in (THEIRS, OURS) for rows in (KEYSTROKE, CHUNK)})[0] == {
        KEYSTROKE: OURS,
        CHUNK: OURS,
    }


def test_what_cannot_be_computed_is_not_chosen_and_logged(caplog):
    assert chosen({(THEIRS, KEYSTROKE): 5.0, (THEIRS, CHUNK): 5.0})[0] == {KEYSTROKE: THEIRS, CHUNK: THEIRS}
    assert len(caplog.records) == 6
    assert "triton products and torch attention cannot be computed here" in caplog.text
    assert "no such way" in caplog.text


def test_no_way_at_all_is_an_error():
    with pytest.raises(RuntimeError, match="neither by Triton nor by torch"):
        chosen({})
