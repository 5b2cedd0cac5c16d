"""Packed rows of fixed length: several examples in sequence, which do not see each other, and canvases at the end.

    rows = PackedRows(corpus.train, edits, corpus.tokenizer, seed=0)
    packed = rows.packed(number, Shape(1024, 384))

A row is a function of the seed and its number alone: that is the whole state of the data. Numbers visit the corpus
evenly (golden ratio), so that any sequence of them is spread over all documents.
"""

import lzma
import os
import shutil
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from mercury_engine.api import Snippet
from mercury_engine.tokens.layout import Budget, budget_for
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import PAD, SPECIALS
from mercury_training import jsonl
from mercury_training.corpus.shards import EditRow, Split, damage_named
from mercury_training.rows.blocks import Block, slot_positions, visible_ranges
from mercury_training.rows.corruption import SIZES, CanvasRows, answer_canvases, text_canvases
from mercury_training.rows.examples import Site, TrainingExample, completion, left_to_right, next_edit

RANGES = 3
"""The most ranges that a row sees: its clean context, the answers written so far, its canvas and siblings."""

GOLDEN = (5**0.5 - 1) / 2

EDITS = 0.2
LEFT_TO_RIGHT = 0.05
"""Shares of the examples; running text also fills the leftover room, about a sixth of all tokens."""

SNIPPETS = 0.5
"""Share of the completions that have snippets, which gives some to a third of the rows."""
SHORTER = 0.5
"""How often an example gets less than the row's whole length."""

SHORTEST = 128
"""In tokens; less room than this is filled with running text."""

TRIES = 8

ANSWERS = 0.5
"""The share of canvases on answers; the others are in text."""


class RowShape(Struct, frozen=True):
    """The number of clean tokens and of canvas rows in a packed row."""

    clean: int
    canvas: int

    @property
    def rows(self) -> int:
        return self.clean + self.canvas


class Packed(Struct, frozen=True, eq=False):
    """Arrays over all rows; the first `shape.clean` are clean tokens. `ranges` is `layout.visible_ranges`; `readers`,
    of the canvas rows only, are the clean rows that predict the same, -1 where none does."""

    ids: np.ndarray
    positions: np.ndarray
    ranges: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    readers: np.ndarray


class EditTable(jsonl.JsonTable[EditRow]):
    """Edit rows on disk, decoded one by one."""

    @classmethod
    def open(cls, compressed: Path, folder: Path) -> "EditTable":
        """The rows of an `edits.jsonl.xz`, unpacked into `folder` once for each size of that file."""
        with damage_named(compressed):
            path = folder / f"{compressed.stem}.{compressed.stat().st_size}"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f"{path.name}.{os.getpid()}")
            with damage_named(compressed), lzma.open(compressed) as packed, partial.open("wb") as plain:
                shutil.copyfileobj(packed, plain, 1 << 20)
            partial.replace(path)
        return cls(path, EditRow)


class PackedRows:
    """The packed rows of one split."""

    def __init__(self, split: Split, edits: EditTable, tokenizer: Tokenizer, seed: int) -> None:
        self._split, self._edits, self._tokenizer, self._seed = split, edits, tokenizer, seed
        self._offset = np.random.default_rng(seed).random()
        self._starts = np.array([document.start for document in split.documents])
        self._ends_line = np.array([spelled.endswith(b"\n") for spelled in tokenizer.token_bytes])
        frequency = np.bincount(split.tokens[:: max(1, len(split.tokens) // 4_000_000)], minlength=tokenizer.vocabulary)
        self._rarity = -np.log((frequency + 1) / (frequency.sum() + len(frequency)))

    def packed(self, number: int, shape: RowShape) -> Packed:
        draw = np.random.default_rng([self._seed, number])
        examples: list[TrainingExample] = []
        room = shape.clean
        share = (self._offset + number * GOLDEN) % 1
        while room >= min(SHORTEST, shape.clean):
            example = self._example(share, room, draw)
            examples.append(example)
            room -= len(example.stream.ids)
            share = draw.random()
        if room:
            examples += self._running(share, room, draw)
        return pack(examples, shape, self._tokenizer.vocabulary, draw)

    def _example(self, share: float, room: int, draw: np.random.Generator) -> TrainingExample:
        """An example of one of the kinds; running text if several places yield nothing else."""
        length = room if draw.random() >= SHORTER else int(draw.integers(min(SHORTEST, room), room + 1))
        budget = _budget(length)
        kind = draw.random()
        for _ in range(TRIES):
            example = None
            if kind < LEFT_TO_RIGHT:
                break
            if kind < LEFT_TO_RIGHT + EDITS and len(self._edits):
                row = self._edits[int(draw.integers(len(self._edits)))]
                example = next_edit(self._tokenizer, row, budget, draw)
            else:
                example = completion(self._tokenizer, self._place(share, length, draw), budget, draw)
            if example is not None:
                return example
            share = draw.random()
        return self._running(share, length, draw)[0]

    def _running(self, share: float, room: int, draw: np.random.Generator) -> list[TrainingExample]:
        """Running text from the line at `share` of the corpus on; nothing if the room is too small."""
        number, at = self._locate(share)
        document = self._split.documents[number]
        tokens = self._split.tokens_of(number)
        at = max(0, min(at, len(tokens) - room))
        tokens = tokens[self._line_start(tokens, at) :]
        example = left_to_right(self._tokenizer, document.path, document.language, tokens, room)
        return [] if example is None else [example]

    def _locate(self, share: float) -> tuple[int, int]:
        """The document, and the token in it, at `share` of the corpus."""
        at = int(share * len(self._split.tokens))
        number = int(np.searchsorted(self._starts, at, "right")) - 1
        return number, at - int(self._starts[number])

    def _place(self, share: float, room: int, draw: np.random.Generator) -> Site:
        number, at = self._locate(share)
        document = self._split.documents[number]
        tokens = self._split.tokens_of(number)
        first = self._line_start(tokens, max(0, at - room))
        window_tokens = tokens[first : at + room]
        text = self._tokenizer.decode(window_tokens.tolist())
        offset = len(self._tokenizer.decode(tokens[first:at].tolist()))
        snippets = self._snippets(number, window_tokens, draw) if draw.random() < SNIPPETS else ()
        return Site(document.path, document.language, text, min(offset, len(text)), snippets)

    def _line_start(self, tokens: np.ndarray, at: int) -> int:
        """The first token of the line that contains token `at`."""
        ends = np.flatnonzero(self._ends_line[tokens[max(0, at - 256) : at]])
        return max(0, at - 256) + int(ends[-1]) + 1 if ends.size else (0 if at < 256 else at)

    def _snippets(self, number: int, window: np.ndarray, draw: np.random.Generator) -> tuple[Snippet, ...]:
        """Pieces of other files of the repository; those that share the rarest tokens with the window come first."""
        neighbours = self._split.repositories[self._split.documents[number].repository]
        vocabulary_ids = np.unique(window)
        pieces = []
        for _ in range(6):
            other = int(draw.integers(neighbours.start, neighbours.stop))
            tokens = self._split.tokens_of(other)
            if other == number or not len(tokens):
                continue
            at = self._line_start(tokens, int(draw.integers(len(tokens))))
            piece = tokens[at : at + int(draw.integers(48, 192))]
            score = float(self._rarity[np.intersect1d(np.unique(piece), vocabulary_ids)].sum())
            pieces.append((score, self._split.documents[other].path, self._tokenizer.decode(piece.tolist())))
        best = sorted(pieces, reverse=True)[: int(draw.integers(1, 4))]
        return tuple(Snippet(path, text) for _, path, text in best)


def pack(examples: list[TrainingExample], shape: RowShape, vocabulary: int, draw: np.random.Generator) -> Packed:
    """Examples one after the other, padding, then canvases."""
    sizes = [len(example.stream.ids) for example in examples]
    offsets = np.cumsum([0, *sizes])
    assert offsets[-1] <= shape.clean, "the examples fit the clean rows"
    ids, positions = np.full(shape.rows, PAD, np.int32), np.zeros(shape.rows, np.int32)
    targets, weights = np.full(shape.rows, PAD, np.int32), np.zeros(shape.rows, np.float32)
    readers = np.full(shape.canvas, -1, np.int32)
    blocks: list[Block] = []
    for example, start in zip(examples, offsets, strict=False):
        own = slice(start, start + len(example.stream.ids))
        ids[own], positions[own] = example.stream.ids, example.stream.positions
        targets[own], weights[own] = _following(example)
        blocks += [_shifted(block, int(start)) for block in example.stream.blocks]
    if padding := shape.clean - int(offsets[-1]):
        blocks.append(Block(padding))
    at = shape.clean
    for number, canvas in _canvases(examples, shape.canvas, vocabulary, draw):
        own = slice(at, at + len(canvas.inputs))
        start = int(offsets[number])
        parent = start + canvas.parent
        ids[own], targets[own], weights[own] = canvas.inputs, canvas.targets, canvas.weights
        readers[at - shape.clean : own.stop - shape.clean] = np.where(canvas.readers < 0, -1, start + canvas.readers)
        positions[own] = slot_positions(int(positions[parent]), len(canvas.inputs))
        blocks.append(Block(len(canvas.inputs), parent, causal=False, group=canvas.group))
        at = own.stop
    if at < shape.rows:
        blocks.append(Block(shape.rows - at))
    return Packed(ids, positions, _ranges(blocks), targets, weights, readers)


def stack(packed: list[Packed]) -> Packed:
    """A batch: the same arrays with a new first dimension."""
    names = Packed.__struct_fields__
    return Packed(*(np.stack([getattr(row, name) for row in packed]) for name in names))


def _budget(context: int) -> Budget:
    answer = min(128, context // 4)
    return msgspec.structs.replace(budget_for(context), answer=answer)


def _following(example: TrainingExample) -> tuple[np.ndarray, np.ndarray]:
    """The target of each clean row, and its weight: the next token, and after an anchor the answer's first token."""
    ids = example.stream.ids
    targets, weights = np.append(ids[1:], PAD), np.ones(len(ids), np.float32)
    weights[-1] = 0
    for number, answer in enumerate(example.answers):
        targets[[example.anchors[number], example.stream.starts[number]]] = answer[0]
        end = example.base + len(answer) - 1 if number == 0 else example.stream.starts[number] + len(answer)
        weights[end] = 0
    return targets, weights


def _shifted(block: Block, start: int) -> Block:
    return block if block.parent < 0 else msgspec.structs.replace(block, parent=block.parent + start)


def _canvases(
    examples: list[TrainingExample], room: int, vocabulary: int, draw: np.random.Generator
) -> list[tuple[int, CanvasRows]]:
    """Different canvases with the numbers of their examples, until the room is used up. They are in the order of what
    they see, so that a block of neighbouring rows sees few blocks of clean rows."""
    answered = [number for number, example in enumerate(examples) if example.answers]
    plain = [_plain_tokens(example) for example in examples]
    lengths = np.array([len(example.stream.ids) for example in examples])
    drawn: dict[tuple[int, int, bytes], tuple[int, list[CanvasRows]]] = {}
    remaining = room
    for attempt in range(8 * room):
        if remaining < min(SIZES):
            break
        if answered and draw.random() < ANSWERS:
            number = int(draw.choice(answered))
            canvases = answer_canvases(examples[number], remaining, vocabulary, draw, attempt)
        else:
            number = int(draw.choice(len(examples), p=lengths / lengths.sum()))
            canvases = text_canvases(examples[number], plain[number], remaining, vocabulary, draw)
        if canvases and (key := (number, canvases[0].parent, canvases[0].inputs.tobytes())) not in drawn:
            drawn[key] = number, canvases
            remaining -= sum(len(canvas.inputs) for canvas in canvases)
    ordered = sorted(drawn.items(), key=lambda entry: entry[0][:2])
    return [(number, canvas) for _, (number, canvases) in ordered for canvas in canvases]


def _plain_tokens(example: TrainingExample) -> np.ndarray:
    """The number of plain tokens that follow each row before the answers, up to the next special one."""
    base = example.base
    special = np.flatnonzero(example.stream.ids[:base] < len(SPECIALS))
    following = np.append(special, base)[np.searchsorted(special, np.arange(base), "right")]
    return following - np.arange(base) - 1


def _ranges(blocks: list[Block]) -> np.ndarray:
    ranges = visible_ranges(blocks).astype(np.int16)
    assert ranges.shape[1] <= RANGES, "no branch hangs deeper than a canvas behind an answer"
    return np.pad(ranges, [(0, 0), (0, RANGES - ranges.shape[1]), (0, 0)])
