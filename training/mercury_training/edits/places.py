"""How often the place of the next edit is among the likeliest few: `python -m mercury_training.edits.places FILE`.

FILE is what `mercury_training.edits.commits` wrote. Each hunk of a commit but the first is a question, with the earlier
ones as the past and all files of the commit to look in; it is found if a spot lies within two lines of it. `--fit` also
fits the weights of `mercury_training.edits.spots` to another such file, and prints them.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from mercury_training import jsonl
from mercury_training.corpus.history import in_plausible_order, place_after
from mercury_training.edits import spots
from mercury_training.edits.commits import Commit
from mercury_training.edits.rows import joined
from mercury_training.edits.spots import SIGNS, PastEdit, indexed
from mercury_training.errors import reported

COMMAND = "mercury_training.edits.places"
COUNTS = (1, 3, 6, 12, 20)
NEAR = 2
QUESTIONS = 3
"""Of a commit, at most."""
LINES = 400
"""Of a question, to fit: those of the hunk, and others by lot."""
ROUNDS, RATE, RIDGE = 300, 0.3, 1e-3


class PlaceQuestion(Struct, frozen=True):
    """What was done, the files as they are, and the lines where the next hunk begins and stops."""

    past: tuple[PastEdit, ...]
    files: dict[str, list[str]]
    path: str
    first: int
    stop: int

    def is_near(self, path: str, line: int) -> bool:
        return path == self.path and self.first - NEAR <= line < max(self.stop, self.first + 1) + NEAR


def questions(commit: Commit, draw: random.Random) -> Iterator[PlaceQuestion]:
    hunks = in_plausible_order([*joined(commit.change.hunks, commit.change.before)])
    if len(hunks) < 2:
        return
    numbers = set(draw.sample(range(1, len(hunks)), min(QUESTIONS, len(hunks) - 1)))
    files = {path: list(lines) for path, lines in commit.change.before.items()}
    past: list[PastEdit] = []
    for number, hunk in enumerate(hunks):
        first = place_after(hunk, hunks[:number])
        if number in numbers:
            yield PlaceQuestion(
                tuple(past),
                {path: list(lines) for path, lines in files.items()},
                hunk.path,
                first,
                first + len(hunk.old),
            )
        lines = files[hunk.path]
        above, below = "".join(lines[first - 1 : first]), "".join(lines[first + len(hunk.old) :][:1])
        lines[first : first + len(hunk.old)] = hunk.new
        past = [edit.moved(hunk.path, first, len(hunk.new) - len(hunk.old)) for edit in past]
        past.append(PastEdit(hunk.path, first, hunk.old, hunk.new, above, below))


def rank(question: PlaceQuestion, count: int = COUNTS[-1]) -> int | None:
    """The number of the first spot that is the place, counted from 0."""
    candidates = spots.spots(question.past, indexed(question.files), count)
    return next((number for number, spot in enumerate(candidates) if question.is_near(spot.path, spot.line)), None)


def fit(examples: Sequence[PlaceQuestion], draw: random.Random) -> dict[str, float]:
    """Weights under which the lines of the place are likely, by a softmax over all lines."""
    tables = [table for table in (_table(question, draw) for question in examples) if table is not None]
    weights_S = np.zeros(len(SIGNS))
    momentum_S = np.zeros(len(SIGNS))
    for _ in range(ROUNDS):
        gradient_S = RIDGE * weights_S
        for signs_LS, is_near_L in tables:
            scores_L = np.exp(signs_LS @ weights_S - (signs_LS @ weights_S).max())
            all_L, near_L = scores_L / scores_L.sum(), scores_L * is_near_L / (scores_L * is_near_L).sum()
            gradient_S = gradient_S + (all_L - near_L) @ signs_LS / len(tables)
        momentum_S = 0.9 * momentum_S + gradient_S
        weights_S = weights_S - RATE * momentum_S
    return {sign: round(float(weight), 3) for sign, weight in zip(SIGNS, weights_S, strict=True)}


def _table(question: PlaceQuestion, draw: random.Random) -> tuple[np.ndarray, np.ndarray] | None:
    tables = dict(spots.signs(question.past, indexed(question.files)))
    signs_LS = np.concatenate(list(tables.values()))
    is_near_L = np.array([question.is_near(path, line) for path, rows in tables.items() for line in range(len(rows))])
    near, other = np.flatnonzero(is_near_L), np.flatnonzero(~is_near_L)
    if not (near.size and other.size):
        return None
    chosen = [*near, *draw.sample(list(other), min(LINES, other.size))]
    return signs_LS[chosen], is_near_L[chosen]


def _drawn(path: Path, commits: int) -> list[PlaceQuestion]:
    table, draw = jsonl.JsonTable(path, Commit), random.Random(0)
    numbers = draw.sample(range(len(table)), min(commits, len(table)))
    return [question for number in numbers for question in questions(table[number], draw)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").split(":")[0])
    parser.add_argument("commits", type=Path, metavar="FILE")
    parser.add_argument("--fit", type=Path, metavar="FILE", help="fit the weights to the commits of this file first")
    parser.add_argument("--most", type=int, default=600, help="read at most so many commits of each file")
    options = parser.parse_args(arguments)
    with reported(COMMAND):
        if options.fit is not None:
            spots.WEIGHTS.update(fit(_drawn(options.fit, options.most), random.Random(1)))
            print(spots.WEIGHTS)
        ranks = [rank(question) for question in _drawn(options.commits, options.most)]
        for count in COUNTS:
            among = sum(number is not None and number < count for number in ranks)
            print(f"among the first {count}: {among} of {len(ranks)} ({among / max(1, len(ranks)):.0%})")


if __name__ == "__main__":
    main()
