"""A trial holds while nothing has changed, and a slow one for a week."""

from datetime import date, timedelta

import pytest

from mercury_engine import trials
from mercury_engine.trials import AGAIN_DAYS, LIMIT_MS, SpeedTrial

DAY = date(2026, 11, 26)


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "state_file", lambda: tmp_path / "state/auto.json")
    return tmp_path / "state/auto.json"


@pytest.mark.parametrize(
    ("milliseconds", "conditions", "days", "holds"),
    [
        (LIMIT_MS, "laptop", 0, True),
        (LIMIT_MS, "laptop", 1000, True),
        (LIMIT_MS, "desktop", 0, False),
        (LIMIT_MS, "laptop", -1, False),
        (LIMIT_MS + 1, "laptop", -1, False),
        (LIMIT_MS + 1, "laptop", AGAIN_DAYS - 1, True),
        (LIMIT_MS + 1, "laptop", AGAIN_DAYS, False),
        (LIMIT_MS + 1, "desktop", 0, False),
    ],
)
def test_trial_holds_while_nothing_has_changed_and_a_slow_one_for_a_week(milliseconds, conditions, days, holds):
    trial = SpeedTrial("laptop", milliseconds, DAY)
    assert trial.holds(conditions, DAY + timedelta(days)) == holds
    assert trial.is_quick == (milliseconds <= LIMIT_MS)


def test_trials_are_kept_by_model(file):
    first, second, third = (SpeedTrial("laptop", ms, DAY) for ms in (1.0, 2.0, 3.0))
    trials.keep("large", first)
    trials.keep("larger", second)
    trials.keep("large", third)
    assert trials.kept() == {"large": third, "larger": second}
    for damaged in (b"{", b'{"\xff": 1}', b"[]"):
        file.write_bytes(damaged)
        assert trials.kept() == {}


def test_full_disk_costs_another_trial_at_most(file):
    file.parent.write_bytes(b"")
    trials.keep("large", SpeedTrial("laptop", 1.0, DAY))
    assert trials.kept() == {}


def test_conditions_are_those_of_machine_weights_and_settings(tmp_path):
    (tmp_path / "checksums.sha256").write_text("abc")
    first = trials.conditions(tmp_path, "auto", 0)
    assert first == trials.conditions(tmp_path, "auto", 0)
    others = [trials.conditions(tmp_path, "cpu", 0), trials.conditions(tmp_path, "auto", 2)]
    (tmp_path / "checksums.sha256").write_text("abd")
    others.append(trials.conditions(tmp_path, "auto", 0))
    (tmp_path / "checksums.sha256").unlink()
    assert len({first, *others, trials.conditions(tmp_path, "auto", 0)}) == 5
