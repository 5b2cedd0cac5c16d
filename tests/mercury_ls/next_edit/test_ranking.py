import pytest

from mercury_engine.api import RescoringWeights
from mercury_ls.next_edit.ranking import is_open

TRUSTED = RescoringWeights(model=0.5, agreement=1.0, own=0.0, own_ranked=0.0, own_model=0.5)
WORTHLESS = RescoringWeights(own=-20.0, own_ranked=0.0, own_model=0.0)


@pytest.mark.parametrize(
    ("probability", "is_known", "bar", "expected"),
    [
        (0.99, True, 0.5, False),
        (0.55, True, 0.5, True),
        (0.3, True, 0.5, True),
        (0.01, True, 0.5, False),
        (0.3, False, 0.5, True),
        (0.02, False, 0.5, False),
        (0.02, False, 0.0, True),
    ],
)
def test_a_model_is_worth_asking_where_its_word_decides(probability, is_known, bar, expected):
    assert is_open(TRUSTED, probability, is_known, bar) is expected


@pytest.mark.parametrize("probability", [0.001, 0.2, 0.499, 0.5, 0.8, 0.999])
def test_a_model_whose_word_counts_nothing_is_never_asked(probability):
    assert not is_open(WORTHLESS, probability, True, 0.5)
    assert not is_open(WORTHLESS, probability, False, 0.5)
