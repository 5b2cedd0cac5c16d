"""Micro-batches of packed rows in the order of their numbers, laid out ahead by worker processes."""

import signal
from collections.abc import Iterator
from pathlib import Path

from torch.utils.data import DataLoader, Dataset

from mercury_training.rows import EditTable, Packed, Rows, Shape, stack
from mercury_training.shards import Corpus

__all__ = ["Batches", "held_out", "open_rows"]

HELD_OUT_SEED = 1


class Batches:
    """Endless micro-batches of one process of `world`; asking for another shape starts the workers anew.

    Rows are functions of their numbers, so that what was laid out ahead and not used is no loss.
    """

    def __init__(self, corpus: Path, scratch: Path, seed: int, workers: int, rank: int = 0, world: int = 1) -> None:
        self._source = (corpus, scratch, seed)
        self._workers, self._rank, self._world = workers, rank, world
        self._asked: tuple[Shape, int] | None = None
        self._found: Iterator[Packed] = iter(())

    def take(self, count: int, micro: int, shape: Shape, row: int) -> list[Packed]:
        """`count` batches of `micro` rows: with those of the other processes, the rows from number `row` on."""
        if self._asked != (shape, micro):
            self._asked = shape, micro
            self._found = self._start(shape, micro, row)
        return [next(self._found) for _ in range(count)]

    def _start(self, shape: Shape, micro: int, row: int) -> Iterator[Packed]:
        loader = DataLoader(
            _Numbered(*self._source, shape),
            batch_sampler=_Numbers(row + self._rank * micro, micro, self._world * micro),
            collate_fn=stack,
            num_workers=self._workers,
            prefetch_factor=8 if self._workers else None,
            multiprocessing_context="spawn" if self._workers else None,  # a fork would copy locked threads
            worker_init_fn=_outlive_signals,
        )
        return iter(loader)


def open_rows(corpus: Path, scratch: Path, seed: int) -> Rows:
    """The training rows; edit rows are unpacked into `scratch`."""
    opened = Corpus.open(corpus)
    edits = EditTable.open(corpus / "edits.jsonl.xz", scratch)
    return Rows(opened.train, edits, opened.tokenizer, seed)


def held_out(corpus: Path, scratch: Path, shape: Shape, count: int) -> Packed:
    """The same rows every time, of what is never trained on."""
    opened = Corpus.open(corpus)
    if not len(opened.held_out.tokens):
        raise ValueError(f"{corpus}: held_out.u16 is empty; name held-out sources, or pack the corpus into more room")
    edits = EditTable.open(corpus / "held_out_edits.jsonl.xz", scratch)
    rows = Rows(opened.held_out, edits, opened.tokenizer, HELD_OUT_SEED)
    return stack([rows.packed(number, shape) for number in range(count)])


def _outlive_signals(number: int) -> None:
    """A run that is told to end ends its workers itself, after its last step."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


class _Numbered(Dataset):
    """Rows by number; the corpus is opened in the process that reads it."""

    def __init__(self, corpus: Path, scratch: Path, seed: int, shape: Shape) -> None:
        self._source, self._shape = (corpus, scratch, seed), shape
        self._rows: Rows | None = None

    def __getitem__(self, number: int) -> Packed:
        if self._rows is None:
            self._rows = open_rows(*self._source)
        return self._rows.packed(number, self._shape)


class _Numbers:
    """The row numbers of one process' micro-batches, without end."""

    def __init__(self, first: int, micro: int, stride: int) -> None:
        self._first, self._micro, self._stride = first, micro, stride

    def __iter__(self) -> Iterator[list[int]]:
        row = self._first
        while True:
            yield list(range(row, row + self._micro))
            row += self._stride
