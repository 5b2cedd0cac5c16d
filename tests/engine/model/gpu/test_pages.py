"""The pool of pages: caches that keep exactly what they are told, and give back what they no longer need."""

import gc
from types import SimpleNamespace

import pytest
import torch
from msgspec.structs import replace

pytest.importorskip("triton")

from mercury_engine.model.config import TINY
from mercury_engine.model.gpu.pages import PageCache, PagePool, first_pages
from mercury_kernels.attention import PAGE


def pool(pages=4):
    return PagePool(TINY, "cpu", torch.float32, pages)


def written(cache, values):
    """A forward whose rows hold these numbers."""
    paged = cache.begin(len(values))
    stored = cache._pool.stored_L2SKE
    for slot, value in zip(cache.slots(paged.start, len(values)), values, strict=True):
        stored[:, :, slot] = value
    return SimpleNamespace(paged=paged)


def kept(cache):
    return cache.filled()[0][0][0, :, 0].tolist()


def test_keeping_a_prefix_of_a_forward_moves_nothing():
    cache = PageCache(pool())
    cache.append(written(cache, [1, 2, 3]), range(3))
    cache.append(written(cache, [4, 5, 6]), range(2))
    assert kept(cache) == [1, 2, 3, 4, 5]
    assert len(cache.pages) == 1


def test_rows_may_be_kept_one_here_one_there_or_again():
    cache = PageCache(pool())
    cache.append(written(cache, [1, 2, 3, 4]), [0, 2, 3])
    cache.append(written(cache, [5]), [0] * 70)
    assert kept(cache) == [1, 3, 4] + [5] * 70


def test_truncating_forgets():
    cache = PageCache(pool())
    cache.append(written(cache, [1, 2, 3]), range(3))
    cache.truncate(1)
    cache.append(written(cache, [7]), range(1))
    assert kept(cache) == [1, 7]


def test_pages_behind_the_end_are_given_back():
    shared = pool()
    cache = PageCache(shared)
    cache.append(written(cache, range(3 * PAGE)), range(PAGE))
    assert (len(cache.pages), shared.free) == (1, 3)
    assert cache.bytes == 2 * TINY.layers * TINY.kv_heads * TINY.head_width * 4 * PAGE
    del cache
    gc.collect()
    assert shared.free == 4


def test_pages_may_be_given_back_while_others_are_taken():
    shared = pool(6)
    lost = [shared.take(1), shared.take(1)]

    class Collecting(list):
        """Whenever something was read, the garbage collector finds a cache that nobody holds any more."""

        def pop(self):
            return self._then(super().pop())

        def __getitem__(self, key):
            return self._then(super().__getitem__(key))

        def _then(self, found):
            if lost:
                shared.give(lost.pop())
            return found

    shared._free = Collecting(shared._free)
    taken = shared.take(3)
    assert not lost
    assert sorted([*taken, *shared._free]) == list(range(6))


def test_pool_grows_and_keeps_what_it_holds():
    shared = pool(1)
    caches = [PageCache(shared) for _ in range(3)]
    for number, cache in enumerate(caches):
        cache.append(written(cache, [number, number + 10]), range(2))
    assert [kept(cache) for cache in caches] == [[0, 10], [1, 11], [2, 12]]
    assert len({page for cache in caches for page in cache.pages}) == 3
    assert (shared.moves, shared.free) == (2, 1)


@pytest.mark.parametrize(("pages", "more"), [(3, 0), (4, 0), (5, 12 - 4), (9, 24 - 4)])
def test_cache_says_what_its_pool_takes_while_it_grows(pages, more):
    """A pool of 4 pages becomes one of 8 beside that, and one of 16 beside the one of 8."""
    shared = pool(4)
    cache = PageCache(shared)
    cache.append(written(cache, [1]), range(1))
    assert cache.bytes_for(PAGE) == cache.bytes == shared.page_bytes
    taken = max(pages - 1, more) * shared.page_bytes
    assert cache.bytes_for(pages * PAGE) == shared.page_bytes + taken
    shared.take(pages - 1)
    assert shared.stored_L2SKE.shape[2] // PAGE == {0: 4, 8: 8, 20: 16}[more]


@pytest.mark.parametrize(("layers", "kv_heads", "pages"), [(12, 2, 256), (28, 4, 256), (32, 8, 128), (32, 32, 32)])
def test_pool_of_large_model_begins_with_fewer_pages(layers, kv_heads, pages):
    config = replace(TINY, layers=layers, kv_heads=kv_heads, head_width=128)
    assert first_pages(config, torch.bfloat16) == pages


def test_forward_belongs_to_cache_as_it_was():
    cache = PageCache(pool())
    cache.append(written(cache, [1, 2]), range(2))
    made = written(cache, [3])
    cache.truncate(1)
    with pytest.raises(AssertionError, match="as it was then"):
        cache.append(made, range(1))
