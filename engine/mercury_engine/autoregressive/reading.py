"""How quickly prompts are read on this machine: how long they may be, and how much of one goes into a forward."""

import time
from collections import deque
from collections.abc import Callable
from statistics import median

import numpy as np

from mercury_engine.decode.policy import Report
from mercury_engine.decode.prefill import prefill
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.model.runtime import Passes, Rows, Runtime
from mercury_engine.tokens.prefix import HintedPrefix

CHUNKS = (256, 128, 64, 32)
WAITING_SECONDS, IDLE_SECONDS = 0.5, 2.0
"""A forward over a chunk takes no longer than this, unless it has to, for somebody who waits and for nobody: the next
request has to wait for its end, but what is read is seldom read in vain."""

PROMPTS = (8192, 4096, 2048, 1024, 512)
PROMPT_SECONDS = 5.0
"""A whole prompt, which only the first request in a file reads, takes no longer than this, unless it has to."""
SLACK = 1.25
"""So much slower or faster reading changes nothing: another length would make each file be read again."""

LAST = 16
"""The last forwards that count."""
MEASURED_ROWS = 64


class ReadingPace:
    """Owns how long the last forwards over prompts took, without logits. A median is not moved by one slow forward."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._seconds: deque[float] = deque(maxlen=LAST)
        self._prompt = 0

    def measure(self, runtime: Runtime) -> None:
        """The second of two forwards counts: the runtime may have had to prepare for the first."""
        rows = Rows(np.zeros(MEASURED_ROWS, np.int32), np.arange(MEASURED_ROWS, dtype=np.int32), rows=[])
        runtime.forward(rows, runtime.cache())
        started = self._clock()
        runtime.forward(rows, runtime.cache())
        self._note(MEASURED_ROWS, started)

    @property
    def per_second(self) -> float:
        """Tokens; 0 where it is not known yet."""
        return 1 / max(median(self._seconds), 1e-9) if self._seconds else 0.0

    def milliseconds(self, tokens: int) -> float:
        return 1000 * tokens / self.per_second if self._seconds else 0.0

    def chunk(self, seconds: float = WAITING_SECONDS) -> int:
        """The tokens of a forward that takes about so long at most."""
        fitting = (chunk for chunk in CHUNKS if self.milliseconds(chunk) <= 1000 * seconds)
        return next(fitting, CHUNKS[-1])

    def prompt(self, most: int) -> int:
        """The tokens that a prompt may have, of `most` that the model reads."""
        affordable = PROMPT_SECONDS * self.per_second
        if affordable and not self._prompt / SLACK <= affordable < 2 * self._prompt * SLACK:
            self._prompt = next((tokens for tokens in PROMPTS if tokens <= affordable), PROMPTS[-1])
        return min(most, self._prompt or most)

    def read(
        self, session: EngineSession, prefix: HintedPrefix, report: Report, *, leave: int, chunk: int
    ) -> Passes[bool]:
        """Read a chunk if more than `leave` tokens are unread; True if that took a forward."""
        cached, started = session.align(prefix), self._clock()
        if not (yield from prefill(session, prefix, report, leave=leave, chunk=chunk)):
            return False
        self._note(session.cache.length - cached, started)
        return True

    def _note(self, tokens: int, started: float) -> None:
        self._seconds.append((self._clock() - started) / tokens)
