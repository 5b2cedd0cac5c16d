"""Reads prompts into sessions, a chunk in each forward (chunked prefill), and knows how long that takes here."""

import time
from collections import deque
from collections.abc import Callable
from statistics import median

from mercury_engine.decode.canvas import fuse
from mercury_engine.decode.costs import Costs
from mercury_engine.decode.policy import Report
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.model.room import chunk_at
from mercury_engine.model.runtime import Pass, Passes
from mercury_engine.tokens.prefix import HintedPrefix

CHUNKS = (256, 128, 64, 32)
WAITING_SECONDS, IDLE_SECONDS = 0.5, 0.2
"""A forward over a chunk takes no longer than this, unless it has to, for somebody who waits and for nobody: a key
that is typed meanwhile has to wait for its end."""

PROMPTS = (8192, 4096, 2048, 1024, 512)
PROMPT_SECONDS = 5.0
"""A whole prompt, which only the first request in a file reads, takes no longer than this, unless it has to."""
SLACK = 1.25
"""So much slower or faster reading changes nothing: another length would make each file be read again."""

LAST = 16
"""The last forwards that count."""


class ReadingPace:
    """The pace of reading: what forwards of as many rows cost when they were measured, times how much longer the
    last chunks took. A median is not moved by one slow forward."""

    def __init__(self, costs: Costs, clock: Callable[[], float] = time.perf_counter) -> None:
        self.costs = costs
        self._clock = clock
        self._slowness: deque[float] = deque(maxlen=LAST)
        self._prompt = 0

    @property
    def per_second(self) -> float:
        """Tokens, in chunks for somebody who waits."""
        chunk = self.chunk()
        return 1000 * chunk / self._forward_ms(chunk)

    def milliseconds(self, tokens: int) -> float:
        return 1000 * tokens / self.per_second

    def chunk(self, seconds: float = WAITING_SECONDS) -> int:
        """The tokens of a forward that takes about so long at most."""
        fitting = (chunk for chunk in CHUNKS if self._forward_ms(chunk) <= 1000 * seconds)
        return next(fitting, CHUNKS[-1])

    def prompt(self, most: int) -> int:
        """The tokens that a prompt may have, of `most` that the model reads."""
        affordable = PROMPT_SECONDS * self.per_second
        if not self._prompt / SLACK <= affordable < 2 * self._prompt * SLACK:
            self._prompt = next((tokens for tokens in PROMPTS if tokens <= affordable), PROMPTS[-1])
        return min(most, self._prompt)

    def read(
        self, session: EngineSession, prefix: HintedPrefix, report: Report, *, leave: int, chunk: int
    ) -> Passes[bool]:
        """Read a chunk if more than `leave` tokens are unread; True if that took a forward."""
        cached = session.align(prefix)
        if len(prefix) - cached <= chunk_at(cached, leave):
            return False
        part = prefix.upto(min(cached + chunk_at(cached, chunk), len(prefix) - 1))
        rows = fuse(cached, part, len(part) - cached).rows
        started = self._clock()
        forward = yield Pass(rows, session.cache)
        self._slowness.append((self._clock() - started) * 1000 / float(self.costs.of(len(rows.ids_R))))
        session.keep(forward, part)
        report.count("read", rows=len(rows.ids_R), settled=0)
        return True

    def _forward_ms(self, rows: int) -> float:
        slowness = median(self._slowness) if self._slowness else 1.0
        return max(float(self.costs.of(rows)) * slowness, 1e-6)
