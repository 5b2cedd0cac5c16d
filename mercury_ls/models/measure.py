"""What a model costs on this machine: three real suggestions, timed."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine import model_folders
from mercury_engine.api import Draft, Engine, EngineInfo, Rewrites
from mercury_engine.record import ModelRecord, read_record
from mercury_ls.link import local
from mercury_ls.models import canary, library
from mercury_ls.models.hub import megabytes
from mercury_ls.models.library import MeasuredSpeed
from mercury_ls.serve import added
from mercury_ls.serve.models import Report
from mercury_ls.settings.schema import Settings
from mercury_ls.wording import too_slow

SAMPLES = 3
SHOWN = 60

Clock = Callable[[], float]


class TimedAnswer(Struct, frozen=True):
    """When the first part of an answer and all of it were there, and what went to another program for it."""

    text: str
    p_accept: float
    tokens: int
    first_ms: float
    all_ms: float
    sent: str
    first_tokens: int

    @property
    def tokens_per_second(self) -> float:
        """Of what came after the first part; 0 where that was all."""
        tokens, later_ms = self.tokens - self.first_tokens, self.all_ms - self.first_ms
        return 1000 * tokens / later_ms if tokens > 0 and later_ms > 0 else 0.0


class SampleAnswer(Struct, frozen=True):
    """Cold: for a text that the model has not seen. Warm: for the same text, after one more character was typed."""

    path: str
    cold: TimedAnswer
    warm: TimedAnswer


class ModelMeasurement(Struct, frozen=True):
    info: EngineInfo
    answers: tuple[SampleAnswer, ...]
    measured: MeasuredSpeed
    verdict: canary.Verdict = canary.Verdict(0, 0)


def test(name: str, settings: Settings, report: Report) -> ModelMeasurement:
    """Loads the model in this process, asks it, and keeps the times for `model list`."""
    folder = model_folders.resolve(name)
    before, started = local.resident_memory(), time.perf_counter()
    with added.opened(name, settings, report) as engine:
        result = measure(engine, 1000 * (time.perf_counter() - started))
        record = read_record(folder) if folder else None
        result = replace(result, verdict=verdict_on(engine, record, settings.privacy.allow_network))
    used = local.resident_memory() - before
    result = replace(result, measured=replace(result.measured, memory=max(used, 0) or result.info.bytes))
    library.note(folder.name if folder else model_folders.FAKE, result.measured)
    return result


def verdict_on(engine: Engine, record: ModelRecord | None, network: bool) -> canary.Verdict:
    """Whether a model understands its prompts, and if not, which ones: of a model with a record, not of one that
    ships."""
    formats = added.other_formats(record) if record else []

    def open_model(prompt: str) -> AbstractContextManager[Engine]:
        assert record
        return added.asked_in(engine, record, network, prompt)

    return canary.judged(engine, formats, open_model)


def measure(engine: Engine, load_ms: float, clock: Clock = time.perf_counter) -> ModelMeasurement:
    questions = canary.GAPS if engine.info().fills else canary.REWRITES
    answers = tuple(_asked(engine, question, clock) for question in questions[:SAMPLES])
    cold = median(answer.cold.all_ms for answer in answers)
    warm = median(answer.warm.all_ms for answer in answers)
    first = median(answer.warm.first_ms for answer in answers)
    speed = median([speed for answer in answers if (speed := answer.warm.tokens_per_second)] or [0.0])
    info = replace(engine.info(), first_line_ms=cold)
    return ModelMeasurement(info, answers, MeasuredSpeed(cold, warm, load_ms, info.bytes, first, speed))


def _asked(engine: Engine, question: canary.Question, clock: Clock) -> SampleAnswer:
    cold = _timed(question.asked(engine), clock)
    typed = cold.text[:1].strip() if isinstance(question, canary.KnownGap) else ""
    warm = _timed(question.asked(engine, typed or " "), clock)
    return SampleAnswer(question.path, cold, warm)


def _timed(answers: Iterable[Draft | Rewrites], clock: Clock) -> TimedAnswer:
    started, first_ms, first_tokens, last, sent = clock(), 0.0, 0, canary.told(Draft()), ""
    for answer in answers:
        last, sent = canary.told(answer), answer.sent or sent
        if not first_ms and last.text.strip():
            first_ms, first_tokens = 1000 * (clock() - started), max(1, len(last.confidence))
    all_ms = 1000 * (clock() - started)
    return TimedAnswer(last.text, last.p_accept, len(last.confidence), first_ms or all_ms, all_ms, sent, first_tokens)


def described(result: ModelMeasurement) -> Iterator[str]:
    info, measured = result.info, result.measured
    loaded = f"loaded in {measured.load_ms / 1000:.1f} s, {megabytes(measured.memory)} of memory"
    yield f"{info.model} on {info.device}, {loaded}"
    for answer in result.answers:
        cold = answer.cold
        text = " ⏎ ".join(line.strip() for line in cold.text.strip().splitlines())[:SHOWN]
        shown = f"`{text}`" if text else "nothing"
        times = f"{cold.all_ms:6,.0f} ms, warm {answer.warm.all_ms:6,.0f} ms"
        yield f"  {answer.path:9} {times}, P {cold.p_accept:.2f}  {shown}"
        if cold.sent:
            yield f"            sent {cold.sent}"
    yield "P is the chance that you keep it; with less than suggest.minimum_probability an editor shows nothing"
    yield f"a suggestion takes {measured.cold_ms:,.0f} ms cold and {measured.warm_ms:,.0f} ms warm (median)"
    if measured.tokens_per_second:
        speed = f"{measured.tokens_per_second:,.0f} a second"
        yield f"warm, the first token comes after {measured.first_ms:,.0f} ms, and then {speed}"
    if result.verdict.asked:
        yield str(result.verdict)
    if not info.calibrated:
        yield "how likely it is to be accepted is known from other models until some answers have been compared"
    if not info.follows_typing:
        yield too_slow(info)
