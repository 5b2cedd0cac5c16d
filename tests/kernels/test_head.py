"""The choice of tokens against the specification: odd vocabularies, ties, forbidden tokens, no distribution."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton")

from mercury_engine.model.quantize import dequantize, quantize
from mercury_kernels.head import Head, choose, chosen, logits
from mercury_kernels.reference import greedy_confidence, rms_normed
from mercury_kernels.stream import Stream
from tests.kernels.on_device import DEVICE, PRECISIONS, bits, check_close, exact, random, whole

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy computes in the interpreter

EPSILON = 1e-6


def headed(vocabulary, width, *, dtype=torch.float32, int8=False):
    weight, scales = random(vocabulary, width, seed=1, dtype=dtype), None
    if int8:
        values, row_scales = quantize(exact(weight).astype(np.float32))
        weight, scales = torch.tensor(values, device=DEVICE), torch.tensor(row_scales[:, 0], device=DEVICE)
    return Head(random(width, seed=3, dtype=dtype), (weight, scales), EPSILON)


def plain(head, stream):
    """The logits of all rows in double precision."""
    weight, scales = head.weight
    full = exact(weight) if scales is None else dequantize(exact(weight), exact(scales)[:, None])
    normed = rms_normed(exact(stream), exact(head.norm_D), EPSILON)
    return normed @ full.T


def check_chosen(found, expected, dtype=torch.float32):
    wanted = greedy_confidence(expected)
    np.testing.assert_array_equal(found.ids_CW[0].cpu(), wanted.ids)
    check_close(found.probability_CW[0], wanted.probability, dtype)
    shares = np.exp(expected - expected.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    for ids, probabilities in zip(found.ids_CW.cpu(), found.probability_CW, strict=True):
        present = (probabilities > 0).cpu().numpy()
        own = np.take_along_axis(shares, ids.numpy()[:, None].astype(int), 1)[:, 0]
        check_close(probabilities[present], own[present], dtype)
    assert (np.diff(found.probability_CW.cpu().numpy(), axis=0) <= 0).all()


def check(head, rows=6, *, wanted=None, allowed=None, dtype=torch.float32):
    stream = random(rows, head.norm_D.shape[0], scale=0.3)
    wanted = list(range(rows)) if wanted is None else wanted
    everything = plain(head, stream)[wanted]
    check_close(logits(head, Stream.of(stream, head.norm_D), whole(wanted)), everything, dtype)
    among = None if allowed is None else bits(allowed)
    found = chosen(choose(head, Stream.of(stream, head.norm_D), whole(wanted), among))
    check_chosen(found, everything if allowed is None else np.where(allowed, everything, -np.inf), dtype)


@pytest.mark.parametrize(("rows", "width", "vocabulary"), [(1, 16, 1), (5, 63, 100), (3, 48, 2000)])
def test_choices_of_any_shape(rows, width, vocabulary):
    check(headed(vocabulary, width), rows)


@pytest.mark.parametrize("dtype", PRECISIONS[1:])
def test_lower_precisions(dtype):
    check(headed(200, 64, dtype=dtype), dtype=dtype)


def test_int8():
    check(headed(100, 32, int8=True))


def test_tokens_are_chosen_for_wanted_rows_only():
    check(headed(150, 32), rows=20, wanted=[19, 3, 3, 7])


def test_forbidden_token_has_no_weight():
    check(headed(150, 32), allowed=np.arange(150) % 3 == 1)


def one_row(values, **given):
    """Choices among logits that are exactly these."""
    width = len(values)
    values = torch.tensor(values, dtype=torch.float32, device=DEVICE)
    head = Head(torch.ones(width, device=DEVICE), (torch.diag(values), None), 0.0)
    return chosen(choose(head, Stream.of(torch.ones(1, width, device=DEVICE), head.norm_D), whole([0]), **given))


def test_equal_logits_go_to_the_lowest_id():
    values = [0.0] * 200
    values[70] = values[71] = values[140] = 5.0
    found = one_row(values)
    assert found.ids_CW[0].tolist() == [70]
    check_chosen(found, np.array([values]))


def test_next_tokens_are_the_best_of_other_parts_of_the_vocabulary():
    values = [0.0] * 900
    values[700], values[701], values[340], values[5] = 9.0, 8.0, 7.0, 6.0
    found = one_row(values)
    assert found.ids_CW[:3, 0].tolist() == [700, 340, 5]
    check_chosen(found, np.array([values]))
    alone = one_row([1.0, 3.0])
    assert alone.ids_CW[0].tolist() == [1]
    assert alone.probability_CW[1:].tolist() == [[0.0]] * 3


def test_huge_logits_overflow_nothing():
    values = np.full(130, -1e4)
    values[[3, 129]] = 1e4
    check_chosen(one_row(values.tolist()), values[None])


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_row_without_distribution_chooses_nothing(bad):
    stream = torch.ones(3, 16, device=DEVICE)
    head = headed(100, 16)
    stream[1, 2] = bad
    found = chosen(choose(head, Stream.of(stream, head.norm_D), whole([0, 1, 2])))
    assert (found.ids_CW[0] >= 0).tolist() == [True, False, True]
    assert torch.isnan(found.probability_CW[0]).tolist() == [False, True, False]


def test_rows_of_fillers_or_without_allowed_tokens_choose_nothing():
    found = one_row([1.0] * 40, allowed_U=bits(np.zeros(40)))
    assert found.ids_CW[0].tolist() == [-1]
    head = headed(100, 16)
    filled = chosen(choose(head, Stream.of(random(2, 16), head.norm_D), whole([1, -1])))
    assert filled.ids_CW[0, 0] >= 0
    assert filled.probability_CW[0, 0] > 0
