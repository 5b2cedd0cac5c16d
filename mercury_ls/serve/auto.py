"""What the setting `auto` means: of the models that ship the best that answers in time on this machine, and why."""

import logging
import time
from collections.abc import Callable, Generator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mercury_engine import trials
from mercury_engine.api import Draft, Engine, EngineError, EngineInfo, InfillRequest, Span, Window
from mercury_engine.trials import AGAIN_DAYS, LIMIT_MS, SpeedTrial
from mercury_ls.wording import MISSING

if TYPE_CHECKING:
    from mercury_ls.settings.schema import EngineSettings

log = logging.getLogger(__name__)

SAMPLE_CHARACTERS = 1600
"""About 400 tokens, as much as is read first on a machine that reads slowly."""
USED, SLACK = 100, 2.0
"""After so many requests a model may be so many times slower than the limit before that counts: other programs run."""
LARGE = "quicksilver"

Open = Callable[[Path], Engine]
Clock = Callable[[], float]
Today = Callable[[], date]


class ChosenEngine:
    """An engine that says why it was chosen. `slow` is told once if its model turns out to be too slow in use."""

    def __init__(self, engine: Engine, choice: str, slow: Callable[[float], None] = lambda milliseconds: None) -> None:
        self._engine = engine
        self._choice = choice
        self._slow = slow
        self._requests = 0

    def infill(self, request: InfillRequest) -> Generator[Draft]:
        self._requests += 1
        if self._requests == USED and (milliseconds := self._engine.info().first_line_ms) > SLACK * LIMIT_MS:
            self._slow(milliseconds)
        return self._engine.infill(request)

    def warm(self, request: InfillRequest) -> Generator[None]:
        return self._engine.warm(request)

    def info(self) -> EngineInfo:
        return replace(self._engine.info(), choice=self._choice)


def open_best(
    folders: Sequence[Path],
    open_engine: Open,
    settings: "EngineSettings",
    today: Today = date.today,
    processor: Clock = time.process_time,
    clock: Clock = time.monotonic,
) -> ChosenEngine:
    """The first model that opens and answers in time, or the last. Each is tried on the way unless that was done."""
    why = ""
    for folder in folders[:-1]:
        conditions = trials.conditions(folder, settings.device, settings.threads)
        trial, engine = trials.holding(folder, settings.device, settings.threads, today()), None
        try:
            if trial is None:
                engine = open_engine(folder)
                on_cpu = engine.info().device.startswith("cpu")
                milliseconds = _on_cpu(engine, settings.threads, processor) if on_cpu else _on_gpu(engine, clock)
                trial = SpeedTrial(conditions, milliseconds, today())
                trials.keep(folder.name, trial)
            if trial.is_quick:
                engine = engine or open_engine(folder)
                return ChosenEngine(engine, quick(trial), _unkept(folder.name, conditions, today))
            why = why or slow(folder.name, trial)
        except EngineError as error:
            log.warning("%s cannot be opened: %s", folder.name, error)
            why = why or f"{folder.name} cannot be opened: {error}"
        del engine  # before the next one is opened: there may be memory for one alone
    return ChosenEngine(open_engine(folders[-1]), why or alone(folders))


def _on_cpu(engine: Engine, threads: int, processor: Clock) -> float:
    """The processor time of each thread, which is that of the clock while no other program wants the processor. When
    an editor has just started, others do."""
    from mercury_engine.model.runtime import usual_threads

    return round(_first_line_ms(engine, _sample()[:SAMPLE_CHARACTERS], processor) / (threads or usual_threads()), 1)


def _on_gpu(engine: Engine, clock: Clock) -> float:
    """The processor only waits for a GPU: what counts is the time, without that of the first answer, for which the
    device has to prepare."""
    _first_line_ms(engine, _sample()[-SAMPLE_CHARACTERS:], clock)
    return round(_first_line_ms(engine, _sample()[:SAMPLE_CHARACTERS], clock), 1)


def _sample() -> str:
    return Path(__file__).read_text(encoding="utf-8")


def _first_line_ms(engine: Engine, text: str, clock: Clock) -> float:
    window, end = Window("auto.py", "python", text), len(text)
    request = InfillRequest(session="trial", windows=(window,), spans=(Span(0, end, end, "line"),), invoked=False)
    started = clock()
    for _ in engine.infill(request):
        pass
    return 1000 * (clock() - started)


def _unkept(model: str, conditions: str, today: Today) -> Callable[[float], None]:
    return lambda milliseconds: trials.keep(model, SpeedTrial(conditions, milliseconds, today()))


def reason(folders: Sequence[Path], settings: "EngineSettings", today: Today = date.today) -> str:
    """Why `auto` means the model that it means, or will mean when an engine starts."""
    why = ""
    for folder in folders[:-1]:
        if (trial := trials.holding(folder, settings.device, settings.threads, today())) is None:
            return untried(folder.name, folders[-1].name)
        if trial.is_quick:
            return quick(trial)
        why = why or slow(folder.name, trial)
    return why or alone(folders)


def untried(model: str, otherwise: str) -> str:
    limit = _seconds(LIMIT_MS)
    return f"{model} answers if a first line takes {limit} at most, else {otherwise}; tried when the engine next starts"


def quick(trial: SpeedTrial) -> str:
    return f"a first line takes {_seconds(trial.milliseconds)} on this machine, and {_seconds(LIMIT_MS)} would do"


def slow(model: str, trial: SpeedTrial) -> str:
    """With what it would take."""
    takes, limit = _seconds(trial.milliseconds), _seconds(LIMIT_MS)
    return (
        f"{model} would take {takes} for a first line on this machine, and {limit} is the limit: more cores "
        f"(engine.threads) or a GPU would help, `mercury-ls model use {model}` uses it all the same, and it is tried "
        f"again from {trial.day + timedelta(AGAIN_DAYS)} on"
    )


def alone(folders: Sequence[Path]) -> str:
    """Of a model without a better one beside it."""
    return MISSING if folders[0].name != LARGE else "no other model is installed"


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.1f} s"
