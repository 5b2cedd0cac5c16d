"""The copy bias: raises the odds of the token that followed the last tokens elsewhere in the context.

A small model copies badly, but code repeats what surrounds it. Where the last tokens occur elsewhere, the odds of the
token behind them become a function of the model's own odds and of the evidence for a copy. kNN-LM (Khandelwal et al.
2020) interpolates with what followed similar contexts in the same way; here matches are exact, only the context is
searched, and a logistic regression fitted to the model replaces the constant weight. Like the model's logits, the bias
depends on nothing but the preceding text.

Copies of a block continue behind its end, which would make the end too unlikely. So the end keeps the model's
probability, and the bias is about which token follows if the answer goes on.
"""

import math
from pathlib import Path

import numpy as np
from msgspec import Struct

from mercury_engine.model.fitted import COPY_BIAS_FILE, read_fitted
from mercury_engine.tokens.vocabulary import EOM

LARGEST_LOG_ODDS = 16.0


class CopyMatch(Struct, frozen=True):
    """The token behind the best matches of the last tokens: how many tokens are `alike`, at how many `places`, and
    the share of them `agreeing` on the token."""

    token: int
    alike: int
    places: int
    agreeing: float


class CopyBias(Struct, frozen=True, forbid_unknown_fields=True):
    """Coefficients of a logistic regression: the probability of the copied token, given that the answer goes on.

    `model` weighs the model's own log odds, against all other tokens but the end: `Chooser.log_odds`.
    """

    bias: float
    model: float
    alike: float
    places: float
    agreeing: float

    def log_odds(self, model_log_odds: float, match: CopyMatch) -> float:
        weights = (self.bias, self.model, self.alike, self.places, self.agreeing)
        return sum(weight * value for weight, value in zip(weights, features(model_log_odds, match), strict=True))

    def apply(self, logits_V: np.ndarray, model_log_odds: float, match: CopyMatch) -> np.ndarray:
        """Give the copied token these odds; the end keeps its probability, unless it is the copied token."""
        biased_V, log_odds = logits_V.copy(), self.log_odds(model_log_odds, match)
        biased_V[match.token] += log_odds - model_log_odds
        if match.token != EOM:
            biased_V[EOM] += np.logaddexp(0, log_odds) - np.logaddexp(0, model_log_odds)
        return biased_V


def features(model_log_odds: float, match: CopyMatch) -> tuple[float, float, float, float, float]:
    bounded = max(-LARGEST_LOG_ODDS, min(LARGEST_LOG_ODDS, model_log_odds))
    return 1.0, bounded, math.log(match.alike), math.log(match.places), match.agreeing


def read_copy_bias(folder: Path) -> CopyBias | None:
    """The coefficients beside a model's weights; None where copying did not help."""
    return read_fitted(folder, COPY_BIAS_FILE, CopyBias)
