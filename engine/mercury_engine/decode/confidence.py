"""The probability that an answer is accepted (a logistic calibration, as in Platt scaling), and its confident part."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import astuple

from mercury_engine.decode.choice import Chosen
from mercury_engine.model.fitted import CALIBRATION_FILE, read_fitted

SMALLEST_PROBABILITY = 1e-6
LEAST_OWN = -12.0

Names = Mapping[int, Chosen]
"""The chosen names, each at the index of its first token."""
NO_NAMES: Names = {}


class Calibration(Struct, frozen=True, forbid_unknown_fields=True):
    """Coefficients of a logistic regression, fitted to a model in the precision that it runs in.

    The defaults are a guess for models without the file: nine tokens of probability 0.95 give about 0.7, nine of 0.7
    about 0.3, and a single improbable token spoils any answer.
    """

    bias: float = 1.2
    mean: float = 4.0
    least: float = 1.0
    length: float = -0.03
    complete: float = 0.3
    joint: float = 0.0
    named: float = 0.0
    own: float = 0.0
    share: float = 0.0
    bar: float = 0.78
    """The lowest probability at which a completion is shown to a user who types; the default suits a small model, of
    whose completions one in ten is then wrong (docs/log/2026-Q4.md)."""
    rewriting: "Calibration | None" = None
    """Coefficients for answers that replace old text; None if these coefficients apply to them too."""

    @property
    def weights(self) -> tuple[float, ...]:
        return astuple(self)[:-2]

    def p_accept(self, probabilities: Sequence[float], *, complete: bool, names: Names = NO_NAMES) -> float:
        if not probabilities:
            return 0.0
        values = (1.0, *features(probabilities, complete=complete, names=names))
        score = sum(weight * value for weight, value in zip(self.weights, values, strict=True))
        return 1 / (1 + math.exp(-score))


UNCALIBRATED = Calibration(bias=1.5 - math.log(3), mean=15.0, least=0.0, length=0.0, complete=0.0)
"""For models without recorded decisions: a mean log probability of -0.1, which separates good answers from bad ones
in many models, gives 0.25, the default bar of suggestions."""


def features(probabilities: Sequence[float], *, complete: bool, names: Names = NO_NAMES) -> tuple[float, ...]:
    """The mean and the lowest log probability of the tokens, their number, whether the answer is complete, and the
    sum of the log probabilities without the tokens that begin a chosen name; then the number of those names, and the
    sums of their own features."""
    logs = [math.log(max(probability, SMALLEST_PROBABILITY)) for probability in probabilities]
    chosen = [name for at, name in names.items() if at < len(logs)]
    joint = sum(log for at, log in enumerate(logs) if at not in names)
    own, share = sum(max(name.own, LEAST_OWN) for name in chosen), sum(name.share for name in chosen)
    return sum(logs) / len(logs), min(logs), len(logs), complete, joint, len(chosen), own, share


def confident(probabilities: Sequence[float], bar: float) -> int:
    """The number of leading tokens whose joint probability is at least `bar`."""
    together = 1.0
    for count, probability in enumerate(probabilities):
        together *= probability
        if together < bar:
            return count
    return len(probabilities)


def read_calibration(folder: Path) -> Calibration:
    """The coefficients beside a model's weights; the defaults if none were fitted."""
    return read_fitted(folder, CALIBRATION_FILE, Calibration) or Calibration()
