import pytest

from bench.ratchet import BASELINE, Watched, compared, figures_of, measured, merged, read
from mercury_engine import model_folders


def figures(**values):
    better = {"exact": "higher", "ece": "lower", "shown": "steady"}
    return {name: Watched(value, 0.05, better[name]) for name, value in values.items()}


def check(before, now, *complaints):
    found = list(compared({"fake": figures(**before)}, {"fake": figures(**now)}))
    assert len(found) == len(complaints)
    assert all(part in said for part, said in zip(complaints, found, strict=True))


def test_worse_than_tolerated_is_a_complaint_that_says_how_to_accept_it():
    check({"exact": 0.5}, {"exact": 0.44}, "exact is 0.44, was 0.5; 0.05 is tolerated. If it has to be so: python -m")
    check({"ece": 0.1}, {"ece": 0.16}, "ece is 0.16")
    check({"shown": 0.3}, {"shown": 0.4}, "shown is 0.4")
    check({"shown": 0.3}, {"shown": 0.2}, "shown is 0.2")


def test_better_and_hardly_worse_is_none():
    check({"exact": 0.5, "ece": 0.1, "shown": 0.3}, {"exact": 0.46, "ece": 0.02, "shown": 0.34})
    check({"exact": 0.5}, {"exact": 0.9})


def test_missing_figure_counts_as_nothing():
    check({"exact": 0.5}, {}, "exact is 0")


def test_new_reason_for_silence_is_noticed():
    before = {"fake": {}}
    now = {"fake": {"completions: quiet, broken": Watched(0.4, 0.07, "steady")}}
    assert "quiet, broken is 0.4, was 0" in next(compared(before, now))


def test_engine_of_baseline_has_to_be_there():
    assert "not installed" in next(compared({"quicksilver": figures(exact=0.5)}, {}))


def test_update_tightens_and_never_loosens():
    before = {"fake": figures(exact=0.5, ece=0.1, shown=0.3)}
    now = {"fake": figures(exact=0.48, ece=0.05, shown=0.32)}
    assert merged(before, now) == {"fake": figures(exact=0.5, ece=0.05, shown=0.32)}
    assert merged(before, {"fake": figures(shown=0.5)})["fake"]["shown"].value == 0.3


@pytest.mark.parametrize(("engine", "watched"), [("fake", {"completions: passes"}), ("us", set())])
def test_neither_what_is_null_nor_what_a_models_passes_cost_is_watched(engine, watched):
    part = dict.fromkeys(
        ["exact", "first_line", "similarity", "chrf", "parses", "shown", "right_when_shown", "begins_when_shown", "ece"]
    )
    part |= {"passes": 2.0, "characters_per_pass": None, "n": 4, "dropped": {"unsure": 1}}
    edits = dict.fromkeys(["score", "show", "quiet", "exact", "right_when_shown", "delta_chrf"])
    found = figures_of(
        {
            "engine": engine,
            "fim": {"s": {engine: part}},
            "next_edit": {"s": edits | {"n": 1, "dropped": {}, "quiet": [1, 0, 1]}},
        }
    )
    assert found.keys() == {*watched, "completions: quiet, unsure", "next edits: quiet"}


@pytest.mark.slow
def test_figures_are_no_worse_than_the_baseline():
    engine = model_folders.FAKE
    before = {name: figures for name, figures in read(BASELINE).items() if name == engine}
    assert list(compared(before, measured([engine]))) == []
