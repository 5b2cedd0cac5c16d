"""A model's own probabilities, corrected by what the user takes: never upside down, and never for ever."""

import random
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_ls.completion import calibration
from mercury_ls.completion.calibration import AS_GIVEN, Outcome, fitted, log_odds, logistic

OUTCOMES = st.lists(st.builds(Outcome, st.floats(0.0, 1.0), st.booleans(), st.floats(0.0, 90.0)), max_size=40)
PROBABILITIES = [0.05 * step for step in range(1, 20)]
BAR = 0.25


@given(st.floats(0.0, 1.0))
def test_without_outcomes_a_model_is_believed(probability):
    assert fitted([]) == AS_GIVEN
    assert fitted([])(probability) == probability


@given(OUTCOMES)
def test_what_is_likelier_stays_likelier(outcomes):
    correct = fitted(outcomes)
    found = [correct(each) for each in PROBABILITIES]
    assert found == sorted(found)
    assert len(set(found)) == len(found)
    assert all(0.0 < each < 1.0 for each in found)


@given(OUTCOMES, st.floats(0.05, 0.95))
def test_taking_one_makes_the_next_likelier_and_refusing_it_less_likely(outcomes, probability):
    before = [Outcome(each.p_accept, each.taken) for each in outcomes[:8]]
    taken, refused = (fitted([*before, Outcome(probability, is_taken)])(probability) for is_taken in (True, False))
    assert taken > refused


@pytest.mark.parametrize("refused", [5, 30, 100])
def test_what_was_refused_comes_back_with_time(refused):
    def after(days: float) -> float:
        return fitted([Outcome(0.5, False, days)] * refused)(0.5)

    chances = [after(days) for days in (0, 2, 7, 30, 60)]
    assert chances == sorted(chances)
    assert chances[3] > BAR
    assert chances[4] == pytest.approx(0.5, abs=0.01)


def test_a_few_refusals_silence_nothing_that_the_model_is_rather_sure_of():
    assert fitted([Outcome(0.45, False)] * 5)(0.45) > BAR


@pytest.mark.parametrize(("slope", "shift"), [(1.0, 0.0), (1.0, -1.5), (1.0, 1.5), (2.0, 0.5), (0.5, -0.5)])
def test_it_converges_on_what_a_user_does(slope, shift):
    """The error of the corrected probabilities of 200 suggestions, averaged over ten users."""
    numbers = random.Random(1)
    errors = []
    for _ in range(10):
        given = [numbers.uniform(0.1, 0.6) for _ in range(200)]
        outcomes = [Outcome(p, numbers.random() < logistic(slope * log_odds(p) + shift)) for p in given]
        correct = fitted(outcomes)
        errors += [abs(correct(p) - logistic(slope * log_odds(p) + shift)) for p in (0.15, 0.25, 0.35, 0.45, 0.55)]
    assert sum(errors) / len(errors) < 0.07


def test_who_refuses_nearly_all_still_sees_some_every_day():
    """Only what is shown teaches anything: a user who takes one in thirty, sixty chances a day for three weeks."""
    numbers = random.Random(2)
    seen: list[tuple[float, bool, int]] = []
    shown = []
    for day in range(21):
        correct = fitted([Outcome(p, taken, day - when) for p, taken, when in seen])
        some = [p for p in (numbers.uniform(0.1, 0.6) for _ in range(60)) if correct(p) >= BAR]
        shown.append(len(some))
        seen += [(p, numbers.random() < 1 / 30, day) for p in some]
    assert shown[0] > 30
    assert max(shown[7:]) < 20
    assert sum(shown[7:]) > 7


@given(OUTCOMES)
def test_the_fit_is_where_the_evidence_and_the_doubt_balance(outcomes):
    """No neighbour is likelier: the reference is the penalized likelihood itself."""
    best = fitted(outcomes)

    def cost(slope: float, shift: float) -> float:
        prior = calibration.PRIOR_SLOPE * (slope - 1) ** 2 / 2 + calibration.PRIOR_SHIFT * shift**2 / 2
        for each, weight in calibration.weighted(outcomes):
            chance = logistic(slope * log_odds(each.p_accept) + shift)
            prior -= weight * log(chance if each.taken else 1 - chance)
        return prior

    least = cost(best.slope, best.shift)
    around = [(best.slope + a, best.shift + b) for a in (-0.05, 0, 0.05) for b in (-0.05, 0, 0.05)]
    assert all(cost(*each) >= least - 1e-6 for each in around if each[0] >= calibration.FLATTEST)
