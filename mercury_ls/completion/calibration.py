"""How likely a model's suggestions are to be accepted here: its own probability, corrected by what the user took."""

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct

__all__ = ["AS_GIVEN", "MOST_OUTCOMES", "Correction", "Outcome", "fitted", "log_odds", "logistic"]

MOST_OUTCOMES = 256
"""Older ones hardly count."""
HALF_LIFE = 100
"""Suggestions after which an outcome counts half."""
HALF_LIFE_DAYS = 3.0
"""Days after which it does: a model that was refused until it fell silent is tried again."""
PRIOR_SLOPE, PRIOR_SHIFT = 8.0, 2.0
"""How firmly the model is believed at first: the shift as by eight suggestions of which it was known to be right."""
STEEPEST, FLATTEST = 4.0, 0.25
STEPS = 12
LONGEST_STEP = 1.0
SUREST = 0.99


class Outcome(Struct, frozen=True):
    """The model's own probability of one suggestion that was shown, whether it was taken, and how many days ago."""

    p_accept: float
    taken: bool
    days: float = 0.0


class Correction(Struct, frozen=True):
    """Platt scaling: the log-odds of the probability, times the slope, plus the shift."""

    slope: float = 1.0
    shift: float = 0.0

    def __call__(self, probability: float) -> float:
        if (self.slope, self.shift) == (1.0, 0.0):
            return probability
        return logistic(self.slope * log_odds(probability) + self.shift)


AS_GIVEN = Correction()


def fitted(outcomes: Sequence[Outcome]) -> Correction:
    """The likeliest correction, newest outcome last: logistic regression with a normal prior around no correction.

    Newton's method on a convex function of two numbers. The slope stays positive, so that a likelier suggestion stays
    the likelier one.
    """
    rows = [(log_odds(each.p_accept), float(each.taken), weight) for each, weight in weighted(outcomes)]
    slope, shift = AS_GIVEN.slope, AS_GIVEN.shift
    for _ in range(STEPS if rows else 0):
        gradient = [PRIOR_SLOPE * (slope - 1.0), PRIOR_SHIFT * shift]
        curvature = [PRIOR_SLOPE, 0.0, PRIOR_SHIFT]
        for score, taken, weight in rows:
            chance = logistic(slope * score + shift)
            error, bend = weight * (chance - taken), weight * chance * (1.0 - chance)
            gradient[0] += error * score
            gradient[1] += error
            curvature[0] += bend * score * score
            curvature[1] += bend * score
            curvature[2] += bend
        a, b, c = curvature
        down = (c * gradient[0] - b * gradient[1]) / (a * c - b * b)
        steeper = min(max(slope - bounded(down, LONGEST_STEP), FLATTEST), STEEPEST)
        shift -= bounded((gradient[1] + b * (steeper - slope)) / c, LONGEST_STEP)
        slope = steeper
    return Correction(slope, shift)


def weighted(outcomes: Sequence[Outcome]) -> Iterable[tuple[Outcome, float]]:
    for age, outcome in enumerate(reversed(outcomes[-MOST_OUTCOMES:])):
        yield outcome, 0.5 ** (age / HALF_LIFE + max(outcome.days, 0.0) / HALF_LIFE_DAYS)


def bounded(value: float, most: float) -> float:
    return min(max(value, -most), most)


def log_odds(probability: float) -> float:
    inner = min(max(probability, 1.0 - SUREST), SUREST)
    return math.log(inner / (1.0 - inner))


def logistic(score: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(min(score, 30.0), -30.0)))
