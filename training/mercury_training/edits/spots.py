"""Where the next edit may be due, by the past alone: lines of some files, the likeliest first.

    spots(past, indexed({"a.py": lines}), most=6)

Nothing here knows what follows from an edit. A line is likely if it mentions what an edit changed, rare names more so;
if it looks as a changed line looked before; and by how far it is from the newest edit. The weights of these signs are
fitted to commits by `python -m mercury_training.edits.places`, which measures how often the due place is among the
first few.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Self

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.mentions import COMMON, DECLARES, NAME

REMEMBERED = 6
"""Edits of the past that count."""
FADING = 0.8
"""How much less each older edit counts."""
APART = 2
"""Lines between two spots of a file, at least: what is nearer is one place."""

DISTANCES = (3, 8, 20, 60, 200)
"""Lines from the newest edit, by steps: how likely the next one is does not fall evenly."""

SIGNS = (
    *("removed", "added", "shared", "beside", "alike", "same", "edited", "declares", "blank", "elsewhere"),
    *(f"{side}_{distance}" for side in ("below", "above") for distance in DISTANCES),
)
WEIGHTS = {
    "removed": 0.458,
    "added": 0.144,
    "shared": 0.12,
    "beside": 0.094,
    "alike": 2.135,
    "same": 0.524,
    "edited": -6.069,
    "declares": 0.254,
    "blank": -0.511,
    "elsewhere": 0.861,
    "below_3": -2.867,
    "below_8": 0.743,
    "below_20": 1.233,
    "below_60": 0.911,
    "below_200": 1.02,
    "above_3": -0.388,
    "above_8": -0.673,
    "above_20": 0.495,
    "above_60": 0.476,
    "above_200": -0.757,
}
"""Fitted to 300 commits of 47 repositories."""


NOWHERE = np.empty(0, int)


class PastEdit(Struct, frozen=True):
    """Lines of a file as they were and as they are, the line where they begin now, and the lines on either side."""

    path: str
    first: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    above: str = ""
    below: str = ""

    @property
    def stop(self) -> int:
        return self.first + len(self.new)

    def moved(self, path: str, first: int, lines: int) -> Self:
        """The same after another edit, which made a text longer by so many lines."""
        return replace(self, first=self.first + lines) if self.path == path and self.first >= first else self


class Spot(Struct, frozen=True):
    """A line, and how likely it is that the next edit is there, as the exponent of a softmax over all lines."""

    path: str
    line: int
    score: float


class IndexedLines(Struct, frozen=True):
    """What is asked of each line of a text, by line, and the lines that hold a name or say the same."""

    holders: dict[str, np.ndarray]
    copies: dict[str, np.ndarray]
    name_count_L: np.ndarray
    declares_L: np.ndarray
    blank_L: np.ndarray

    @classmethod
    def of(cls, lines: Sequence[str]) -> Self:
        holders, copies, names_L = defaultdict(list), defaultdict(list), [_names(line) for line in lines]
        for number, names in enumerate(names_L):
            for name in names:
                holders[name].append(number)
            copies[lines[number].strip()].append(number)
        return cls(
            {name: np.array(numbers) for name, numbers in holders.items()},
            {line: np.array(numbers) for line, numbers in copies.items()},
            np.array([len(names) for names in names_L]),
            np.array([DECLARES.search(line) is not None for line in lines], float),
            np.array([not line.strip() for line in lines], float),
        )

    def __len__(self) -> int:
        return len(self.name_count_L)

    def likeness(self, names: frozenset[str]) -> np.ndarray:
        """The names that a line shares with these, as a part of all that either has."""
        shared_L = np.zeros(len(self))
        for name in names:
            shared_L[self.holders.get(name, NOWHERE)] += 1
        return shared_L / np.maximum(1, self.name_count_L + len(names) - shared_L)


def indexed(files: Mapping[str, Sequence[str]]) -> dict[str, IndexedLines]:
    return {path: IndexedLines.of(lines) for path, lines in files.items()}


def spots(past: Sequence[PastEdit], files: Mapping[str, IndexedLines], most: int) -> list[Spot]:
    """The likeliest places, apart from each other; `past` is oldest first."""
    return likeliest(dict(scored(past, files)), most)


def scored(past: Sequence[PastEdit], files: Mapping[str, IndexedLines]) -> Iterator[tuple[str, np.ndarray]]:
    """Each file with how likely its lines are."""
    weights_S = np.array([WEIGHTS[sign] for sign in SIGNS])
    return ((path, signs_LS @ weights_S) for path, signs_LS in signs(past, files))


def likeliest(scores: Mapping[str, np.ndarray], most: int) -> list[Spot]:
    chosen: list[Spot] = []
    for score, path, line in heapq.merge(*(_falling(path, scores_L) for path, scores_L in scores.items())):
        if len(chosen) == most:
            break
        if not any(path == spot.path and abs(line - spot.line) <= APART for spot in chosen):
            chosen.append(Spot(path, line, -score))
    return chosen


def _falling(path: str, scores_L: np.ndarray) -> Iterator[tuple[float, str, int]]:
    return ((-float(scores_L[line]), path, int(line)) for line in np.argsort(-scores_L, kind="stable"))


def signs(past: Sequence[PastEdit], files: Mapping[str, IndexedLines]) -> Iterator[tuple[str, np.ndarray]]:
    """Each file with the signs of its lines."""
    newest_first = list(reversed(past[-REMEMBERED:]))
    weights = _weights_of_names(newest_first)
    rarity = _rarity({name for kind in weights for name in kind}, files.values())
    for path, text in files.items():
        told = [_told(text, kind, rarity) for kind in weights]
        edits = [edit for edit in newest_first if edit.path == path]
        position = _position(path, text, newest_first[0], edits)
        yield path, np.stack([*told, *_likeness(text, newest_first), *position], axis=1)


def _names(line: str) -> frozenset[str]:
    return frozenset(NAME.findall(line))


def _rarity(names: Iterable[str], texts: Iterable[IndexedLines]) -> dict[str, float]:
    counts = {name: sum(len(text.holders.get(name, NOWHERE)) for text in texts) for name in names}
    total = sum(map(len, texts))
    return {name: math.log(1 + total / count) for name, count in counts.items() if count}


def _weights_of_names(newest_first: Sequence[PastEdit]) -> tuple[dict[str, float], ...]:
    """The names that edits took away, brought and left, and those of the lines beside them, with how recent each is."""
    removed, added, shared, beside = {}, {}, {}, {}
    for age, edit in enumerate(newest_first):
        old, new = (_names("".join(lines)) - COMMON for lines in (edit.old, edit.new))
        around = _names(edit.above + edit.below) - COMMON - old - new
        kinds = (old - new, removed), (new - old, added), (old & new, shared), (around, beside)
        for names, kind in kinds:
            for name in names:
                kind.setdefault(name, FADING**age)
    return removed, added, shared, beside


def _told(text: IndexedLines, recency: Mapping[str, float], rarity: Mapping[str, float]) -> np.ndarray:
    told_L = np.zeros(len(text))
    for name in recency.keys() & rarity.keys():
        told_L[text.holders.get(name, NOWHERE)] += rarity[name] * recency[name]
    return told_L


def _likeness(text: IndexedLines, newest_first: Sequence[PastEdit]) -> tuple[np.ndarray, np.ndarray]:
    """How much a line looks as a changed line did before, and whether it is the same."""
    alike_L, same_L = np.zeros(len(text)), np.zeros(len(text))
    for age, edit in enumerate(newest_first):
        recent = FADING**age
        for old in filter(str.strip, edit.old):
            copies = text.copies.get(old.strip(), NOWHERE)
            same_L[copies] = np.maximum(same_L[copies], recent)
            alike_L = np.maximum(alike_L, recent * text.likeness(_names(old)))
    return alike_L, same_L


def _position(path: str, text: IndexedLines, newest: PastEdit, edits: Sequence[PastEdit]) -> list[np.ndarray]:
    """Whether a line was edited, what it is, and how far from the newest edit."""
    written_L, nowhere_L = np.zeros(len(text)), np.zeros(len(text))
    for edit in edits:
        written_L[edit.first : edit.stop] = 1
    kind = [written_L, text.declares_L, text.blank_L]
    if path != newest.path:
        return [*kind, nowhere_L + 1, *[nowhere_L] * (2 * len(DISTANCES))]
    numbers_L = np.arange(len(text))
    is_below_L = numbers_L >= newest.first
    distance_L = np.where(is_below_L, numbers_L - newest.stop + 1, newest.first - numbers_L)
    within = [distance_L <= distance for distance in DISTANCES]
    below, above = ([near_L & side_L for near_L in within] for side_L in (is_below_L, ~is_below_L))
    return [*kind, nowhere_L, *below, *above]
