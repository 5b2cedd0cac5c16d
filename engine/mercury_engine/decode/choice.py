"""Which token a row of logits says: greedily, never a special one but the end, spelling a begun word first.

Shapes: V vocabulary of the model, S slots.
"""

import numpy as np
from msgspec import Struct

from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import EOM, SPECIALS

__all__ = ["Choice", "Chooser"]


LEAST = 1e-9


class Choice(Struct, frozen=True):
    """A token, its probability among the permitted ones, and the runners-up with theirs."""

    token: int
    probability: float
    others: tuple[tuple[int, float], ...] = ()


class Chooser:
    """Holds what may be said at all, for one tokenizer and one model."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: int) -> None:
        self._tokenizer = tokenizer
        self._forbidden = np.full(vocabulary, True)
        self._forbidden[len(SPECIALS) : tokenizer.vocabulary] = False
        self._forbidden[EOM] = False

    def best(self, logits_V: np.ndarray, typed: bytes, runners_up: int = 0) -> Choice:
        """The likeliest token; while `typed` bytes are left to spell, among those that spell them."""
        permitted_V = self._permitted(logits_V, typed)
        token = int(permitted_V.argmax())
        odds_V = np.exp(permitted_V - permitted_V[token])
        total = float(odds_V.sum())
        if not runners_up:
            return Choice(token, 1 / total)
        first = np.argpartition(-odds_V, runners_up)[: runners_up + 1]
        ranked = sorted((-float(odds_V[other]), int(other)) for other in first if other != token)
        others = tuple((other, -odds / total) for odds, other in ranked[:runners_up] if odds)
        return Choice(token, 1 / total, others)

    def log_odds(self, logits_V: np.ndarray, typed: bytes, token: int) -> float:
        """Of a permitted token against all others that are, but the end."""
        permitted_V = self._permitted(logits_V, typed)
        if token != EOM:
            permitted_V[EOM] = -np.inf
        odds_V = np.exp(permitted_V - permitted_V.max())
        own = float(odds_V[token])
        return float(np.log(max(own, LEAST)) - np.log(max(float(odds_V.sum()) - own, LEAST)))

    def forced(self, logits_V: np.ndarray, typed: bytes, token: int) -> Choice:
        """A token that is decided already, with the probability that it had."""
        permitted_V = self._permitted(logits_V, typed)
        odds_V = np.exp(permitted_V - permitted_V.max())
        return Choice(token, float(odds_V[token] / odds_V.sum()))

    def slots(self, logits_SV: np.ndarray, typed: bytes) -> tuple[np.ndarray, np.ndarray]:
        """Token and probability of every slot of a canvas, each on its own but for the begun word."""
        permitted_SV = np.where(self._forbidden, -np.inf, logits_SV)
        ids_S = permitted_SV.argmax(1).astype(np.int32)
        highest_S1 = np.take_along_axis(permitted_SV, ids_S[:, None], 1)
        probabilities_S = 1 / np.exp(permitted_SV - highest_S1).sum(1)
        for slot, row_V in enumerate(logits_SV):
            if not typed:
                break
            choice = self.best(row_V, typed)
            ids_S[slot], probabilities_S[slot] = choice.token, choice.probability
            typed = self._tokenizer.remaining(typed, choice.token)
        return ids_S, probabilities_S

    def _permitted(self, logits_V: np.ndarray, typed: bytes) -> np.ndarray:
        if not typed:
            return np.where(self._forbidden, -np.inf, logits_V)
        permitted_V = np.full_like(logits_V, -np.inf)
        allowed = self._tokenizer.allowed(typed)
        permitted_V[allowed] = logits_V[allowed]
        return permitted_V
