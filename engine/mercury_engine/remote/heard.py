"""What a server has said so far: text that grows, with the log probabilities of its tokens."""

import math
from collections.abc import Iterator
from typing import Literal

from mercury_engine.prompts.edits.asked import REJOINED_LINES
from mercury_engine.remote.protocols import Event

LONGEST_TOKENS = 64
"""Characters that the tokens of no real answer have on average."""


class StreamedText:
    """An answer must begin with `forced`, which the user has typed already: it is no part of `text`. `tokens` is how
    many were asked for."""

    def __init__(self, forced: str = "", tokens: int = 1 << 16) -> None:
        self._room = len(forced) + tokens * LONGEST_TOKENS
        self.end: Literal["", "stop", "length"] = ""
        self.is_enough = False
        """Whether nothing that follows belongs to the answer."""
        self.least = REJOINED_LINES
        """How many lines a rewrite must repeat before the rest of it is taken for granted."""
        self._forced = forced
        self._said = ""
        self._tokens: list[tuple[int, int, float]] = []
        """Where the event with the token begins and ends, and its log probability."""

    def add(self, event: Event) -> None:
        text = event.text[: self._room]
        self._room -= max(len(text), 1)
        start, end = len(self._said), len(self._said) + len(text)
        self._tokens += [(start, end, log_prob) for log_prob in event.log_probs]
        self._said += text
        self.end = event.end or self.end

    @property
    def text(self) -> str:
        return self._said[len(self._forced) :]

    @property
    def is_endless(self) -> bool:
        """Whether the server goes on behind all that was asked for: it is not listened to any longer."""
        return self._room <= 0

    @property
    def departs(self) -> bool:
        """Whether it is the beginning of something else than what is typed."""
        if self.end or len(self._said) >= len(self._forced):
            return not self._said.startswith(self._forced)
        return not self._forced.startswith(self._said)

    def tokens(self, text: str) -> Iterator[tuple[int, float]]:
        """Of those in this start of the text: the byte behind each, and its probability."""
        first = len(self._forced)
        for start, end, log_prob in self._tokens:
            if first <= max(start, end - 1) and start < first + len(text):
                yield len(text[: end - first].encode()), math.exp(log_prob)
