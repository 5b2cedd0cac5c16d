"""Names as rivals: where an answer needs a name, the known ones compete, and the model chooses.

The likeliest of them are scored in one forward, side by side on the same cache, as whole names. The model's
predictions are unchanged: names are proposed to it, compared by its own probabilities and by the evidence in the
text for each, and one is committed.
"""

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from msgspec import Struct

from mercury_engine.decode.canvas import Extend, fuse
from mercury_engine.decode.choice import Choice, Chooser, Chosen
from mercury_engine.decode.names import KnownNames, NameCandidate
from mercury_engine.decode.tree import DraftTree
from mercury_engine.model.runtime import Rows
from mercury_engine.tokens.prefix import Prefix

RIVALS, TIED = 8, 12
"""The number of names scored in one forward: more find the right one no more often, unless they begin with the same
token, as after a partly typed name."""

MODEL = 0.26
"""The weight of a name's log probability."""

RIGHT = (1.02, 0.29, 1.6)
"""The probability that a chosen name is right: the bias of a logistic regression on the same members, and the
weights of the log probability of the name and of its share among its rivals."""

SURE = 0.9
"""A first token of this probability needs no comparison if it begins only one name."""

LEAST = -30.0
"""The lowest log probability of a name."""


class NamedAnswer(Protocol):
    """An answer that has `said` this, with `typed` left to spell of the text before the cursor."""

    typed: bytes

    @property
    def said(self) -> bytes: ...


class Rivals(Struct, frozen=True, eq=False):
    """Candidates behind the last row of a prefix, side by side in one forward; `first` is that row's log probabilities,
    in which each spells what is left of `typed`."""

    candidates: tuple[NameCandidate, ...]
    first_V: np.ndarray
    typed: bytes

    def rows(self, prefix: Prefix, cached: int, extend: Extend) -> Rows:
        """The uncached end of the prefix, whose last row is wanted too, then a branch for each candidate."""
        draft = DraftTree.branches([candidate.path for candidate in self.candidates])
        return fuse(cached, prefix, len(prefix) - cached - 1, draft=draft, extend=extend).rows

    def chosen(self, logits_WV: np.ndarray, chooser: Chooser) -> tuple[NameCandidate, float, Chosen]:
        """The best candidate, and its contribution to the probability of the answer: the mean of the model's
        probability and of the probability that it is right, which separates right names from wrong ones better than
        either."""
        beams, row = [], 1
        for candidate in self.candidates:
            branch_SV = logits_WV[row : row + len(candidate.path)]
            beams.append(self._log_probability(candidate, branch_SV, chooser))
            row += len(candidate.path)
        scores = np.array([_score(*pair) for pair in zip(self.candidates, beams, strict=True)])
        best = int(scores.argmax())
        among = float(scores[best] - np.logaddexp.reduce(scores))
        worth = (math.exp(beams[best]) + _right(beams[best], among)) / 2
        return self.candidates[best], worth, Chosen(beams[best], among)

    def _log_probability(self, candidate: NameCandidate, branch_SV: np.ndarray, chooser: Chooser) -> float:
        """The log probability of the whole name, and of its end."""
        score = float(self.first_V[candidate.path[0]])
        typed = chooser.left(self.typed, candidate.path[0])
        for row_V, token in zip(branch_SV[:-1], candidate.path[1:], strict=True):
            score += float(chooser.log_probabilities(row_V, typed)[token])
            typed = chooser.left(typed, token)
        return max(score + (chooser.log_end_of_word(branch_SV[-1]) if candidate.whole else 0.0), LEAST)


def competing(
    names: KnownNames | None, answer: NamedAnswer, choice: Choice, logits_V: np.ndarray, chooser: Chooser
) -> Rivals | None:
    """The names that compete with the next choice of an answer; None if it begins none, or if the model is sure."""
    candidates = names.candidates(answer.said, answer.typed, choice.token) if names else []
    if not candidates or is_settled(candidates, choice):
        return None
    return rivals(candidates, logits_V, answer.typed, chooser)


def is_settled(candidates: Sequence[NameCandidate], choice: Choice) -> bool:
    """True if the model is sure of one of the names."""
    return choice.probability >= SURE and sum(candidate.path[0] == choice.token for candidate in candidates) == 1


def rivals(candidates: Sequence[NameCandidate], logits_V: np.ndarray, typed: bytes, chooser: Chooser) -> Rivals:
    """The candidates that are likeliest by their first token and their uses; the shortest wins a tie."""
    first_V = chooser.log_probabilities(logits_V, typed)
    promises = [_score(candidate, float(first_V[candidate.path[0]])) for candidate in candidates]
    order = sorted(range(len(candidates)), key=lambda at: (-promises[at], len(candidates[at].path)))
    least = promises[order[:RIVALS][-1]]
    chosen = [candidates[at] for at in order[:TIED] if promises[at] >= least]
    return Rivals(tuple(chosen), first_V, typed)


def _score(candidate: NameCandidate, log_probability: float) -> float:
    return MODEL * log_probability + candidate.evidence


def _right(log_probability: float, among: float) -> float:
    """The probability that a chosen name is right."""
    bias, own, relative = RIGHT
    return 1 / (1 + math.exp(-(bias + own * log_probability + relative * among)))
