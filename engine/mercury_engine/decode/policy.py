"""Chooses the next forward: the action with the most expected tokens per millisecond on this device."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct, field

from mercury_engine.decode.costs import Costs
from mercury_engine.decode.drafts import Evidence, Proposal
from mercury_engine.tokens.vocabulary import CANVASES

PRIORS: dict[str, tuple[float, float, float, float]] = {
    "canvas": (0.3, 0.5, 0.7, 0.93),
    "stale": (0.4, 0.5, 0.65, 0.8),
    "copy": (0.4, 0.5, 0.7, 0.9),
    "old": (0.5, 0.7, 0.85, 0.95),
    "previous": (0.7, 0.85, 0.95, 0.97),
    "branch": (0.5, 0.7, 0.85, 0.95),
}
"""The prior share of drafted tokens that are right, by source and strength of the evidence."""

PRIOR_WEIGHT = 8.0
FORGETTING = 0.98
"""The weight of an observation after one more answer, so that sources that failed get another chance."""

LENGTHS = {"line": 9.0, "block": 24.0, "edit": 24.0, "region": 64.0}
"""The prior of an answer's tokens; a line of real code has nine."""

Kind = Literal["step", "verify", "canvas", "redraft"]

Decode = Literal["policy", "ar", "ar+copy"]
"""All ways of drafting; or, for comparison, plain autoregression, without drafts or with prompt lookup only."""


class Acceptance:
    """Running averages: how often drafted tokens are right, by evidence, and how long answers are."""

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
        """The same for a canvas that is yet to be drafted: the average of all so far."""
        levels = [("canvas", level) for level in range(len(PRIORS["canvas"]))]
        right = sum(self._right.get(level, 0.0) for level in levels) + PRIOR_WEIGHT * np.mean(PRIORS["canvas"])
        return float(right / (sum(self._seen.get(level, 0.0) for level in levels) + PRIOR_WEIGHT))

    def length(self, mode: str) -> float:
        return self._lengths[mode]


class Report(Struct):
    """The engine's counters since it started; `settled` counts the tokens that its forwards committed.

    `drafted` counts the verified tokens of each source, `accepted` those that were right.
    """

    forwards: int = 0
    rows: int = 0
    settled: int = 0
    actions: dict[str, int] = field(default_factory=dict)
    drafted: dict[str, int] = field(default_factory=dict)
    accepted: dict[str, int] = field(default_factory=dict)

    def count(self, kind: str, *, rows: int, settled: int) -> None:
        self.forwards += 1
        self.rows += rows
        self.settled += settled
        self.actions[kind] = self.actions.get(kind, 0) + 1

    def verified(self, source: str, right: bool) -> None:
        self.drafted[source] = self.drafted.get(source, 0) + 1
        self.accepted[source] = self.accepted.get(source, 0) + right

    def shares(self) -> dict[str, float]:
        total = sum(self.actions.values())
        return {kind: count / total for kind, count in sorted(self.actions.items())}


class DraftSituation(Struct, frozen=True, kw_only=True):
    """The options; `pending` rows must be encoded in any case, and about `left` tokens are left to decode."""

    pending: int
    remaining: float
    proposals: Sequence[Proposal] = ()
    canvas_sizes: Sequence[int] = ()
    canvases: int = 1
    redraft_sizes: Sequence[int] = ()


class Action(Struct, frozen=True):
    """One forward: the pending rows, then a `proposal` to verify, then canvases of `size`."""

    kind: Kind
    rate: float
    proposal: Proposal = Proposal("none")
    size: int = 0


def choose(situation: DraftSituation, costs: Costs, acceptance: Acceptance) -> Action:
    """The action with the most expected tokens per millisecond; a step of plain autoregression settles one.

    Verifying a draft settles one token and as many more as agree (speculative decoding). A canvas settles one token
    too, and is rated together with the verification that it enables. Redrafting adds a canvas to a verification, and
    gains what that saves later if the whole draft agrees. Pending rows add the same cost to every action, so that they
    do not affect the choice.
    """

    def spent(rows: np.ndarray | float) -> np.ndarray | float:
        return costs.of(1) + costs.of(situation.pending + rows) - costs.of(situation.pending)

    count, right = situation.canvases, acceptance.of_canvas() * (1 - 1 / max(situation.remaining, 2.0))
    run = {size: _expected_run(right, size - 1) for size in CANVASES}
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
    """The prior probability that a drafted token is right."""
    if evidence is None:
        return 1.0
    source, level = evidence
    return PRIORS[source][level]


def _expected_run(probability: float, longest: int) -> float:
    """The expected number of consecutive right tokens if each is right with this probability."""
    return probability * (1 - probability**longest) / (1 - probability)
