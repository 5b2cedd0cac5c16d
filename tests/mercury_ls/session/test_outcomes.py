"""What is kept of answers to judge the next ones: numbers, days and the model's name, in one file for all servers."""

import os
import stat

import pytest

from mercury_ls.completion.judge import MOST_OUTCOMES, UNTAUGHT, Evidence
from mercury_ls.session import outcomes as module
from mercury_ls.session.outcomes import Outcomes
from tests.mercury_ls.clock import Clock

DAY = 86400.0
NOON = 1_800_000_000.0
SHORT = Evidence(0.35, characters=20)


@pytest.fixture
def clock():
    return Clock(NOON)


def refused(kept: Outcomes, count: int = 6, model: str = "some") -> None:
    for _ in range(count):
        kept.settled(model, "inline", SHORT, kept=False, shown=True)


def test_models_and_kinds_are_judged_separately(clock):
    kept = Outcomes(None, clock)
    refused(kept)
    assert kept.judge("some", "inline").chance(SHORT) < UNTAUGHT.chance(SHORT)
    assert kept.judge("some", "nextEdit") == UNTAUGHT
    assert kept.judge("other", "inline") == UNTAUGHT


def test_answers_that_nobody_kept_are_counted_until_one_is_kept(clock):
    kept = Outcomes(None, clock)
    assert kept.misses("some", "inline") == 0
    refused(kept, 3)
    kept.settled("some", "inline", SHORT, kept=False, shown=False)
    assert (kept.misses("/a/some", "inline"), kept.misses("some", "nextEdit")) == (4, 0)
    kept.settled("some", "inline", SHORT, kept=True, shown=False)
    assert kept.misses("some", "inline") == 0
    refused(kept, 1)
    kept.enabled = False
    assert kept.misses("some", "inline") == 0


def test_outcomes_are_known_to_the_next_server(tmp_path, clock):
    kept = Outcomes(tmp_path, clock)
    refused(kept)
    kept.write()
    assert Outcomes(tmp_path, clock).judge("some", "inline") == kept.judge("some", "inline")
    clock.now += 55 * DAY
    for later in (Outcomes(tmp_path, clock), kept):
        assert later.judge("some", "inline").chance(SHORT) == pytest.approx(UNTAUGHT.chance(SHORT), abs=0.01)


def test_outcomes_store_only_numbers_days_and_a_name(tmp_path, clock):
    kept = Outcomes(tmp_path, clock)
    evidence = Evidence(0.41234567, tokens=3, total=-0.25, least=-0.2, characters=12)
    kept.settled("/home/me/secret-project/weights.gguf", "inline", evidence, kept=True, shown=False)
    kept.write()
    numbers = '{"p_accept":0.4123,"tokens":3,"total":-0.25,"least":-0.2,"characters":12}'
    assert (tmp_path / module.FILE).read_text() == (
        f'{{"day":"2027-01-15","model":"weights.gguf","kind":"inline","evidence":{numbers},"kept":true,"shown":false}}\n'
    )
    if os.name != "nt":
        assert stat.S_IMODE((tmp_path / module.FILE).stat().st_mode) == 0o600


def test_file_and_memory_have_end(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(module, "COMPACTED_BYTES", 1000)
    kept = Outcomes(tmp_path, clock)
    for _ in range(3):
        refused(kept, MOST_OUTCOMES)
        kept.write()
    assert len((tmp_path / module.FILE).read_text().splitlines()) <= MOST_OUTCOMES
    clock.now += 100 * DAY
    refused(kept, 1)
    kept.write()
    assert len((tmp_path / module.FILE).read_text().splitlines()) == 1


def test_damaged_or_earlier_lines_are_the_only_ones_lost(tmp_path, clock):
    kept = Outcomes(tmp_path, clock)
    refused(kept)
    kept.write()
    with open(tmp_path / module.FILE, "ab") as file:
        file.write(b'{"day":"2027-01-15","model":"some","kind":"inline","p":0.412,"taken":true}\n')
        file.write(b'\xff\n{"day": 5}\n{"day":"2027-01-')
    refused(kept, 1)
    kept.write()
    assert Outcomes(tmp_path, clock).judge("some", "inline") == kept.judge("some", "inline")


def test_model_that_is_forgotten_begins_anew(tmp_path, clock):
    Outcomes(tmp_path, clock).forget("some")
    kept = Outcomes(tmp_path, clock)
    for model in ("some", "other"):
        refused(kept, model=model)
    kept.write()
    Outcomes(tmp_path, clock).forget("some")
    later = Outcomes(tmp_path, clock)
    assert [name for name, _ in later._all] == ["other"]


def test_without_a_disk_it_lasts_for_the_session(tmp_path, clock):
    kept = Outcomes(tmp_path / "file" / "under", clock)
    (tmp_path / "file").write_text("")
    refused(kept)
    kept.write()
    assert kept.judge("some", "inline").chance(SHORT) < UNTAUGHT.chance(SHORT)


def test_counting_switched_off_teaches_nothing(tmp_path, clock):
    kept = Outcomes(tmp_path, clock)
    kept.enabled = False
    refused(kept)
    kept.write()
    assert kept.judge("some", "inline") == UNTAUGHT
    assert not (tmp_path / module.FILE).exists()


def test_completions_that_an_earlier_version_judged_by_other_numbers_teach_nothing():
    outcomes = Outcomes()
    for _ in range(60):
        outcomes.settled("some", "inline", Evidence(0.4, tokens=5, total=-0.5), False, True)
    assert outcomes.judge("some", "inline") == UNTAUGHT
    outcomes.settled("some", "inline", Evidence(0.4, calibrated=True, tokens=5, total=-0.5), False, True)
    assert outcomes.judge("some", "inline") != UNTAUGHT
