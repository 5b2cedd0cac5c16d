"""Where drafts come from: texts that the answer is likely to follow, and prompt lookup.

Prompt lookup (Saxena 2023; LLMA, Yang et al. 2023) drafts the continuation of an earlier match of the last tokens.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat, takewhile

import numpy as np
from msgspec import Struct

from mercury_engine.tokens.layout import LayoutRow
from mercury_engine.tokens.spelling import Spelling
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import CUR, EOM, NEAR, PART, PRE

Evidence = tuple[str, int]
"""The source of a drafted token, and the strength of the evidence for it: 0 to 3, of a canvas 0 to 9."""

LineEnds = Mapping[int, Sequence[int]]
"""For each token with a line end, the tokens that spell the text before it."""

Alternatives = tuple[tuple[int, float], ...]
"""Other tokens in the place of a drafted one, with their probabilities."""

STRONGEST = 3
SHARES = 10
"""The probabilities of a canvas are evidence in tenths."""
REMOVAL_COST = 0.5
LONGEST_COPY = 64
LONGEST_MATCH = 16
SHORTEST_MATCH = 2
PLACES = 64
"""How many occurrences of the last token are compared."""


class DraftedTokens(Struct, frozen=True):
    """A draft to verify, with the evidence for each token; None where only one token is possible.

    Drafts from a fresh canvas have probabilities and alternatives, too.
    """

    source: str
    ids: tuple[int, ...] = ()
    evidence: tuple[Evidence | None, ...] = ()
    probabilities: tuple[float, ...] = ()
    others: tuple[Alternatives, ...] = ()

    def head(self, count: int) -> "DraftedTokens":
        rest = self.evidence[:count], self.probabilities[:count], self.others[:count]
        return DraftedTokens(self.source, self.ids[:count], *rest)

    def options(self) -> Iterator[list[tuple[int, Evidence | None]]]:
        """The tokens that may stand in each place, with the evidence for them."""
        others = chain(self.others, repeat(()))
        for token, evidence, alternatives in zip(self.ids, self.evidence, others, strict=False):
            yield [(token, evidence), *((other, share_of(self.source, share)) for other, share in alternatives)]


class DraftSource:
    """A text that the answer is likely to follow: the old text, a past answer, a canvas.

    After each token it is aligned again by edit distance, so that it proposes what comes behind tokens that the
    answer replaced, removed or added. Removing costs half, since old text is removed in runs. A canvas has a
    probability for each token, which holds until the answer first deviates; from then on the canvas is stale.
    """

    def __init__(
        self,
        name: str,
        ids: Sequence[int] | np.ndarray,
        probabilities: Sequence[float] | np.ndarray = (),
        others: Sequence[Alternatives] = (),
    ) -> None:
        self.name = name
        self._others = others
        self._ids = np.array(ids, np.int32)
        self._probabilities = probabilities
        self._distances = np.arange(len(ids) + 1) * REMOVAL_COST
        self._at = 0
        self._agreed = 0
        self._followed = True

    def advance(self, token: int) -> None:
        removed = np.arange(len(self._distances)) * REMOVAL_COST
        edited = self._distances + 1
        edited[1:] = np.minimum(edited[1:], self._distances[:-1] + (self._ids != token))
        self._distances = np.minimum.accumulate(edited - removed) + removed
        expected = self._at + 1
        self._at = self._nearest(token, expected)
        agrees = self._at > 0 and self._ids[self._at - 1] == token
        self._followed &= bool(agrees and self._at == expected)
        self._agreed = self._agreed + 1 if agrees else 0

    def proposal(self) -> DraftedTokens:
        ids = tuple(self._ids[self._at :].tolist())
        if len(self._probabilities) and self._followed:
            sure = tuple(float(probability) for probability in self._probabilities[self._at :])
            evidence = tuple(share_of(self.name, probability) for probability in sure)
            return DraftedTokens(self.name, ids, evidence, sure, tuple(self._others[self._at :]))
        name = "stale" if len(self._probabilities) else self.name
        return DraftedTokens(name, ids, growing_evidence(name, self._agreed, len(ids)))

    def _nearest(self, token: int, expected: int) -> int:
        """The length of the closest prefix: preferably one that ends in this token, then one of the expected length."""
        closest = np.flatnonzero(self._distances == self._distances.min())
        return min(
            closest.tolist(),
            key=lambda at: (at == 0 or self._ids[at - 1] != token, abs(at - expected)),
        )


class PromptLookup:
    """Earlier matches of the answer's last tokens in the context and in the answer, and what follows them.

    `before` are the tokens of the text before the answer.
    """

    def __init__(
        self,
        tokenizer: Spelling,
        read: Sequence[int],
        before: Sequence[int],
        *,
        line_ends: LineEnds | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._line_ends = line_ends
        self._tokens = [*read, tokenizer.silent, *before[-LONGEST_MATCH:]]
        self._start = len(read) + 1
        self._array = np.array(self._tokens, np.int32)

    @classmethod
    def of(cls, tokenizer: Tokenizer, row: LayoutRow, *, line: bool) -> "PromptLookup":
        """The lookup for the answer to a row; a single line's drafts end with it. It also copies from text that did
        not fit."""
        read = [*row.unread, tokenizer.silent, *row.ids.tolist()]
        return cls(tokenizer, read, tokens_before(row), line_ends=tokenizer.line_ends if line else None)

    def advance(self, token: int) -> None:
        if len(self._tokens) == len(self._array):
            self._array = np.concatenate([self._array, np.zeros(LONGEST_COPY, np.int32)])
        self._array[len(self._tokens)] = token
        self._tokens.append(token)

    def proposal(self, typed: bytes) -> DraftedTokens:
        """The continuation of the longest match that spells the partial word, the latest among equals.

        A partial word counts as one more matching token.
        """
        for alike, place in self._matches():
            if alike < SHORTEST_MATCH - bool(typed):
                break
            if ids := self._continuation(place + 1, typed):
                return DraftedTokens("copy", tuple(ids), growing_evidence("copy", alike, len(ids)))
        return DraftedTokens("copy")

    def _matches(self) -> list[tuple[int, int]]:
        """Occurrences of the last token with the number of equal tokens up to there: longest first, then latest."""
        count = len(self._tokens)
        if count == self._start:
            return []
        tokens = self._array[:count]
        places = np.flatnonzero(tokens[:-1] == tokens[-1])[-PLACES:]
        back = np.arange(1, min(LONGEST_MATCH, count - self._start))
        earlier = places[:, None] - back
        matching = (earlier >= 0) & (tokens[earlier] == tokens[count - 1 - back])
        alike = 1 + np.logical_and.accumulate(matching, 1).sum(1)
        return sorted(zip(alike.tolist(), places.tolist(), strict=True), reverse=True)

    def _continuation(self, start: int, typed: bytes) -> list[int]:
        """The tokens up to the next marker; for a single line up to its end, which becomes the end of the answer."""
        spelled = self._tokenizer.token_bytes
        ids = list(takewhile(spelled.__getitem__, self._tokens[start : start + LONGEST_COPY]))
        if typed and not self._tokenizer.decode_bytes(ids).startswith(typed):
            return []
        line_ends = self._line_ends
        if line_ends is None:
            return ids
        line_ids = list(takewhile(lambda token: token not in line_ends, ids))
        return line_ids if len(line_ids) == len(ids) else [*line_ids, *line_ends[ids[len(line_ids)]], EOM]


def tokens_before(row: LayoutRow) -> list[int]:
    """The tokens of the text before a gap, without the partial word."""
    ids = row.ids.tolist()
    cursor, near, before = (len(ids) - 1 - ids[::-1].index(marker) for marker in (CUR, NEAR, PRE))
    head = list(takewhile(lambda token: token != PART, ids[cursor + 1 :]))
    return ids[before + 1 : near] + head


def growing_evidence(source: str, agreed: int, count: int) -> tuple[Evidence, ...]:
    """Each further token relies on one more agreeing token: on none, 1 or 2, 3 to 6, 7 and more."""
    return tuple((source, min((agreed + i + 1).bit_length() - 1, STRONGEST)) for i in range(count))


def share_of(source: str, probability: float) -> Evidence:
    return source, min(int(probability * SHARES), SHARES - 1)
