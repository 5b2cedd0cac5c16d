"""Picks tokens from logits: greedily, no special ones except those that end an answer, and spelling a partial word
first.

Shapes: V vocabulary of the model, S slots.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.model.runtime import Predictions
from mercury_engine.tokens.spelling import Spelling
from mercury_engine.tokens.vocabulary import EOM


class Choice(Struct, frozen=True):
    """A token, its probability among the permitted ones, and the runners-up with theirs."""

    token: int
    probability: float
    others: tuple[tuple[int, float], ...] = ()


def ids_of(choices: Iterable[Choice]) -> list[int]:
    return [choice.token for choice in choices]


def probabilities_of(choices: Iterable[Choice]) -> tuple[float, ...]:
    return tuple(choice.probability for choice in choices)


class Chooser:
    """Knows which tokens are permitted, for one tokenizer and one model: those with bytes, and those that end an
    answer."""

    def __init__(self, tokenizer: Spelling, vocabulary: int, ends: Iterable[int] = (EOM,)) -> None:
        self._tokenizer = tokenizer
        self._forbidden = np.full(vocabulary, True)
        self._forbidden[: tokenizer.vocabulary] = [not spelled for spelled in tokenizer.token_bytes]
        self._forbidden[list(ends)] = False
        self.permitted_V = ~self._forbidden

    def best(self, logits_V: np.ndarray, typed: bytes, runners_up: int = 0) -> Choice:
        """The likeliest token; while `typed` bytes are left to spell, among those that spell them."""
        if isinstance(logits_V, Predictions) and not typed and len(logits_V.choices.ids_WC) > runners_up:
            return _choice(logits_V.choices.ids_WC[: 1 + runners_up].tolist(), logits_V.choices.probability_WC.tolist())
        permitted_V = self._permitted(logits_V, typed)
        return _chosen(permitted_V, int(permitted_V.argmax()), runners_up)

    def forced(self, logits_V: np.ndarray, typed: bytes, token: int, runners_up: int = 0) -> Choice:
        """A given token with its probability."""
        return _chosen(self._permitted(logits_V, typed), token, runners_up)

    def slots(self, logits_SV: np.ndarray, typed: bytes, runners_up: int = 0) -> list[Choice]:
        """The likeliest token of each slot; slots are independent except for the partial word, whose tokens have no
        runners-up."""
        if isinstance(logits_SV, Predictions) and not typed:
            ids_SC, probabilities_SC = logits_SV.choices
        else:
            ids_SC, probabilities_SC = self._ranked(np.where(self._forbidden, -np.inf, logits_SV), 1 + runners_up)
        ranked = zip(ids_SC.tolist(), probabilities_SC.tolist(), strict=True)
        choices = [_choice(ids[: 1 + runners_up], shares) for ids, shares in ranked]
        for slot, row_V in enumerate(logits_SV if typed else ()):
            choices[slot] = self.best(row_V, typed)
            typed = self._tokenizer.remaining(typed, choices[slot].token)
            if not typed:
                break
        return choices

    def _ranked(self, permitted_SV: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """So many tokens of each slot, likeliest first, with their probabilities."""
        rows, ids, logits = np.arange(len(permitted_SV)), [], []
        total_S = np.exp(permitted_SV - permitted_SV.max(1, keepdims=True)).sum(1)
        for _ in range(count):
            ids.append(permitted_SV.argmax(1))
            logits.append(permitted_SV[rows, ids[-1]])
            permitted_SV[rows, ids[-1]] = -np.inf
        return np.stack(ids, 1), np.exp(np.stack(logits, 1) - logits[0][:, None]) / total_S[:, None]

    def _permitted(self, logits_V: np.ndarray, typed: bytes) -> np.ndarray:
        if not typed:
            return np.where(self._forbidden, -np.inf, logits_V)
        permitted_V = np.full_like(logits_V, -np.inf)
        allowed = self._tokenizer.allowed(typed)
        permitted_V[allowed] = logits_V[allowed]
        return permitted_V


def _chosen(permitted_V: np.ndarray, token: int, runners_up: int) -> Choice:
    """A token and the likeliest others."""
    odds_V = np.exp(permitted_V - permitted_V.max())
    total = float(odds_V.sum())
    if not runners_up:
        return Choice(token, float(odds_V[token]) / total)
    first = np.argpartition(-odds_V, runners_up)[: runners_up + 1]
    ranked = sorted((-float(odds_V[other]), int(other)) for other in first if other != token)
    others = tuple((other, -odds / total) for odds, other in ranked[:runners_up] if odds)
    return Choice(token, float(odds_V[token]) / total, others)


def _choice(ids: Sequence[int], probabilities: Sequence[float]) -> Choice:
    others = tuple((token, share) for token, share in zip(ids[1:], probabilities[1:], strict=False) if share)
    return Choice(ids[0], probabilities[0], others)
