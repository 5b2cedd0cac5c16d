"""What the tuner is given of a project, and what it reports: plain data between two processes."""

from msgspec import Struct

__all__ = ["Figure", "File", "Material", "Tuning"]


class File(Struct, frozen=True):
    """A file that may be read, as it stands; what looks like a secret is no longer in its text."""

    path: str
    text: str


class Material(Struct, frozen=True):
    """The project's folder, for its history, and its files as far as they may be read."""

    root: str
    files: list[File]


class Figure(Struct, frozen=True):
    """One measure on what was kept back: before and after, and the interval of the difference (95 %)."""

    name: str
    count: int
    before: float
    after: float
    low: float
    high: float


class Tuning(Struct, frozen=True, kw_only=True):
    """What was done to which model for which project, and whether it is `better`; else `reason` says why not.

    `base` is the identity of the weights that were tuned; `files` and `edits` were learned from, in so many `steps`.
    """

    root: str
    model: str
    base: str
    made: str
    method: str
    files: int
    edits: int
    steps: int
    minutes: float
    figures: tuple[Figure, ...]
    better: bool
    reason: str
