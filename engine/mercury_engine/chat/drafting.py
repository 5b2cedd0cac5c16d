"""Which tokens of a draft are settled after a forward: the surest anywhere or, under a grammar, from left to right.

Shapes: S slots, V vocabulary of the model.
"""

import math

import numpy as np
from msgspec import Struct

from mercury_engine.api import Effort
from mercury_engine.chat.grammar import Guide, Steps
from mercury_engine.chat.vocabulary import TokenChooser

Settled = tuple[int, float]
"""A token with its probability at the time when it was settled; 1 where a grammar left no choice."""


class Pace(Struct, frozen=True):
    """A block is written in at most this many `steps`, not counting revisions. Tokens that are `sure` are settled as
    well; a settled token is reopened once if another becomes `revises` times as likely."""

    steps: int
    sure: float = 0.9
    revises: float = math.inf

    def least(self, slots: int) -> int:
        return max(1, math.ceil(slots / self.steps))


REVISES = 10.0

PACES: dict[Effort, Pace] = {
    "instant": Pace(2),
    "low": Pace(4),
    "medium": Pace(8, revises=REVISES),
    "high": Pace(1 << 20, sure=2.0, revises=REVISES),
}
"""At high effort each forward settles one token, as in the models' evaluations."""


class DraftBlock:
    """Slots that are settled in any order, those in the first open `window` before others. An end voids everything
    behind it; `start` is the position of slot 0 in its window."""

    def __init__(self, count: int, pace: Pace, ends: frozenset[int], *, window: int = 0, start: int = 0) -> None:
        self.slots: list[Settled | None] = [None] * count
        self.guesses: list[Settled | None] = [None] * count
        self.revised: set[int] = set()
        self._pace = pace
        self._ends = ends
        self._window = window
        self._start = start

    @property
    def ids(self) -> list[int]:
        return [-1 if slot is None else slot[0] for slot in self.slots]

    @property
    def end(self) -> int:
        """The slot that ends the text, else the number of slots."""
        return next((at for at, slot in enumerate(self.slots) if slot and slot[0] in self._ends), len(self.slots))

    @property
    def open(self) -> list[int]:
        return [at for at, slot in enumerate(self.slots[: self.end]) if slot is None]

    @property
    def leading(self) -> list[Settled]:
        """The settled tokens before the first open slot, without the end."""
        end = min([*self.open[:1], self.end])
        return [slot for slot in self.slots[:end] if slot is not None]

    def settle(self, logits_SV: np.ndarray, chooser: TokenChooser) -> None:
        """Settle at least one open slot."""
        chosen_S, probabilities_S = chooser.choose(logits_SV)
        self._revise(logits_SV)
        self.guesses = list(zip(chosen_S.tolist(), probabilities_S.tolist(), strict=True))
        within = self._first_window(self.open)
        sure = [at for at in within if probabilities_S[at] >= self._pace.sure]
        least = self._pace.least(len(self.slots))
        surest = sorted(within, key=lambda at: -probabilities_S[at])[:least]
        for at in {*sure, *surest}:
            self.slots[at] = self.guesses[at]

    def _first_window(self, slots: list[int]) -> list[int]:
        if not self._window:
            return slots
        end = ((slots[0] + self._start) // self._window + 1) * self._window - self._start
        return [at for at in slots if at < end]

    def _revise(self, logits_SV: np.ndarray) -> None:
        """Reopen slots whose tokens the model no longer trusts, now that it sees the others; each once."""
        for at, slot in enumerate(self.slots[: self.end]):
            if slot is None or at in self.revised or math.isinf(self._pace.revises):
                continue
            if logits_SV[at].max() - logits_SV[at, slot[0]] > math.log(self._pace.revises):
                self.revised.add(at)
                self.slots[at] = None


class Walk(Struct, frozen=True):
    """The tokens of a walk, and whether the text ends after them."""

    tokens: list[Settled]
    ended: bool = False


def walk(
    guide: Guide, logits_SV: np.ndarray, chooser: TokenChooser, ends: frozenset[int], pace: Pace, room: int
) -> Steps[Walk]:
    """From left to right take the likeliest tokens that the grammar allows, while they are sure or still too few.
    Tokens that the grammar forces need no forward."""
    settled: list[Settled] = []
    chosen, least = 0, pace.least(len(logits_SV))
    while len(settled) < room:
        yield
        if forced := guide.forced()[: room - len(settled)]:
            for token in forced:
                guide.take(token)
                settled.append((token, 1.0))
            continue
        allowed = guide.allowed()
        if allowed is not None and len(allowed) <= len(ends) and ends.issuperset(allowed.tolist()):
            return Walk(settled, True)
        at = len(settled)
        if at >= len(logits_SV):
            break
        token, probability = _next(guide, logits_SV[at], allowed, chooser, ends)
        if chosen >= least and probability < pace.sure:
            guide.back(token not in ends)
            break
        if token in ends:
            return Walk(settled, True)
        settled.append((token, probability))
        chosen += 1
    return Walk(settled)


def _next(
    guide: Guide, logits_V: np.ndarray, allowed: np.ndarray | None, chooser: TokenChooser, ends: frozenset[int]
) -> Settled:
    """The choice, already taken by the guide unless it is an end."""
    while True:
        if allowed is None:
            ids, probabilities = chooser.choose(logits_V[None])
            token, probability = int(ids[0]), float(probabilities[0])
        else:
            token, probability = chooser.choose_allowed(logits_V, allowed)
        if token in ends or guide.take(token):
            return token, probability
        logits_V[token] = -np.inf  # begins a call that cannot be
