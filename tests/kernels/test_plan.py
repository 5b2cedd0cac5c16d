"""How products are divided among the programs of a GPU, for models of four sizes, without one."""

from math import prod

import pytest

pytest.importorskip("triton")

from hypothesis import given
from hypothesis import strategies as st

from mercury_kernels.compiled import CAPABILITIES, SHAPES
from mercury_kernels.launch import COMPILED_FOR, TILES
from mercury_kernels.plan import LARGEST, SHARE, SHARED, plan_for

MODELS = ("small", "quicksilver", "qwen-1.5b", "dream-7b")
ROWS = (1, 8, 16, 40, 72, 128)


def products(shape):
    """The products of a layer: their kind, inputs and outputs."""
    queries, keys = shape.heads * shape.head_width, shape.key_heads * shape.head_width
    return [
        ("heads", shape.width, queries + 2 * keys),
        ("product", queries, shape.width),
        ("gated", shape.width, 2 * shape.feed_forward),
        ("product", shape.feed_forward, shape.width),
    ]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("weight_bytes", [1, 2])
def test_processors_are_busy_or_programs_too_small_to_share(model, rows, weight_bytes):
    shape = SHAPES[model]
    for kind, inner, outer in products(shape):
        plan = plan_for(kind, rows, inner, outer, weight_bytes, 2, COMPILED_FOR, shape.head_width)
        programs = prod(plan.grid(rows, outer))
        rounds = -(-programs // COMPILED_FOR)
        busy = programs / (rounds * COMPILED_FOR)
        weights = plan.out_tile * inner / plan.splits
        assert busy >= 0.75 or rounds > 1 or weights <= 2 * SHARE, (kind, plan, programs)


@pytest.mark.parametrize("rows", ROWS)
def test_weights_are_read_once(rows):
    assert rows <= LARGEST
    for model in MODELS:
        for kind, inner, outer in products(SHAPES[model]):
            plan = plan_for(kind, rows, inner, outer, 2, 2, COMPILED_FOR, SHAPES[model].head_width)
            assert plan.grid(rows, outer)[0] == 1


@given(
    kind=st.sampled_from(["heads", "product", "gated"]),
    rows=st.integers(1, 300),
    inner=st.integers(1, 20_000),
    outer=st.integers(2, 40_000),
    weight_bytes=st.sampled_from([1, 2, 4]),
    processors=st.integers(1, 200),
    head_width=st.sampled_from([16, 20, 64, 96, 128, 256]),
)
def test_plan_fits_every_gpu(kind, rows, inner, outer, weight_bytes, processors, head_width):
    plan = plan_for(kind, rows, inner, outer, weight_bytes, 4, processors, head_width)
    row_tiles, out_tiles, splits = plan.grid(rows, outer)
    assert row_tiles * plan.row_tile >= rows
    assert out_tiles * plan.out_tile >= outer
    assert 1 <= splits <= -(-inner // plan.inner_tile)
    assert splits == 1 or row_tiles * out_tiles <= TILES
    tile = plan.inner_tile * (plan.out_tile * weight_bytes + plan.row_tile * 4) * plan.stages
    assert tile <= SHARED <= min(CAPABILITIES.values()) << 10 or plan.inner_tile == 16


@given(blocks=st.integers(1, 400), splits=st.integers(1, 40))
def test_splits_share_all_blocks(blocks, splits):
    """As the kernels compute it."""
    shares = [range(split * blocks // splits, (split + 1) * blocks // splits) for split in range(splits)]
    assert [block for share in shares for block in share] == list(range(blocks))
