"""The probability that an answer is accepted (a logistic calibration, as in Platt scaling), and its confident part."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from mercury_engine.api import Draft
from mercury_engine.model.config import CALIBRATION_FILE, ModelError

SMALLEST_PROBABILITY = 1e-6
HOPELESS = 0.02
"""The product of its tokens' probabilities below which an answer is given up; less where the bar is very low."""

WORD_BYTES = frozenset(byte for byte in range(256) if byte >= 0x80 or byte == ord("_") or chr(byte).isalnum())


class Calibration(Struct, frozen=True, forbid_unknown_fields=True):
    """Coefficients of a logistic regression, fitted to a model in the precision that it runs in.

    The defaults are for completions of models without a fit of their own: one to two others, Qwen2.5-Coder of 0.5 and
    1.5 B parameters, on 320 lines (docs/log/2026-Q4.md). They save most keys by the least probable token, the product
    of all, and whether the answer is complete; the mean and the number are for fits to rewrites.
    """

    bias: float = 1.32
    mean: float = 0.0
    least: float = 1.03
    length: float = 0.0
    complete: float = 0.89
    joint: float = 1.06
    bar: float = 0.74
    """The lowest probability at which a completion is shown to a user who types."""
    rewriting: "Calibration | None" = None
    """Coefficients for answers that replace old text; None if these coefficients apply to them too."""

    @property
    def weights(self) -> tuple[float, ...]:
        return astuple(self)[:-2]

    def p_accept(self, probabilities: Sequence[float], *, complete: bool) -> float:
        if not probabilities:
            return 0.0
        return self._chance(features(probabilities, complete=complete))

    def chances(self, probabilities: Sequence[float]) -> Iterator[float]:
        """Of each unfinished start, the shortest first."""
        total = least = 0.0
        for count, log in enumerate(map(_log, probabilities), 1):
            total, least = total + log, min(least, log)
            yield self._chance((total / count, least, count, False, total))

    def at_best(self, probabilities: Sequence[float], most: int) -> float:
        """No answer of at most so many tokens that begins with these is likelier to be accepted: it is complete if that
        helps, and the model is certain of all that follows. 1.0 where the coefficients set no such limit."""
        is_limited = self.least >= 0 and self.joint >= max(0.0, -self.mean)
        if not probabilities or not is_limited:
            return 1.0
        logs = [*map(_log, probabilities)]
        total, least, complete = sum(logs), min(logs), self.complete > 0
        counts = range(len(logs), max(most, len(logs)) + 1)
        return max(self._chance((total / count, least, count, complete, total)) for count in counts)

    def _chance(self, values: Sequence[float]) -> float:
        score = sum(weight * value for weight, value in zip(self.weights, (1.0, *values), strict=True))
        return 1 / (1 + math.exp(-score))


UNCALIBRATED = Calibration(bias=1.5 - math.log(3), mean=15.0, least=0.0, complete=0.0, joint=0.0)
"""For rewrites by models without recorded decisions: a mean log probability of -0.1, which separates good answers from
bad ones in many models, gives 0.25, the default bar of next edits."""

SHARED = Calibration(rewriting=UNCALIBRATED)
"""For all models that are not calibrated themselves."""


def features(probabilities: Sequence[float], *, complete: bool) -> tuple[float, ...]:
    """The mean and the lowest log probability of the tokens, their number, whether the answer is complete, and the
    sum of the log probabilities."""
    logs = [*map(_log, probabilities)]
    return sum(logs) / len(logs), min(logs), len(logs), complete, sum(logs)


def likely_start(
    text: str,
    tokens: Sequence[tuple[int, float]],
    calibration: Calibration,
    *,
    bar: float,
    complete: bool,
) -> Draft:
    """Of the starts of whole words that are as likely as `bar`, the one that saves most keystrokes on average; else, or
    without a bar, all of the text. `tokens`: the byte behind each, and its probability."""
    spelled, probabilities = text.encode(), tuple(probability for _, probability in tokens)
    whole = Draft(0, text, probabilities, calibration.p_accept(probabilities, complete=complete), complete)
    best, saved = whole, whole.p_accept * len(spelled) if whole.p_accept >= bar else 0.0
    ends = pairwise([*(end for end, _ in tokens), len(spelled)]) if bar else ()
    for count, ((end, following), chance) in enumerate(zip(ends, calibration.chances(probabilities), strict=False), 1):
        is_cut = 0 < end < min(following, len(spelled)) and not splits_word(spelled[:end], spelled[end : end + 1])
        if chance >= bar and is_cut and chance * end > saved:
            start = spelled[:end].decode("utf-8", "ignore")
            best, saved = Draft(0, start, probabilities[:count], chance), chance * end
    return best


def _log(probability: float) -> float:
    return math.log(max(probability, SMALLEST_PROBABILITY))


def is_hopeless(probabilities: Iterable[float], bar: float) -> bool:
    """Whether an answer is so unlikely that no token is spent on the rest of it, while somebody types."""
    return math.prod(probabilities) < min(HOPELESS, bar / 10)


def splits_word(before: bytes, after: bytes) -> bool:
    """Whether a word goes on from one text to the next."""
    return bool(before and after) and before[-1] in WORD_BYTES and after[0] in WORD_BYTES


def confident(probabilities: Sequence[float], bar: float) -> int:
    """The number of leading tokens whose joint probability is at least `bar`."""
    together = 1.0
    for count, probability in enumerate(probabilities):
        together *= probability
        if together < bar:
            return count
    return len(probabilities)


def read_calibration(folder: Path) -> Calibration | None:
    """The coefficients beside a model's weights; None where none were fitted, or where it did not help."""
    path = folder / CALIBRATION_FILE
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Calibration)
    except (OSError, msgspec.DecodeError) as error:
        raise ModelError(f"{path}: {error}; correct the file or remove it") from error
