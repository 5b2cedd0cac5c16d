"""Where drafts come from besides a fresh canvas: texts that the answer is likely to follow, and copies."""

from collections.abc import Sequence
from itertools import groupby, islice, takewhile

import numpy as np
from msgspec import Struct

from mercury_engine.decode.cache import Answered
from mercury_engine.decode.echo import Heard
from mercury_engine.tokens.layout import Row
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import CUR, EOM, HOLES, NEAR, PAD, PART, PRE, SPECIALS

__all__ = ["Copies", "Evidence", "Known", "Proposal", "deleted_again", "leading", "remembered", "still_to_type"]

Evidence = tuple[str, int]
"""Where a drafted token comes from, and how much speaks for it: 0 to 3."""

STRONGEST = 3
REMOVING = 0.5
LONGEST_COPY = 64
LONGEST_MATCH = 16
SHORTEST_MATCH = 2
PLACES = 64
"""How many places of a row are looked at for a copy."""
LISTENED = 8
"""How many of them have a say in what is heard."""
REMEMBERED = 200
"""Characters before a span by which an earlier answer is found again."""
DELETED = REMEMBERED // 2
"""How many of them may have been deleted since; the others still tell the place."""


class Proposal(Struct, frozen=True):
    """What the answer may say next, with the evidence for each token; None where there is no choice.

    A fresh canvas knows probabilities, too.
    """

    source: str
    ids: tuple[int, ...] = ()
    evidence: tuple[Evidence | None, ...] = ()
    probabilities: tuple[float, ...] = ()

    def head(self, count: int) -> "Proposal":
        return Proposal(self.source, self.ids[:count], self.evidence[:count], self.probabilities[:count])


class Known:
    """A text that the answer is likely to follow: an old text, an earlier answer, a canvas.

    After each token it is aligned anew by edit distance, so that it goes on behind tokens that were replaced,
    removed or added; to remove one costs half as much, for old text goes in runs. A canvas brings a
    probability for each token, good until the first deviation; what is left of it then is stale.
    """

    def __init__(self, source: str, ids: Sequence[int], probabilities: Sequence[float] = ()) -> None:
        self.source = source
        self._ids = np.array(ids, np.int32)
        self._probabilities = probabilities
        self._distances = np.arange(len(ids) + 1) * REMOVING
        self._at = 0
        self._agreed = 0
        self._followed = True

    def advance(self, token: int) -> None:
        removed = np.arange(len(self._distances)) * REMOVING
        edited = self._distances + 1
        edited[1:] = np.minimum(edited[1:], self._distances[:-1] + (self._ids != token))
        self._distances = np.minimum.accumulate(edited - removed) + removed
        expected = self._at + 1
        self._at = self._nearest(token, expected)
        agrees = self._at > 0 and self._ids[self._at - 1] == token
        self._followed &= bool(agrees and self._at == expected)
        self._agreed = self._agreed + 1 if agrees else 0

    def rest(self) -> Proposal:
        ids = tuple(self._ids[self._at :].tolist())
        if len(self._probabilities) and self._followed:
            sure = tuple(float(probability) for probability in self._probabilities[self._at :])
            levels = (min(int(probability * (STRONGEST + 1)), STRONGEST) for probability in sure)
            return Proposal(self.source, ids, tuple((self.source, level) for level in levels), sure)
        source = "stale" if len(self._probabilities) else self.source
        return Proposal(source, ids, graded(source, self._agreed, len(ids)))

    def _nearest(self, token: int, expected: int) -> int:
        """Among the closest beginnings one that ends in this token, then the one that replaced a token."""
        closest = np.flatnonzero(self._distances == self._distances.min())
        return min(
            closest.tolist(),
            key=lambda at: (at == 0 or self._ids[at - 1] != token, abs(at - expected)),
        )


class Copies:
    """What followed the answer's last tokens where they stand elsewhere: in the row, or in the answer."""

    def __init__(self, tokenizer: Tokenizer, row: Row, number: int, *, line: bool) -> None:
        self._tokenizer = tokenizer
        self._line = line
        self._tokens = [*row.ids.tolist(), PAD, *leading(row, number)[-LONGEST_MATCH:]]
        self._start = len(row.ids) + 1
        self._array = np.array(self._tokens, np.int32)

    def advance(self, token: int) -> None:
        if len(self._tokens) == len(self._array):
            self._array = np.concatenate([self._array, np.zeros(LONGEST_COPY, np.int32)])
        self._array[len(self._tokens)] = token
        self._tokens.append(token)

    def rest(self, typed: bytes) -> Proposal:
        """The continuation of the longest match that spells the begun word, the latest of equals.

        A begun word counts as a token that matches.
        """
        for alike, place in self._matches():
            if alike < SHORTEST_MATCH - bool(typed):
                break
            if ids := self._continuation(place + 1, typed):
                return Proposal("copy", tuple(ids), graded("copy", alike, len(ids)))
        return Proposal("copy")

    def heard(self, typed: bytes) -> Heard | None:
        """The token that followed the longest matches that spell the begun word; the latest of equals speaks.

        Only in the row: an answer that heard itself would go round in circles.
        """
        matches = (match for match in self._matches() if match[1] < self._start)
        for alike, group in groupby(matches, key=lambda match: match[0]):
            latest = islice(group, LISTENED)
            followed = [ids[0] for _, place in latest if (ids := self._continuation(place + 1, typed))]
            if followed:
                agreeing = followed.count(followed[0]) / len(followed)
                return Heard(followed[0], alike, len(followed), agreeing)
        return None

    def _matches(self) -> list[tuple[int, int]]:
        """Places where the last token stands, with how many tokens up to it are alike: most first, then latest."""
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
        """Up to the next marker; in line mode to the line's end, which ends the answer too."""
        window = self._tokens[start : start + LONGEST_COPY]
        ids = list(takewhile(lambda token: token >= len(SPECIALS), window))
        if typed and not self._tokenizer.decode_bytes(ids).startswith(typed):
            return []
        if not self._line:
            return ids
        kept = list(takewhile(lambda token: b"\n" not in self._tokenizer.token_bytes[token], ids))
        if len(kept) == len(ids):
            return kept
        last, _, _ = self._tokenizer.decode(ids[len(kept) : len(kept) + 1]).partition("\n")
        return [*kept, *self._tokenizer.encode(last), EOM]


def graded(source: str, agreed: int, count: int) -> tuple[Evidence, ...]:
    """Each further token stands on one more that agreed: none, 1 or 2, 3 to 6, 7 and more."""
    return tuple((source, min((agreed + i + 1).bit_length() - 1, STRONGEST)) for i in range(count))


def leading(row: Row, number: int) -> list[int]:
    """The tokens of the text that stands before a hole, nearest last, without the begun word."""
    ids = row.ids.tolist()
    if ids[row.holes[number].anchor] == HOLES[number]:
        return _back_to_marker(ids[: ids.index(HOLES[number])])
    cursor, near, before = (len(ids) - 1 - ids[::-1].index(marker) for marker in (CUR, NEAR, PRE))
    head = list(takewhile(lambda token: token != PART, ids[cursor + 1 :]))
    return ids[before + 1 : near] + head


def remembered(before: str, text: str, complete: bool) -> Answered:
    return Answered(before[-REMEMBERED:], text, complete)


def still_to_type(before: str, answered: Answered) -> str | None:
    """What is left of an earlier answer now that the text before the span is `before`; None if it broke."""
    from_start = len(answered.before) < REMEMBERED
    for typed in range(len(answered.text) + 1):
        end = answered.before + answered.text[:typed]
        if before == end if from_start else before.endswith(end):
            return answered.text[typed:]
    return None


def deleted_again(before: str, answered: Answered) -> str | None:
    """The text deleted since an earlier answer, and that answer behind it; None if more has changed."""
    from_start = len(answered.before) < REMEMBERED
    for deleted in range(1, min(DELETED, len(answered.before)) + 1):
        end = answered.before[:-deleted]
        if before == end if from_start else before.endswith(end):
            return answered.before[-deleted:] + answered.text
    return None


def _back_to_marker(ids: list[int]) -> list[int]:
    text = list(takewhile(lambda token: token >= len(SPECIALS), reversed(ids)))
    return text[::-1]
