"""Bits per byte are what a slow reading of the whole text gives."""

import math

import numpy as np
import pytest

from mercury_engine.model.config import TINY
from mercury_training.evaluate.held_out import CHUNK, HeldOutText, read
from tests.training.small import TOKENIZER

TEXT = "def area(width, height):\n    return width * height\n\n\n" * 40


class Cache:
    length = 0

    def append(self, forward, rows):
        self.length += len(rows)


class Forward:
    def __init__(self, logits_WV):
        self.logits_WV = logits_WV


class Successor:
    """Finds the ids near the one read likely. Remembers how it was asked."""

    config = TINY

    def __init__(self, sharpness):
        self.sharpness = sharpness
        self.calls = []

    def cache(self):
        return Cache()

    def forward(self, rows, cache):
        assert rows.positions_R[0] == cache.length
        self.calls.append(rows.ids_R)
        away_RV = np.abs(rows.ids_R[:, None] - np.arange(TINY.vocabulary)[None, :])
        return Forward((-self.sharpness * away_RV).astype(np.float32))


def read_slowly(ids, first, sharpness):
    bits = 0.0
    for before, token in zip(ids[first - 1 : -1], ids[first:], strict=True):
        weights = [math.exp(-sharpness * abs(int(before) - v)) for v in range(TINY.vocabulary)]
        bits -= math.log2(weights[int(token)] / sum(weights))
    return bits


@pytest.mark.parametrize("lines", [1, 20, 160])
@pytest.mark.parametrize("sharpness", [0.0, 0.02])
def test_tokens_of_the_text_count_once_each(lines, sharpness):
    text = "".join(TEXT.splitlines(keepends=True)[:lines])
    runtime = Successor(sharpness)
    found = read(runtime, TOKENIZER, HeldOutText("shapes.py", "python", text))
    asked = np.concatenate(runtime.calls)
    tokens = TOKENIZER.encode(text)
    ids = np.append(asked, tokens[len(asked) - (header := header_length(asked, tokens))])
    assert all(len(call) <= CHUNK for call in runtime.calls)
    assert len(ids) <= TINY.context
    assert found.bytes == len(TOKENIZER.decode_bytes(ids[header:].tolist()))
    assert found.bits == pytest.approx(read_slowly(ids, header, sharpness), rel=1e-4)
    if not sharpness:
        assert found.bits == pytest.approx((len(ids) - header) * math.log2(TINY.vocabulary), rel=1e-6)


def header_length(asked, tokens):
    """Where the text begins among the ids that were read."""
    return next(n for n in range(len(asked)) if list(asked[n : n + 4]) == tokens[: min(4, len(asked) - n)])
