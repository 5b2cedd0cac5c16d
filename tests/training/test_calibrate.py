"""Coefficients are found where they can be known, judged on other rows, and written where the engine reads them."""

import math

import msgspec
import numpy as np
import pytest

from mercury_engine.decode.confidence import Calibration, read_calibration
from mercury_engine.model.config import CALIBRATION_FILE
from mercury_engine.model.export import read
from mercury_engine.opening import open_model
from mercury_training import calibrate
from mercury_training.calibrate import Observation, fit_bar, fit_confidence, main, report, shown_at
from tests.engine.test_opening import CPU, added
from tests.engine.tiny import random_runtime
from tests.training.small import TOKENIZER, exported, fim_row


def observations(count, weights, seed=0):
    """Answers that are right exactly as often as these weights say."""
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        mean, length = -draw.exponential(0.3), float(draw.integers(1, 30))
        joint = -draw.exponential(1.0)
        seen = (mean, mean * draw.uniform(1, 3), length, float(draw.integers(2)), joint)
        chance = 1 / (1 + math.exp(-(weights.bias + np.dot(weights.weights[1:], seen))))
        found.append(Observation(seen, bool(draw.random() < chance)))
    return found


def test_true_parameters_are_found_again():
    truth = Calibration(0.5, least=0.5, complete=0.8, joint=0.7)
    found = fit_confidence(observations(20_000, truth))
    np.testing.assert_allclose(found.weights, truth.weights, atol=0.5)


def test_fit_is_judged_on_rows_it_has_not_seen():
    truth = Calibration(bias=-2.0)
    lines = report(observations(1000, truth), observations(1000, truth, seed=1)).splitlines()
    before, after = (float(line.split("error ")[1].split()[0]) for line in lines[1:])
    assert after < before
    assert lines[1].endswith("on 1000 answers")


def test_few_rows_hardly_move_the_defaults():
    one_right_one_wrong = observations(2, Calibration(), seed=7)
    found = fit_confidence(one_right_one_wrong)
    np.testing.assert_allclose(found.weights, Calibration().weights, atol=1.0)


def test_known_figures_for_rewrites_stay_without_such_rows():
    before = Calibration(rewriting=Calibration(bias=2.0))
    seen = [Observation((-0.1, -0.2, 3.0, 1.0, -0.3), False)] * 50
    found = fit_confidence(seen, before)
    assert found.rewriting == before.rewriting
    assert found.bias < before.bias


def test_observation_counts_as_often_as_its_weight_says():
    seen = (-0.1, -0.2, 3.0, 1.0, -0.3)
    twice = [Observation(seen, True), Observation(seen, False), Observation(seen, False)]
    weighted = [Observation(seen, True), Observation(seen, False, weight=2.0)]
    assert fit_confidence(twice) == fit_confidence(weighted)


def row(number):
    name = f"value_{number}"
    return fim_row(id=f"row {number}", prefix=f"{name} = 1\nprint(", suffix=")\n", middle=f"{name} * 2")


def calibrated(tmp_path):
    """A random model, asked four rows."""
    main(["--model", str(exported(tmp_path)), "--set", str(rows_in(tmp_path))])


def rows_in(tmp_path):
    folder = tmp_path / "sets"
    folder.mkdir()
    (folder / "fim.jsonl").write_bytes(b"".join(msgspec.json.encode(row(n)) + b"\n" for n in range(4)))
    return folder


def test_rows_either_fit_or_judge(tmp_path, monkeypatch):
    """Each row has several answers, which are alike."""
    sides = []

    def twice_each(runtime, tokenizer, rows):
        seen = [(-1.0, -1.0, float(one.id.split()[1]), *[0.0] * 2) for one in rows for _ in range(2)]
        return [Observation(each, False) for each in seen]

    monkeypatch.setattr(calibrate, "answer_observations", twice_each)
    monkeypatch.setattr(calibrate, "report", lambda fitting, judged, *known: sides.extend([fitting, judged]))
    calibrated(tmp_path)
    fitting, judged = ({each.features for each in side} for side in sides)
    assert len(fitting) == len(judged) == 2
    assert fitting.isdisjoint(judged)
    assert read_calibration(tmp_path / "int8").bias < Calibration().bias, "all answers were wrong"


def test_starts_of_whole_words_are_all_looked_at():
    found = list(calibrate.answer_observations(random_runtime(), TOKENIZER, [row(1)]))
    lengths = [each.characters for each in found]
    assert len(found) > 2
    assert len(set(lengths)) == len(lengths)
    assert found[0].weight == pytest.approx(calibrate.LINES / len(found) ** 0.5)


def test_coefficients_land_beside_weights_and_under_their_checksums(tmp_path, capsys):
    calibrated(tmp_path)
    out = capsys.readouterr().out
    assert "answers, 0 right" in out
    assert "bar 0.45: 0 of 4 rows get a completion" in out
    assert CALIBRATION_FILE in (tmp_path / "int8/checksums.sha256").read_text()
    read(tmp_path / "int8")


def test_added_model_gets_coefficients(tmp_path, capsys):
    folder, model = rows_in(tmp_path), added(tmp_path / "tiny")
    assert not open_model(model, CPU).info().calibrated
    main(["--model", str(model), "--set", str(folder)])
    assert "answers, 0 right" in capsys.readouterr().out
    assert (model / CALIBRATION_FILE).exists()
    assert open_model(model, CPU).info().calibrated


def test_engine_without_weights_has_nothing_to_calibrate(tmp_path):
    with pytest.raises(SystemExit, match="fake has no weights: name an installed model or its folder"):
        main(["--model", "fake", "--set", str(rows_in(tmp_path))])


def test_rows_that_are_too_few_leave_the_model_as_it_was(tmp_path):
    calibrated(tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / "int8").iterdir()}
    (tmp_path / "sets" / "fim.jsonl").write_bytes(b"")
    with pytest.raises(SystemExit, match="0 rows are too few"):
        main(["--model", str(tmp_path / "int8"), "--set", str(tmp_path / "sets")])
    assert {path.name: path.read_bytes() for path in (tmp_path / "int8").iterdir()} == before


def start(row, chance, *, right, characters=10):
    return Observation((), right, row=row, characters=characters), chance


def test_bar_is_the_lowest_above_which_four_of_five_are_right():
    likely = [start(f"right {number}", 0.9, right=True) for number in range(8)]
    doubtful = [start(f"wrong {number}", 0.6, right=False) for number in range(2)]
    hopeless = [start(f"hopeless {number}", 0.5, right=False) for number in range(5)]
    judged = [*likely, *doubtful, *hopeless]
    assert fit_bar(judged) == 0.51
    assert str(shown_at(0.51, judged)) == "10 of 15 rows get a completion, of which 80% are right"
    assert fit_bar(hopeless) == 0.51, "nothing is shown, and so nothing is wrong"
    assert fit_bar([start(str(number), 0.99, right=False) for number in range(5)]) == 0.95


def test_of_the_starts_of_a_row_the_one_that_saves_most_is_shown():
    short, long = start("row", 0.9, right=True, characters=3), start("row", 0.6, right=False, characters=30)
    assert shown_at(0.5, [short, long]).right == 0
    assert shown_at(0.7, [short, long]).right == 1
