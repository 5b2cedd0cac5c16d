"""Buckets and the inputs of padded batches: the sizes that graphs are made for, and who sees whom in them."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("triton")

from mercury_engine.decode.costs import MOST_ROWS
from mercury_engine.model.gpu.inputs import ALIGNED, Bucket, bucket_for, fill, layout
from mercury_engine.model.gpu.pages import PagedForward
from mercury_engine.model.runtime import Pass, Rows
from mercury_training.rows.blocks import Block
from tests.masks import canvas_mask


@pytest.mark.parametrize(
    ("wish", "bucket"),
    [
        ((1, 33, 32, 1057), Bucket(1, 64, 64, 32)),
        ((1, 1, 1, 1), Bucket(1, 1, 1, 16)),
        ((1, 3, 2, 1000), Bucket(1, 4, 4, 16)),
        ((1, 120, 100, 1000), Bucket(1, 128, 128, 16)),
        ((3, 40, 99, 512), Bucket(4, 64, 256, 16)),
        ((1, 256, 0, 513), Bucket(1, 264, 0, 16)),
        ((65, 9, 585, 2048), Bucket(128, 16, 2048, 32)),
        ((1, 1000, 7, 1000), Bucket(1, 1024, 16, 16)),
    ],
)
def test_smallest_bucket_holds_the_pass(wish, bucket):
    assert bucket_for(*wish) == bucket


def test_graphs_are_made_for_what_comes_again():
    assert Bucket(1, 40, 40, 32).is_graph
    assert Bucket(64, 40, 2560, 32).is_graph
    assert not Bucket(1, 1024, 8, 16).is_graph
    assert not Bucket(64, 136, 8, 16).is_graph


def test_few_buckets_serve_all_keystrokes():
    counts = range(1, MOST_ROWS + 1)
    buckets = {bucket_for(1, rows, outputs, 1024) for rows in counts for outputs in range(1, rows + 1)}
    assert sorted(bucket.rows for bucket in buckets) == [1, 4, 16, 32, 64, MOST_ROWS]


def test_parts_follow_each_other_where_words_can_be_loaded():
    places, size = layout(Bucket(2, 40, 40, 32))
    ends = [start + int(np.prod(shape)) for start, shape in places.values()]
    starts = [start for start, _ in places.values()]
    assert all(start % ALIGNED == 0 for start in starts)
    assert all(end <= start for end, start in zip(ends, [*starts[1:], size], strict=True))


def filled(bucket, passes, pages):
    places, size = layout(bucket)
    memory = np.full(size, 99, np.int32)
    parts = {name: memory[at : at + int(np.prod(shape))].reshape(shape) for name, (at, shape) in places.items()}
    begun = [PagedForward(1, one.cache.length, len(one.rows.ids_R)) for one in passes]
    for one, own in zip(passes, pages, strict=True):
        one.cache.pages = own
    fill(parts, passes, begun)
    return parts


def passing(cached, blocks, **options):
    mask_RC = canvas_mask([Block(cached), *blocks], cached)
    count = len(mask_RC)
    rows = Rows(np.arange(64, 64 + count), np.arange(cached, cached + count), mask_RC=mask_RC, **options)
    return Pass(rows, SimpleNamespace(length=cached, pages=[]))


def test_passes_of_several_lengths_lie_side_by_side():
    passes = [
        passing(63, [Block(1, 62), Block(4, 63, causal=False)], rows=[0, 2]),
        passing(2, [Block(3, 1)], rows=[2]),
    ]
    parts = filled(Bucket(4, 8, 8, 8), passes, [[7, 3], [5]])
    assert parts["slots_N"][:9].tolist() == [7 * 64 + 63, *range(192, 196), -1, -1, -1, 5 * 64 + 2]
    assert parts["pages_BP"][0, :2].tolist() == [7, 3]
    assert parts["lengths_B"].tolist() == [63, 2, 0, 0]
    assert parts["counts_B"].tolist() == [5, 3, 0, 0]
    assert parts["wanted_W"].tolist() == [0, 2, 10, -1, -1, -1, -1, -1]
    assert parts["bits_BTU"][0, :5, 0].tolist() == [0b1] + [0b11111] * 4
    assert parts["bits_BTU"][1, :3, 0].tolist() == [0b1, 0b11, 0b111]
    assert not parts["bits_BTU"][0, 5:].any()
    assert parts["ids_N"][:12].tolist() == [64, 65, 66, 67, 68, 0, 0, 0, 64, 65, 66, 0]


def test_row_that_does_not_see_the_whole_cache_is_an_error():
    one = passing(4, [Block(2, 3)])
    one.rows.mask_RC[1, 2] = False
    with pytest.raises(AssertionError, match="sees all cached ones"):
        filled(Bucket(1, 8, 8, 8), [one], [[0]])
