"""The likeliest weights are found, from near and from far."""

import numpy as np
import pytest

from mercury_training.fit.logistic import newton, sigmoid


def drawn(weights, count=5000, spread=1.0):
    draw = np.random.default_rng(0)
    inputs = np.column_stack([np.ones(count), draw.normal(0, spread, (count, len(weights) - 1))])
    return inputs, (draw.random(count) < sigmoid(inputs @ weights)).astype(float)


@pytest.mark.parametrize("prior", [[0.0, 0.0], [0.0, 1.0], [5.0, -5.0]])
def test_true_weights_are_found_from_anywhere(prior):
    inputs, right = drawn(np.array([0.5, 2.0]))
    np.testing.assert_allclose(newton(inputs, right, np.array(prior), 1e-6), [0.5, 2.0], atol=0.15)


def test_inputs_far_apart_do_not_lead_astray():
    inputs, right = drawn(np.array([-1.0, 0.05]), spread=20.0)
    np.testing.assert_allclose(newton(inputs, right, np.array([0.0, 1.0]), 1.0), [-1.0, 0.05], atol=0.15)


def test_ridge_holds_back():
    inputs, right = drawn(np.array([0.0, 2.0]), count=20)
    prior = np.array([1.0, -1.0])
    np.testing.assert_allclose(newton(inputs, right, prior, 1e6), prior, atol=0.01)
