"""Keys and values of all caches in one pool of pages, so that a batch reads them where they are.

Paged attention (vLLM, Kwon et al. 2023). A forward writes its keys and values behind the end of its cache, where they
count for nothing until they are appended: keeping a prefix of them moves no memory.

Shapes: L layers, S slots, K key heads, E head width.
"""

import weakref
from collections.abc import Sequence
from typing import NamedTuple, Protocol, cast

import torch
from torch import Tensor

from mercury_engine.model.config import ModelConfig
from mercury_engine.model.runtime import Forward
from mercury_kernels.attention import PAGE

FIRST_BYTES = 1 << 30
FIRST_PAGES = 32, 256
"""Initially, for the passes measured at the start, and at most."""


class PagePool:
    """`stored_L2SKE` grows by doubling, which moves it: `moves` counts how often."""

    def __init__(self, config: ModelConfig, device: str, dtype: torch.dtype, pages: int = 0) -> None:
        pages = pages or first_pages(config, dtype)
        shape = (config.layers, 2, pages * PAGE, config.kv_heads, config.head_width)
        self.stored_L2SKE = torch.zeros(shape, device=device, dtype=dtype)
        self.moves = 0
        self._free = list(range(pages))[::-1]

    @property
    def page_bytes(self) -> int:
        stored = self.stored_L2SKE
        return stored.nbytes // stored.shape[2] * PAGE

    @property
    def free(self) -> int:
        return len(self._free)

    def growth_bytes(self, count: int) -> int:
        """The memory needed beyond the present to have this many free pages: the new pool, and the old one
        meanwhile."""
        pages = held = self.stored_L2SKE.shape[2] // PAGE
        while pages - held + self.free < count:
            pages *= 2
        return (pages + pages // 2 - held) * self.page_bytes if pages > held else 0

    def take(self, count: int) -> list[int]:
        while count > len(self._free):
            self._grow()
        return [self._free.pop() for _ in range(count)]

    def give(self, pages: list[int]) -> None:
        """Return pages to the pool. The garbage collector may call this at any moment, on any thread."""
        self._free.extend(pages[::-1])
        pages.clear()

    @torch.inference_mode(False)
    def _grow(self) -> None:
        """Grow the pool outside inference mode: what is made in it cannot be changed elsewhere."""
        old = self.stored_L2SKE
        slots = old.shape[2]
        self.stored_L2SKE = old.new_zeros(*old.shape[:2], 2 * slots, *old.shape[3:])
        self.stored_L2SKE[:, :, :slots] = old
        self._free[:0] = range(2 * slots // PAGE - 1, slots // PAGE - 1, -1)
        self.moves += 1


def first_pages(config: ModelConfig, dtype: torch.dtype) -> int:
    """The initial number of pages: a model with many key heads takes half a MB per token."""
    page_bytes = 2 * config.layers * PAGE * config.kv_heads * config.head_width * dtype.itemsize
    fewest, maximum = FIRST_PAGES
    return min(maximum, max(fewest, FIRST_BYTES // page_bytes))


class PagedForward(NamedTuple):
    """The location of a forward's keys and values until the next forward on its cache."""

    number: int
    start: int
    rows: int


class _HasPaged(Forward, Protocol):
    """A forward of the GPU runtime."""

    paged: PagedForward


class PageCache:
    """Pages of a pool, filled up to `length` and returned when the cache is garbage collected."""

    def __init__(self, pool: PagePool) -> None:
        self.length = 0
        self.pages: list[int] = []
        self._pool = pool
        self._forwards = 0
        weakref.finalize(self, pool.give, self.pages)

    def begin(self, rows: int) -> PagedForward:
        """Make room for the rows of a forward behind the end."""
        missing = -(-(self.length + rows) // PAGE) - len(self.pages)
        if missing > 0:
            self.pages += self._pool.take(missing)
        self._forwards += 1
        return PagedForward(self._forwards, self.length, rows)

    def append(self, forward: Forward, rows: Sequence[int]) -> None:
        own = cast("_HasPaged", forward).paged
        assert own.number == self._forwards, "a forward is appended before the next one on its cache"
        assert own.start == self.length, "a forward is appended to the cache as it was then"
        if list(rows) != list(range(len(rows))):
            self._move([own.start + row for row in rows])
        self.length += len(rows)
        self._trim()

    def truncate(self, length: int) -> None:
        assert 0 <= length <= self.length, "a cache is truncated to at most its length"
        self.length = length

    @property
    def bytes(self) -> int:
        return len(self.pages) * self._pool.page_bytes

    def bytes_for(self, rows: int) -> int:
        missing = max(0, -(-rows // PAGE) - len(self.pages))
        return self.bytes + max(missing * self._pool.page_bytes, self._pool.growth_bytes(missing))

    def slots(self, start: int, count: int) -> list[int]:
        return [self.pages[at // PAGE] * PAGE + at % PAGE for at in range(start, start + count)]

    def filled(self) -> list[tuple[Tensor, Tensor]]:
        """A copy of the kept part, KCE, for each layer."""
        stored = self._pool.stored_L2SKE[:, :, self.slots(0, self.length)].transpose(2, 3)
        return [(keys, values) for keys, values in stored]

    def _move(self, columns: Sequence[int]) -> None:
        """Copy these columns to the end at once, since some of them may overwrite others."""
        missing = -(-(self.length + len(columns)) // PAGE) - len(self.pages)
        if missing > 0:
            self.pages += self._pool.take(missing)
        stored = self._pool.stored_L2SKE
        source = [self.pages[at // PAGE] * PAGE + at % PAGE for at in columns]
        stored[:, :, self.slots(self.length, len(columns))] = stored[:, :, source]

    def _trim(self) -> None:
        """Return the pages behind the end."""
        used = -(-self.length // PAGE)
        spare = self.pages[used:]
        del self.pages[used:]
        self._pool.give(spare)
