"""Micro-batches of packed rows in the order of their numbers, laid out ahead by worker processes."""

import signal
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from mercury_training.corpus.shards import Corpus
from mercury_training.errors import TrainingError
from mercury_training.rows.packing import EditTable, Packed, PackedRows, RowShape, stack

HELD_OUT_SEED = 1
AHEAD = 8
"""Micro-batches laid out ahead for each worker."""

_rows_of_worker: tuple[PackedRows, RowShape]


class Batches:
    """Endless micro-batches of one process of `world`; another shape restarts the workers.

    Rows are functions of their numbers, so that unused rows can be dropped.
    """

    def __init__(self, corpus: Path, scratch: Path, seed: int, workers: int, rank: int = 0, world: int = 1) -> None:
        self._source = (corpus, scratch, seed)
        self._workers, self._rank, self._world = workers, rank, world
        self._asked: tuple[RowShape, int] | None = None
        self._found: Iterator[Packed] = iter(())
        self._pool: ProcessPoolExecutor | None = None

    def take(self, count: int, micro: int, shape: RowShape, row: int) -> list[Packed]:
        """`count` batches of `micro` rows: with those of the other processes, the rows from number `row` on."""
        if self._asked != (shape, micro):
            self._asked = shape, micro
            self._found = self._start(shape, micro, row)
        return [next(self._found) for _ in range(count)]

    def _start(self, shape: RowShape, micro: int, row: int) -> Iterator[Packed]:
        self.close()
        numbers = _numbers(row + self._rank * micro, micro, self._world * micro)
        if not self._workers:
            rows = open_rows(*self._source)
            return (_batch_of(rows, batch_numbers, shape) for batch_numbers in numbers)
        self._pool = ProcessPoolExecutor(
            self._workers, get_context("spawn"), initializer=_begin, initargs=(*self._source, shape)
        )
        return self._ahead(self._pool, numbers)

    def _ahead(self, pool: ProcessPoolExecutor, numbers: Iterator[list[int]]) -> Iterator[Packed]:
        due: deque[Future[Packed]] = deque()
        while True:
            while len(due) < AHEAD * self._workers:
                due.append(pool.submit(_batch, next(numbers)))
            yield due.popleft().result()

    def close(self) -> None:
        """End the workers and drop what they have laid out ahead."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def open_rows(corpus: Path, scratch: Path, seed: int) -> PackedRows:
    """The training rows; edit rows are unpacked into `scratch`."""
    corpus_shards = Corpus.open(corpus)
    edits = EditTable.open(corpus / "edits.jsonl.xz", scratch)
    return PackedRows(corpus_shards.train, edits, corpus_shards.tokenizer, seed)


def held_out(corpus: Path, scratch: Path, shape: RowShape, rows_wanted: int) -> Packed:
    """The same held-out rows every time, from text that is never trained on."""
    corpus_shards = Corpus.open(corpus)
    if not len(corpus_shards.held_out.tokens):
        raise TrainingError(
            f"{corpus}: held_out.u16 is empty; name held-out sources, or pack the corpus into more room"
        )
    edits = EditTable.open(corpus / "held_out_edits.jsonl.xz", scratch)
    rows = PackedRows(corpus_shards.held_out, edits, corpus_shards.tokenizer, HELD_OUT_SEED)
    return stack([rows.packed(number, shape) for number in range(rows_wanted)])


def _begin(corpus: Path, scratch: Path, seed: int, shape: RowShape) -> None:
    """Open the corpus in a worker. Workers ignore SIGTERM: the run ends them itself, after its last step."""
    global _rows_of_worker
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _rows_of_worker = open_rows(corpus, scratch, seed), shape


def _batch(numbers: list[int]) -> Packed:
    rows, shape = _rows_of_worker
    return _batch_of(rows, numbers, shape)


def _batch_of(rows: PackedRows, numbers: list[int], shape: RowShape) -> Packed:
    return stack([rows.packed(number, shape) for number in numbers])


def _numbers(first: int, micro: int, stride: int) -> Iterator[list[int]]:
    """The row numbers of one process' micro-batches, without end."""
    for row in count(first, stride):
        yield list(range(row, row + micro))
