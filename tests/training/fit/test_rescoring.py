"""What a model's word counts is learned from its opinions, and is found beside its weights."""

import msgspec
import numpy as np
import pytest

from mercury_engine.api import RescoringWeights
from mercury_engine.engine import open_engine
from mercury_engine.model.fitted import RESCORING_FILE, read_fitted
from mercury_ls.next_edit.ranking import rescored_probability
from mercury_training.fit.rank_edits import LabelledEdit
from mercury_training.fit.rescoring import feature_vector, fit_bar, fit_rescoring, main, predicts_better
from tests.training.small import exported


def test_without_opinions_the_guess_stands():
    assert fit_rescoring([]) == RescoringWeights()


def test_a_model_that_knows_nothing_loses_its_say():
    draw = np.random.default_rng(0)
    rows = [
        LabelledEdit(n, "repeat", "rename", {}, bool(draw.random() < p), False, p, float(draw.random()), sign)
        for n, (p, sign) in enumerate(zip(draw.random(5000), draw.choice([-1.0, 1.0], 5000), strict=True))
    ]
    found = fit_rescoring(rows)
    assert found.ranked == pytest.approx(1.0, abs=0.1)
    assert found.model == pytest.approx(0.0, abs=0.1)
    assert found.agreement == pytest.approx(0.0, abs=0.1)


def opinions(count: int, agreement) -> list[LabelledEdit]:
    """Of edits that are right every other time; `agreement` tells what the model says of each."""
    right = [n % 4 < 2 for n in range(count)]
    return [
        LabelledEdit(n, "repeat", "rename", {}, yes, False, 0.5, 0.5, agreement(yes)) for n, yes in enumerate(right)
    ]


def test_a_model_is_listened_to_only_if_it_tells_more_than_the_ranking():
    assert predicts_better(opinions(400, lambda right: 1.0 if right else -1.0))
    assert not predicts_better(opinions(400, lambda right: -1.0))
    assert not predicts_better(opinions(1, lambda right: 1.0))
    assert not predicts_better([])


def test_a_model_is_as_sure_as_it_was_once_in_twenty_times():
    rows = [LabelledEdit(n, "repeat", "rename", {}, False, False, 0.5, n / 100, 1.0) for n in range(100)]
    assert fit_rescoring(rows).surest == pytest.approx(0.94, abs=0.01)


def test_the_bar_counts_the_models_own_edits():
    rows = [LabelledEdit(n, "none", "line", {}, False, False, 0.5, n / 400, 0.0) for n in range(400)]
    rows += [LabelledEdit(n, "none", "nothing", {}, False) for n in range(400, 800)]
    bar = fit_bar(rows, RescoringWeights(), {})
    assert bar is not None
    assert fit_bar(rows[:400], RescoringWeights(), {}) > bar


def test_a_few_silent_rows_set_no_bar():
    rows = [LabelledEdit(n, "none", "line", {}, False, False, 0.5, n / 100, 0.0) for n in range(100)]
    assert fit_bar(rows, RescoringWeights(), {}) is None
    assert fit_bar([], RescoringWeights(), {}) is None


@pytest.mark.parametrize("agreement", [1.0, 0.0, -1.0])
def test_the_server_reads_the_coefficients_as_they_are_fitted(agreement):
    worth = RescoringWeights(0.3, 0.7, 0.2, 0.9, -0.4, 0.6, 0.5)
    opinion = LabelledEdit(0, "repeat", "rename", {}, True, False, 0.6, 0.8, agreement)
    score = float(np.dot(feature_vector(opinion), [0.3, 0.7, 0.2, 0.9, -0.4, 0.6, 0.5]))
    assert rescored_probability(worth, 0.6, 0.8, agreement) == pytest.approx(1 / (1 + np.exp(-score)))


def test_it_is_found_beside_the_weights_and_told_by_the_engine(tmp_path):
    folder = exported(tmp_path)
    assert open_engine(folder).info().rescoring is None
    agreed, path = opinions(200, lambda right: 1.0 if right else -1.0), tmp_path / "opinions.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in agreed))
    main([str(path), "--model", str(folder)])
    told = open_engine(folder).info().rescoring
    assert told == read_fitted(folder, RESCORING_FILE, RescoringWeights)
    assert told.agreement > RescoringWeights().agreement, "what it agreed to was right"


def test_one_that_tells_nothing_leaves_the_ranking_as_it_is(tmp_path):
    folder, path = exported(tmp_path), tmp_path / "opinions.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in opinions(200, lambda right: -1.0)))
    main([str(path), "--model", str(folder)])
    assert read_fitted(folder, RESCORING_FILE, RescoringWeights) == RescoringWeights(surest=0.5)
