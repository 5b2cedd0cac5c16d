"""The copy bias corrects the model where there is a copy, nowhere else, and the same in every way to decode."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.decode.choice import Chooser
from mercury_engine.decode.copy_bias import CopyBias, CopyMatch, features, read_copy_bias
from mercury_engine.model.config import TINY, ModelError
from mercury_engine.model.fitted import COPY_BIAS_FILE
from mercury_engine.tokens.vocabulary import EOM, SPECIALS
from tests.engine.tiny import TOKENIZER, engine, final, random_runtime, request

MARKED = "total = price * count\nsize = 1\ntotal = pri$0\n"
PARROT = CopyBias(bias=50.0, model=0.0, alike=0.0, places=0.0, agreeing=0.0)
INDIFFERENT = CopyBias(bias=0.0, model=1.0, alike=0.0, places=0.0, agreeing=0.0)
HALF = CopyBias(bias=0.5, model=0.3, alike=0.8, places=0.2, agreeing=1.0)


def answer(bias, marked=MARKED, **options):
    return final(engine(random_runtime(), copy_bias=bias, **options), request(marked)).spans[0]


def test_with_an_overwhelming_bias_the_line_is_copied():
    found = answer(PARROT)
    assert found.text == "ce * count"
    assert min(found.confidence) > 0.99


def test_bias_that_repeats_model_odds_changes_nothing():
    plain, biased = answer(None), answer(INDIFFERENT)
    assert biased.text == plain.text
    assert biased.confidence == pytest.approx(plain.confidence, rel=1e-3)


@pytest.mark.parametrize("marked", [MARKED, "def area(self):\n    return self.width\ndef size(self):\n    $0\n"])
def test_answers_do_not_depend_on_the_way_to_decode(marked):
    texts = {answer(HALF, marked, decode=decode).text for decode in ("policy", "ar", "ar+copy")}
    assert len(texts) == 1


def test_copies_do_not_change_how_old_text_is_rewritten():
    marked = "print(size)\nprint(size)\nprint([[count]])\n"
    answers = {
        final(engine(random_runtime(), copy_bias=bias), request(marked, mode="edit")).spans for bias in (None, PARROT)
    }
    assert len(answers) == 1


def test_more_alike_and_more_agreement_are_likelier():
    def odds(**changed):
        return HALF.log_odds(-1.0, CopyMatch(**{"token": 9, "alike": 2, "places": 1, "agreeing": 0.5} | changed))

    assert odds(alike=8) > odds()
    assert odds(agreeing=1.0) > odds()


def chances(logits_V):
    """Of the permitted tokens."""
    permitted_V = logits_V[[EOM, *range(len(SPECIALS), TOKENIZER.vocabulary)]].astype(float)
    odds_V = np.exp(permitted_V - permitted_V.max())
    return odds_V / odds_V.sum()


@settings(max_examples=60)
@given(
    st.floats(-6, 6),
    st.integers(len(SPECIALS), TOKENIZER.vocabulary - 1),
    st.floats(-8, 8),
    st.floats(-8, 8),
    st.integers(1, 8),
)
def test_copy_never_makes_the_end_less_likely(bias, token, end, own, alike):
    logits_V = np.random.default_rng(token).normal(size=TINY.vocabulary)
    logits_V[[EOM, token]] = end, own
    copy_bias, match = (
        CopyBias(bias=bias, model=0.4, alike=0.6, places=0.2, agreeing=1.8),
        CopyMatch(token, alike, 2, 0.5),
    )
    log_odds = Chooser(TOKENIZER, TINY.vocabulary).log_odds(logits_V, b"", token)
    before, after = chances(logits_V), chances(copy_bias.apply(logits_V, log_odds, match))
    assert after[0] == pytest.approx(before[0], rel=1e-5)
    copied = after[1 + token - len(SPECIALS)]
    assert np.log(copied / (1 - after[0] - copied)) == pytest.approx(copy_bias.log_odds(log_odds, match), abs=1e-4)


def test_copied_end_is_like_any_other_token():
    logits_V = np.zeros(TINY.vocabulary)
    match = CopyMatch(EOM, 3, 1, 1.0)
    log_odds = Chooser(TOKENIZER, TINY.vocabulary).log_odds(logits_V, b"", EOM)
    end = chances(HALF.apply(logits_V, log_odds, match))[0]
    assert np.log(end / (1 - end)) == pytest.approx(HALF.log_odds(log_odds, match))


def test_certainty_is_bounded():
    assert features(1e9, CopyMatch(9, 1, 1, 1.0))[1] == 16


def test_coefficients_come_from_beside_the_weights(tmp_path):
    assert read_copy_bias(tmp_path) is None
    (tmp_path / COPY_BIAS_FILE).write_text('{"bias": 1, "model": 0.5, "alike": 1, "places": 0, "agreeing": 2}')
    assert read_copy_bias(tmp_path) == CopyBias(bias=1, model=0.5, alike=1, places=0, agreeing=2)
    (tmp_path / COPY_BIAS_FILE).write_text('{"bias": 1}')
    with pytest.raises(ModelError, match=rf"{COPY_BIAS_FILE}: .*; correct the file or remove it"):
        read_copy_bias(tmp_path)
