"""The examples of a run: rows of edits, and completions among them so that nothing else gets worse."""

import random
from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec import Struct

from mercury_engine.tokens.layout import budget_for
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_training import jsonl
from mercury_training.corpus.sources import language_of
from mercury_training.edits import rows
from mercury_training.edits.commits import Commit
from mercury_training.rows.examples import Site, TrainingExample, completion
from mercury_training.rows.packing import Packed, RowShape, pack

TRAINING_FILE = "train.jsonl"
COMPLETIONS = 0.3
SHAPE = RowShape(768, 192)
"""Of a row of completions: its clean tokens, and its canvases."""
CANVAS = 0.5
"""The weight of a canvas slot."""
REACH = 6000
"""Characters of a file on either side of a completion."""
SHORTEST = 256
"""In tokens: less room than this is left empty."""


class TaughtRow(Struct, frozen=True, eq=False):
    packed: Packed
    shape: RowShape
    tokens: int
    completes: bool


class Examples:
    """Drawn from commits; each is a function of the seed and its number, the whole state of the data."""

    def __init__(self, commits: jsonl.JsonTable[Commit], tokenizer: Tokenizer, seed: int) -> None:
        self._commits, self._tokenizer, self._seed = commits, tokenizer, seed
        self._order = np.random.default_rng(seed).permutation(len(commits))

    def numbered(self, number: int, *, completes: bool | None = None) -> TaughtRow:
        """The example of a number. Where a commit yields nothing, the next one stands in."""
        draw = random.Random(f"{self._seed}/{number}")
        completes = draw.random() < COMPLETIONS if completes is None else completes
        make = self._completions if completes else self._edits
        while (example := make(self._commits[int(self._order[number % len(self._order)])], draw)) is None:
            number += 1
        return example

    def _edits(self, commit: Commit, draw: random.Random) -> TaughtRow | None:
        row = rows.edit_row(self._tokenizer, commit, draw)
        if row is None:
            return None
        shape = rows.shape_of(row)
        return TaughtRow(rows.packed(row, shape), shape, len(row.ids), completes=False)

    def _completions(self, commit: Commit, draw: random.Random) -> TaughtRow | None:
        """Completions in the files of a commit as they were before it."""
        examples: list[TrainingExample] = []
        room, generator = SHAPE.clean, np.random.default_rng(draw.getrandbits(64))
        for path, lines in draw.sample(sorted(commit.change.before.items()), len(commit.change.before)):
            if room < SHORTEST:
                break
            example = completion(self._tokenizer, _site(path, "".join(lines), draw), budget_for(room), generator)
            if example is not None:
                examples.append(example)
                room -= len(example.stream.ids)
        if not examples:
            return None
        packed = pack(examples, SHAPE, self._tokenizer.vocabulary, generator)
        tokens = SHAPE.rows - room
        return TaughtRow(_answers_only(packed, examples), SHAPE, tokens, completes=True)


def _site(path: str, text: str, draw: random.Random) -> Site:
    at = draw.randrange(len(text) or 1)
    first = text.rfind("\n", 0, max(0, at - REACH)) + 1
    return Site(path, language_of(path) or "text", text[first : at + REACH], at - first)


def _answers_only(packed: Packed, examples: Sequence[TrainingExample]) -> Packed:
    """The same row with weights on answers and canvases alone: the model can read context."""
    weights = CANVAS * packed.weights
    weights[: SHAPE.clean] = 0
    start = 0
    for example in examples:
        size = len(example.stream.ids)
        learned = np.zeros(size, bool)
        learned[[*example.anchors]] = True
        learned[example.base :] = True
        own = slice(start, start + size)
        weights[own] = np.where(learned, packed.weights[own], 0)
        start += size
    return msgspec.structs.replace(packed, weights=weights)
