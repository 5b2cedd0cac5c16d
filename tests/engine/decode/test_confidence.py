"""How likely an answer is to be accepted: monotone, documented, read from beside the weights."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_engine.decode.confidence import (
    SHARED,
    UNCALIBRATED,
    Calibration,
    confident,
    likely_start,
    read_calibration,
)
from mercury_engine.model.config import CALIBRATION_FILE, ModelError


def check(probabilities, expected, complete=True):
    assert Calibration().p_accept(probabilities, complete=complete) == pytest.approx(expected, abs=0.05)


def test_defaults_show_a_sure_line_and_not_an_unsure_one():
    check([0.95] * 9, 0.84)
    check([0.7] * 9, 0.19)
    check([0.95] * 8 + [0.01], 0.01)


def test_uncalibrated_model_is_judged_by_its_mean_log_probability():
    def likely(mean, count=5):
        return UNCALIBRATED.p_accept([math.exp(mean)] * count, complete=True)

    assert likely(-0.1) == pytest.approx(0.25)
    assert likely(-0.1, count=50) == pytest.approx(0.25)
    assert likely(-0.099) > 0.25 > likely(-0.101)


def test_start_is_of_whole_words_and_saves_most():
    def start(text, *probabilities, bar=0.75, complete=True):
        ends = [len("".join(text[: count + 1]).encode()) for count in range(len(text))]
        filled = likely_start(
            "".join(text), [*zip(ends, probabilities, strict=True)], SHARED, bar=bar, complete=complete
        )
        assert len(filled.confidence) == sum(end <= len(filled.text.encode()) for end in ends)
        return filled.text

    assert start(["self", ".", "wid", "th"], 0.99, 0.99, 0.99, 0.99) == "self.width"
    assert start(["self", ".", "wid", "th"], 0.99, 0.99, 0.3, 0.99) == "self."
    assert start(["self", ".", "wid", "th"], 0.99, 0.99, 0.99, 0.3) == "self.", "no word is cut"
    assert start(["sé", "lf", " = 1"], 0.99, 0.3, 0.99) == "sélf = 1", "nothing is likely: all of it"
    assert start(["é", " ", "= 1"], 0.99, 0.99, 0.2) == "é "
    assert start(["self", ".", "wid", "th"], 0.99, 0.99, 0.3, 0.99, bar=0) == "self.width"


def test_empty_answer_has_nothing_to_accept():
    check([], 0.0)


def test_surer_shorter_and_whole_answers_are_likelier():
    def likely(probabilities, complete=True):
        return Calibration().p_accept(probabilities, complete=complete)

    assert likely([0.9] * 5) > likely([0.8] * 5)
    assert likely([0.9] * 5) > likely([0.9] * 30)
    assert likely([0.9] * 5) > likely([0.9] * 5, complete=False)
    assert 0 <= likely([0.0] * 5) < 0.001


QUICKSILVER = Calibration(2.3875, -0.3066, 2.1682, -0.1109, 0.8827, 0.8122)
JUDGES = [Calibration(), QUICKSILVER, UNCALIBRATED, Calibration(mean=2.0, length=0.3, complete=-1.0)]
PROBABILITIES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(st.sampled_from(JUDGES), PROBABILITIES, st.integers(1, 12), st.booleans())
def test_start_at_best_is_as_likely_as_any_answer_to_come(judge, probabilities, count, complete):
    at_best = judge.at_best(probabilities[:count], 12)
    assert judge.p_accept(probabilities, complete=complete) <= at_best + 1e-9


def test_start_at_best_goes_on_surely_to_the_end():
    assert QUICKSILVER.at_best([0.4], 32) == pytest.approx(QUICKSILVER.p_accept([0.4], complete=True))
    assert QUICKSILVER.at_best([0.4], 32) < 0.7 < QUICKSILVER.at_best([0.45], 32)
    by_mean = Calibration(mean=2.0)
    assert by_mean.at_best([0.4], 3) == pytest.approx(by_mean.p_accept([0.4, 1.0, 1.0], complete=True))


@pytest.mark.parametrize("judge", [Calibration(least=-1.0), Calibration(mean=-2.0)])
def test_start_has_no_limit_where_worse_tokens_could_help(judge):
    assert judge.at_best([0.01], 32) == 1.0
    assert Calibration().at_best([], 32) == 1.0


def test_confident_beginning_stops_before_product_falls_under_bar():
    assert confident([0.9, 0.9, 0.3, 0.9], 0.5) == 2
    assert confident([0.9, 0.9], 0.5) == 2
    assert confident([0.1], 0.5) == 0
    assert confident([0.1, 0.1], 0.0) == 2


def test_coefficients_come_from_beside_the_weights(tmp_path):
    assert read_calibration(tmp_path) is None
    (tmp_path / CALIBRATION_FILE).write_text('{"bias": -1.5, "mean": 2.0}')
    assert read_calibration(tmp_path) == Calibration(bias=-1.5, mean=2.0)


@pytest.mark.parametrize("text", ['{"bias": "high"}', '{"slope": 1}', "{"])
def test_bad_file_is_named(tmp_path, text):
    (tmp_path / CALIBRATION_FILE).write_text(text)
    with pytest.raises(ModelError, match=rf"{CALIBRATION_FILE}: .*; correct the file or remove it"):
        read_calibration(tmp_path)
