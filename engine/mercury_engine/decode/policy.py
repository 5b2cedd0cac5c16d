"""Chooses the next forward: the action with the most expected tokens per millisecond on this device."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct, field

from mercury_engine.decode.costs import MOST_ROWS, Costs
from mercury_engine.decode.drafts import DraftedTokens, Evidence
from mercury_engine.decode.tree import NO_DRAFT, DraftTree, grow, stops
from mercury_engine.tokens.vocabulary import CANVASES, EOM

PRIORS: dict[str, tuple[float, ...]] = {
    "canvas": (0.05, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97),
    "stale": (0.4, 0.5, 0.65, 0.8),
    "copy": (0.4, 0.5, 0.7, 0.9),
    "old": (0.5, 0.7, 0.85, 0.95),
    "previous": (0.7, 0.85, 0.95, 0.97),
    "branch": (0.5, 0.7, 0.85, 0.95),
}
"""The prior share of drafted tokens that are right, by source and strength of the evidence."""

PRIOR_WEIGHT = 8.0
FIRST_SURVIVAL = 0.8 ** np.arange(1.0, CANVASES[-1] + 1)
"""The prior probabilities that the first 1, 2, … tokens of a canvas are right: high, so that canvases are tried where
they could pay."""
LONGEST_MEMORY = 128
"""In canvases: an average of fewer could fall by chance so low that no canvas is drawn and it never rises again."""
MEMORY = 16
"""Averages move by a sixteenth of the difference."""
FORGETTING = 0.98
"""The weight of an observation after one more answer, so that sources that failed get another chance."""

AnswerKind = Literal["line", "block", "window"]
"""What an answer is: the rest of a line, several lines, or all that a next-edit model rewrites."""

LENGTHS: dict[AnswerKind, float] = {"line": 9.0, "block": 24.0, "window": 64.0}
"""The prior of an answer's tokens; a line of real code has nine."""

MOST_ANCHORS = 16
COUNTS = (0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 15, 19, 23, 31, 47, 63, 95, MOST_ROWS - 1)
"""The numbers of drafted tokens among which one is chosen: with the row before them often a size that GPUs are
prepared for."""

Kind = Literal["step", "verify", "canvas", "redraft"]

Decode = Literal["policy", "ar", "ar+copy"]
"""All ways of drafting; or, for comparison, plain autoregression, without drafts or with prompt lookup only."""


class Acceptance:
    """Running averages: how often drafted tokens are right, by evidence, and how long answers are."""

    def __init__(self) -> None:
        self._right: dict[Evidence, float] = {}
        self._seen: dict[Evidence, float] = {}
        self._lengths = dict(LENGTHS)
        self._survival = FIRST_SURVIVAL.copy()
        self._drawn = np.full(len(FIRST_SURVIVAL), PRIOR_WEIGHT)

    def observe(self, evidence: Evidence, right: bool) -> None:
        self._right[evidence] = self._right.get(evidence, 0.0) + right
        self._seen[evidence] = self._seen.get(evidence, 0.0) + 1

    def answered(self, kind: AnswerKind, length: int) -> None:
        self._lengths[kind] += (max(1, length) - self._lengths[kind]) / MEMORY
        for counts in (self._right, self._seen):
            for evidence in counts:
                counts[evidence] *= FORGETTING

    def of(self, evidence: Evidence | None) -> float:
        if evidence is None:
            return 1.0
        right = self._right.get(evidence, 0.0) + PRIOR_WEIGHT * prior(evidence)
        return right / (self._seen.get(evidence, 0.0) + PRIOR_WEIGHT)

    def drew(self, evidence: Sequence[Evidence | None], *, ended: bool) -> None:
        """Learn from a canvas how far its draft is expected to be right; `ended` if no tokens were left to draft."""
        agreeing = np.cumprod([self.of(level) for level in evidence])
        known = len(self._survival) if ended else len(agreeing)
        agreeing = np.append(agreeing, np.zeros(known - len(agreeing)))
        self._drawn[:known] += 1
        self._survival[:known] += (agreeing - self._survival[:known]) / np.minimum(self._drawn[:known], LONGEST_MEMORY)

    def survival(self) -> np.ndarray:
        """The probability that the first 1, 2, … tokens of a canvas that is yet to be drafted are right."""
        return np.minimum.accumulate(self._survival)

    def length(self, kind: AnswerKind) -> float:
        return self._lengths[kind]


class Report(Struct):
    """The engine's counters since it started; `settled` counts the tokens that its forwards committed.

    `accepted` counts the drafted tokens of each source that were right. `prompts` counts tokens of
    prompts: those that requests found read, those that they waited for, and those that were read ahead; `read` those of
    the last two by the pieces of their rows, where the engine lays them out.
    """

    forwards: int = 0
    rows: int = 0
    settled: int = 0
    actions: dict[str, int] = field(default_factory=dict)
    accepted: dict[str, int] = field(default_factory=dict)
    prompts: dict[str, int] = field(default_factory=lambda: {"reused": 0, "awaited": 0, "ahead": 0})
    read: dict[str, int] = field(default_factory=dict)

    def asked(self, tokens: int, unread: int) -> None:
        self.prompts["awaited"] += unread
        self.prompts["reused"] += tokens - unread

    def reads(self, pieces: Mapping[str, int]) -> None:
        for piece, tokens in pieces.items():
            self.read[piece] = self.read.get(piece, 0) + tokens

    def count(self, kind: str, *, rows: int, settled: int) -> None:
        self.forwards += 1
        self.rows += rows
        self.settled += settled
        self.actions[kind] = self.actions.get(kind, 0) + 1

    def verified(self, source: str, right: bool) -> None:
        self.accepted[source] = self.accepted.get(source, 0) + right


class Outlook(Struct, frozen=True):
    """What decoding attains onward: its `rate` in tokens per millisecond, the probability that an answer is `alive`
    after a token, and what a fresh draft is worth then, in tokens, by the size of its canvas."""

    rate: float
    alive: float = 1.0
    worth: dict[int, float] = {}


class DraftSituation(Struct, frozen=True, kw_only=True):
    """The options; `pending` rows must be encoded in any case. A canvas may end `room` positions behind them."""

    pending: int
    proposals: Sequence[DraftedTokens] = ()
    outlook: Outlook | None = None
    sizes: Sequence[int] = ()
    room: int = 0


class Action(Struct, frozen=True):
    """One forward: the pending rows, a `draft` to verify, and a canvas of `size` behind each anchor: 0 is the last
    pending row, n the draft's token n - 1."""

    draft: DraftTree = NO_DRAFT
    size: int = 0
    anchors: tuple[int, ...] = ()

    @property
    def kind(self) -> Kind:
        if self.draft.ids:
            return "redraft" if self.anchors else "verify"
        return "canvas" if self.anchors else "step"


def foresee(costs: Costs, acceptance: Acceptance, remaining: float, sizes: Sequence[int]) -> Outlook:
    """The best of plain autoregression and, for each size, of a chain: a canvas, then the verification of one draft
    after another for as long as a canvas stands where each verification stops.

    A chain settles tokens at a rate, and a fresh draft is worth the tokens by which the rest of its chain exceeds what
    decoding at the best of these rates would settle in the same time.
    """
    alive, alone = 1 - 1 / max(remaining, 2.0), float(1 / costs.of(1))
    if not sizes:
        return Outlook(alone, alive)
    reached = acceptance.survival()[: max(sizes) - 1]
    counts_N, sizes_S11 = _counts(len(reached)), np.array(sizes)[:, None, None]
    places_P, all_P = np.arange(len(reached) + 1), np.append(1.0, reached)
    within_NP, last_NP = places_P < counts_N[:, None], places_P == counts_N[:, None]
    onward_NM, _ = _likeliest(within_NP * (all_P - np.append(reached, 0.0)) + last_NP * all_P)
    rows_SNM = _rows(counts_N, onward_NM, sizes_S11)
    rows_SNM = np.where(counts_N[:, None] < sizes_S11, rows_SNM, np.inf)
    passes_NM = 1 / (1 - alive * onward_NM)
    settled_NM = passes_NM * np.append(1, 1 + reached.cumsum())[counts_N, None]
    spent_SNM = passes_NM * costs.of(1 + rows_SNM)
    rates_SNM = (1 + alive * settled_NM) / (costs.of(1 + sizes_S11) + alive * spent_SNM)
    rate = max(alone, float(rates_SNM.max()))
    worth_S = (settled_NM - rate * spent_SNM).max((1, 2))
    return Outlook(rate, alive, dict(zip(sizes, np.maximum(worth_S, 0.0).tolist(), strict=True)))


def choose(situation: DraftSituation, costs: Costs, acceptance: Acceptance) -> Action:
    """The pass with the highest gain: the tokens that it is expected to settle and the worth of the draft that the next
    pass then has, less what decoding at the best known rate would settle in the time of the pass.

    Verifying a draft settles one token and as many more as agree (speculative decoding), and a canvas becomes the next
    draft if verification stops at its anchor: so the anchors are the places where most likely nothing drafted is right.
    A step of plain autoregression is an option like the others, so that no choice is expected to be slower. Pending
    rows add the same cost to every pass, so that they do not affect the choice.
    """
    outlook, pending = situation.outlook or Outlook(float(1 / costs.of(1))), situation.pending

    def spent(rows: np.ndarray) -> np.ndarray | float:
        return costs.of(1) + costs.of(pending + rows) - costs.of(pending)

    draft = grow(situation.proposals, acceptance.of).head(MOST_ROWS - 1)
    counts_N = _counts(len(draft.ids))
    is_counted = [bool(grounds) for grounds in draft.grounds]
    settled_N = np.append(1, 1 + np.cumsum(np.where(is_counted, draft.reached, 0.0)))[counts_N]
    ends = [token == EOM for token in draft.ids]
    stopping_P = stops(draft.reached, draft.parents, ends)
    onward_NM, order_NM = _likeliest(np.where(np.arange(len(stopping_P)) <= counts_N[:, None], stopping_P, 0.0))
    rate = max(outlook.rate, float((settled_N / spent(counts_N)).max()))
    sizes = [0, *situation.sizes]
    sizes_S11, worth_S11 = np.array([(size, outlook.worth.get(size, 0.0)) for size in sizes]).T[:, :, None, None]
    rows_SNM = _rows(counts_N, onward_NM, sizes_S11, situation.room)
    gains_SNM = settled_N[:, None] + worth_S11 * outlook.alive * onward_NM - rate * spent(rows_SNM)
    size, count, canvases = np.unravel_index(int(gains_SNM.argmax()), gains_SNM.shape)
    anchors = tuple(sorted(order_NM[count, :canvases].tolist()))
    return Action(draft.head(int(counts_N[count])), sizes[size], anchors)


def _counts(count: int) -> np.ndarray:
    return np.array([*(fewer for fewer in COUNTS if fewer < count), count])


def _likeliest(stopping_NP: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How likely verification stops at one of the 0, 1, … likeliest places, and these places."""
    order_NM = np.argsort(-stopping_NP, axis=1, kind="stable")[:, :MOST_ANCHORS]
    covered_NM = np.take_along_axis(stopping_NP, order_NM, 1).cumsum(1)
    return np.concatenate([np.zeros((len(covered_NM), 1)), covered_NM], 1), order_NM


def _rows(counts_N: np.ndarray, onward_NM: np.ndarray, sizes_S11: np.ndarray, room: float = np.inf) -> np.ndarray:
    """The rows of a draft with canvases behind it; infinite where they are too many or go beyond the room."""
    counts_N1, canvases_M = counts_N[:, None], np.arange(onward_NM.shape[1])
    rows_SNM = counts_N1 + 1.0 * canvases_M * sizes_S11
    too_far = (canvases_M > 0) & (counts_N1 + sizes_S11 > room)
    too_many = (canvases_M > counts_N1 + 1) | ((canvases_M > 1) & (rows_SNM >= MOST_ROWS))
    return np.where(too_far | too_many, np.inf, rows_SNM)


def prior(evidence: Evidence | None) -> float:
    """The prior probability that a drafted token is right."""
    if evidence is None:
        return 1.0
    source, level = evidence
    return PRIORS[source][level]
