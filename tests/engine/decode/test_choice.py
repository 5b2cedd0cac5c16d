"""Greedy choice: no special tokens but the end, begun words spelled exactly, honest probabilities."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.decode.choice import Chooser
from mercury_engine.model.config import TINY
from mercury_engine.tokens.vocabulary import EOM, MASK, SPECIALS
from tests.engine.tiny import TOKENIZER

CHOOSER = Chooser(TOKENIZER, TINY.vocabulary)


def logits(**likely):
    """Flat but for some tokens, by their text or as `id_N`."""
    found = np.zeros(TINY.vocabulary, np.float32)
    for name, value in likely.items():
        found[int(name[3:]) if name.startswith("id_") else TOKENIZER.encode(name)[0]] = value
    return found


def test_likeliest_token_comes_with_its_probability():
    choice = CHOOSER.best(logits(self=9.0, a=5.0), b"", 1)
    assert TOKENIZER.decode([choice.token]) == "self"
    permitted = TOKENIZER.vocabulary - len(SPECIALS) + 1
    total = np.exp(9.0) + np.exp(5.0) + permitted - 2
    np.testing.assert_allclose(choice.probability, np.exp(9.0) / total, rtol=1e-4)
    assert choice.others[0][0] == TOKENIZER.encode("a")[0]
    np.testing.assert_allclose(choice.others[0][1], np.exp(5.0) / total, rtol=1e-4)


def test_specials_and_ids_without_a_token_are_never_said():
    beyond = TOKENIZER.vocabulary
    choice = CHOOSER.best(logits(**{f"id_{MASK}": 50.0, f"id_{beyond}": 60.0, "a": 1.0}), b"")
    assert TOKENIZER.decode([choice.token]) == "a"


def test_end_may_be_chosen_unless_word_is_begun():
    said = logits(**{f"id_{EOM}": 9.0, "self": 1.0})
    assert CHOOSER.best(said, b"").token == EOM
    assert TOKENIZER.decode([CHOOSER.best(said, b"se").token]) == "self"


def test_forced_token_has_the_probability_that_it_had():
    said = logits(self=2.0, a=1.0)
    best, other = CHOOSER.best(said, b""), CHOOSER.forced(said, b"", TOKENIZER.encode("a")[0])
    np.testing.assert_allclose(best.probability / other.probability, np.e, rtol=1e-4)
    assert CHOOSER.forced(said, b"z", TOKENIZER.encode("a")[0]).probability == 0


@settings(max_examples=60)
@given(st.text("self.wdth é=", min_size=1, max_size=12), st.integers(0, 99))
def test_slots_spell_the_begun_word_first(part, seed):
    drawn = np.random.default_rng(seed).normal(size=(24, TINY.vocabulary)).astype(np.float32) * 5
    slots = CHOOSER.slots(drawn, part.encode())
    ids = [choice.token for choice in slots]
    assert TOKENIZER.decode_bytes(ids).startswith(part.encode())
    assert all(0 < choice.probability <= 1 for choice in slots)
    free = CHOOSER.slots(drawn, b"")
    covered = int(np.searchsorted(np.cumsum([len(TOKENIZER.token_bytes[i]) for i in ids]), len(part.encode())))
    assert slots[covered + 1 :] == free[covered + 1 :]


def test_slot_alone_and_among_others_says_the_same():
    drawn = np.random.default_rng(0).normal(size=(8, TINY.vocabulary)).astype(np.float32)
    together = CHOOSER.slots(drawn, b"", 3)
    singly = [CHOOSER.best(row, b"", 3) for row in drawn]
    for one, other in zip(together, singly, strict=True):
        assert (one.token, [token for token, _ in one.others]) == (other.token, [token for token, _ in other.others])
        np.testing.assert_allclose(one.probability, other.probability, rtol=1e-5)
        np.testing.assert_allclose([share for _, share in one.others], [share for _, share in other.others], rtol=1e-5)
