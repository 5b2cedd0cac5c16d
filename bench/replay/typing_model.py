"""How people pause while they type: milliseconds before each kind of keystroke, fitted to a public recording."""

import random
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec import Struct

FITTED = Path(__file__).parents[1] / "sessions/typing.json"


class Pauses(Struct, frozen=True):
    """`ms` at the percentiles `q`, of `n` keystrokes of one kind."""

    n: int
    q: tuple[int, ...]
    ms: tuple[int, ...]


TypingModel = dict[str, Pauses]


def load(path: Path = FITTED) -> TypingModel:
    return msgspec.json.decode(path.read_bytes(), type=TypingModel)


def draw(model: TypingModel, kind: str, chance: random.Random) -> int:
    """A random pause of this kind, interpolated between the known percentiles."""
    known = model.get(kind) or model["boundary"]
    level = chance.uniform(known.q[0], known.q[-1])
    points = list(zip(known.q, known.ms, strict=True))
    for (low, at_low), (high, at_high) in pairwise(points):
        if level <= high:
            return round(at_low + (at_high - at_low) * (level - low) / (high - low))
    return known.ms[-1]
