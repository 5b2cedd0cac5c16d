"""Denoising with a runtime that knows the answer: gaps of unknown length, texts continued block by block."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.families.context import Around
from mercury_engine.families.decode import Asked, Encoded, FamilyModel, encode, fill, proceed
from mercury_engine.families.family import FAMILIES, family_named
from tests.engine.families.fakes import ScriptedRuntime, tokenizer_of

INFILLING = [family for family in FAMILIES if family.length != "continue"]
CONTINUING = [family for family in FAMILIES if family.length == "continue"]


def model_of(family, script, **options):
    tokenizer = tokenizer_of(family)
    runtime = ScriptedRuntime(family, tokenizer, script, **options)
    return FamilyModel(runtime, family, runtime.ids), runtime


def knows_gap(before, answer, after, sure=2):
    """Knows the tokens between two texts: `sure` of those that are missing from the left on. Where the gap has another
    length it is unsure, or resizes it."""

    def script(runtime, sequence):
        gap = sequence[len(before) : len(sequence) - len(after)]
        assert sequence == [*before, *gap, *after]
        masks = [slot for slot, token in enumerate(gap) if token == runtime.ids.mask]
        missing = len(answer) - (len(gap) - len(masks))
        resizes = runtime.ids.expand >= 0

        def said(position):
            slot = position - len(before)
            number = masks.index(slot)
            if resizes and missing > len(masks) and number == len(masks) - 1:
                return runtime.ids.expand, 0.95
            if not resizes and len(gap) != len(answer):
                return 0, 0.2 - abs(len(gap) - len(answer)) / 1000
            if number >= missing:
                return runtime.ids.delete, 0.6
            return answer[slot], 0.95 if number < sure else 0.3

        return said

    return script


def knows_text(text, end):
    """Knows how a text goes on."""

    def script(runtime, sequence):
        return lambda position: (text[position] if position < len(text) else runtime.tokenizer.special(end), 0.95)

    return script


def words(family, text):
    return tokenizer_of(family).encode(text)


@pytest.mark.parametrize("reread", [True, False], ids=["exact", "dual-cache"])
@pytest.mark.parametrize("family", INFILLING, ids=lambda family: family.name)
def test_the_answer_is_what_the_model_knows(family, reread):
    before, after = words(family, "def area(self):\n    "), words(family, "\n\n")
    for length in (4, 8, 16, 32):
        answer = words(family, "return self.width * self.height  # it's so")[:length]
        answer += range(length - len(answer))
        model, runtime = model_of(family, knows_gap(before, answer, after))
        *_, last = fill(model, Around(before, after, b""), Asked("line", 64, reread=reread))
        assert [token for token, _ in last.settled] == answer
        assert last.done
        assert len(runtime.rows) <= 5 + length
        if not reread and family.length == "try":
            assert runtime.rows[-1] == length + family.shift, "the text around the gap was not read again"


@pytest.mark.parametrize("answer", ["", "x", "return self.width * self.height", "return" * 40])
@pytest.mark.parametrize("sure", [1, 4])
def test_gaps_are_expanded_and_deleted(answer, sure):
    family = family_named("dreamon")
    before, after = words(family, "def area(self):\n    "), words(family, "\n\n")
    answer = words(family, answer)
    model, runtime = model_of(family, knows_gap(before, answer, after, sure=sure))
    *_, last = fill(model, Around(before, after, b""), Asked("line", 64))
    assert [token for token, _ in last.settled] == answer
    assert last.done
    assert max(map(len, runtime.sequences)) <= len(before) + 64 + len(after)


def test_one_at_a_time():
    family = family_named("open-dcoder")
    before, after, answer = words(family, "a = "), words(family, "\n"), list(b"12345678")
    counts = []
    for sure in (0.9, 2.0):
        model, runtime = model_of(family, knows_gap(before, answer, after, sure=8))
        *_, last = fill(model, Around(before, after, b""), Asked("line", 8, sure=sure))
        assert [token for token, _ in last.settled] == answer
        counts.append(len(runtime.rows))
    assert counts == [2, 9], "a look at 8 masks and at 4; then all at once, or one by one"


def test_a_begun_word_is_spelled_first():
    family = family_named("dream")
    before, after = words(family, "a = "), words(family, "\n")
    answer = words(family, "self.width()\n\n")
    answer = (answer + words(family, "12345678"))[:8]

    def script(runtime, sequence):
        said = knows_gap(before, answer, after)(runtime, sequence)
        return lambda position: (words(family, "x")[0], 0.5) if position == len(before) else said(position)

    model, _ = model_of(family, script)
    *_, last = fill(model, Around(before, after, b"se"), Asked("line", 8))
    spelled = tokenizer_of(family).decode_bytes(token for token, _ in last.settled)
    assert spelled.startswith(b"se")


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 64, 200])
@pytest.mark.parametrize("family", CONTINUING, ids=lambda family: family.name)
def test_a_text_goes_on_as_the_model_knows(family, size):
    text = words(family, "def area(self):\n    return self.width * self.height\n" * 20)
    text = text[: size + 21]
    if family.shift and not size:
        return  # nothing predicts the first token of a text
    model, runtime = model_of(family, knows_text(text, family.ends[0]))
    encoded = Encoded(runtime.cache())
    *_, last = proceed(model, encoded, Around(text[:size], [], b""), Asked("block", 64))
    assert [token for token, _ in last.settled] == text[size:]
    assert last.done
    assert encoded.ids == [token for token, _ in encoded.cache.entries]
    assert encoded.ids == text[: len(encoded.ids)]


@pytest.mark.parametrize("family", CONTINUING, ids=lambda family: family.name)
def test_what_was_encoded_is_not_read_again(family):
    text = words(family, "def area(self):\n    return self.width * self.height\n" * 20)
    model, runtime = model_of(family, knows_text(text, family.ends[0]))
    encoded = Encoded(runtime.cache())
    list(encode(model, encoded, text[:200]))
    assert sum(runtime.rows) == 200 // family.block * family.block
    runtime.rows.clear()
    list(proceed(model, encoded, Around(text[:203], [], b""), Asked("block", 4)))
    assert max(runtime.rows) <= family.block
    changed = [*text[:100], 7, *text[101:200]]
    list(encode(model, encoded, changed))
    assert encoded.ids == changed[: len(encoded.ids)]
    assert encoded.ids == [token for token, _ in encoded.cache.entries]


def test_a_window_is_settled_before_the_next():
    family = family_named("fast-dllm-v2")
    text = words(family, "abcdefghijklmnopqrstuvwxyz" * 4)
    model, runtime = model_of(family, knows_text(text, "<|im_end|>"))
    steps = [
        len(progress.settled)
        for progress in proceed(model, Encoded(runtime.cache()), Around(text[:4], [], b""), Asked("block", 28))
    ]
    assert steps == [4, 12, 20, 28]


@settings(max_examples=40, deadline=None)
@given(
    family=st.sampled_from(FAMILIES),
    seed=st.integers(0, 1 << 16),
    limit=st.integers(1, 64),
    typed=st.sampled_from([b"", b"s", b"self", b"\xff"]),
    mode=st.sampled_from(["line", "block"]),
    rank=st.integers(0, 3),
    reread=st.booleans(),
    sharpness=st.sampled_from([0.0, 3.0, 30.0]),
)
def test_random_logits_end_within_the_limit(family, seed, limit, typed, mode, rank, reread, sharpness):
    random = np.random.default_rng(seed)
    model, runtime = model_of(family, None)

    def forward(rows, cache):
        entries = list(zip(rows.ids_R.tolist(), rows.positions_R.tolist(), strict=True))
        runtime.rows.append(len(entries))
        logits = random.normal(size=(len(rows.wanted), runtime.config.vocabulary)).astype(np.float32) * sharpness
        return type("Forward", (), {"logits_WV": logits, "entries": entries})

    runtime.forward = forward
    text = Around(words(family, "a = "), words(family, "\n") if family.length != "continue" else [], typed)
    asked = Asked(mode, limit, rank=rank, reread=reread)
    steps = (
        fill(model, text, asked)
        if family.length != "continue"
        else proceed(model, Encoded(runtime.cache()), text, asked)
    )
    count = 0
    for count, progress in enumerate(steps, 1):
        assert len(runtime.rows) == count, "one forward to a step"
        assert len(progress.settled) <= limit
        ids = [token for token, _ in progress.settled]
        assert not {*ids} & {*model.vocabulary._never.tolist()}
        assert not {*ids} & {model.vocabulary.expand, model.vocabulary.delete, *model.vocabulary.ends}
    assert count <= 3 * (limit + family.block) + 5
