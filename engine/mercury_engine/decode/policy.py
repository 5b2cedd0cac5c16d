"""What to do next: the action that is expected to settle the most tokens per millisecond on this device."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Literal

import numpy as np
from msgspec import Struct, field

from mercury_engine.decode.canvas import Canvas, fuse, masked
from mercury_engine.decode.drafts import Evidence, Proposal
from mercury_engine.model.runtime import Cache, Rows, Runtime
from mercury_engine.tokens.prefix import HintedPrefix
from mercury_engine.tokens.vocabulary import CANVASES

__all__ = [
    "Acceptance",
    "Action",
    "Costs",
    "Decode",
    "Gauge",
    "Report",
    "Situation",
    "calibrate",
    "choose",
    "prior",
]

PRIORS: dict[str, tuple[float, float, float, float]] = {
    "canvas": (0.3, 0.5, 0.7, 0.93),
    "stale": (0.4, 0.5, 0.65, 0.8),
    "copy": (0.4, 0.5, 0.7, 0.9),
    "old": (0.5, 0.7, 0.85, 0.95),
    "previous": (0.7, 0.85, 0.95, 0.97),
    "branch": (0.5, 0.7, 0.85, 0.95),
}
"""By source and evidence."""

PRIOR_WEIGHT = 8.0
FORGETTING = 0.98
"""What an observation still weighs one answer later: what was once written off gets another chance."""

LENGTHS = {"line": 9.0, "block": 24.0, "edit": 24.0}
"""Tokens of an answer before any was seen; lines of real code have nine."""

CALIBRATED = (1, 2, 4, *CANVASES)
STARTED_WITH = (1, 32)
"""What the others cost lies near the line through these on every device that was measured."""
START_SECONDS = 0.2
REPEATS = 3
CALIBRATION_CONTEXT = 1024

Kind = Literal["step", "verify", "canvas", "redraft"]

Decode = Literal["policy", "ar", "ar+copy"]
"""All that there is; or, to compare with, plain autoregression, alone or with drafts copied from the row."""


class Costs(Struct, frozen=True):
    """What a forward costs by its number of rows, in milliseconds."""

    rows: tuple[int, ...]
    milliseconds: tuple[float, ...]

    def of(self, rows: np.ndarray | float) -> np.ndarray | float:
        """Interpolated; beyond the last measurement every row costs what it cost on average there."""
        inside = np.interp(rows, self.rows, self.milliseconds)
        return inside * np.maximum(1.0, np.asarray(rows) / self.rows[-1])


class Acceptance:
    """Running frequencies: of drafted tokens that were right, by evidence, and how long answers are."""

    def __init__(self) -> None:
        self._right: dict[Evidence, float] = {}
        self._seen: dict[Evidence, float] = {}
        self._lengths = dict(LENGTHS)

    def observe(self, evidence: Evidence, right: bool) -> None:
        self._right[evidence] = self._right.get(evidence, 0.0) + right
        self._seen[evidence] = self._seen.get(evidence, 0.0) + 1

    def answered(self, mode: str, length: int) -> None:
        self._lengths[mode] += (max(1, length) - self._lengths[mode]) / 16
        for counts in (self._right, self._seen):
            for evidence in counts:
                counts[evidence] *= FORGETTING

    def of(self, evidence: Evidence | None) -> float:
        if evidence is None:
            return 1.0
        right = self._right.get(evidence, 0.0) + PRIOR_WEIGHT * prior(evidence)
        return right / (self._seen.get(evidence, 0.0) + PRIOR_WEIGHT)

    def of_canvas(self) -> float:
        """The same for a canvas that is not drafted yet: over all that were."""
        levels = [("canvas", level) for level in range(len(PRIORS["canvas"]))]
        right = sum(self._right.get(level, 0.0) for level in levels) + PRIOR_WEIGHT * np.mean(PRIORS["canvas"])
        return float(right / (sum(self._seen.get(level, 0.0) for level in levels) + PRIOR_WEIGHT))

    def length(self, mode: str) -> float:
        return self._lengths[mode]


class Report(Struct):
    """What has been done since the engine started, so that nobody needs to guess how answers came about.

    `drafted` counts the tokens of each source that were verified, `accepted` those that were right; `rivals` the
    other answers that *high* tried, by how they came about, `won` those that were better.
    """

    forwards: int = 0
    rows: int = 0
    settled: int = 0
    actions: dict[str, int] = field(default_factory=dict)
    drafted: dict[str, int] = field(default_factory=dict)
    accepted: dict[str, int] = field(default_factory=dict)
    rivals: dict[str, int] = field(default_factory=dict)
    won: dict[str, int] = field(default_factory=dict)

    def count(self, kind: str, *, rows: int, settled: int) -> None:
        self.forwards += 1
        self.rows += rows
        self.settled += settled
        self.actions[kind] = self.actions.get(kind, 0) + 1

    def verified(self, source: str, right: bool) -> None:
        self.drafted[source] = self.drafted.get(source, 0) + 1
        self.accepted[source] = self.accepted.get(source, 0) + right

    def competed(self, kind: str, won: bool) -> None:
        self.rivals[kind] = self.rivals.get(kind, 0) + 1
        self.won[kind] = self.won.get(kind, 0) + won

    def shares(self) -> dict[str, float]:
        total = sum(self.actions.values())
        return {kind: count / total for kind, count in sorted(self.actions.items())}


class Situation(Struct, frozen=True, kw_only=True):
    """What there is to choose from: `pending` rows must be encoded whatever is chosen."""

    pending: int
    left: float
    proposals: Sequence[Proposal] = ()
    canvas_sizes: Sequence[int] = ()
    canvases: int = 1
    redraft_sizes: Sequence[int] = ()


class Action(Struct, frozen=True):
    """One forward: the pending rows, then `proposal` to verify, then canvases of `size`."""

    kind: Kind
    rate: float
    proposal: Proposal = Proposal("none")
    size: int = 0


def choose(situation: Situation, costs: Costs, acceptance: Acceptance) -> Action:
    """The action with the most expected tokens per millisecond; a step of plain autoregression settles one.

    Verifying a draft settles one token and as many more as agree. A canvas settles one too, and is judged
    together with the verification that it makes possible. Redrafting adds a canvas to a verification; it is
    worth what that saves later, should the whole draft agree. Rows that have to be encoded anyway cost what
    one costs in every action, so that they tip no balance.
    """

    def spent(rows: np.ndarray | float) -> np.ndarray | float:
        return costs.of(1) + costs.of(situation.pending + rows) - costs.of(situation.pending)

    count, right = situation.canvases, acceptance.of_canvas() * (1 - 1 / max(situation.left, 2.0))
    run = {size: expected_run(right, size - 1) for size in CANVASES}
    actions = [Action("step", float(1 / costs.of(1)))]
    for size in situation.canvas_sizes:
        drawing, verifying = spent(count * (size + 1) - 1), costs.of(count * (1 + run[size]))
        rate = (1 + count * (1 + run[size])) / (drawing + verifying)
        actions.append(Action("canvas", float(rate), size=size))
    onward = max(action.rate for action in actions)
    for proposal in situation.proposals:
        if not proposal.ids:
            continue
        agreeing = np.cumprod([acceptance.of(evidence) for evidence in proposal.evidence])
        settled = 1 + np.cumsum(agreeing * [evidence is not None for evidence in proposal.evidence])
        rates = settled / spent(np.arange(1, len(agreeing) + 1))
        last = int(rates.argmax())
        draft = proposal.head(last + 1)
        actions.append(Action("verify", float(rates[last]), draft))
        for size in situation.redraft_sizes:
            saved = 1 + run[size] - onward * costs.of(1 + run[size])
            rate = (settled[last] + agreeing[last] * saved) / spent(last + 1 + size)
            actions.append(Action("redraft", float(rate), draft, size))
    return max(actions, key=lambda action: action.rate)


def prior(evidence: Evidence | None) -> float:
    """How likely a drafted token is right, before anything was seen."""
    if evidence is None:
        return 1.0
    source, level = evidence
    return PRIORS[source][level]


def expected_run(probability: float, longest: int) -> float:
    """How many tokens in a row are right when each is with that probability."""
    return probability * (1 - probability**longest) / (1 - probability)


def calibrate(runtime: Runtime, *, clock: Callable[[], float] = time.perf_counter) -> Costs:
    """All that is worth measuring, at once."""
    *_, costs = Gauge(runtime, clock=clock).rest()
    return costs


class Gauge:
    """Measures forwards of one row to 64 on a cache of usual length: two sizes at the start, in little time even
    on a busy machine, the others while nobody waits.

    The fastest of a few counts; the first, in which a runtime may still be preparing, does not. Fewer rows never
    cost more: they could be padded.
    """

    def __init__(self, runtime: Runtime, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._runtime = runtime
        self._clock = clock
        self._context = min(CALIBRATION_CONTEXT, runtime.config.context // 2)
        self._fastest: dict[int, float] = {}

    def start(self, seconds: float = START_SECONDS) -> Costs:
        """Once its share of the time is over no size gets a third forward."""
        cache, began = self._filled(), self._clock()
        for number, rows in enumerate(STARTED_WITH, start=1):
            end = began + seconds * number / len(STARTED_WITH)
            self._time(rows, cache)
            times = [self._time(rows, cache)]
            while len(times) < REPEATS and self._clock() < end:
                times.append(self._time(rows, cache))
            self._fastest[rows] = min(times)
        return self._costs()

    def rest(self) -> Iterator[Costs]:
        """What is known after each further forward, until all sizes are measured; whoever asks may pause."""
        cache = self._filled()
        for rows, repeat in product(CALIBRATED, range(1 + REPEATS)):
            milliseconds = self._time(rows, cache)
            if repeat:
                self._fastest[rows] = min(milliseconds, self._fastest.get(rows, math.inf))
            yield self._costs()

    def _costs(self) -> Costs:
        rows = sorted(self._fastest)
        milliseconds = [self._fastest[count] for count in rows]
        return Costs(tuple(rows), tuple(np.minimum.accumulate(milliseconds[::-1])[::-1].tolist()))

    def _filled(self) -> Cache:
        """What stands in it costs nothing: one row, over and over."""
        cache, ids = self._runtime.cache(), np.zeros(1, np.int32)
        forward = self._runtime.forward(Rows(ids, ids, wanted=[]), cache)
        cache.append(forward, [0] * self._context)
        return cache

    def _time(self, rows: int, cache: Cache) -> float:
        """Milliseconds of one clean row and a canvas on it."""
        canvases = [Canvas(0, masked(rows - 1))] if rows > 1 else []
        fused = fuse(
            self._context, HintedPrefix.without_hints([0] * (self._context + 1), range(self._context + 1)), 0, canvases
        )
        started = self._clock()
        self._runtime.forward(fused.rows, cache)
        return (self._clock() - started) * 1000
