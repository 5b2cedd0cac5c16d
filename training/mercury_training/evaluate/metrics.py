"""Scores of an answer, and confidence intervals of such scores."""

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

ORDERS = range(1, 7)
BETA = 2
DRAWS = 1000
Z = 1.959964
"""The quantile of the normal distribution for 95 % confidence intervals."""

Grams = Counter[str]

T = TypeVar("T")


class Interval(Struct, frozen=True):
    """A figure and its confidence interval."""

    value: float
    low: float
    high: float


class Bin(Struct, frozen=True):
    """Predictions of similar confidence: their number, mean confidence, and the share that was right."""

    count: int
    confidence: float
    accuracy: float


def exact(answer: str, truth: str) -> bool:
    """True if equal, apart from blanks at the ends of lines and blank lines at the end."""
    return _trimmed(answer) == _trimmed(truth)


def exact_first_line(answer: str, truth: str) -> bool:
    return answer.partition("\n")[0].rstrip() == truth.partition("\n")[0].rstrip()


def similarity(answer: str, truth: str) -> float:
    """2 · LCS / (a + b) over characters; two empty texts are equal."""
    total = len(answer) + len(truth)
    return 2 * _common_subsequence(answer, truth) / total if total else 1.0


def chrf(answer: str, truth: str) -> float:
    """0 to 100: the F2 score over character 1- to 6-grams without white space (Popović 2015)."""
    return _f_score([(_grams(answer, order), _grams(truth, order)) for order in ORDERS])


def delta_chrf(before: str, answer: str, truth: str) -> float:
    """chrF over the text that two edits of `before` add and remove; 100 if neither changes anything."""
    if "".join(answer.split()) == "".join(truth.split()):
        return 100.0
    return _f_score([_changes(before, answer, truth, order) for order in ORDERS])


def wilson(successes: int, count: int) -> Interval:
    """The share of successes, with Wilson's score interval."""
    if not count:
        return Interval(math.nan, 0.0, 1.0)
    share, weight = successes / count, Z * Z / count
    middle = (share + weight / 2) / (1 + weight)
    reach = Z / (1 + weight) * math.sqrt(share * (1 - share) / count + weight / (4 * count))
    return Interval(share, min(share, max(0.0, middle - reach)), max(share, min(1.0, middle + reach)))


def bootstrap(
    values: Sequence[T],
    statistic: Callable[[Sequence[T]], float],
    *,
    seed: int = 0,
) -> Interval:
    """A statistic of the values, with its percentile bootstrap interval."""
    if not values:
        return Interval(math.nan, math.nan, math.nan)
    draw = random.Random(seed)
    statistics = sorted(statistic(draw.choices(values, k=len(values))) for _ in range(DRAWS))
    return Interval(statistic(values), statistics[int(0.025 * DRAWS)], statistics[int(0.975 * DRAWS)])


def reliability(confidences: Sequence[float], right: Sequence[bool]) -> list[Bin]:
    """Ten bins of equal width, the empty ones left out."""
    members: dict[int, list[tuple[float, bool]]] = {}
    for confidence, correct in zip(confidences, right, strict=True):
        members.setdefault(min(int(confidence * 10), 9), []).append((confidence, correct))
    return [
        Bin(len(values), sum(c for c, _ in values) / len(values), sum(r for _, r in values) / len(values))
        for _, values in sorted(members.items())
    ]


def ece(confidences: Sequence[float], right: Sequence[bool]) -> float:
    """Expected calibration error: the mean difference of confidence and accuracy over all predictions."""
    if not confidences:
        return math.nan
    apart = sum(b.count * abs(b.confidence - b.accuracy) for b in reliability(confidences, right))
    return apart / len(confidences)


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n")


def _common_subsequence(first: str, second: str) -> int:
    """The length of the longest common subsequence. Bit i of `open_` is cleared where the i-th character of
    `first` lengthens it (Hyyrö's bit-parallel recurrence)."""
    places: dict[str, int] = {}
    for place, character in enumerate(first):
        places[character] = places.get(character, 0) | 1 << place
    full = (1 << len(first)) - 1
    open_ = full
    for character in second:
        matching = open_ & places.get(character, 0)
        open_ = ((open_ + matching) | (open_ - matching)) & full
    return len(first) - open_.bit_count()


def _grams(text: str, order: int) -> Grams:
    dense = "".join(text.split())
    return Counter(dense[start : start + order] for start in range(len(dense) - order + 1))


def _changes(before: str, answer: str, truth: str, order: int) -> tuple[Grams, Grams]:
    """The n-grams that each edit adds, and those it removes, marked by a leading blank, which no n-gram has."""
    base = _grams(before, order)
    blocks = []
    for after in (_grams(answer, order), _grams(truth, order)):
        blocks.append(after - base + Counter({" " + gram: count for gram, count in (base - after).items()}))
    return blocks[0], blocks[1]


def _f_score(orders: Sequence[tuple[Grams, Grams]]) -> float:
    """The F score of precision and recall, each averaged over the orders that both texts have."""
    shared = [(answer, truth, (answer & truth).total()) for answer, truth in orders if answer and truth]
    if not shared:
        return 0.0 if any(answer or truth for answer, truth in orders) else 100.0
    precision = sum(common / answer.total() for answer, _, common in shared) / len(shared)
    recall = sum(common / truth.total() for _, truth, common in shared) / len(shared)
    if not precision + recall:
        return 0.0
    return 100 * (1 + BETA**2) * precision * recall / (BETA**2 * precision + recall)
