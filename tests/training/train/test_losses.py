"""Losses equal their slow, obvious versions, in value and in gradient."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from mercury_engine.tokens.vocabulary import EOM
from mercury_training.rows.corruption import FOLLOWING, CanvasSlots, hidden
from mercury_training.rows.streams import canvas_slots
from mercury_training.train import losses
from mercury_training.train.losses import (
    CERTAINTY,
    Totals,
    entropy_weights,
    linear_cross_entropy,
    row_weights,
    sample_vocabulary,
)


def drawn(rows, width=8, vocabulary=37, seed=0):
    generator = torch.Generator().manual_seed(seed)
    hidden_RD = torch.randn(rows, width, generator=generator, requires_grad=True)
    weight_VD = torch.randn(vocabulary, width, generator=generator, requires_grad=True)
    targets = torch.randint(vocabulary, (rows,), generator=generator)
    return hidden_RD, weight_VD, targets, torch.rand(rows, generator=generator)


def slow(hidden_RD, weight_VD, targets, weights, certain, added_RV=None):
    """One row after the other, with autograd's own gradients."""
    total = 0
    added_RV = torch.zeros(len(targets), len(weight_VD)) if added_RV is None else added_RV
    for row, target, weight, certainty, added in zip(hidden_RD, targets, weights, certain, added_RV, strict=True):
        logits = weight_VD @ row + added
        chances = torch.softmax(logits, 0)
        total = total - weight * chances[target].log()
        if logits.argmax() == target:
            total = total - certainty * (chances * chances.log()).sum()
    return total


@pytest.mark.parametrize("rows", [1, 63, 130])
def test_equals_one_row_after_the_other(rows, monkeypatch):
    monkeypatch.setitem(losses.LOGITS, "cpu", 50 * 37)
    hidden_RD, weight_VD, targets, weights = drawn(rows)
    with torch.no_grad():
        targets[::2] = (hidden_RD @ weight_VD.T).argmax(-1)[::2]
    certain = weights.flip(0)
    found, row_losses, right, _ = linear_cross_entropy(hidden_RD, weight_VD, targets, weights, certain)
    (3 * found).backward()
    gradients = hidden_RD.grad, weight_VD.grad
    hidden_RD.grad = weight_VD.grad = None
    expected = slow(hidden_RD, weight_VD, targets, weights, certain)
    (3 * expected).backward()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients, (hidden_RD.grad, weight_VD.grad))
    assert right[::2].all()
    assert not row_losses.requires_grad


def test_rows_of_weight_zero_change_nothing():
    hidden_RD, weight_VD, targets, weights = drawn(20)
    weights[7] = 0
    found, *_ = linear_cross_entropy(hidden_RD, weight_VD, targets, weights)
    found.backward()
    assert not hidden_RD.grad[7].any()
    kept = torch.arange(20) != 7
    left, *_ = linear_cross_entropy(hidden_RD[kept], weight_VD, targets[kept], weights[kept])
    torch.testing.assert_close(found, left)


def test_half_precision_gradients_stay_close():
    hidden_RD, weight_VD, targets, weights = drawn(64)
    found, *_ = linear_cross_entropy(hidden_RD, weight_VD, targets, weights)
    found.backward()
    halves = [tensor.detach().bfloat16().requires_grad_() for tensor in (hidden_RD, weight_VD)]
    rough, *_ = linear_cross_entropy(*halves, targets, weights)
    rough.backward()
    for half, full in zip(halves, (hidden_RD, weight_VD), strict=True):
        assert half.grad.dtype == torch.bfloat16
        assert (half.grad.float() - full.grad).norm() / full.grad.norm() < 0.03


def over_sample(hidden_RD, weight_VD, targets, weights, others, draw):
    sample = sample_vocabulary(len(weight_VD), targets, others, draw)
    return linear_cross_entropy(hidden_RD, weight_VD[sample.ids_S], sample.targets_R, weights, shift_V=sample.shift_S)


def test_part_that_is_the_whole_vocabulary_changes_nothing():
    hidden_RD, weight_VD, targets, weights = drawn(20)
    whole, whole_rows, whole_right, _ = linear_cross_entropy(hidden_RD, weight_VD, targets, weights)
    whole.backward()
    gradients = hidden_RD.grad, weight_VD.grad
    hidden_RD.grad = weight_VD.grad = None
    part, rows, right, _ = over_sample(hidden_RD, weight_VD, targets, weights, 99, np.random.default_rng(0))
    part.backward()
    torch.testing.assert_close((part, rows, right), (whole, whole_rows, whole_right))
    torch.testing.assert_close((hidden_RD.grad, weight_VD.grad), gradients)


def test_part_stands_for_the_whole_on_average():
    hidden_RD, weight_VD, targets, weights = drawn(6, vocabulary=200)
    draw = np.random.default_rng(0)
    with torch.no_grad():
        whole = linear_cross_entropy(hidden_RD, weight_VD, targets, weights)[1]
        parts = [over_sample(hidden_RD, weight_VD, targets, weights, 60, draw)[1] for _ in range(500)]
        aside = hidden_RD @ weight_VD.T
    chosen = aside.gather(1, targets[:, None])[:, 0]
    sums = torch.stack([(rows + chosen).exp() for rows in parts]).mean(0)
    torch.testing.assert_close(sums, (whole + chosen).exp(), rtol=0.15, atol=0)


def test_step_weighs_clean_rows_as_one_and_canvas_rows_as_told():
    weights = torch.rand(2, 12)
    totals = Totals(float(weights[:, :8].sum()), float(weights[:, 8:].sum()))
    scaled = row_weights(weights, 8, totals, 0.5)
    assert scaled[:, :8].sum().item() == pytest.approx(1)
    assert scaled[:, 8:].sum().item() == pytest.approx(0.5)
    certain = entropy_weights(weights, 8, totals)
    assert not certain[:, :8].any()
    assert certain.sum().item() == pytest.approx(CERTAINTY)


def test_micro_batches_add_up_to_the_batch():
    hidden_RD, weight_VD, targets, weights = drawn(40)
    whole, *_ = linear_cross_entropy(hidden_RD, weight_VD, targets, weights)
    parts = [
        linear_cross_entropy(hidden_RD[rows], weight_VD, targets[rows], weights[rows])[0]
        for rows in (slice(0, 10), slice(10, 40))
    ]
    torch.testing.assert_close(whole, sum(parts))


def slow_drafts(hidden_RD, weight_VD, targets, weights, readers, reading):
    """One draft after the other, with autograd's own gradients and the reading as a constant."""
    total, agreements = 0, []
    first = len(targets) - len(readers)
    for row, reader in zip(range(first, len(targets)), readers, strict=True):
        chances = torch.softmax(weight_VD @ hidden_RD[row], 0)
        certain = functional.one_hot(targets[row], len(weight_VD)).float()
        expected = torch.softmax(weight_VD @ hidden_RD[reader], 0).detach() if reader >= 0 else certain
        agreements.append(1 - (chances - expected).abs().sum() / 2)
        cross_entropy = -chances[targets[row]].log()
        total = total + weights[row] * ((1 - reading) * cross_entropy + reading * (1 - agreements[-1]))
    return total, torch.stack(agreements)


@pytest.mark.parametrize("drafts", [1, 30, 70])
@pytest.mark.parametrize("reading", [0.9, 1.0])
def test_drafts_learn_from_the_reading_of_their_place(drafts, reading, monkeypatch):
    monkeypatch.setitem(losses.LOGITS, "cpu", 50 * 37)
    hidden_RD, weight_VD, targets, weights = drawn(100)
    readers = torch.randint(-1, 100 - drafts, (drafts,), generator=torch.Generator().manual_seed(1))
    told = {"readers_N": readers, "reading": reading}
    found, _, _, agreements = linear_cross_entropy(hidden_RD, weight_VD, targets, weights, **told)
    (3 * found).backward()
    gradients = hidden_RD.grad, weight_VD.grad
    hidden_RD.grad = weight_VD.grad = None
    clean = slice(0, 100 - drafts)
    read = slow(hidden_RD[clean], weight_VD, targets[clean], weights[clean], torch.zeros(100 - drafts))
    drafted, expected = slow_drafts(hidden_RD, weight_VD, targets, weights, readers, reading)
    (3 * (read + drafted)).backward()
    torch.testing.assert_close(found, read + drafted)
    torch.testing.assert_close(gradients, (hidden_RD.grad, weight_VD.grad))
    torch.testing.assert_close(agreements, torch.cat([torch.zeros(100 - drafts), expected.detach()]))


def test_draft_that_reads_the_same_agrees_entirely():
    hidden_RD, weight_VD, targets, weights = drawn(8)
    with torch.no_grad():
        hidden_RD[4:] = hidden_RD[:4]
    told = {"readers_N": torch.arange(4), "reading": 1.0}
    *_, agreements = linear_cross_entropy(hidden_RD, weight_VD, targets, weights, **told)
    torch.testing.assert_close(agreements[4:], torch.ones(4))


@settings(max_examples=50)
@given(st.integers(1, 20), st.sampled_from([8, 16, 32]), st.booleans())
def test_canvas_loss_is_shifted_and_later_slots_weigh_less(length, size, ended):
    """Row j is compared with slot j + 1, the last row with nothing. All the ends behind the first together weigh one
    token, before each slot weighs less than the one before it."""
    answer = [*range(100, 100 + length), *([EOM] if ended else [])]
    slots, slot_weights = canvas_slots(answer, size)
    canvas = hidden(CanvasSlots(5, slots, slot_weights, 6, len(answer)), np.full(size, 2, np.int32))
    logits = torch.randn(size, 200, generator=torch.Generator().manual_seed(length)).double()
    found = (
        functional.cross_entropy(logits, torch.from_numpy(canvas.targets).long(), reduction="none")
        * torch.from_numpy(canvas.weights)
    ).sum()
    expected = 0.0
    for slot in range(1, size):
        loss = -torch.log_softmax(logits[slot - 1], 0)[int(slots[slot])]
        share = 1 / (size - len(answer)) if slot >= len(answer) else 1
        expected += float(loss) * share * FOLLOWING ** (slot - 1)
    assert found.item() == pytest.approx(expected)
