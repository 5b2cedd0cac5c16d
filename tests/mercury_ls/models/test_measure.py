"""A model is asked three times, cold and warm, for what it can answer."""

from itertools import count
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from mercury_engine.api import Draft, EngineInfo, Gap, Regions, Rewrites, Rewritten
from mercury_engine.record import ModelRecord
from mercury_ls.models import library, measure
from mercury_ls.models.measure import SAMPLES, described
from mercury_ls.serve import added
from mercury_ls.settings.schema import Settings
from tests.mercury_ls.models.test_canary import Model, opened


class Engine:
    """Every clock tick is a second."""

    def __init__(self, **info):
        self.asked = []
        self._info = info

    def info(self):
        return EngineInfo("test", "tiny", "cpu", 2048, bytes=5_000_000, **self._info)

    def fill(self, gap):
        self.asked.append(gap)
        yield Draft(0, "item", sent="12 characters to http://127.0.0.1:1")
        yield Draft(1, "item.price", (0.9, 0.9, 0.9), 0.5, True, final=True)

    def rewrite(self, regions):
        self.asked.append(regions)
        yield Rewrites(0, (Rewritten("item"),))
        yield Rewrites(1, (Rewritten("item.price", (0.9, 0.9, 0.9), 0.5, complete=True),), final=True)


REWRITES = {"fills": False, "rewrites": True}


@pytest.mark.parametrize(("known", "kind"), [({}, Gap), (REWRITES, Regions), ({"rewrites": True}, Gap)])
def test_model_is_asked_for_what_it_can_answer(known, kind):
    engine = Engine(**known)
    ticks = iter(range(100))
    result = measure.measure(engine, 1500.0, clock=lambda: next(ticks))
    assert {type(question) for question in engine.asked} == {kind}
    assert len(engine.asked) == 2 * SAMPLES
    assert (result.measured.cold_ms, result.measured.warm_ms, result.measured.memory) == (2000.0, 2000.0, 5_000_000)
    assert (result.measured.first_ms, result.measured.tokens_per_second) == (1000.0, 2.0)


class WholeAtOnce(Engine):
    def fill(self, gap):
        yield Draft(1, "item.price", (0.9,) * 3, 0.5)
        yield Draft(2, "item.price", (0.9,) * 3, 0.5, True, final=True)


def test_tokens_that_come_together_say_nothing_about_speed():
    ticks = iter(range(100))
    measured = measure.measure(WholeAtOnce(), 1500.0, clock=lambda: next(ticks)).measured
    assert (measured.first_ms, measured.tokens_per_second) == (1000.0, 0.0)


def test_second_time_one_more_character_was_typed():
    engine = Engine()
    measure.measure(engine, 1500.0)
    first, second = engine.asked[:2]
    assert (second.before, second.after) == (first.before + "i", first.after)
    engine = Engine(**REWRITES)
    measure.measure(engine, 1500.0)
    first, second = engine.asked[:2]
    assert len(second.regions[0].old) == len(first.regions[0].old) + 1
    assert second.cursor == first.cursor + 1


def test_result_says_what_was_sent_and_whether_it_is_calibrated():
    said = "\n".join(described(measure.measure(Engine(calibrated=False), 1500.0)))
    assert "tiny on cpu, loaded in 1.5 s, 5 MB of memory" in said
    assert "P 0.50  `item.price`" in said
    assert "P is the chance that you keep it; with less than suggest.minimum_probability" in said
    assert "a first line takes" not in said
    assert "sent 12 characters to http://127.0.0.1:1" in said
    assert "is known from other models until some answers have been compared" in said


def test_model_without_an_answer_is_told_apart_from_a_bracket():
    ticks = count(step=4)
    measured = measure.measure(Engine(), 1500.0, clock=lambda: next(ticks))
    answers = tuple(
        replace(answer, cold=replace(answer.cold, text=text))
        for answer, text in zip(measured.answers, ("(", "", " \n"), strict=True)
    )
    said = "\n".join(described(replace(measured, answers=answers)))
    assert "  `(`\n" in said
    assert said.count("  nothing\n") == 2
    assert "a first line takes 8.0 s, and 4.0 s is the limit" in said


def test_measurements_are_kept_for_the_list(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "state_file", lambda: tmp_path / "models.json")
    result = measure.test("fake", Settings(), lambda *_: None)
    assert library.measurements()["fake"] == result.measured


@pytest.mark.parametrize(
    ("family", "prompt", "said"),
    [
        ("zeta-2", "zeta-2", "answers in its format: 6 of 6"),
        ("zeta-2", "qwen", "but not in this format (0 of 5 right): try --prompt zeta-2"),
    ],
)
def test_model_added_in_another_format_is_told_its_own(monkeypatch, family, prompt, said):
    monkeypatch.setattr(added, "asked_in", lambda engine, record, network, prompt: opened(family, prompt))
    record = ModelRecord(name="tiny", kind=added.named_kind(prompt)[0], prompt=prompt)
    assert said in str(measure.verdict_on(Model(family, prompt), record, network=False))


def test_memory_is_the_processes_where_it_is_known(tmp_path, monkeypatch):
    sizes = iter([1_000_000, 301_000_000])
    monkeypatch.setattr(library, "state_file", lambda: tmp_path / "models.json")
    monkeypatch.setattr(measure, "local", SimpleNamespace(resident_memory=lambda: next(sizes)))
    assert measure.test("fake", Settings(), lambda *_: None).measured.memory == 300_000_000
