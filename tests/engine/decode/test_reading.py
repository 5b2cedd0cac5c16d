"""What follows from how quickly prompts are read: the length of one, and of the part that goes into a forward."""

import numpy as np

from mercury_engine.decode.batching import run_unbatched
from mercury_engine.decode.costs import Costs
from mercury_engine.decode.policy import Report
from mercury_engine.decode.reading import CHUNKS, IDLE_SECONDS, LAST, ReadingPace
from mercury_engine.decode.sessions import EngineSession
from tests.engine.autoregressive.models import Scripted


class SlowReader(Scripted):
    """Reads so many tokens in a second, by its own clock, beside what each forward takes."""

    def __init__(self, per_second):
        super().__init__("")
        self.per_second = per_second
        self.now = 0.0

    def forward(self, rows, cache):
        self.now += len(rows.ids_R) / self.per_second
        return super().forward(rows, cache)

    def clock(self):
        return self.now


def costs(per_second, *, each_ms=0.0):
    rows = (1, *CHUNKS[::-1])
    return Costs(rows, tuple(each_ms + 1000 * count / per_second for count in rows))


def measured(per_second):
    runtime = SlowReader(per_second)
    return ReadingPace(costs(per_second), runtime.clock), runtime


def read(pace, runtime, count):
    """Another prompt."""
    ids = np.zeros(count, np.int32)
    session = EngineSession(runtime.cache())
    list(run_unbatched(runtime, _read_all(pace, session, ids)))
    assert session.cache.length == count - 1


def _read_all(pace, session, ids):
    while (yield from pace.read(session, ids, Report(), leave=1, chunk=pace.chunk())):
        yield


def check(per_second, *, prompts, chunk, idle):
    pace, _ = measured(per_second)
    assert (pace.prompts(100_000), pace.chunk(), pace.chunk(IDLE_SECONDS)) == (prompts, chunk, idle)


def test_prompt_and_chunks_are_as_long_as_this_machine_reads_in_time():
    check(20, prompts=(256,), chunk=32, idle=32)
    check(147, prompts=(512, 256), chunk=64, idle=32)
    check(330, prompts=(1024, 256), chunk=128, idle=64)
    check(1400, prompts=(1024, 512), chunk=256, idle=256)
    check(50_000, prompts=(8192,), chunk=256, idle=256)


def test_prompt_is_no_longer_than_the_model_reads():
    pace, _ = measured(50_000)
    assert pace.prompts(3000) == (3000,)


def test_forwards_that_take_long_in_any_case_read_in_larger_chunks():
    pace = ReadingPace(costs(1000, each_ms=300))
    assert (pace.chunk(), pace.chunk(IDLE_SECONDS)) == (128, 32)
    assert round(pace.per_second) == round(128 / 0.428)


def test_pace_follows_the_prompts_that_are_read():
    pace, runtime = measured(700)
    assert pace.prompts(100_000) == (1024, 256)
    runtime.per_second = 60
    for _ in range(LAST):
        read(pace, runtime, 200)
    assert round(pace.per_second) == 60
    assert pace.prompts(100_000) == (256,)


def test_prompt_keeps_its_length_while_the_pace_changes_little():
    pace, runtime = measured(210)
    assert pace.prompts(100_000) == (1024, 256)
    runtime.per_second = 170
    for _ in range(LAST):
        read(pace, runtime, 200)
    assert pace.prompts(100_000) == (1024, 256)
