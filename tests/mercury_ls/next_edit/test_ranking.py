import pytest

from mercury_engine.api import RescoringWeights
from mercury_ls.next_edit.ranking import can_be_shown

TRUSTED = RescoringWeights(model=0.5, own=0.0, own_ranked=0.0, own_model=0.5)
WORTHLESS = RescoringWeights(own=-20.0, own_ranked=0.0, own_model=0.0)


@pytest.mark.parametrize(("probability", "bar", "expected"), [(0.3, 0.5, True), (0.02, 0.5, False), (0.02, 0.0, True)])
def test_model_is_asked_where_what_it_writes_can_be_shown(probability, bar, expected):
    assert can_be_shown(TRUSTED, probability, bar) is expected


@pytest.mark.parametrize("probability", [0.001, 0.2, 0.499, 0.5, 0.8, 0.999])
def test_model_whose_word_counts_nothing_is_never_asked(probability):
    assert not can_be_shown(WORTHLESS, probability, 0.5)
