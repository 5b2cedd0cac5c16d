"""The tokens of an answer, settled in any order while the gap grows and shrinks.

Shapes: V vocabulary of the model, O slots that are still open.
"""

from collections.abc import Sequence

import numpy as np

from mercury_engine.families.vocabulary import FamilyVocabulary

SURE = 0.9
"""Tokens at least this probable are settled together (Fast-dLLM, Wu et al. 2025)."""

ABOUT_EQUAL = 0.01
"""Of tokens this close in probability the leftmost is settled first, because the start of an answer can be shown."""

Settled = tuple[int, float]
"""A token with its probability at the time when it was settled."""


class Slots:
    """At most `limit` slots. Each call of `settle` settles or removes at least one, so that every answer ends.

    The first settled tokens spell `typed`. With `rank`, the first other one is not the likeliest but that many
    places after it. Slots in a later `window` wait; slot 0 is at `start` of its window.
    """

    def __init__(
        self,
        vocabulary: FamilyVocabulary,
        count: int,
        *,
        limit: int,
        typed: bytes = b"",
        rank: int = 0,
        window: int = 0,
        start: int = 0,
    ) -> None:
        self._vocabulary = vocabulary
        self._slots: list[Settled | None] = [None] * count
        self._limit = limit
        self._expansions = limit
        self._typed = typed
        self._rank = rank
        self._window = window
        self._start = start
        self._likeliest: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def ids(self) -> list[int]:
        return [self._vocabulary.mask if slot is None else slot[0] for slot in self._slots]

    @property
    def open(self) -> list[int]:
        return [number for number, slot in enumerate(self._slots) if slot is None]

    @property
    def all(self) -> tuple[Settled | None, ...]:
        """The contents of each slot, None while it is open."""
        return tuple(self._slots)

    @property
    def leading(self) -> list[Settled]:
        """The settled tokens before the first open slot."""
        first = self._slots.index(None) if None in self._slots else len(self._slots)
        return [slot for slot in self._slots[:first] if slot is not None]

    @property
    def next(self) -> int:
        """The likeliest token of the first open slot, as of the last forward; -1 if unknown."""
        return self._likeliest.get(len(self.leading), -1)

    @property
    def at_best(self) -> list[float]:
        """The probabilities of all slots if the open ones turn out certain."""
        return [1.0 if slot is None else slot[1] for slot in self._slots]

    def put(self, number: int, token: int, probability: float) -> None:
        self._slots[number] = token, probability

    def settle(self, logits_OV: np.ndarray, sure: float = SURE) -> None:
        """Settle the `sure` ones among the first open slots, whose logits these are, at least the surest; then
        resize the gap."""
        numbers = self.open[: len(logits_OV)]
        begun = self._begin(numbers, logits_OV)
        numbers, logits_OV = numbers[begun:], logits_OV[begun:]
        if numbers:
            ids_O, probabilities_O = self._vocabulary.choose(logits_OV, expand=self._room > 0)
            self._likeliest = dict(zip(numbers, ids_O.tolist(), strict=True))
            for at in self._chosen(numbers, probabilities_O, sure, least=0 if begun else 1):
                self.put(numbers[at], int(ids_O[at]), float(probabilities_O[at]))
            self._resize()

    def _begin(self, numbers: Sequence[int], logits_OV: np.ndarray) -> int:
        """Settle the slots that spell what is typed, and the one that takes another choice; return how many."""
        begun = self._vocabulary.spell(logits_OV, self._typed)
        self._typed = self._vocabulary.left_to_spell(self._typed, begun)
        if self._rank and len(begun) < len(numbers):
            begun.append(self._vocabulary.ranked(logits_OV[len(begun)], self._rank))
            self._rank = 0
        for number, (token, probability) in zip(numbers, begun, strict=False):
            self.put(number, token, probability)
        return len(begun)

    def _chosen(self, numbers: Sequence[int], probabilities_O: np.ndarray, sure: float, *, least: int) -> list[int]:
        """Which of the open slots to settle: of those in the first window, the sure ones, or the surest."""
        if self._window:
            end = ((numbers[0] + self._start) // self._window + 1) * self._window - self._start
            probabilities_O = probabilities_O[: sum(number < end for number in numbers)]
        chosen = np.flatnonzero(probabilities_O >= sure).tolist()
        if chosen or not least:
            return chosen
        return [int((probabilities_O >= probabilities_O.max() - ABOUT_EQUAL).argmax())]

    @property
    def _room(self) -> int:
        return min(self._limit - len(self._slots), self._expansions)

    def _resize(self) -> None:
        """Each settled expansion becomes two open slots, as far as there is room. The first deletion removes all
        open slots after it: the family learnt deletions at the end of a gap."""
        resized: list[Settled | None] = []
        room, deleting = self._room, False
        for slot in self._slots:
            token = None if slot is None else slot[0]
            if token == self._vocabulary.delete:
                deleting = True
            elif token is not None and token != self._vocabulary.expand:
                resized.append(slot)
            elif not deleting:
                grows = token is not None and room > 0
                resized += [None] * (2 if grows else 1)
                room -= grows
                self._expansions -= grows
        self._slots = resized
