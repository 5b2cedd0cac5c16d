import numpy as np
import pytest
from msgspec.structs import replace

from mercury_training.fit.rank_edits import (
    Fit,
    LabelledEdit,
    area,
    bar_for,
    candidates_in,
    due_chances,
    fit,
    fit_due,
    joined,
    paying_bar,
    predict,
    read,
    unseen,
)


def drawn(count: int, seed: int = 0) -> list[LabelledEdit]:
    """Right the oftener the higher `good`, and clones oftener than renames."""
    draw = np.random.default_rng(seed)
    rows = []
    for row in range(count):
        kind, good = ("clone", "rename")[int(draw.integers(2))], float(draw.normal())
        chance = 1 / (1 + np.exp(-(2.0 * good - 1.0 + (kind == "clone"))))
        rows.append(LabelledEdit(row, "repeat", kind, {"good": good}, bool(draw.random() < chance)))
    return rows


def test_fit_finds_the_weights_behind_the_data():
    found = fit(drawn(20_000))
    assert found.weights["good"] == pytest.approx(2.0, abs=0.15)
    assert found.kinds["clone"] == pytest.approx(0.0, abs=0.15)
    assert found.kinds["rename"] == pytest.approx(-1.0, abs=0.15)


def test_earlier_fit_is_moved_little_by_few_rows():
    known = fit(drawn(20_000))
    again = fit(drawn(20, seed=2), ridge=100.0, before=known)
    assert again.weights["good"] == pytest.approx(known.weights["good"], abs=0.2)


def test_kind_missing_in_rows_keeps_what_is_known_of_it():
    known = Fit({"clone": 0.5, "call": -1.5}, {"good": 2.0, "call far": 0.3})
    again = fit(drawn(200), before=known)
    assert again.kinds["call"] == pytest.approx(-1.5)
    assert again.weights["call far"] == pytest.approx(0.3)
    assert again.kinds["rename"] != 0.0


def test_earlier_fit_is_kept_only_where_the_rows_tell_nothing():
    known = Fit({"clone": 0.5, "call": -1.5}, {"good": 2.0, "far": -0.5, "call far": 0.3, "given up": 1.0})
    rows = [LabelledEdit(0, "repeat", "clone", {"good": 1.0, "far": 0.0}, True)]
    assert unseen(known, rows) == Fit({"call": -1.5}, {"far": -0.5, "call far": 0.3})


def test_rows_of_several_files_stay_apart():
    rows = [LabelledEdit(row, "repeat", "clone", {}, True) for row in (0, 0, 2)]
    assert [each.row for each in joined([rows, rows])] == [0, 0, 2, 3, 3, 5]


def test_right_candidates_rank_above_wrong_ones():
    rows = drawn(2000, seed=1)
    right = np.array([each.right for each in rows])
    assert area(predict(fit(drawn(2000)), rows), right) > 0.85
    assert area(np.ones(4), np.ones(4, bool)) is None


def test_unseen_feature_says_nothing():
    found = fit(drawn(200))
    strange = [LabelledEdit(0, "repeat", "phrase", {"unheard of": 9.0}, False)]
    assert predict(found, strange) == pytest.approx(0.5)


def test_bar_keeps_silent_rows_quiet_as_often_as_wanted():
    rows = [LabelledEdit(row, "none", "rename", {}, False) for row in range(100)]
    chance = np.linspace(0.0, 0.99, 100)
    bar = bar_for(rows, chance, silent=100)
    assert (chance >= bar).sum() == 5
    assert bar_for(rows, chance, silent=10_000) == 0.0


def test_bar_pays_where_more_is_complete_than_not():
    chance = np.linspace(0.99, 0.0, 100)
    rows = [LabelledEdit(row, "repeat", "clone", {}, row < 60, row < 60) for row in range(100)]
    assert paying_bar(rows, chance) == pytest.approx(chance[63], abs=1e-3)
    assert paying_bar([*rows, replace(rows[0], exact=False)], np.append(chance, 0.0)) == paying_bar(rows, chance)
    assert paying_bar([replace(row, exact=False) for row in rows], chance) == 1.0
    assert paying_bar([], chance[:0]) == 1.0


def test_lines_that_only_a_model_can_fill_do_not_move_the_bar():
    rows = [LabelledEdit(0, "none", "call", {}, False)]
    assert bar_for(rows, np.array([0.99]), silent=1) == 0.0


def test_marks_of_rows_without_candidates_are_no_candidates(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"row":0,"row_kind":"none","kind":"nothing","features":{},"right":false,"exact":false}\n')
    assert candidates_in(read(path)) == []


def test_whether_anything_is_due_is_told_by_the_likeliest_edit():
    draw = np.random.default_rng(3)
    rows = [
        LabelledEdit(
            n, "none" if draw.random() < 0.8 - 0.6 * (n % 2) else "repeat", "clone", {("one", "two")[n % 2]: 1.0}, False
        )
        for n in range(2000)
    ]
    due = fit_due(rows, np.full(2000, 0.6))
    one, two = due_chances(due, rows[:2], np.array([0.6, 0.6]))
    assert one == pytest.approx(0.2, abs=0.05)
    assert two == pytest.approx(0.8, abs=0.05)


def test_without_a_word_on_what_is_due_something_always_is():
    rows = drawn(3)
    assert fit_due(rows, np.zeros(3)) == {}
    assert due_chances({}, rows, np.zeros(3)).tolist() == [1.0, 1.0, 1.0]
