"""The tokens of one model: the ids of its family's special tokens, and which tokens an answer may take.

Shapes: V vocabulary of the model, S slots.
"""

from collections.abc import Sequence

import numpy as np

from mercury_engine.families.family import Family
from mercury_engine.tokens.pretrained import PretrainedTokenizer


class FamilyVocabulary:
    """Greedy choice among the tokens of text and those special ones with which a family ends and resizes answers."""

    def __init__(self, family: Family, tokens: PretrainedTokenizer, size: int) -> None:
        def ids(*names: str) -> list[int]:
            return [tokens.special(name) for name in names if name]

        (self.mask,) = ids(family.mask)
        self.bos, self.eos = ids(family.bos), ids(family.eos)
        self.expand, self.delete = (*ids(family.expand), -1)[0], (*ids(family.delete), -1)[0]
        self.ends = frozenset(ids(*(name for name in family.ends if name in tokens.added)))
        self._tokens = tokens
        self._resizing = [token for token in (self.expand, self.delete, *self.ends) if token >= 0]
        silent = {token for token, spelled in enumerate(tokens.token_bytes) if not spelled}
        silent |= {*range(len(tokens.token_bytes), size)}
        self._never = np.array(sorted(silent - {*self._resizing}), np.int64)

    def choose(self, logits_SV: np.ndarray, *, expand: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """The likeliest token of each slot, and its probability among those permitted. Overwrites the others' logits.

        `expand`: whether there is room for another slot.
        """
        logits_SV[:, self._never] = -np.inf
        if self.expand >= 0 and not expand:
            logits_SV[:, self.expand] = -np.inf
        ids_S = logits_SV.argmax(1)
        highest_S1 = np.take_along_axis(logits_SV, ids_S[:, None], 1)
        return ids_S, 1 / np.exp(logits_SV - highest_S1).sum(1)

    def spell(self, logits_SV: np.ndarray, typed: bytes) -> list[tuple[int, float]]:
        """Tokens for the first slots, from left to right until they have spelled `typed`, with their probabilities."""
        spelled: list[tuple[int, float]] = []
        for logits_V in logits_SV:
            allowed = self._tokens.allowed(typed) if typed else ()
            if not len(allowed):
                break
            odds = np.exp(logits_V[allowed] - logits_V[allowed].max())
            best = int(odds.argmax())
            spelled.append((int(allowed[best]), float(odds[best] / odds.sum())))
            typed = typed[len(self._tokens.token_bytes[allowed[best]]) :]
        return spelled

    def left_to_spell(self, typed: bytes, spelled: Sequence[tuple[int, float]]) -> bytes:
        return typed[len(self._tokens.decode_bytes(token for token, _ in spelled)) :]

    def ranked(self, logits_V: np.ndarray, rank: int) -> tuple[int, float]:
        """The text token `rank` places after the likeliest, with its probability."""
        plain_V = logits_V.copy()
        plain_V[self._never] = plain_V[self._resizing] = -np.inf
        first = np.argpartition(-plain_V, rank)[: rank + 1]
        token = int(first[plain_V[first].argmin()])
        odds_V = np.exp(plain_V - plain_V.max())
        return token, float(odds_V[token] / odds_V.sum())
