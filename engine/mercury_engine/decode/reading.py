"""Reads prompts into sessions, a chunk in each forward (chunked prefill), and knows how long that takes here."""

import time
from collections import deque
from collections.abc import Callable
from statistics import median

import numpy as np
from msgspec import Struct

from mercury_engine.decode.canvas import fuse
from mercury_engine.decode.costs import Costs
from mercury_engine.decode.policy import Report
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.model.room import chunk_at
from mercury_engine.model.runtime import Pass, Passes

CHUNKS = (256, 128, 64, 32)
WAITING_SECONDS, IDLE_SECONDS = 0.5, 0.2
"""A forward over a chunk takes no longer than this, unless it has to, for somebody who waits and for nobody: a key
that is typed meanwhile has to wait for its end."""

LENGTHS = (8192, 4096, 2048, 1024, 512, 256)
AT_ONCE_SECONDS, IN_ALL_SECONDS = 0.4, 5.0
"""How long reading a prompt takes, unless it has to take longer: the one for which somebody waits who has come to
another place, and the one that is read while nobody types. Fitted: see docs/log/2026-Q4.md."""
ENOUGH = 1024
"""Tokens of a prompt: a longer one hardly improves completions, and is read only where that takes no time."""
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
        self._at_once, self._in_all = _Length(AT_ONCE_SECONDS), _Length(IN_ALL_SECONDS)

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

    def prompts(self, most: int) -> tuple[int, ...]:
        """The tokens that prompts may have, of `most` that the model reads: in all, then, if that is less, at once."""
        in_all, at_once = (min(most, length.at(self.per_second)) for length in (self._in_all, self._at_once))
        in_all = max(at_once, min(in_all, ENOUGH))
        return (in_all, at_once) if at_once < in_all else (in_all,)

    def is_quick(self, unread: int) -> bool:
        """True if nobody minds to wait until so many tokens are read."""
        return self.milliseconds(unread) <= 1000 * AT_ONCE_SECONDS * SLACK

    def read(self, session: EngineSession, ids: np.ndarray, report: Report, *, leave: int, chunk: int) -> Passes[bool]:
        """Read a chunk if more than `leave` tokens are unread; True if that took a forward."""
        cached = session.align(ids)
        if len(ids) - cached <= chunk_at(cached, leave):
            return False
        part = ids[: min(cached + chunk_at(cached, chunk), len(ids) - 1)]
        rows = fuse(cached, part, len(part) - cached).rows
        started = self._clock()
        forward = yield Pass(rows, session.cache)
        self._slowness.append((self._clock() - started) * 1000 / float(self.costs.of(len(rows.ids_R))))
        session.keep(forward, part)
        report.count("read", rows=len(rows.ids_R), settled=0)
        return True

    def read_ahead(self, session: EngineSession, ids: np.ndarray, report: Report) -> Passes[bool]:
        """Read a chunk for nobody yet, of all but the last token; True if that took a forward."""
        cached = session.align(ids)
        if not (yield from self.read(session, ids, report, leave=1, chunk=self.chunk(IDLE_SECONDS))):
            return False
        report.prompts["ahead"] += session.cache.length - cached
        return True

    def _forward_ms(self, rows: int) -> float:
        slowness = median(self._slowness) if self._slowness else 1.0
        return max(float(self.costs.of(rows)) * slowness, 1e-6)


class _Length(Struct, eq=False):
    """Tokens read within `seconds`, in large steps and only changed with a pace that has changed much."""

    seconds: float
    tokens: int = 0

    def at(self, per_second: float) -> int:
        affordable = self.seconds * per_second
        if not self.tokens / SLACK <= affordable < 2 * self.tokens * SLACK:
            self.tokens = next((tokens for tokens in LENGTHS if tokens <= affordable), LENGTHS[-1])
        return self.tokens
