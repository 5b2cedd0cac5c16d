"""Fused products against the specification: odd shapes, int8, biases, roles, slots of the cache."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton")

from mercury_engine.model.quantize import dequantize, quantize
from mercury_kernels.linear import add_product, gated, project_heads
from mercury_kernels.plan import Plan
from mercury_kernels.reference import gated_feed_forward, normed_and_rotated, rms_normed
from mercury_kernels.stream import Stream
from tests.kernels.on_device import DEVICE, PRECISIONS, check_close, exact, poisoned, random, whole

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy computes in the interpreter

EPSILON = 1e-6


def weighted(outer, inner, *, int8, dtype, seed=9):
    """A weight as the kernel takes it, and as the specification does."""
    values = random(outer, inner, seed=seed, scale=inner**-0.5, dtype=dtype)
    if not int8:
        return (values, None), exact(values)
    whole_numbers, scales = quantize(exact(values).astype(np.float32))
    given = torch.tensor(whole_numbers, device=DEVICE), torch.tensor(scales[:, 0], device=DEVICE)
    return given, dequantize(whole_numbers, scales)


ODD = [(1, 16, 16), (5, 63, 100), (17, 100, 33), (40, 130, 48)]
PLANS = [None, Plan(16, 32, 16, 3, 4, 2)]
"""The launcher's own, and one in which three programs share the inputs of a tile."""


@pytest.mark.parametrize(("rows", "inner", "outer"), ODD)
@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("plan", PLANS)
def test_product_is_added_to_stream(rows, inner, outer, int8, plan):
    given, weight = weighted(outer, inner, int8=int8, dtype=torch.float32)
    check_added(rows, inner, outer, given, weight, plan=plan)


def test_product_adds_bias():
    given, weight = weighted(24, 40, int8=False, dtype=torch.float32)
    check_added(6, 40, 24, given, weight, bias=random(24, seed=2))


def check_added(rows, inner, outer, given, weight, *, bias=None, plan=None):
    """A product is added to all three parts of a stream."""
    x, before, norm = random(rows, inner), random(rows, outer, seed=1), random(outer, seed=4)
    stream = Stream.of(before, norm)
    add_product(stream, x, given, bias, norm, plan=plan)
    expected = exact(before) + exact(x) @ weight.T + (0 if bias is None else exact(bias))
    check_close(stream.values_ND, expected)
    again = Stream.of(stream.values_ND, norm)
    check_close(stream.scaled_ND, exact(again.scaled_ND))
    check_close(stream.squares_NP, exact(again.squares_NP))


@pytest.mark.parametrize(("rows", "inner", "outer"), ODD)
@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("plan", PLANS)
def test_gated_layer_equals_the_reference(rows, inner, outer, int8, plan):
    stream, norm = random(rows, inner, scale=3), random(inner, seed=1)
    given, weight = weighted(2 * outer, inner, int8=int8, dtype=torch.float32)
    found = gated(Stream.of(stream, norm), norm, given, None, EPSILON, plan=plan)
    check_close(found, gated_feed_forward(exact(stream), exact(norm), weight[:outer], weight[outer:], EPSILON))


@pytest.mark.parametrize("dtype", PRECISIONS[1:])
@pytest.mark.parametrize("int8", [False, True])
def test_lower_precisions(dtype, int8):
    stream, norm = random(9, 64, scale=2), random(64, seed=1, dtype=dtype)
    given, weight = weighted(2 * 48, 64, int8=int8, dtype=dtype)
    found = gated(Stream.of(stream, norm), norm, given, None, EPSILON)
    assert found.dtype == dtype
    check_close(found, gated_feed_forward(exact(stream), exact(norm), weight[:48], weight[48:], EPSILON), dtype)


@pytest.mark.parametrize(("width", "head_norm", "bias"), [(16, True, False), (20, False, True), (64, True, True)])
@pytest.mark.parametrize("splits", [1, 3])
def test_heads_are_normed_rotated_and_written(width, head_norm, bias, splits):
    rows, inner, heads, key_heads = 7, 48, 4, 2
    stream, norm = random(rows, inner, scale=2), random(inner, seed=1)
    outer = (heads + 2 * key_heads) * width
    given, weight = weighted(outer, inner, int8=False, dtype=torch.float32)
    biases = random(outer, seed=3) if bias else None
    norms = (random(width, seed=4), random(width, seed=5)) if head_norm else None
    angles = random(50, width // 2, seed=6, scale=2)
    rotations, positions = (angles.cos(), angles.sin()), whole([49, 0, 3, 4, 4, 5, 20])
    slots = whole([9, 8, -1, 3, 4, 5, 6])
    k, v = poisoned(12, key_heads, width), poisoned(12, key_heads, width)
    plan = Plan(16, max(16, 1 << (width - 1).bit_length()), 16, splits, 4, 2)
    q = project_heads(
        Stream.of(stream, norm), norm, given, biases, norms, rotations, positions, slots, k, v, EPSILON, plan=plan
    )
    projected = rms_normed(exact(stream), exact(norm), EPSILON) @ weight.T + (exact(biases) if bias else 0)
    projected = projected.reshape(rows, -1, width)
    turned = [exact(part)[positions.cpu()] for part in rotations]
    query_norm, key_norm = (exact(each) for each in norms) if head_norm else (None, None)
    check_close(q, normed_and_rotated(projected[:, :heads], query_norm, *turned, EPSILON))
    kept, at = [0, 1, 3, 4, 5, 6], slots[slots >= 0].long()
    keys = normed_and_rotated(projected[:, heads : heads + key_heads], key_norm, *turned, EPSILON)
    check_close(k[at], keys[kept])
    check_close(v[at], projected[kept, heads + key_heads :])
    untouched = [slot for slot in range(12) if slot not in at.tolist()]
    assert torch.isnan(k[untouched]).all()
    assert torch.isnan(v[untouched]).all()


def test_infinities_and_nan_stay_in_their_rows():
    stream, norm = random(4, 32), random(32, seed=1)
    stream[1, 3], stream[2, 5] = float("nan"), float("inf")
    given, _ = weighted(32, 32, int8=False, dtype=torch.float32)
    found = gated(Stream.of(stream, norm), norm, given, None, EPSILON)
    assert torch.isfinite(found).all(1).tolist() == [True, False, False, True]
