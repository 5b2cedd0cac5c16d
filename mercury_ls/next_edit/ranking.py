"""How likely an edit is the one that comes next: a logistic function of a handful of features, learned from commits."""

import math
from collections.abc import Mapping
from functools import cache
from importlib import resources

import msgspec
from msgspec import Struct

from mercury_ls.completion.judge import logistic

SUREST = 0.95
"""No model is surer of what it writes."""


class Ranking(Struct, frozen=True):
    """`kinds` are intercepts, `weights` what a unit of each feature adds to the log-odds; `due` tells from the
    likeliest edit whether anything is due at all. `bar` is the least that both chances together come to where an edit
    is shown without a model. `fitted` says from what and how well.
    """

    kinds: dict[str, float]
    weights: dict[str, float]
    bar: float
    due: dict[str, float] = {}
    fitted: dict[str, object] = {}

    def probability(self, kind: str, features: Mapping[str, float]) -> float:
        weights = self.weights
        return logistic(self.kinds[kind] + sum(weights[name] * value for name, value in features.items()))

    def is_due(self, features: Mapping[str, float], probability: float) -> float:
        """The chance that anything is left to do where this edit is the likeliest."""
        if not self.due:
            return 1.0
        values = {"bias": 1.0, "ranked": _odds(probability), **features}
        return logistic(sum(self.due.get(name, 0.0) * value for name, value in values.items()))


@cache
def load() -> Ranking:
    text = resources.files("mercury_ls.next_edit").joinpath("ranking.json").read_bytes()
    return msgspec.json.decode(text, type=Ranking)


def written_probability(probability: float, p_model: float) -> float:
    """The chance of an edit that a model wrote, so sure of it, where an edit was so likely: a cautious guess."""
    return logistic(0.5 * _odds(probability) + 0.9 * _odds(p_model) - 1.0)


def can_be_shown(probability: float, bar: float) -> bool:
    """Whether a model that is as sure as it ever is writes something likely enough."""
    return written_probability(probability, SUREST) >= bar


def _odds(probability: float) -> float:
    bounded = min(max(probability, 0.001), 0.999)
    return math.log(bounded / (1.0 - bounded))
