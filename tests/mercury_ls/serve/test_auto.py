"""`auto` is the best model that answers in time on this machine, which is tried once."""

from datetime import date, timedelta

import pytest
from msgspec.structs import replace

from mercury_engine import model_folders, trials
from mercury_engine.api import EngineError
from mercury_engine.fake import FakeEngine
from mercury_engine.trials import AGAIN_DAYS, LIMIT_MS
from mercury_ls.serve import auto
from mercury_ls.settings.schema import EngineSettings
from mercury_ls.wording import STRONGER, remarks

DAY = date(2026, 11, 26)
QUICK, SLOW, BROKEN = LIMIT_MS / 1000, LIMIT_MS / 500, None


class Timed(FakeEngine):
    """Takes so many seconds of one thread for an answer, and says so of its use."""

    def __init__(self, machine, name, seconds):
        super().__init__()
        self.machine, self.name, self.seconds = machine, name, seconds

    def infill(self, request):
        self.machine.now += self.seconds
        self.machine.waited += self.machine.waits.pop(0) if self.machine.waits else 0.0
        return super().infill(request)

    def info(self):
        milliseconds, device = 1000 * self.seconds, self.machine.device
        return replace(super().info(), model=self.name, device=device, first_line_ms=milliseconds)


class Machine:
    """Opens models that take so many seconds each, the best one first."""

    def __init__(self, place, **seconds):
        self.seconds, self.now, self.today, self.opened = seconds, 0.0, DAY, []
        self.device, self.waited, self.waits = "cpu", 0.0, [0.0, 0.0]
        self.folders = [place / name for name in seconds]
        for folder in self.folders:
            folder.mkdir()
            (folder / "checksums.sha256").write_text(folder.name)

    def open(self, folder):
        self.opened.append(folder.name)
        if self.seconds[folder.name] is BROKEN:
            raise EngineError("its weights are damaged")
        return Timed(self, folder.name, self.seconds[folder.name])

    def start(self, **settings):
        settings = EngineSettings(**{"threads": 1, **settings})
        return auto.open_best(
            self.folders, self.open, settings, lambda: self.today, lambda: self.now, lambda: self.waited
        )

    def reason(self):
        return auto.reason(self.folders, EngineSettings(threads=1), lambda: self.today)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "state_file", lambda: tmp_path / "auto.json")
    return lambda **seconds: Machine(tmp_path, **seconds)


def check(machine, model, opened, why):
    """What answers after a start, what was opened for it, and why."""
    machine.opened.clear()
    info = machine.start().info()
    assert (info.model, machine.opened) == (model, opened.split())
    assert why in info.choice == machine.reason()
    assert f"auto: {info.choice}" in remarks(info)


def test_quick_model_is_tried_once_and_used(machine):
    laptop = machine(quicksilver=QUICK, bootstrap=0.1)
    for _ in range(2):
        check(laptop, "quicksilver", "quicksilver", "a first line takes 4.0 s on this machine")
    assert laptop.now == QUICK


def test_slow_model_makes_way_and_is_tried_again_after_a_week(machine):
    laptop = machine(quicksilver=SLOW, bootstrap=0.1)
    why = "quicksilver would take 8.0 s for a first line on this machine, and 4.0 s is the limit: more cores"
    check(laptop, "bootstrap", "quicksilver bootstrap", why)
    check(laptop, "bootstrap", "bootstrap", "`mercury-ls model use quicksilver` uses it all the same")
    check(laptop, "bootstrap", "bootstrap", "it is tried again from 2026-12-03 on")
    laptop.today += timedelta(AGAIN_DAYS)
    laptop.seconds["quicksilver"] = QUICK
    check(laptop, "quicksilver", "quicksilver", "a first line takes 4.0 s")


def test_model_that_cannot_be_opened_makes_way_and_is_tried_at_the_next_start(machine):
    laptop = machine(quicksilver=BROKEN, bootstrap=0.1)
    info = laptop.start().info()
    assert (info.model, info.choice) == ("bootstrap", "quicksilver cannot be opened: its weights are damaged")
    laptop.seconds["quicksilver"] = QUICK
    check(laptop, "quicksilver", "quicksilver", "a first line takes 4.0 s")


def test_model_is_tried_again_with_other_threads(machine):
    laptop = machine(quicksilver=SLOW, bootstrap=0.1)
    assert laptop.start().info().model == "bootstrap"
    assert laptop.start(threads=2).info().model == "quicksilver"


def test_before_the_first_start_it_is_said_that_it_will_be_tried(machine):
    laptop = machine(quicksilver=QUICK, bootstrap=0.1)
    limit = "quicksilver answers if a first line takes 4.0 s at most, else bootstrap"
    untried = f"{limit}; tried when the engine next starts"
    assert laptop.reason() == untried
    laptop.start()
    assert laptop.reason() != untried
    (laptop.folders[0] / "checksums.sha256").write_text("newer weights")
    assert laptop.reason() == untried


@pytest.mark.parametrize(("seconds", "chosen"), [(QUICK, "quicksilver"), (SLOW, "bootstrap")])
def test_gpu_is_tried_by_the_time_of_its_second_answer(machine, seconds, chosen):
    desktop = machine(quicksilver=0.1, bootstrap=0.1)
    desktop.device, desktop.waits = "cuda, gpu bfloat16", [10 * SLOW, seconds]
    assert desktop.start().info().model == chosen


def test_small_model_alone_needs_no_trial_and_says_what_is_missing_and_no_more(machine):
    laptop = machine(bootstrap=SLOW)
    check(laptop, "bootstrap", "bootstrap", "run `pip install ./models/quicksilver` in a clone")
    small = replace(laptop.start().info(), small=True)
    assert STRONGER in remarks(replace(small, choice=""))
    assert STRONGER not in remarks(small)


def test_model_that_is_slow_in_use_makes_way_at_the_next_start(machine):
    laptop = machine(quicksilver=QUICK, bootstrap=0.1)
    engine, request = laptop.start(), object()
    for seconds in (*[QUICK] * (auto.USED - 1), 2 * SLOW):
        engine._engine.seconds = seconds
        engine.infill(request)
    check(laptop, "bootstrap", "bootstrap", "quicksilver would take 16.0 s for a first line on this machine")


@pytest.mark.parametrize(("seconds", "chosen"), [(QUICK, "quicksilver"), (SLOW, "bootstrap")])
def test_commands_mean_the_same_model(machine, monkeypatch, seconds, chosen):
    laptop = machine(quicksilver=seconds, bootstrap=0.1)
    monkeypatch.setattr(model_folders, "shipped", lambda: {folder.name: folder for folder in laptop.folders})
    laptop.today = date.today()
    assert model_folders.resolve("auto", threads=1).name == "quicksilver"
    info = laptop.start().info()
    assert (info.model, model_folders.resolve("auto", threads=1).name) == (chosen, chosen)
    assert model_folders.resolve("auto", threads=2).name == "quicksilver"
    assert model_folders.answers("auto", info)
    assert not model_folders.answers("auto", replace(info, choice="", engine="mercury"))
