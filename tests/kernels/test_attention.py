"""Attention over pages against the specification: odd lengths, every kind of mask, memory that was never written."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton")

from mercury_kernels.attention import PAGE, attend, row_tile, splits_for
from mercury_kernels.reference import canvas_attention
from mercury_training.rows.blocks import Block
from tests.kernels.on_device import PRECISIONS, bits, check_close, exact, poisoned, random, whole
from tests.masks import canvas_mask

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy computes in the interpreter

CAUSAL = [Block(5)]
CANVAS = [Block(2), Block(8, parent=1, causal=False)]
VERIFIED_AND_DRAFTED = [Block(4), Block(8, parent=3, causal=False)]
SIBLINGS = [Block(3), Block(4, parent=1, causal=False, group=0), Block(4, parent=2, causal=False, group=0)]
BRANCHES = [Block(2), Block(3, parent=1), Block(2, parent=1)]
LONG = [Block(33), Block(7, parent=32, causal=False)]


def check(sequences, *, heads=4, key_heads=2, width=16, dtype=torch.float32, splits=1, rows=None):
    """Sequences of a cached length and the blocks of a pass, together in one launch."""
    masks = [canvas_mask(behind(blocks, cached), cached) for cached, blocks in sequences]
    counts = [len(mask) for mask in masks]
    rows = rows or max(counts)
    most = max(-(-(mask.shape[1]) // PAGE) for mask in masks)
    pages = np.random.default_rng(0).permutation(len(masks) * most).reshape(len(masks), most)
    slots = pages.size * PAGE
    k, v = poisoned(slots, key_heads, width, dtype=dtype), poisoned(slots, key_heads, width, dtype=dtype)
    q = random(len(masks), rows, heads, width, dtype=dtype)
    seen = np.zeros((len(masks), rows, rows), bool)
    stored = []
    for number, mask in enumerate(masks):
        count, total = mask.shape
        own = random(2, key_heads, total, width, seed=number + 1, dtype=dtype)
        places = torch.tensor([pages[number, c // PAGE] * PAGE + c % PAGE for c in range(total)])
        k[places], v[places] = own[0].transpose(0, 1), own[1].transpose(0, 1)
        seen[number, :count, :count] = mask[:, total - count :]
        stored.append(exact(own))
    lengths = [mask.shape[1] - len(mask) for mask in masks]
    found = attend(q, k, v, whole(pages), whole(lengths), whole(counts), bits(seen), splits=splits)
    assert not torch.isnan(found).any()
    for number, (own, count, cached) in enumerate(zip(stored, counts, lengths, strict=True)):
        queries = exact(q[number, :count]).transpose(1, 0, 2)
        own_seen = seen[number, :count, :count]
        expected = canvas_attention(queries, *own[:, :, :cached], *own[:, :, cached:], own_seen)
        check_close(found[number, :count], expected.transpose(1, 0, 2), dtype)


def behind(blocks, cached):
    """The same blocks behind cached rows, which the first of them continues."""
    first, *others = blocks
    return [
        *([Block(cached)] if cached else []),
        Block(first.size, cached - 1 if cached else -1),
        *(Block(other.size, other.parent + cached, other.causal, other.group) for other in others),
    ]


@pytest.mark.parametrize("blocks", [CAUSAL, CANVAS, VERIFIED_AND_DRAFTED, SIBLINGS, BRANCHES, LONG])
@pytest.mark.parametrize("cached", [0, 63, 100])
def test_passes_of_each_kind_see_what_their_blocks_say(blocks, cached):
    check([(cached, blocks)])


@pytest.mark.parametrize("dtype", PRECISIONS[1:])
def test_lower_precisions(dtype):
    check([(100, CANVAS)], dtype=dtype)


@pytest.mark.parametrize(("heads", "key_heads", "width"), [(1, 1, 16), (6, 1, 16), (3, 3, 20), (8, 2, 64)])
def test_heads_of_any_number_and_width(heads, key_heads, width):
    check([(70, CANVAS)], heads=heads, key_heads=key_heads, width=width)


@pytest.mark.parametrize("splits", [2, 5])
def test_split_columns_are_merged(splits):
    check([(200, VERIFIED_AND_DRAFTED), (3, CANVAS)], splits=splits)


def test_sequences_of_any_length_share_a_launch():
    check([(0, CAUSAL), (64, CANVAS), (130, SIBLINGS)], rows=16)


def test_large_scores_overflow_nothing():
    q = torch.full_like(random(1, 2, 1, 16), 1e3)
    k = torch.cat([q[0], -q[0]])[1:3]
    found = attend(q, k, k, whole([[0]]), whole([0]), whole([2]), bits([np.ones((2, 2))]))
    check_close(found, np.full((1, 2, 1, 16), 1e3))


def test_row_that_sees_nothing_is_zero():
    q, k = random(1, 3, 2, 16), poisoned(PAGE, 1, 16)
    for splits in (1, 2):
        found = attend(q, k, k, whole([[0]]), whole([0]), whole([0]), bits([np.zeros((3, 3))]), splits=splits)
        assert (found == 0).all()


def test_nan_among_the_keys_is_not_hidden():
    k = random(PAGE, 1, 16)
    k[1] = float("nan")
    found = attend(random(1, 1, 1, 16), k, k, whole([[0]]), whole([3]), whole([0]), bits([[[0]]]))
    assert torch.isnan(found).all()


def test_tiles_hold_all_heads_of_a_few_rows():
    assert [row_tile(packed) for packed in (1, 17, 64, 160)] == [16, 32, 64, 64]


@pytest.mark.parametrize(
    ("programs", "columns", "splits"), [(6, 1064, 9), (6, 64, 1), (400, 2048, 1), (1, 100_000, 32), (60, 4096, 5)]
)
def test_columns_are_split_until_every_processor_has_work(programs, columns, splits):
    assert splits_for(programs, columns, 132) == splits
