"""Whoever computes attention sees exactly what the layout lets a row see."""

import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask

from mercury_engine.model.network import attend_dense
from mercury_training.rows.blocks import Block, visible_ranges
from mercury_training.train.attention import attend_blocks, attend_tiles, block_mask, dense_mask, tiles
from tests.masks import canvas_mask

ROWS = (
    [Block(40), Block(7, parent=30), Block(20), Block(3), Block(8, 33, causal=False), Block(8, 60, causal=False)],
    [Block(70), Block(8, 20, causal=False, group=1), Block(8, 30, causal=False, group=1)],
    [Block(5), Block(65), Block(16, 40, causal=False)],
)
SIZE, CLEAN = 86, 70


def ranges():
    found = [visible_ranges(blocks) for blocks in ROWS]
    padded = [np.pad(one, [(0, 0), (0, 3 - one.shape[1]), (0, 0)]) for one in found]
    return torch.from_numpy(np.stack(padded)).long()


def inputs(requires_grad=False):
    generator = torch.Generator().manual_seed(0)
    shapes = ((3, 4, SIZE, 16), (3, 2, SIZE, 16), (3, 2, SIZE, 16))
    return [torch.randn(shape, generator=generator, requires_grad=requires_grad) for shape in shapes]


def brute_force():
    return torch.from_numpy(np.stack([canvas_mask(blocks) for blocks in ROWS]))


def test_dense_mask_is_that_of_the_layout():
    assert torch.equal(dense_mask(ranges()), brute_force())


@pytest.mark.parametrize("size", [16, 63, 128])
def test_tiles_cover_the_mask_without_the_upper_half_of_clean_rows(size):
    found = torch.zeros(3, SIZE, SIZE, dtype=torch.bool)
    for tile in tiles(ranges(), CLEAN, 2, 2, torch.float32, size):
        seen = tile.bias[::2] == 0
        found[:, tile.rows, tile.columns] = seen
        assert tile.rows.stop > CLEAN or tile.columns.stop == tile.rows.stop
    assert torch.equal(found, brute_force())


@pytest.mark.parametrize("size", [16, 63, 128])
def test_tiles_attend_as_the_dense_mask_does_and_so_do_their_gradients(size):
    q, k, v = inputs(requires_grad=True)
    expected = attend_dense(q, k, v, brute_force())
    expected.square().sum().backward()
    gradients = [tensor.grad.clone() for tensor in (q, k, v)]
    q.grad = k.grad = v.grad = None
    found = attend_tiles(q, k, v, tiles(ranges(), CLEAN, 4, 2, torch.float32, size))
    found.square().sum().backward()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close([q.grad, k.grad, v.grad], gradients)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_attends_as_the_dense_mask_does():
    q, k, v = inputs()
    with torch.no_grad():
        found = attend_blocks(q, k, v, block_mask(ranges()))
        torch.testing.assert_close(found, attend_dense(q, k, v, brute_force()))


@pytest.mark.parametrize("clean", [70, 256, 600])
def test_block_mask_is_that_of_the_dense_one(clean):
    blocks = [Block(clean), Block(8, 20, causal=False), Block(200), Block(16, clean + 30, causal=False), Block(30)]
    found = block_mask(torch.from_numpy(visible_ranges(blocks))[None].long())
    seen = torch.from_numpy(canvas_mask(blocks))
    expected = create_block_mask(lambda b, h, q, column: seen[q, column], 1, None, *seen.shape, device="cpu")
    for name in ("kv_num_blocks", "full_kv_num_blocks", "q_num_blocks", "full_q_num_blocks"):
        assert torch.equal(getattr(found, name), getattr(expected, name))
    assert torch.equal(found.to_dense(), expected.to_dense())
    rows = torch.arange(len(seen))
    assert torch.equal(found.mask_mod(torch.tensor(0), None, rows[:, None], rows), seen)


@pytest.mark.slow
def test_attention_compiled_under_one_block_mask_serves_the_next():
    compiled = torch.compile(attend_blocks, dynamic=False, backend="aot_eager")
    with torch.no_grad():
        compiled(*inputs(), block_mask(ranges()))
        other = ranges().flip(0)
        with torch.compiler.set_stance("fail_on_recompile"):
            found = compiled(*inputs(), block_mask(other))
    torch.testing.assert_close(found, attend_dense(*inputs(), dense_mask(other)))


def test_block_mask_skips_whole_blocks_that_nobody_sees():
    blocks = [Block(256), Block(256)]
    mask = block_mask(torch.from_numpy(visible_ranges(blocks))[None].long())
    assert mask.kv_num_blocks.tolist() == [[[1, 1, 1, 1]]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1, 0, 1]]]
