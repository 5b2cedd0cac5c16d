"""Logistic regression by Newton's method, with a Gaussian prior."""

import numpy as np

ROUNDS = 100
HALVINGS = 30
TOLERANCE = 1e-6


def newton(
    inputs: np.ndarray, right: np.ndarray, prior: np.ndarray, ridge: float, counts: np.ndarray | float = 1.0
) -> np.ndarray:
    """The weights of the likeliest logistic function, regularised towards the prior. Each input has the weight in
    `counts`.

    A step that overshoots, as it may from far away, is halved until it leads down.
    """
    weights = prior.copy()
    cost = _cost(weights, inputs, right, prior, ridge, counts)
    for _ in range(ROUNDS):
        chance = sigmoid(inputs @ weights)
        gradient = inputs.T @ (counts * (chance - right)) + ridge * (weights - prior)
        curvature = (inputs * (counts * chance * (1 - chance))[:, None]).T @ inputs + ridge * np.eye(len(weights))
        step = np.linalg.solve(curvature, gradient)
        for _ in range(HALVINGS):
            if (lower := _cost(weights - step, inputs, right, prior, ridge, counts)) <= cost:
                break
            step /= 2
        else:
            break
        weights, cost = weights - step, lower
        if np.abs(step).max() < TOLERANCE:
            break
    return weights


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-np.clip(values, -30, 30)))


def _cost(
    weights: np.ndarray,
    inputs: np.ndarray,
    right: np.ndarray,
    prior: np.ndarray,
    ridge: float,
    counts: np.ndarray | float,
) -> float:
    scores = inputs @ weights
    cost = np.sum(counts * (np.logaddexp(0, scores) - right * scores))
    return float(cost + ridge / 2 * np.sum((weights - prior) ** 2))
