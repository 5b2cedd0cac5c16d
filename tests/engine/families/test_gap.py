"""Gaps of unknown length, filled with a runtime that knows the answer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.families.context import Around
from mercury_engine.families.family import FAMILIES, family_named
from mercury_engine.families.gap import PATCHED, fill, read_ahead
from mercury_engine.families.progress import FillTarget
from tests.engine.families.fakes import check_random, encoded_of, model_of, tokenizer_of, words

INFILLING = [family for family in FAMILIES if family.length != "continue"]


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


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "dual-cache"])
@pytest.mark.parametrize("family", INFILLING, ids=lambda family: family.name)
def test_answer_is_what_model_knows(family, exact):
    before, after = words(family, "def area(self):\n    "), words(family, "\n\n")
    for length in (4, 8, 16, 32):
        answer = words(family, "return self.width * self.height  # it's so")[:length]
        answer += range(length - len(answer))
        model, runtime = model_of(family, knows_gap(before, answer, after))
        *_, last = fill(model, Around(before, after, b""), FillTarget("line", 64), encoded_of(runtime, exact=exact))
        assert [token for token, _ in last.settled] == answer
        assert last.done
        assert len(runtime.rows) <= 5 + length
        if not exact and family.length == "try":
            assert runtime.rows[-1] == length + family.shift, "the text around the gap was not read again"


@pytest.mark.parametrize("answer", ["", "x", "return self.width * self.height", "return" * 40])
@pytest.mark.parametrize("sure", [1, 4])
def test_gaps_are_expanded_and_deleted(answer, sure):
    family = family_named("dreamon")
    before, after = words(family, "def area(self):\n    "), words(family, "\n\n")
    answer = words(family, answer)
    model, runtime = model_of(family, knows_gap(before, answer, after, sure=sure))
    *_, last = fill(model, Around(before, after, b""), FillTarget("line", 64))
    assert [token for token, _ in last.settled] == answer
    assert last.done
    assert max(map(len, runtime.sequences)) <= len(before) + 64 + len(after)


def test_gap_is_filled_one_token_at_a_time():
    family = family_named("open-dcoder")
    before, after, answer = words(family, "a = "), words(family, "\n"), list(b"12345678")
    counts = []
    for sure in (0.9, 2.0):
        model, runtime = model_of(family, knows_gap(before, answer, after, sure=8))
        *_, last = fill(model, Around(before, after, b""), FillTarget("line", 8, sure=sure))
        assert [token for token, _ in last.settled] == answer
        counts.append(len(runtime.rows))
    assert counts == [1, 8], "all at once, or one by one"


def test_begun_word_is_spelled_first():
    family = family_named("dream")
    before, after = words(family, "a = "), words(family, "\n")
    answer = words(family, "self.width()\n\n")
    answer = (answer + words(family, "12345678"))[:8]

    def script(runtime, sequence):
        said = knows_gap(before, answer, after)(runtime, sequence)
        return lambda position: (words(family, "x")[0], 0.5) if position == len(before) else said(position)

    model, _ = model_of(family, script)
    *_, last = fill(model, Around(before, after, b"se"), FillTarget("line", 8))
    spelled = tokenizer_of(family).decode_bytes(token for token, _ in last.settled)
    assert spelled.startswith(b"se")


def test_gap_has_one_length_where_there_is_no_time():
    family = family_named("llada")
    before, after, answer = words(family, "a = "), words(family, "\n"), list(b"0123456789abcdef")
    model, runtime = model_of(family, knows_gap(before, answer, after, sure=16))
    *_, last = fill(model, Around(before, after, b""), FillTarget("line", 64, compare=False))
    assert [token for token, _ in last.settled] == answer
    assert len(runtime.rows) == 1


def typed(family, encoded, model, before, after):
    list(fill(model, Around(before, after, b""), FillTarget("line", 8), encoded))


@pytest.mark.parametrize("family", INFILLING, ids=lambda family: family.name)
def test_typing_reads_what_was_typed_and_what_is_behind(family):
    text, after = list(b"0123456789" * 9), list(b"\n\nx")
    model, runtime = model_of(family, lambda runtime, sequence: lambda position: (65, 0.95))
    encoded = encoded_of(runtime)
    list(read_ahead(model, Around(text[:60], after, b""), FillTarget("line", 8), encoded))
    assert len(runtime.rows) == 1
    assert not list(read_ahead(model, Around(text[:60], after, b""), FillTarget("line", 8), encoded))
    for size in (61, 62, 64):
        runtime.rows.clear()
        typed(family, encoded, model, text[:size], after)
        assert runtime.rows[0] <= 2 + 8 + len(after) + family.shift
    runtime.rows.clear()
    typed(family, encoded, model, text[:50], after)
    assert runtime.rows[0] <= 8 + len(after) + family.shift, "deleting reads nothing of what is left"
    assert [token for token, _ in encoded.cache.entries][: 50 - family.shift] == text[: 50 - family.shift]


@pytest.mark.parametrize("family", INFILLING, ids=lambda family: family.name)
def test_everything_is_read_again_in_the_end(family):
    text, after = list(b"0123456789" * 9), list(b"\n\nx")
    model, runtime = model_of(family, lambda runtime, sequence: lambda position: (65, 0.95))
    encoded = encoded_of(runtime)
    typed(family, encoded, model, text[:20], after)
    runtime.rows.clear()
    typed(family, encoded, model, text[: 20 + PATCHED + 1], after)
    assert runtime.rows[0] > 20 + PATCHED
    runtime.rows.clear()
    typed(family, encoded, model, text[: 20 + PATCHED + 1], list(b")\n\nx"))
    assert runtime.rows[0] > 20 + PATCHED, "what is behind the gap is another text"


@settings(max_examples=40, deadline=None)
@given(
    family=st.sampled_from(INFILLING),
    seed=st.integers(0, 1 << 16),
    limit=st.integers(1, 64),
    typed=st.sampled_from([b"", b"s", b"self", b"\xff"]),
    what=st.sampled_from(["line", "inside", "block"]),
    rank=st.integers(0, 3),
    exact=st.booleans(),
    sharpness=st.sampled_from([0.0, 3.0, 30.0]),
)
def test_random_logits_end_within_the_limit(family, seed, limit, typed, what, rank, exact, sharpness):
    text = Around(words(family, "a = "), words(family, "\n"), typed)
    asked = FillTarget(what, limit, rank=rank)

    def steps(model):
        return fill(model, text, asked, encoded_of(model.runtime, exact=exact))

    check_random(family, seed, sharpness, limit, steps)
