"""How likely an edit is the one that comes next: a logistic function of a handful of features, learned from commits."""

import math
from collections.abc import Mapping
from functools import cache
from importlib import resources

import msgspec
from msgspec import Struct

from mercury_ls.completion.judge import logistic

LEAST_LIKELIHOOD = -40.0


class Ranking(Struct, frozen=True):
    """`kinds` are intercepts, `weights` what a unit of each feature adds to the log-odds; `due` tells from the
    likeliest edit whether anything is due at all. `bar` is the least that both chances together come to where an edit
    is shown. `opinion` weighs their product with what a model thinks of the edit. `fitted` says from what and how well.
    """

    kinds: dict[str, float]
    weights: dict[str, float]
    bar: float
    due: dict[str, float] = {}
    opinion: dict[str, float] = {}
    fitted: dict[str, object] = {}

    def probability(self, kind: str, features: Mapping[str, float]) -> float:
        weights = self.weights
        return logistic(self.kinds[kind] + sum(weights[name] * value for name, value in features.items()))

    def is_due(self, features: Mapping[str, float], probability: float) -> float:
        """The chance that anything is left to do where this edit is the likeliest."""
        if not self.due:
            return 1.0
        values = {"bias": 1.0, "ranked": log_odds(probability), **features}
        return logistic(sum(self.due.get(name, 0.0) * value for name, value in values.items()))

    def judged(self, probability: float, log_likelihood: float) -> float:
        """The chance of an edit of this probability that is as likely by a model as the logarithm says."""
        if not self.opinion:
            return probability
        values = {"bias": 1.0, "ranked": log_odds(probability), "likelihood": max(log_likelihood, LEAST_LIKELIHOOD)}
        return logistic(sum(weight * values[name] for name, weight in self.opinion.items()))


@cache
def load() -> Ranking:
    text = resources.files("mercury_ls.next_edit").joinpath("ranking.json").read_bytes()
    return msgspec.json.decode(text, type=Ranking)


def log_odds(probability: float) -> float:
    bounded = min(max(probability, 0.001), 0.999)
    return math.log(bounded / (1.0 - bounded))
