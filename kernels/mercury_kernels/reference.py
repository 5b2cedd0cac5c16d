"""What each kernel computes, in numpy and double precision: the specification that fast versions are tested
against.

Shapes: R rows, V vocabulary, H query heads, K key heads, B canvas rows, P prefix rows, E head width.
"""

from typing import NamedTuple

import numpy as np

__all__ = ["Confidence", "canvas_attention", "greedy_confidence"]


class Confidence(NamedTuple):
    """For each row the likeliest id, its probability, and the entropy of the whole distribution in nats."""

    ids: np.ndarray
    probability: np.ndarray
    entropy: np.ndarray


def greedy_confidence(logits_RV: np.ndarray) -> Confidence:
    """Equal logits: the lowest id wins. A logit of -inf forbids an id. A row with NaN, +inf or nothing
    allowed has no distribution and is an error, never an answer."""
    logits_RV = np.asarray(logits_RV, np.float64)
    highest_R = logits_RV.max(-1)
    bad = np.flatnonzero(~np.isfinite(highest_R))
    if bad.size:
        raise ValueError(f"row {bad[0]}: its highest logit is {highest_R[bad[0]]}; logits must be finite or -inf")
    shifted_RV = logits_RV - highest_R[:, None]
    weights_RV = np.exp(shifted_RV)
    total_R = weights_RV.sum(-1)
    # -inf times a weight of zero would be NaN; a forbidden id adds nothing.
    moment_R = (weights_RV * np.where(weights_RV > 0, shifted_RV, 0)).sum(-1)
    return Confidence(
        logits_RV.argmax(-1).astype(np.int32),
        (1 / total_R).astype(np.float32),
        (np.log(total_R) - moment_R / total_R).astype(np.float32),
    )


def canvas_attention(
    q_HBE: np.ndarray,
    prefix_k_KPE: np.ndarray,
    prefix_v_KPE: np.ndarray,
    canvas_k_KBE: np.ndarray,
    canvas_v_KBE: np.ndarray,
    causal_rows: int = 0,
) -> np.ndarray:
    """Every row sees the whole prefix, and the rows of this pass both ways; nothing is written to the prefix.

    In a fused pass the first `causal_rows` rows are clean (typed tokens, or a draft to verify): each sees
    itself and the rows before it, and the canvas behind them sees them all. Query head h reads key head h //
    (H / K).
    """
    heads, rows, width = q_HBE.shape
    group = heads // prefix_k_KPE.shape[0]
    k_HSE = np.concatenate([prefix_k_KPE, canvas_k_KBE], 1).astype(np.float64).repeat(group, 0)
    v_HSE = np.concatenate([prefix_v_KPE, canvas_v_KBE], 1).astype(np.float64).repeat(group, 0)
    seen_BB = np.ones((rows, rows), bool)
    seen_BB[:causal_rows] = np.tri(causal_rows, rows, dtype=bool)
    seen_BS = np.concatenate([np.ones((rows, prefix_k_KPE.shape[1]), bool), seen_BB], 1)
    scores_HBS = q_HBE.astype(np.float64) @ k_HSE.transpose(0, 2, 1) / np.sqrt(width)
    scores_HBS = np.where(seen_BS, scores_HBS, -np.inf)
    weights_HBS = np.exp(scores_HBS - scores_HBS.max(-1, keepdims=True))
    return (weights_HBS @ v_HSE / weights_HBS.sum(-1, keepdims=True)).astype(q_HBE.dtype)
