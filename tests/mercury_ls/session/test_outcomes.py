"""What is kept of suggestions to correct a model: numbers, days and the model's name, in one file for all servers."""

import os
import stat

import pytest
from msgspec.structs import replace

from mercury_engine.fake import FakeEngine
from mercury_ls.completion.calibration import AS_GIVEN, MOST_OUTCOMES
from mercury_ls.session import outcomes as module
from mercury_ls.session.outcomes import Outcomes
from mercury_ls.settings.schema import RecordSettings, Settings, SuggestSettings
from tests.mercury_ls.clock import Clock
from tests.mercury_ls.session.test_session import ANSWER, ask, started

DAY = 86400.0
NOON = 1_800_000_000.0


@pytest.fixture
def clock():
    return Clock(NOON)


def refused(kept: Outcomes, count: int = 6, model: str = "some", p: float = 0.4) -> None:
    for _ in range(count):
        kept.settled(model, "inline", p, False)


def test_each_model_and_kind_is_corrected_by_its_own(clock):
    kept = Outcomes(None, clock)
    refused(kept)
    assert kept.correction("some", "inline")(0.4) < 0.3
    assert kept.correction("some", "nextEdit") == AS_GIVEN
    assert kept.correction("other", "inline") == AS_GIVEN


def test_the_next_server_knows_what_the_last_one_did(tmp_path, clock):
    kept = Outcomes(tmp_path, clock)
    refused(kept)
    kept.write()
    assert Outcomes(tmp_path, clock).correction("some", "inline") == kept.correction("some", "inline")
    clock.now += 40 * DAY
    assert Outcomes(tmp_path, clock).correction("some", "inline")(0.4) == pytest.approx(0.4, abs=0.01)
    assert kept.correction("some", "inline")(0.4) == pytest.approx(0.4, abs=0.01)


def test_nothing_but_numbers_days_and_a_name_is_stored(tmp_path, clock):
    kept = Outcomes(tmp_path, clock)
    kept.settled("/home/me/secret-project/weights.gguf", "inline", 0.41234, True)
    kept.write()
    text = (tmp_path / module.FILE).read_text()
    assert text == '{"day":"2027-01-15","model":"weights.gguf","kind":"inline","p":0.412,"taken":true}\n'
    if os.name != "nt":
        assert stat.S_IMODE((tmp_path / module.FILE).stat().st_mode) == 0o600


def test_the_file_and_the_memory_have_an_end(tmp_path, clock, monkeypatch):
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


def test_a_damaged_file_costs_only_its_damaged_lines(tmp_path, clock):
    kept = Outcomes(tmp_path, clock)
    refused(kept)
    kept.write()
    with open(tmp_path / module.FILE, "ab") as file:
        file.write(b'\xff\n{"day": 5}\n{"day":"2027-01-')
    refused(kept, 1)
    kept.write()
    assert Outcomes(tmp_path, clock).correction("some", "inline") == kept.correction("some", "inline")


def test_without_a_disk_it_lasts_for_the_session(tmp_path, clock):
    kept = Outcomes(tmp_path / "file" / "under", clock)
    (tmp_path / "file").write_text("")
    refused(kept)
    kept.write()
    assert kept.correction("some", "inline")(0.4) < 0.3


UNCALIBRATED = replace(FakeEngine().info(), calibrated=False)


async def refuse(session) -> float:
    """How likely a suggestion is said to be, before it is refused."""
    answer = await ask(session, "x = $0\n")
    session.tally.answered(answer.offer.id)
    session.rejected(answer.offer.id)
    return answer.offer.p_accept


async def test_what_a_user_refuses_becomes_less_likely_and_what_is_taken_likelier_again():
    settings = Settings(suggest=SuggestSettings(adapt=False))
    session = await started(FakeEngine(ANSWER, info=UNCALIBRATED), settings)
    chances = [await refuse(session) for _ in range(5)]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] == 0.9
    assert chances[-1] < 0.8
    offer = (await ask(session, "x = $0\n")).offer
    session.tally.answered(offer.id)
    session.accepted(offer.id)
    assert (await ask(session, "z = $0\n")).offer.p_accept > offer.p_accept
    await session.end()


async def test_typing_something_else_is_a_refusal_and_typing_it_is_none():
    session = await started(FakeEngine(ANSWER, info=UNCALIBRATED))
    first = (await ask(session, "x = $0\n")).offer
    session.tally.answered(first.id)
    second = (await ask(session, "z = $0\n")).offer
    session.tally.answered(second.id)
    assert second.p_accept < first.p_accept
    await ask(session, "z = other(y)$0\n")
    assert (await ask(session, "x = $0\n")).offer.p_accept > second.p_accept
    await session.end()


async def test_what_nobody_saw_teaches_nothing():
    session = await started(FakeEngine(ANSWER, info=UNCALIBRATED))
    seen = (await ask(session, "x = $0\n")).offer
    session.tally.shown(seen.id)
    session.accepted(seen.id)
    known = session.questions.correction("inline")
    for _ in range(3):
        session.rejected((await ask(session, "x = $0\n")).offer.id)
    assert session.questions.correction("inline") == known != AS_GIVEN
    await session.end()


@pytest.mark.parametrize(
    ("info", "counts"), [(FakeEngine().info(), True), (UNCALIBRATED, False)], ids=["calibrated", "counting is off"]
)
async def test_nothing_is_corrected(info, counts):
    session = await started(FakeEngine(ANSWER, info=info), Settings(record=RecordSettings(counts=counts)))
    assert [await refuse(session) for _ in range(3)] == [0.9] * 3
    await session.end()
