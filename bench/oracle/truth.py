"""What the oracle knows: true texts, where in them a gap is, and what belongs there or looks as if it did."""

import math
import random
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

TOKEN = re.compile(r"\s*\n+|[ \t]+(?=[ \t])|[^\n\w]?[^\W\d_]{1,8}|\d| ?[^\w\s]{1,3}\n*|\s|.")
"""About what a byte pair encoding of code makes: words with the sign before them, digits, runs of signs and blanks."""

NAME = re.compile(r"[A-Za-z_]\w{2,}")
TAILS = (200, 64, 24, 8, 3, 1)
"""Characters at the end of the text before a gap that are looked for, until some are found."""
HEADS = (13, 6, 3, 2, 1)
"""Lines at the beginning of the text behind it, likewise."""

Wisdom = Literal["absent", "constant", "overlapping", "sure", "doubting"]
"""What log probabilities tell: nothing; nothing, in numbers; little, as those of Qwen2.5-Coder 0.5B and 1.5B do; which
answers are right, from a model that is sure of those (-0.06 a token on average), or less so (-0.13)."""

MEANS: dict[Wisdom, tuple[float, float]] = {"overlapping": (0.13, 0.22), "sure": (0.06, 0.7), "doubting": (0.13, 0.7)}
"""Of right and of wrong answers, with the sign changed."""
CONSTANT = 0.0
SURE_TOKENS, SURE_SHARE, UNSURE_SHARE = 0.75, 0.2, 3.4
"""The share of the tokens that are nearly certain, and what these and the others have of the mean."""


class Place(Struct, frozen=True):
    """`text[start:end]` is missing; `agrees`: how many characters around the gap are those of the text."""

    text: str
    start: int
    end: int
    agrees: int = 0

    @property
    def middle(self) -> str:
        return self.text[self.start : self.end]

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.start)


class Truths:
    """The true texts.

    >>> Truths(["def add(a, b):\\n    return a + b\\n"]).place("    return", "\\n").middle
    ' a + b'
    """

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self.texts = list(texts)

    def place(self, before: str, behind: str) -> Place | None:
        """The likeliest place: most of the text around the gap is there, and nothing more than needed is missing."""
        for size in TAILS:
            if size > TAILS[-1] and size > 2 * len(before):
                continue
            places = [
                self._gap(text, start, before, behind)
                for text in self.texts
                for start in _ends(text, before[-size:] if before else "")
            ]
            if places:
                return max(places, key=lambda place: (place.agrees, place.start - place.end))
        return None

    def _gap(self, text: str, start: int, before: str, behind: str) -> Place:
        agrees = common(text[:start][::-1], before[::-1])
        end, same = _rejoined(text, start, behind)
        return Place(text, start, end, agrees + same)


def _ends(text: str, tail: str) -> Iterator[int]:
    """Where the tail ends in the text."""
    at = text.find(tail)
    while at >= 0 and tail:
        yield at + len(tail)
        at = text.find(tail, at + 1)
    if not tail:
        yield 0


def common(one: str, other: str) -> int:
    most = min(len(one), len(other))
    return next((at for at in range(most) if one[at] != other[at]), most)


def _rejoined(text: str, start: int, behind: str) -> tuple[int, int]:
    """Where the text behind the gap begins, and how much of it is there."""
    if text.endswith(behind) and len(text) - len(behind) >= start:
        return len(text) - len(behind), len(behind)
    lines = behind.splitlines(keepends=True)
    for count in HEADS:
        head = "".join(lines[: count + (not behind.split("\n")[0].strip())]).rstrip()
        if head.strip() and (at := text.find(head, start)) >= 0:
            return at, len(head)
    stop = text.find("\n\n", start)
    return (stop if stop >= 0 else len(text)), 0


def tokens(text: str) -> list[str]:
    return TOKEN.findall(text)


def wrong(place: Place, chance: random.Random) -> str:
    """The true answer with names changed, or another line of the file: nobody sees at once that it is wrong."""
    middle = place.middle
    indent = middle[: len(middle) - len(middle.lstrip())]
    names = sorted(set(NAME.findall(place.text)) - set(NAME.findall(middle)))
    if names and NAME.search(middle) and chance.random() < 0.5:
        others = {name: chance.choice(names) for name in NAME.findall(middle)}
        return NAME.sub(lambda found: others[found[0]], middle)
    start = middle.strip()[:1]
    lines = [line.strip() for line in place.text.splitlines() if line.strip() and line.strip()[:1] != start]
    return indent + chance.choice(lines) if lines else indent + "None"


def log_probs(wisdom: Wisdom, *, right: bool, count: int, chance: random.Random) -> list[float] | None:
    """Of `count` tokens: most are nearly certain, and a few are not."""
    if wisdom == "absent":
        return None
    if wisdom == "constant":
        return [CONSTANT] * count
    mean = MEANS[wisdom][0 if right else 1]
    shares = (SURE_SHARE if chance.random() < SURE_TOKENS else UNSURE_SHARE for _ in range(count))
    return [-min(mean * share * chance.expovariate(1.0), 12.0) for share in shares]


def chance_of_right(wisdom: Wisdom, log_probs: Sequence[float], rate: float) -> float:
    """How likely an answer with these log probabilities is right, to somebody who knows how they are drawn and that the
    model is right at this rate."""
    odds = rate / (1 - rate)
    if wisdom in MEANS:
        right, wrong = MEANS[wisdom]
        odds *= math.exp(sum(math.log(_density(-each, right) / _density(-each, wrong)) for each in log_probs))
    return odds / (1 + odds)


def _density(loss: float, mean: float) -> float:
    parts = (SURE_TOKENS, SURE_SHARE * mean), (1 - SURE_TOKENS, UNSURE_SHARE * mean)
    return sum(part / own_mean * math.exp(-loss / own_mean) for part, own_mean in parts)
