"""How likely what a model writes is, is learned from what it has written, and is found beside its weights."""

import msgspec
import numpy as np
import pytest

from mercury_engine.api import RescoringWeights
from mercury_engine.engine import open_engine
from mercury_engine.model.fitted import RESCORING_FILE, read_fitted
from mercury_ls.next_edit.ranking import written_probability
from mercury_training.fit.rank_edits import LabelledEdit
from mercury_training.fit.rescoring import feature_vector, fit_bar, fit_rescoring, main, predicts_better
from tests.training.small import exported


def test_without_opinions_the_guess_stands():
    assert fit_rescoring([]) == RescoringWeights()


def test_ignorant_model_loses_its_say():
    draw = np.random.default_rng(0)
    rows = [
        LabelledEdit(n, "repeat", "written", {}, bool(draw.random() < p), False, p, float(draw.random()))
        for n, p in enumerate(draw.random(5000))
    ]
    fitted = fit_rescoring(rows)
    assert fitted.ranked + fitted.own_ranked == pytest.approx(1.0, abs=0.1)
    assert fitted.model + fitted.own_model == pytest.approx(0.0, abs=0.1)


def written(count: int, p_model) -> list[LabelledEdit]:
    """Edits that are right every other time; the function says how sure the model was of each."""
    right = [n % 4 < 2 for n in range(count)]
    return [LabelledEdit(n, "repeat", "written", {}, yes, False, 0.5, p_model(yes)) for n, yes in enumerate(right)]


def test_fit_counts_only_if_it_tells_more_than_defaults():
    assert predicts_better(written(400, lambda right: 0.2 if right else 0.8))
    assert not predicts_better(written(1, lambda right: 0.8))
    assert not predicts_better([])


def test_model_is_as_sure_as_it_was_once_in_twenty_times():
    rows = [LabelledEdit(n, "repeat", "written", {}, False, False, 0.5, n / 100) for n in range(100)]
    assert fit_rescoring(rows).surest == pytest.approx(0.94, abs=0.01)


def test_bar_counts_edits_of_the_model_itself():
    rows = [LabelledEdit(n, "none", "written", {}, False, False, 0.5, n / 400) for n in range(400)]
    rows += [LabelledEdit(n, "none", "nothing", {}, False) for n in range(400, 800)]
    bar = fit_bar(rows, RescoringWeights(), {})
    assert bar is not None
    assert fit_bar(rows[:400], RescoringWeights(), {}) > bar


def test_few_silent_rows_set_no_bar():
    rows = [LabelledEdit(n, "none", "written", {}, False, False, 0.5, n / 100) for n in range(100)]
    assert fit_bar(rows, RescoringWeights(), {}) is None
    assert fit_bar([], RescoringWeights(), {}) is None


def test_server_reads_coefficients_as_they_are_fitted():
    weights = RescoringWeights(0.3, 0.7, 0.2, -0.4, 0.6, 0.5)
    edit = LabelledEdit(0, "repeat", "written", {}, True, False, 0.6, 0.8)
    score = float(np.dot(feature_vector(edit), [0.3, 0.7, 0.2, -0.4, 0.6, 0.5]))
    assert written_probability(weights, 0.6, 0.8) == pytest.approx(1 / (1 + np.exp(-score)))


def test_fit_is_found_beside_the_weights_and_reported_by_the_engine(tmp_path):
    folder = exported(tmp_path)
    assert open_engine(folder).info().rescoring is None
    rows, path = written(200, lambda right: 0.9 if right else 0.8), tmp_path / "written.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in rows))
    main([str(path), "--model", str(folder)])
    told = open_engine(folder).info().rescoring
    assert told == read_fitted(folder, RESCORING_FILE, RescoringWeights)
    assert told.own_model > RescoringWeights().own_model, "what it was surer of was right"


def test_uninformative_row_keeps_the_defaults(tmp_path):
    folder, path = exported(tmp_path), tmp_path / "written.jsonl"
    path.write_bytes(msgspec.json.encode(written(1, lambda right: 0.5)[0]) + b"\n")
    main([str(path), "--model", str(folder)])
    assert read_fitted(folder, RESCORING_FILE, RescoringWeights) == RescoringWeights(surest=0.5)
