"""Quantised weights stay close, channel by channel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mercury_engine.model.quantize import dequantize, dequantize_groups, quantize, quantize_groups, relative_error

MATRICES = arrays(
    np.float32, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=st.floats(-100, 100, width=32)
)


@settings(max_examples=60)
@given(MATRICES)
def test_weight_moves_by_at_most_half_a_step_of_its_channel(weight):
    values, scales = quantize(weight)
    moved = np.abs(dequantize(values, scales) - weight)
    assert (moved <= 0.5001 * scales + 1e-12).all()


@settings(max_examples=60)
@given(MATRICES)
def test_largest_weight_of_channel_takes_largest_number(weight):
    values, _ = quantize(weight)
    largest = np.abs(weight).max(axis=1)
    assert (np.abs(values[largest > 1e-6].astype(int)).max(axis=1, initial=0) == 127).all()


def test_channel_of_zeros_stays_zero():
    values, scales = quantize(np.zeros((2, 4), np.float32))
    assert not values.any()
    assert (scales > 0).all()


def test_large_channel_does_not_coarsen_its_neighbours():
    weight = np.array([[100.0, 1.0], [0.01, 0.005]], np.float32)
    np.testing.assert_allclose(dequantize(*quantize(weight))[1], weight[1], rtol=0.01)


def test_error_is_relative_to_the_length_of_the_weights():
    weight = np.random.default_rng(0).standard_normal((64, 512), np.float32)
    assert relative_error(weight, 1.01 * weight) == pytest.approx(0.01, rel=1e-3)
    assert 0.004 < relative_error(weight, dequantize(*quantize(weight))) < 0.01
    assert 0.08 < relative_error(weight, dequantize_groups(*quantize_groups(weight, 128))) < 0.12
    assert relative_error(np.zeros((2, 2), np.float32), np.zeros((2, 2), np.float32)) == 0
