"""An echo corrects the model where something was heard, nowhere else, and the same in every way to decode."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.decode.choice import Chooser
from mercury_engine.decode.echo import Echo, Heard, features, read_echo
from mercury_engine.model.config import TINY, ModelError
from mercury_engine.model.fitted import ECHO_FILE
from mercury_engine.tokens.vocabulary import EOM, SPECIALS
from tests.engine.tiny import TOKENIZER, engine, final, random_runtime, request

MARKED = "total = price * count\nsize = 1\ntotal = pri$0\n"
PARROT = Echo(bias=50.0, model=0.0, alike=0.0, places=0.0, agreeing=0.0)
INDIFFERENT = Echo(bias=0.0, model=1.0, alike=0.0, places=0.0, agreeing=0.0)
HALF = Echo(bias=0.5, model=0.3, alike=0.8, places=0.2, agreeing=1.0)


def said(echo, marked=MARKED, **options):
    return final(engine(random_runtime(), echo=echo, **options), request(marked)).spans[0]


def test_with_an_echo_that_is_always_believed_the_line_is_copied():
    answer = said(PARROT)
    assert answer.text == "ce * count"
    assert min(answer.confidence) > 0.99


def test_an_echo_that_only_repeats_the_models_opinion_changes_nothing():
    alone, echoed = said(None), said(INDIFFERENT)
    assert echoed.text == alone.text
    assert echoed.confidence == pytest.approx(alone.confidence, rel=1e-3)


@pytest.mark.parametrize("marked", [MARKED, "def area(self):\n    return self.width\ndef size(self):\n    $0\n"])
def test_what_is_said_does_not_depend_on_the_way_to_decode(marked):
    texts = {said(HALF, marked, decode=decode).text for decode in ("policy", "ar", "ar+copy")}
    assert len(texts) == 1


def test_old_text_is_not_rewritten_by_hearsay():
    marked = "print(size)\nprint(size)\nprint([[count]])\n"
    answers = {
        final(engine(random_runtime(), echo=echo), request(marked, mode="edit")).spans for echo in (None, PARROT)
    }
    assert len(answers) == 1


def test_more_alike_and_more_agreement_are_likelier():
    def odds(**changed):
        return HALF.log_odds(-1.0, Heard(**{"token": 9, "alike": 2, "places": 1, "agreeing": 0.5} | changed))

    assert odds(alike=8) > odds()
    assert odds(agreeing=1.0) > odds()


def chances(logits_V):
    """Of what may be said at all."""
    permitted_V = logits_V[[EOM, *range(len(SPECIALS), TOKENIZER.vocabulary)]].astype(float)
    odds_V = np.exp(permitted_V - permitted_V.max())
    return odds_V / odds_V.sum()


@settings(deadline=None, max_examples=60)
@given(
    st.floats(-6, 6),
    st.integers(len(SPECIALS), TOKENIZER.vocabulary - 1),
    st.floats(-8, 8),
    st.floats(-8, 8),
    st.integers(1, 8),
)
def test_what_is_heard_never_makes_the_end_less_likely(bias, token, end, own, alike):
    logits_V = np.random.default_rng(token).normal(size=TINY.vocabulary)
    logits_V[[EOM, token]] = end, own
    echo, heard = Echo(bias=bias, model=0.4, alike=0.6, places=0.2, agreeing=1.8), Heard(token, alike, 2, 0.5)
    log_odds = Chooser(TOKENIZER, TINY.vocabulary).log_odds(logits_V, b"", token)
    before, after = chances(logits_V), chances(echo.lean(logits_V, log_odds, heard))
    assert after[0] == pytest.approx(before[0], rel=1e-5)
    said = after[1 + token - len(SPECIALS)]
    assert np.log(said / (1 - after[0] - said)) == pytest.approx(echo.log_odds(log_odds, heard), abs=1e-4)


def test_an_end_that_is_heard_is_like_any_other_token():
    logits_V = np.zeros(TINY.vocabulary)
    heard = Heard(EOM, 3, 1, 1.0)
    log_odds = Chooser(TOKENIZER, TINY.vocabulary).log_odds(logits_V, b"", EOM)
    end = chances(HALF.lean(logits_V, log_odds, heard))[0]
    assert np.log(end / (1 - end)) == pytest.approx(HALF.log_odds(log_odds, heard))


def test_certainty_is_bounded():
    assert features(1e9, Heard(9, 1, 1, 1.0))[1] == 16


def test_coefficients_come_from_beside_the_weights(tmp_path):
    assert read_echo(tmp_path) is None
    (tmp_path / ECHO_FILE).write_text('{"bias": 1, "model": 0.5, "alike": 1, "places": 0, "agreeing": 2}')
    assert read_echo(tmp_path) == Echo(bias=1, model=0.5, alike=1, places=0, agreeing=2)
    (tmp_path / ECHO_FILE).write_text('{"bias": 1}')
    with pytest.raises(ModelError, match=rf"{ECHO_FILE}: .*; correct the file or remove it"):
        read_echo(tmp_path)
