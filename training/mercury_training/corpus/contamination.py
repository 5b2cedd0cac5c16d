"""Decontamination: no document may share a run of three code lines with an evaluation set."""

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from mercury_training.errors import TrainingError

SHORTEST_RUN = 60
TRIVIAL = re.compile(r"(import|from|package|use)\b|#|//|/\*|\*|\"\"\"|'''|@|\W*$")


class EvaluationRuns:
    """The runs of every evaluation row; remembers which rows the corpus touched."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.rows = 0
        self.touched: set[int] = set()
        self._rows_of: dict[int, list[int]] = {}
        for path in paths:
            for texts in _rows(path):
                for run in {run for text in texts for run in code_runs(text)}:
                    self._rows_of.setdefault(run, []).append(self.rows)
                self.rows += 1

    def touches(self, text: str) -> bool:
        touched = {row for run in code_runs(text) for row in self._rows_of.get(run, ())}
        self.touched |= touched
        return bool(touched)


def code_runs(text: str) -> Iterator[int]:
    """A hash for each three successive lines of code; blank lines, comments, imports and brackets do not count."""
    lines = [line for line in map(str.strip, text.split("\n")) if not TRIVIAL.match(line)]
    for first, (second, third) in zip(lines, pairwise(lines[1:]), strict=False):
        if len(first) + len(second) + len(third) >= SHORTEST_RUN:
            yield hash((first, second, third))


def _rows(path: Path) -> Iterator[list[str]]:
    """The texts of each row of a dev file, a HumanEval(-Infilling) file or an edit session."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for row in map(json.loads, lines):
            if row.get("ev", "open") != "open":
                continue
            if not (texts := _texts(row)):
                raise TrainingError(f"{path}: a row with {sorted(row)} is not an evaluation row; name other files")
            yield texts


def _texts(row: dict) -> list[str]:
    if "file_now" in row:
        return [row["file_before"], row["file_now"], *(edit["newText"] for edit in row["expected"])]
    if "middle" in row:
        return [row["prefix"] + row["middle"] + row["suffix"]]
    if "prompt" in row:
        return [row["prompt"] + row["canonical_solution"] + row.get("suffix", "")]
    return [row["text"]] if "text" in row else []
