"""The specification of the kernels against versions too slow to be wrong."""

import math

import numpy as np
import pytest

from mercury_kernels.reference import canvas_attention, greedy_confidence


def slow_confidence(logits):
    weights = [math.exp(logit) for logit in logits]
    total = sum(weights)
    best = max(range(len(logits)), key=lambda token: (logits[token], -token))
    return best, weights[best] / total


@pytest.mark.parametrize(("rows", "vocabulary"), [(1, 1), (3, 63), (5, 100), (2, 2000)])
def test_confidence_equals_the_definition(rows, vocabulary):
    logits = np.random.default_rng(0).normal(0, 3, (rows, vocabulary)).astype(np.float32)
    found = greedy_confidence(logits)
    for row in range(rows):
        best, probability = slow_confidence(logits[row].tolist())
        assert found.ids[row] == best
        np.testing.assert_allclose(found.probability[row], probability, rtol=1e-5, atol=1e-7)


def test_huge_logits_overflow_nothing():
    found = greedy_confidence(np.array([[1e4, 1e4, -1e4], [-1e4, -1e4 - 1, -1e30]]))
    np.testing.assert_allclose(found.probability, [0.5, 1 / (1 + math.exp(-1))], rtol=1e-6)


def test_equal_logits_go_to_the_lowest_id():
    assert greedy_confidence(np.array([[0, 5, 5, 5], [2, 2, 2, 2]])).ids.tolist() == [1, 0]


def test_forbidden_id_has_no_weight():
    forbidden = greedy_confidence(np.array([[1.0, -np.inf, 2.0]]))
    absent = greedy_confidence(np.array([[1.0, 2.0]]))
    assert forbidden.ids.tolist() == [2]
    assert forbidden.probability == absent.probability


@pytest.mark.parametrize("bad", [[np.nan, 1.0], [np.inf, 1.0], [-np.inf, -np.inf]])
def test_row_without_distribution_is_an_error(bad):
    with pytest.raises(ValueError, match="row 1: its highest logit"):
        greedy_confidence(np.array([[0.0, 1.0], bad]))


def slow_attention(q, prefix_k, prefix_v, canvas_k, canvas_v, seen):
    heads, rows, width = q.shape
    group = heads // len(prefix_k)
    out = np.zeros_like(q)
    for head in range(heads):
        for row in range(rows):
            keys = list(prefix_k[head // group])
            values = list(prefix_v[head // group])
            for other in range(rows):
                if seen[row, other]:
                    keys.append(canvas_k[head // group, other])
                    values.append(canvas_v[head // group, other])
            weights = [math.exp(float(q[head, row] @ key) / math.sqrt(width)) for key in keys]
            for weight, value in zip(weights, values, strict=True):
                out[head, row] += weight / sum(weights) * value
    return out


@pytest.mark.parametrize("causal_rows", [0, 1, 3, 5])
@pytest.mark.parametrize(("heads", "key_heads", "prefix"), [(1, 1, 0), (4, 2, 7), (6, 1, 63)])
def test_attention_equals_the_definition(heads, key_heads, prefix, causal_rows):
    random = np.random.default_rng(0)
    q = random.normal(size=(heads, 5, 16))
    prefix_k, prefix_v = random.normal(size=(2, key_heads, prefix, 16))
    canvas_k, canvas_v = random.normal(size=(2, key_heads, 5, 16))
    seen = np.tri(5, dtype=bool) | (np.arange(5) >= causal_rows)[:, None]
    arguments = (q, prefix_k, prefix_v, canvas_k, canvas_v, seen)
    np.testing.assert_allclose(canvas_attention(*arguments), slow_attention(*arguments), rtol=1e-10, atol=1e-12)


def test_attention_answers_in_the_precision_of_the_queries():
    ones = np.ones((1, 2, 4), np.float32)
    assert canvas_attention(ones, ones, ones, ones, ones, np.ones((2, 2), bool)).dtype == np.float32


def test_large_scores_overflow_nothing():
    q = np.full((1, 2, 4), 1e3)
    k = np.concatenate([q, -q], 1)[:, 1:3]
    found = canvas_attention(q, k, k, k, k, np.ones((2, 2), bool))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, np.full((1, 2, 4), 1e3))
