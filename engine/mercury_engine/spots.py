"""Where the next edit may be due, by the past alone: lines of some files, the likeliest first.

    spots(past, {"a.py": lines}, most=6)

Nothing here knows what follows from an edit. A line is likely if it mentions what an edit changed, rare names more so;
if it looks as a changed line looked before; and by how far it is from the newest edit. The weights of these signs are
fitted to commits by `python -m mercury_training.edits.places`, which measures how often the due place is among the
first few.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

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


def spots(past: Sequence[PastEdit], files: Mapping[str, Sequence[str]], most: int) -> list[Spot]:
    """The likeliest places, apart from each other; `past` is oldest first."""
    ranked = sorted(_scored(past, files), key=lambda spot: -spot.score)
    chosen: list[Spot] = []
    for spot in ranked:
        if len(chosen) == most:
            break
        if not any(spot.path == other.path and abs(spot.line - other.line) <= APART for other in chosen):
            chosen.append(spot)
    return chosen


def signs(past: Sequence[PastEdit], files: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, int, list[float]]]:
    """Each line of the files with its signs."""
    newest_first = list(reversed(past[-REMEMBERED:]))
    names = {path: [frozenset(NAME.findall(line)) for line in lines] for path, lines in files.items()}
    rarity = _rarity(names)
    weights = _weights_of_names(newest_first)
    for path, lines in files.items():
        edits = [edit for edit in newest_first if edit.path == path]
        for number, line in enumerate(lines):
            mentioned = names[path][number]
            told = [sum(rarity[name] * kind[name] for name in mentioned if name in kind) for kind in weights]
            likeness = _likeness(line, mentioned, newest_first)
            yield path, number, [*told, *likeness, *_position(path, number, line, newest_first[0], edits)]


def _scored(past: Sequence[PastEdit], files: Mapping[str, Sequence[str]]) -> Iterator[Spot]:
    weights = [WEIGHTS[sign] for sign in SIGNS]
    for path, number, values in signs(past, files):
        yield Spot(path, number, sum(weight * value for weight, value in zip(weights, values, strict=True)))


def _rarity(names: Mapping[str, Sequence[frozenset[str]]]) -> dict[str, float]:
    counts = Counter(name for lines in names.values() for line in lines for name in line)
    total = sum(len(lines) for lines in names.values())
    return {name: math.log(1 + total / count) for name, count in counts.items()}


def _weights_of_names(newest_first: Sequence[PastEdit]) -> tuple[dict[str, float], ...]:
    """The names that edits took away, brought and left, and those of the lines beside them, with how recent each is."""
    removed, added, shared, beside = {}, {}, {}, {}
    for age, edit in enumerate(newest_first):
        old, new = (frozenset(NAME.findall("".join(lines))) - COMMON for lines in (edit.old, edit.new))
        around = frozenset(NAME.findall(edit.above + edit.below)) - COMMON - old - new
        kinds = (old - new, removed), (new - old, added), (old & new, shared), (around, beside)
        for names, kind in kinds:
            for name in names:
                kind.setdefault(name, FADING**age)
    return removed, added, shared, beside


def _likeness(line: str, mentioned: frozenset[str], newest_first: Sequence[PastEdit]) -> tuple[float, float]:
    """How much a line looks as a changed line did before, and whether it is the same."""
    alike = same = 0.0
    bare = line.strip()
    for age, edit in enumerate(newest_first):
        recent = FADING**age
        for old in edit.old:
            if bare and bare == old.strip():
                same = max(same, recent)
            alike = max(alike, recent * _overlap(mentioned, frozenset(NAME.findall(old))))
    return alike, same


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


def _position(path: str, number: int, line: str, newest: PastEdit, edits: Sequence[PastEdit]) -> list[float]:
    """Whether the line was edited, what it is, and how far from the newest edit."""
    written = any(edit.first <= number < edit.stop for edit in edits)
    kind = [float(written), float(DECLARES.search(line) is not None), float(not line.strip())]
    if path != newest.path:
        return [*kind, 1.0, *[0.0] * (2 * len(DISTANCES))]
    is_below = number >= newest.first
    distance = number - newest.stop + 1 if is_below else newest.first - number
    within = [float(distance <= step) for step in DISTANCES]
    nowhere = [0.0] * len(DISTANCES)
    return [*kind, 0.0, *(within if is_below else nowhere), *(nowhere if is_below else within)]
