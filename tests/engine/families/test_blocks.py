"""Texts continued block by block by a runtime that knows how they go on."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.families.blocks import encode, proceed
from mercury_engine.families.context import Around
from mercury_engine.families.family import FAMILIES, family_named
from mercury_engine.families.progress import FillTarget
from tests.engine.families.fakes import check_random, encoded_of, model_of, words

CONTINUING = [family for family in FAMILIES if family.length == "continue"]


def knows_text(text, end):
    """Knows how a text goes on."""

    def script(runtime, sequence):
        return lambda position: (text[position] if position < len(text) else runtime.tokenizer.special(end), 0.95)

    return script


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 64, 200])
@pytest.mark.parametrize("family", CONTINUING, ids=lambda family: family.name)
def test_text_goes_on_as_model_knows(family, size):
    text = words(family, "def area(self):\n    return self.width * self.height\n" * 20)
    text = text[: size + 21]
    if family.shift and not size:
        return  # nothing predicts the first token of a text
    model, runtime = model_of(family, knows_text(text, family.ends[0]))
    encoded = encoded_of(runtime)
    *_, last = proceed(model, Around(text[:size], [], b""), FillTarget("block", 64), encoded)
    assert [token for token, _ in last.settled] == text[size:]
    assert last.done
    assert encoded.ids == [token for token, _ in encoded.cache.entries]
    assert encoded.ids == text[: len(encoded.ids)]


@pytest.mark.parametrize("family", CONTINUING, ids=lambda family: family.name)
def test_encoded_text_is_not_read_again(family):
    text = words(family, "def area(self):\n    return self.width * self.height\n" * 20)
    model, runtime = model_of(family, knows_text(text, family.ends[0]))
    encoded = encoded_of(runtime)
    list(encode(model, encoded, text[:200]))
    assert sum(runtime.rows) == 200 // family.block * family.block
    runtime.rows.clear()
    list(proceed(model, Around(text[:203], [], b""), FillTarget("block", 4), encoded))
    assert max(runtime.rows) <= family.block
    changed = [*text[:100], 7, *text[101:200]]
    list(encode(model, encoded, changed))
    assert encoded.ids == changed[: len(encoded.ids)]
    assert encoded.ids == [token for token, _ in encoded.cache.entries]


def test_window_is_settled_before_next():
    family = family_named("fast-dllm-v2")
    text = words(family, "abcdefghijklmnopqrstuvwxyz" * 4)
    model, runtime = model_of(family, knows_text(text, "<|im_end|>"))
    steps = [
        len(progress.settled)
        for progress in proceed(model, Around(text[:4], [], b""), FillTarget("block", 28), encoded_of(runtime))
    ]
    assert steps == [4, 12, 20, 28]


@settings(max_examples=40, deadline=None)
@given(
    family=st.sampled_from(CONTINUING),
    seed=st.integers(0, 1 << 16),
    limit=st.integers(1, 64),
    typed=st.sampled_from([b"", b"s", b"self", b"\xff"]),
    rank=st.integers(0, 3),
    sharpness=st.sampled_from([0.0, 3.0, 30.0]),
)
def test_random_logits_end_within_the_limit(family, seed, limit, typed, rank, sharpness):
    text, asked = Around(words(family, "a = "), [], typed), FillTarget("block", limit, rank=rank)
    check_random(family, seed, sharpness, limit, lambda model: proceed(model, text, asked, encoded_of(model.runtime)))
