"""The tokens that an answer may use, and the choice among them.

Shapes: S slots, V vocabulary of the model.
"""

import re
from collections.abc import Iterable

import numpy as np

from mercury_engine.tokens.pretrained import PretrainedTokenizer


class AnswerVocabulary:
    """`ends` end an answer. The special tokens in `spelled` are text, since tool calls are written with them; all
    others are never generated. `size` is that of the model's logits."""

    def __init__(self, tokenizer: PretrainedTokenizer, size: int, ends: Iterable[str], spelled: str = "") -> None:
        self._tokenizer = tokenizer
        self.size = size
        self.ends = frozenset(tokenizer.special(name) for name in ends if name in tokenizer.added)
        names = [name for name in tokenizer.added if name in spelled]
        self.bytes = [*tokenizer.token_bytes]
        for name in names:
            self.bytes[tokenizer.special(name)] = name.encode()
        self._names = re.compile(f"({'|'.join(map(re.escape, names))})" if names else r"(?!)()")
        self.of_byte = {text[0]: token for token, text in enumerate(self.bytes) if len(text) == 1}
        silent = [token for token, text in enumerate(self.bytes) if not text and token not in self.ends]
        self.never = np.array([*silent, *range(len(self.bytes), size)], np.int64)

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for at, part in enumerate(self._names.split(text)):
            ids += [self._tokenizer.special(part)] if at % 2 else self._tokenizer.encode(part)
        return ids

    def spell(self, tokens: Iterable[int]) -> bytes:
        return b"".join(self.bytes[token] for token in tokens)


class TokenChooser:
    """The likeliest token of a slot or, with a temperature, one drawn by the seed. Probabilities are those of the
    model without a temperature."""

    def __init__(self, vocabulary: AnswerVocabulary, temperature: float, seed: int) -> None:
        self._vocabulary = vocabulary
        self._temperature = temperature
        self._random = np.random.default_rng(seed)

    def choose(self, logits_SV: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Choose tokens. Overwrites the logits of tokens that are never generated."""
        logits_SV[:, self._vocabulary.never] = -np.inf
        highest_S1 = logits_SV.max(1, keepdims=True)
        odds_SV = np.exp(logits_SV - highest_S1)
        ids_S = self._pick(logits_SV)
        return ids_S, np.take_along_axis(odds_SV, ids_S[:, None], 1)[:, 0] / odds_SV.sum(1)

    def choose_allowed(self, logits_V: np.ndarray, allowed: np.ndarray) -> tuple[int, float]:
        """The choice among the tokens `allowed`, and its probability among them."""
        logits = logits_V[allowed]
        at = int(self._pick(logits[None])[0])
        return int(allowed[at]), float(1 / np.exp(logits - logits[at]).sum())

    def _pick(self, logits_SV: np.ndarray) -> np.ndarray:
        """Choose tokens by the Gumbel trick."""
        if self._temperature <= 0:
            return logits_SV.argmax(1)
        noise_SV = self._random.gumbel(size=logits_SV.shape).astype(np.float32)
        return (logits_SV / self._temperature + noise_SV).argmax(1)
