"""Logits that nobody looks at are never fetched, and look like any others to those who do."""

import numpy as np
import pytest

from mercury_engine.api import EngineError
from mercury_engine.decode.choice import Chooser
from mercury_engine.model.runtime import Choices, Predictions
from tests.engine.tiny import TOKENIZER

VOCABULARY = TOKENIZER.vocabulary
CHOOSER = Chooser(TOKENIZER, VOCABULARY)
LOGITS = np.random.default_rng(0).normal(0, 3, (4, VOCABULARY)).astype(np.float32)


def predicted(*, broken=False):
    """Predictions, and how often their logits were fetched."""
    fetched = []

    def fetch():
        fetched.append(1)
        return LOGITS

    ranked = [(choice.token, choice.probability, *choice.others[0]) for choice in CHOOSER.slots(LOGITS, b"", 1)]
    figures = np.array(ranked).reshape(len(LOGITS), 2, 2)
    choices = Choices(figures[:, :, 0].astype(np.int32), figures[:, :, 1] * (np.nan if broken else 1))
    return Predictions(fetch, choices, np.arange(len(LOGITS))), fetched


def test_best_token_needs_no_logits():
    found, fetched = predicted()
    best = [CHOOSER.best(row, b"") for row in found]
    assert [choice.token for choice in best] == [CHOOSER.best(row, b"").token for row in LOGITS]
    assert CHOOSER.slots(found[[2, 0]], b"", 1) == CHOOSER.slots(LOGITS[[2, 0]], b"", 1)
    assert len(found) == 4
    assert not fetched


@pytest.mark.parametrize(
    "ask",
    [
        lambda row: CHOOSER.best(row, b"de"),
        lambda row: CHOOSER.best(row, b"", 2),
        lambda row: CHOOSER.forced(row, b"", 80),
        lambda row: float(row[70]),
        lambda row: row.copy().shape,
    ],
)
def test_logits_are_fetched_when_asked_for(ask):
    found, fetched = predicted()
    assert ask(found[1]) == ask(LOGITS[1])
    assert fetched


def test_columns_of_several_rows_are_numbers():
    found, _ = predicted()
    np.testing.assert_array_equal(found[1:3][:, 5:9], LOGITS[1:3, 5:9])


def test_row_without_distribution_is_an_error():
    found, _ = predicted(broken=True)
    with pytest.raises(EngineError, match="not a distribution"):
        CHOOSER.best(found[0], b"")
