"""How far an answer leans on what followed the same tokens before: a correction of the model, fitted for each model.

A small model knows little and copies badly; what stands around the cursor is often said again. Where the last tokens
stand elsewhere in the row, too, the odds of the token that followed there become a function of the model's own odds
and of how much speaks for a copy. It depends on nothing but the text before the token, like the model's opinion.

Copies of a block go on behind its end, so that the end would hardly ever be the likeliest token: its chance stays what
the model says, and the echo is about what stands there if the answer goes on.
"""

import math
from pathlib import Path

import numpy as np
from msgspec import Struct

from mercury_engine.model.fitted import ECHO_FILE, read_fitted
from mercury_engine.tokens.vocabulary import EOM

__all__ = ["Echo", "Heard", "features", "read_echo"]

CERTAIN = 16.0
"""Log odds beyond which nothing is surer."""


class Heard(Struct, frozen=True):
    """What followed the last tokens where they stand elsewhere: after so many alike, at so many places, of which so
    large a share agree."""

    token: int
    alike: int
    places: int
    agreeing: float


class Echo(Struct, frozen=True, forbid_unknown_fields=True):
    """Coefficients of a logistic regression: the chance that the next token, unless it is the end, was heard.

    `model_log_odds` are those of `Chooser.log_odds`: against all other tokens but the end.
    """

    bias: float
    model: float
    alike: float
    places: float
    agreeing: float

    def log_odds(self, model_log_odds: float, heard: Heard) -> float:
        weights = (self.bias, self.model, self.alike, self.places, self.agreeing)
        return sum(weight * value for weight, value in zip(weights, features(model_log_odds, heard), strict=True))

    def lean(self, logits_V: np.ndarray, model_log_odds: float, heard: Heard) -> np.ndarray:
        """What is heard gets its odds; the end, where it is not what is heard, keeps its chance."""
        leaning_V, log_odds = logits_V.copy(), self.log_odds(model_log_odds, heard)
        leaning_V[heard.token] += log_odds - model_log_odds
        if heard.token != EOM:
            leaning_V[EOM] += np.logaddexp(0, log_odds) - np.logaddexp(0, model_log_odds)
        return leaning_V


def features(model_log_odds: float, heard: Heard) -> tuple[float, float, float, float, float]:
    bounded = max(-CERTAIN, min(CERTAIN, model_log_odds))
    return 1.0, bounded, math.log(heard.alike), math.log(heard.places), heard.agreeing


def read_echo(folder: Path) -> Echo | None:
    """The coefficients beside a model's weights; none where copying was not found to help."""
    return read_fitted(folder / ECHO_FILE, Echo)
