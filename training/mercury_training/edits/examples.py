"""The examples of a run: rows of edits."""

import random

import numpy as np
from msgspec import Struct

from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_training import jsonl
from mercury_training.edits import rows
from mercury_training.edits.commits import Commit
from mercury_training.rows.packing import Packed, RowShape


class TaughtRow(Struct, frozen=True, eq=False):
    packed: Packed
    shape: RowShape
    tokens: int


class Examples:
    """Drawn from commits; each is a function of the seed and its number, the whole state of the data."""

    def __init__(self, commits: jsonl.JsonTable[Commit], tokenizer: Tokenizer, seed: int) -> None:
        self._commits, self._tokenizer, self._seed = commits, tokenizer, seed
        self._order = np.random.default_rng(seed).permutation(len(commits))

    def numbered(self, number: int) -> TaughtRow:
        """The example of a number. Where a commit yields nothing, the next one stands in."""
        draw = random.Random(f"{self._seed}/{number}")
        while (row := rows.edit_row(self._tokenizer, self._commit(number), draw)) is None:
            number += 1
        shape = rows.shape_of(row)
        return TaughtRow(rows.packed(row, shape), shape, len(row.ids))

    def _commit(self, number: int) -> Commit:
        return self._commits[int(self._order[number % len(self._order)])]
