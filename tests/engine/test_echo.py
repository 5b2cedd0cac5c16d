"""An echo corrects the model where something was heard, nowhere else, and the same in every way to decode."""

import pytest

from mercury_engine.config import ModelError
from mercury_engine.echo import ECHO_FILE, Echo, Heard, features, read_echo
from tests.engine.tiny import engine, final, random_runtime, request

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


def test_certainty_is_bounded():
    assert features(1e9, Heard(9, 1, 1, 1.0))[1] == 16


def test_coefficients_come_from_beside_the_weights(tmp_path):
    assert read_echo(tmp_path) is None
    (tmp_path / ECHO_FILE).write_text('{"bias": 1, "model": 0.5, "alike": 1, "places": 0, "agreeing": 2}')
    assert read_echo(tmp_path) == Echo(bias=1, model=0.5, alike=1, places=0, agreeing=2)
    (tmp_path / ECHO_FILE).write_text('{"bias": 1}')
    with pytest.raises(ModelError, match=rf"{ECHO_FILE}: .*; correct the file or remove it"):
        read_echo(tmp_path)
