"""Places of commits are asked for with what was done before them, and fitted weights find them."""

import random

from mercury_training.edits import places, spots
from mercury_training.edits.places import fit, questions, rank
from tests.training.edits.test_rows import AFTER, BEFORE, commit


def asked():
    return [*questions(commit(BEFORE, AFTER), random.Random(0))]


def test_questions_know_what_was_done_before():
    first, second = asked()
    assert (len(first.past), len(second.past)) == (1, 2)
    assert first.files["a.py"][0] == "def surface(w, h):\n"
    assert "".join(first.files["a.py"][first.first : first.stop]) == "a = area(1, 2)\n"
    assert second.is_near("a.py", second.first)
    assert not second.is_near("b.py", second.first)


def test_fitted_weights_find_the_places_that_they_were_fitted_to(monkeypatch):
    monkeypatch.setattr(places, "ROUNDS", 50)
    monkeypatch.setattr(spots, "WEIGHTS", fit(asked(), random.Random(1)))
    assert [rank(question) for question in asked()] == [0, 0]
