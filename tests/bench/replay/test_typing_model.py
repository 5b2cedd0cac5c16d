import random

import pytest

from bench.replay.typing_model import Pauses, draw, load


def test_drawn_pauses_have_the_quantiles_that_were_fitted():
    model, chance = {"in_word": Pauses(9, (1, 50, 99), (10, 90, 500))}, random.Random(1)
    drawn = sorted(draw(model, "in_word", chance) for _ in range(2001))
    assert drawn[1000] == pytest.approx(90, rel=0.1)
    assert 10 <= drawn[0] <= drawn[-1] <= 500


def test_fitted_model_knows_every_kind_that_typist_needs():
    model = load()
    assert {"in_word", "boundary", "newline", "line_start", "after_jump", "backspace", "delete_first"} <= set(model)
    assert all(found.ms == tuple(sorted(found.ms)) for found in model.values())
