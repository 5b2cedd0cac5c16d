"""One judge of what is shown: sensible from the first hour, taught by what is kept, never upside down or for ever."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mercury_engine.api import Draft
from mercury_ls.completion import judge as module
from mercury_ls.completion.judge import UNTAUGHT, Evidence, Judge, Outcome, features, fitted, level, log_odds, logistic

BAR = 0.25
PROBABILITIES = st.floats(0.02, 0.98)
LOSSES = st.lists(st.floats(0.0, 4.0), max_size=8)


@st.composite
def evidences(draw: st.DrawFn) -> Evidence:
    losses = draw(LOSSES)
    return Evidence(
        draw(PROBABILITIES),
        calibrated=draw(st.booleans()),
        tokens=len(losses),
        total=-sum(losses),
        least=-max(losses, default=0.0),
        characters=draw(st.integers(0, 2000)),
        lines=draw(st.integers(1, 20)),
        complete=draw(st.booleans()),
        missed=draw(st.booleans()),
    )


OUTCOMES = st.lists(st.builds(Outcome, evidences(), st.booleans(), st.booleans(), st.floats(0.0, 90.0)), max_size=25)
BELIEVED_LESS = Judge(calibrated=False)
PLAIN = Evidence(0.35, characters=24)
CONSTANT = Evidence(0.35, tokens=10, total=-1.2, least=-0.12, characters=40)
CALIBRATED = Evidence(0.4, calibrated=True, tokens=10, total=-1.2, least=-0.5, characters=40)


@given(evidences())
def test_calibrated_model_is_believed_to_the_letter_at_first(evidence):
    assert UNTAUGHT.chance(replace(evidence, calibrated=True)) == evidence.p_accept
    assert fitted([]) == UNTAUGHT
    assert UNTAUGHT.chance(replace(evidence, p_accept=0.0)) == 0.0


def test_evidence_of_answer_is_numeric():
    filled = Draft(1, "a\nb", (0.5, 1.0, 0.0), p_accept=0.2, complete=True)
    evidence = UNTAUGHT.evidence(filled, missed=True)
    assert evidence == Evidence(0.2, True, 3, -14.509, -13.816, 3, 2, True, True)
    assert BELIEVED_LESS.evidence(replace(filled, confidence=()), text="b") == Evidence(0.2, characters=1)


@pytest.mark.parametrize(("probability", "is_shown"), [(0.95, True), (0.6, True), (0.3, False), (0.05, False)])
def test_single_token_is_judged_by_its_probability(probability, is_shown):
    filled = Draft(1, "name", (probability,), p_accept=0.1, complete=True)
    assert (BELIEVED_LESS.chance(BELIEVED_LESS.evidence(filled)) >= BAR) is is_shown


@given(OUTCOMES, evidences(), PROBABILITIES, st.floats(0.01, 4.0))
def test_likelier_answer_stays_likelier(outcomes, evidence, probability, more):
    judge = fitted(outcomes)
    words = sorted([evidence.p_accept, probability])
    chances = [judge.chance(replace(evidence, calibrated=True, p_accept=word)) for word in words]
    assert chances == sorted(chances)
    surer = replace(evidence, calibrated=False, tokens=evidence.tokens + 1)
    less_sure = replace(surer, total=surer.total - more, least=min(surer.least, -more))
    assert judge.chance(less_sure) <= judge.chance(surer) + 1e-12


@given(OUTCOMES, evidences())
def test_keeping_one_makes_the_next_likelier_and_refusing_it_less_likely(outcomes, evidence):
    kept, missed = (fitted([*outcomes[:8], Outcome(evidence, is_kept)]).chance(evidence) for is_kept in (True, False))
    assert kept > missed


@given(OUTCOMES)
def test_fit_is_where_evidence_and_doubt_balance(outcomes):
    """No neighbour within the bounds is likelier: the reference is the penalized likelihood itself."""
    best = fitted(outcomes).corrections or (0.0,) * len(module.PRECISIONS)

    def cost(corrections: tuple[float, ...]) -> float:
        total = sum(p * c * c / 2 for p, c in zip(module.PRECISIONS, corrections, strict=True))
        for outcome, weight in module.weighted(outcomes):
            score = level(outcome.evidence) + module.inner(corrections, features(outcome.evidence))
            total -= weight * math.log(logistic(score) if outcome.kept else logistic(-score))
        return total

    least = cost(best)
    for at in range(len(best)):
        for step in (-0.05, 0.05):
            other = [*best[:at], best[at] + step, *best[at + 1 :]]
            if module.LOWEST[at] <= other[at] <= module.HIGHEST[at]:
                assert cost(tuple(other)) >= least - 1e-3


@given(OUTCOMES, st.floats(0.05, 0.9), st.booleans())
def test_engine_is_asked_for_what_the_judge_will_let_through(outcomes, bar, missed):
    judge = replace(fitted(outcomes), fitted=True)
    word = judge.word_for(bar, missed=missed)
    evidence = Evidence(word, calibrated=True, characters=module.USUAL_CHARACTERS, complete=False, missed=missed)
    if 1.0 - module.SUREST < word < module.SUREST:
        assert judge.chance(evidence) == pytest.approx(bar, abs=0.001)
    assert judge.word_for(0.0) == 0.0
    assert UNTAUGHT.word_for(bar) == bar


@pytest.mark.parametrize("evidence", [PLAIN, CONSTANT, CALIBRATED])
def test_ten_ignored_in_a_row_and_three_accepted_by_hand_bring_it_back(evidence):
    ignored = [Outcome(evidence, False)] * 10
    assert fitted(ignored).chance(evidence) < UNTAUGHT.chance(evidence) / 1.5
    assert fitted([*ignored, *[Outcome(evidence, True)] * 3]).chance(evidence) >= BAR


@pytest.mark.parametrize("evidence", [PLAIN, CONSTANT, CALIBRATED])
def test_few_refusals_silence_nothing(evidence):
    assert fitted([Outcome(evidence, False)] * 3).chance(evidence) > BAR


def test_unseen_suggestion_counts_less_against_and_as_much_for():
    unseen, seen = (fitted([Outcome(PLAIN, False, shown)] * 5).chance(PLAIN) for shown in (False, True))
    assert seen < unseen < UNTAUGHT.chance(PLAIN)
    assert fitted([Outcome(PLAIN, True, False)]) == fitted([Outcome(PLAIN, True, True)])


@pytest.mark.parametrize("refused", [5, 30, 100])
def test_rejected_suggestion_comes_back_with_time(refused):
    def after(days: float) -> float:
        return fitted([Outcome(PLAIN, False, days=days)] * refused).chance(PLAIN)

    chances = [after(days) for days in (0, 2, 7, 30, 60)]
    assert chances == sorted(chances)
    assert chances[3] > BAR
    assert chances[4] == pytest.approx(UNTAUGHT.chance(PLAIN), abs=0.06)


def test_place_of_the_last_miss_learns_by_itself():
    again = replace(PLAIN, missed=True)
    numbers = random.Random(4)
    outcomes = [Outcome(again, numbers.random() < 0.05) for _ in range(150)]
    outcomes += [Outcome(PLAIN, numbers.random() < 0.4) for _ in range(50)]
    numbers.shuffle(outcomes)
    judge = fitted(outcomes)
    assert judge.chance(PLAIN) > BAR > 0.15 > judge.chance(again)
    flooded = fitted([*outcomes, *[Outcome(again, False, shown=False)] * 1000])
    assert flooded.chance(PLAIN) > BAR


@pytest.mark.parametrize(("slope", "shift"), [(1.0, 0.0), (1.0, -1.5), (1.0, 1.5), (2.0, 0.5), (0.5, -0.5)])
def test_judge_converges_on_what_a_user_does(slope, shift):
    """The error of the probabilities of a calibrated model after 200 answers, averaged over ten users."""
    numbers = random.Random(1)
    errors = []
    for _ in range(10):
        words = [Evidence(numbers.uniform(0.1, 0.6), calibrated=True, characters=24) for _ in range(200)]
        truth = [logistic(slope * log_odds(word.p_accept) + shift) for word in words]
        judge = fitted([Outcome(word, numbers.random() < chance) for word, chance in zip(words, truth, strict=True)])
        errors += [abs(judge.chance(word) - chance) for word, chance in zip(words[:20], truth, strict=False)]
    assert sum(errors) / len(errors) < 0.07
