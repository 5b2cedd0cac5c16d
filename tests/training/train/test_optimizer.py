"""Muon and AdamW equal those of torch; clipping and the running mean do what they say."""

import pytest
import torch

from mercury_training.train.optimizer import COEFFICIENTS, EMA, Optimizer, Rates, clip, is_hidden_matrix, newton_schulz

SHAPES = {
    "layers.0.attention.query.weight": (6, 4),
    "layers.1.attention.query.weight": (6, 4),
    "layers.0.feed_forward.down.weight": (4, 9),
    "layers.0.attention_norm.weight": (4,),
    "embedding.weight": (11, 4),
}
RATES = Rates()


def drawn(seed):
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}


def orthogonal(matrix):
    """Newton and Schulz on the singular values, one by one."""
    u, values, vh = torch.linalg.svd(matrix.double() / matrix.double().norm(), full_matrices=False)
    a, b, c = COEFFICIENTS
    for _ in range(5):
        values = a * values + b * values**3 + c * values**5
    return u @ torch.diag(values) @ vh


@pytest.mark.parametrize("shape", [(6, 4), (4, 9), (5, 5)])
def test_newton_schulz_changes_singular_values_alone(shape):
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    found = newton_schulz(matrix[None])[0]
    torch.testing.assert_close(found.double(), orthogonal(matrix), rtol=1e-3, atol=1e-4)
    assert (torch.linalg.svdvals(found) > 0.6).all()
    assert (torch.linalg.svdvals(found) < 1.3).all()


def test_both_halves_equal_those_of_torch():
    """Which orthogonalises in bfloat16."""
    weights = drawn(0)
    twins = {name: torch.nn.Parameter(weight.clone()) for name, weight in weights.items()}
    optimizer = Optimizer(weights, RATES, torch.bfloat16)
    matrices = [name for name in SHAPES if is_hidden_matrix(name, weights[name])]
    others = [name for name in SHAPES if name not in matrices]
    muon = torch.optim.Muon(
        [twins[name] for name in matrices],
        lr=RATES.muon * 0.5,
        weight_decay=RATES.muon_decay,
        momentum=RATES.momentum,
        ns_coefficients=COEFFICIENTS,
    )
    adam = torch.optim.AdamW(
        [{"params": [twins[n]], "weight_decay": RATES.adam_decay if twins[n].dim() > 1 else 0} for n in others],
        lr=RATES.adam * 0.5,
        betas=RATES.betas,
        eps=RATES.epsilon,
    )
    for found in (drawn(seed) for seed in (1, 2, 3)):
        optimizer.step(found, 0.5)
        for name, twin in twins.items():
            twin.grad = found[name].clone()
        muon.step()
        adam.step()
    for name in matrices:
        torch.testing.assert_close(weights[name], twins[name].data, rtol=0, atol=3 * 0.02 * RATES.muon)
    for name in others:
        torch.testing.assert_close(weights[name], twins[name].data, rtol=1e-4, atol=1e-5)


def test_mean_follows_weights_and_forgets_its_beginning_fast():
    weights = drawn(0)
    optimizer = Optimizer(weights, RATES, torch.float32)
    expected = drawn(0)["embedding.weight"]
    for step in range(1, 6):
        optimizer.step(drawn(step), 1.0)
        kept = min(EMA, step / (step + 10))
        expected = kept * expected + (1 - kept) * weights["embedding.weight"]
    torch.testing.assert_close(optimizer.mean["embedding.weight"], expected)


def test_restored_optimizer_goes_on_to_the_bit():
    weights = drawn(0)
    optimizer = Optimizer(weights, RATES, torch.float32)
    optimizer.step(drawn(1), 1.0)
    copies = {name: weight.clone() for name, weight in weights.items()}
    twin = Optimizer(copies, RATES, torch.float32)
    twin.restore({name: moment.clone() for name, moment in optimizer.state().items()}, optimizer.steps)
    for found in (optimizer, twin):
        found.step(drawn(2), 1.0)
    assert all(torch.equal(weights[name], copies[name]) for name in SHAPES)


def test_gradients_are_clipped_together():
    gradients = [torch.full((3,), 2.0), torch.full((2, 2), -2.0)]
    assert clip(gradients, 1.0) == pytest.approx(28**0.5)
    assert torch.cat([gradient.flatten() for gradient in gradients]).norm().item() == pytest.approx(1, rel=1e-4)
    assert clip(gradients, 2.0) == pytest.approx(1, rel=1e-4)
    assert gradients[0][0].item() == pytest.approx(2 / 28**0.5, rel=1e-4)
