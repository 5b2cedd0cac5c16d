"""How likely the user is to keep an answer: what its model says of it, corrected by what became of earlier ones."""

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct

from mercury_engine.api import Draft, Rewritten

MOST_OUTCOMES = 300
"""Of answers after a miss, and of others: older ones hardly count. On a line that a model does not understand it may be
wrong at every key, and that must not outnumber what it says first."""
HALF_LIFE = 150
"""Answers after which an outcome counts half."""
HALF_LIFE_DAYS = 7.0
"""Days after which it does."""
UNSEEN_MISS = 0.7
"""What it weighs that the user typed something else than what was not on the screen: the user might have taken it."""

PLAIN_LEVEL = -0.2
"""The log-odds of a short answer of which nothing else is known."""
SURE_LEVEL, SURPRISE = 1.7, 12.0
"""Those of one whose tokens are certain, and what a mean log probability of -1 takes from them: -0.23 leaves 0.27."""
SMOOTHING_TOKENS, SMOOTHING_LOSS = 3.0, 0.1
"""The mean is taken as if this many tokens of this loss had come before: that of one token says little."""
EXPECTED_LEAST, MOST_LEAST = 1.2, 3.0
"""A token less likely than e to the minus this counts by itself: one wrong name spoils an answer, whatever its mean."""
USUAL_CHARACTERS = 24
LONGER = 0.08
"""What each factor of e in length takes from the log-odds of models that are not calibrated."""
MISSED = 0.5
"""What they lose where the user has just typed something else than the last answer."""

Vector = tuple[float, float, float, float, float, float, float]
PRECISIONS: Vector = (1.5, 6.0, 4.0, 6.0, 3.0, 3.0, 2.0)
"""How firmly each coefficient is believed to be what it is for a new model."""
LOWEST: Vector = (-9.0, -0.9, -3.0, -2.0, -4.0, -4.0, -4.0)
HIGHEST: Vector = (9.0, 3.0, 1.0, 2.0, 4.0, 4.0, 4.0)
"""What is likelier, and surer of each token, stays likelier."""
SWEEPS = 40
LONGEST_STEP = 1.0
SMALLEST_STEP = 1e-4
SUREST = 0.99
SMALLEST_PROBABILITY = 1e-6


class Evidence(Struct, frozen=True, omit_defaults=True):
    """All that is known of an answer before anybody sees it, as numbers.

    `p_accept` is the engine's own word, which is worth more if it is `calibrated`. `tokens` are those of known
    probability, `total` the sum of their log probabilities and `least` the lowest. `missed` says that the user has just
    typed something else than the answer before, on the same line.
    """

    p_accept: float
    calibrated: bool = False
    tokens: int = 0
    total: float = 0.0
    least: float = 0.0
    characters: int = 0
    lines: int = 1
    complete: bool = True
    missed: bool = False


class Outcome(Struct, frozen=True):
    """Whether the user kept an answer, had `shown` it or not, and how many days ago that was."""

    evidence: Evidence
    kept: bool
    shown: bool = True
    days: float = 0.0

    @property
    def weight(self) -> float:
        age = 0.5 ** (max(self.days, 0.0) / HALF_LIFE_DAYS)
        return age if self.shown or self.kept else UNSEEN_MISS * age


class Judge(Struct, frozen=True):
    """Of the answers of one model, whose own word is `calibrated` or not, or `fitted` where it knows the probabilities
    of tokens. `corrections` are added to the coefficients of a new model.

    >>> UNTAUGHT.chance(Evidence(0.4, calibrated=True))
    0.4
    """

    corrections: tuple[float, ...] | None = None
    calibrated: bool = True
    fitted: bool = False

    def evidence(self, filled: Draft | Rewritten, *, text: str | None = None, missed: bool = False) -> Evidence:
        """`text` is what is inserted, if that is not all of the answer."""
        inserted = filled.text if text is None else text
        logs = [math.log(max(probability, SMALLEST_PROBABILITY)) for probability in filled.confidence]
        return Evidence(
            p_accept=filled.p_accept,
            calibrated=self.calibrated or (self.fitted and bool(logs)),
            tokens=len(logs),
            total=round(sum(logs), 3),
            least=round(min(logs, default=0.0), 3),
            characters=len(inserted),
            lines=inserted.count("\n") + 1,
            complete=filled.complete,
            missed=missed,
        )

    def chance(self, evidence: Evidence) -> float:
        """The probability that the user keeps it; none for an answer that changes nothing."""
        if evidence.p_accept <= 0.0:
            return 0.0
        if self.corrections is None and evidence.calibrated:
            return evidence.p_accept
        return logistic(level(evidence) + inner(self.corrections or (), features(evidence)))

    def word_for(self, chance: float, *, missed: bool = False) -> float:
        """What the engine has to say of the start of an answer, of usual length, that is this likely to be kept."""
        if chance <= 0.0 or self.corrections is None or not (self.calibrated or self.fitted):
            return chance
        lower, steeper, _, _, _, is_open, after_miss = self.corrections
        return logistic((log_odds(chance) - lower - is_open - after_miss * missed) / (1.0 + steeper))


UNTAUGHT = Judge()


def level(evidence: Evidence) -> float:
    """The log-odds for a model of which no outcomes are known."""
    if evidence.calibrated:
        return log_odds(evidence.p_accept)
    _, word, least, length, *_ = features(evidence)
    start = word if evidence.tokens else PLAIN_LEVEL
    return start - least - LONGER * length - MISSED * evidence.missed


def features(evidence: Evidence) -> Vector:
    """One for the level, then the model's word, its worst token, length, several lines, an open end, a miss before."""
    length = math.log(max(evidence.characters, 1) / USUAL_CHARACTERS)
    several, is_open, missed = evidence.lines > 1, not evidence.complete, evidence.missed
    if evidence.calibrated:
        word, least = log_odds(evidence.p_accept), 0.0
    elif evidence.tokens:
        loss = SMOOTHING_TOKENS * SMOOTHING_LOSS - evidence.total
        word = SURE_LEVEL - SURPRISE * loss / (SMOOTHING_TOKENS + evidence.tokens)
        least = min(max(-evidence.least - EXPECTED_LEAST, 0.0), MOST_LEAST)
    else:
        word = least = 0.0
    return 1.0, word, least, length, float(several), float(is_open), float(missed)


def fitted(outcomes: Sequence[Outcome]) -> Judge:
    """The likeliest coefficients, newest outcome last: logistic regression with a normal prior around no corrections.

    Newton's method for one coefficient after the other, each within its bounds: the function is convex.
    """
    rows = list(weighted(outcomes))
    if not rows:
        return UNTAUGHT
    corrections = [0.0] * len(PRECISIONS)
    scores = [level(outcome.evidence) for outcome, _ in rows]
    columns = list(zip(*(features(outcome.evidence) for outcome, _ in rows), strict=True))
    used = [[row for row, value in enumerate(column) if value] for column in columns]
    for _ in range(SWEEPS):
        longest = 0.0
        for at, column in enumerate(columns):
            slope, curvature = PRECISIONS[at] * corrections[at], PRECISIONS[at]
            for row in used[at]:
                outcome, weight = rows[row]
                value, chance = column[row], logistic(scores[row])
                slope += weight * (chance - outcome.kept) * value
                curvature += weight * chance * (1.0 - chance) * value * value
            target = corrections[at] - min(max(slope / curvature, -LONGEST_STEP), LONGEST_STEP)
            step = min(max(target, LOWEST[at]), HIGHEST[at]) - corrections[at]
            corrections[at] += step
            for row in used[at]:
                scores[row] += step * column[row]
            longest = max(longest, abs(step))
        if longest < SMALLEST_STEP:
            break
    return Judge(tuple(corrections))


def weighted(outcomes: Sequence[Outcome]) -> Iterable[tuple[Outcome, float]]:
    for missed in (False, True):
        alike = [outcome for outcome in outcomes if outcome.evidence.missed is missed]
        for age, outcome in enumerate(reversed(alike[-MOST_OUTCOMES:])):
            yield outcome, outcome.weight * 0.5 ** (age / HALF_LIFE)


def inner(first: Sequence[float], second: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(first, second, strict=False))


def log_odds(probability: float) -> float:
    inside = min(max(probability, 1.0 - SUREST), SUREST)
    return math.log(inside / (1.0 - inside))


def logistic(score: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(min(score, 30.0), -30.0)))
