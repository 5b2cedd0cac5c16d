"""The work that one question to an engine takes, for the log: its passes by kind, their time, and the tokens read."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Generator
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from mercury_engine.decode.policy import Report

Output = TypeVar("Output")

BETWEEN = "between passes"
"""Time in which no pass ended: laying out, looking up, choosing what to show."""

log = logging.getLogger(__name__)


class Work(Struct):
    """From `began` to `ended` by the clock of the machine; `read` are tokens of the row by its pieces."""

    kind: str
    began: float
    ended: float = 0.0
    passes: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)

    def add(self, before: Report, after: Report, seconds: float) -> None:
        """One step, and the engine's counters around it: a step hardly ever has passes of two kinds."""
        passes = Counter(after.actions) - Counter(before.actions)
        self.passes = Counter(self.passes) + passes
        self.read = Counter(self.read) + Counter(after.read) - Counter(before.read)
        for kind, count in passes.items() or [(BETWEEN, 1)]:
            spent = seconds * count / max(passes.total(), 1)
            self.seconds[kind] = self.seconds.get(kind, 0.0) + spent


def logged(
    kind: str, report: Report, steps: Generator[Output], *, clock: Callable[[], float] = time.perf_counter
) -> Generator[Output]:
    """The same steps, whose work is logged once they end if anybody wants to know. Passes that are shared count for
    the question that is resumed."""
    if not log.isEnabledFor(logging.DEBUG):
        yield from steps
        return
    work = Work(kind, clock())
    try:
        while True:
            before, started = msgspec.structs.replace(report, actions={**report.actions}, read={**report.read}), clock()
            try:
                output = next(steps)
            except StopIteration:
                return
            finally:
                work.add(before, report, clock() - started)
            yield output
    finally:
        steps.close()
        work.ended = clock()
        log.debug("%s", msgspec.json.encode(work).decode())
