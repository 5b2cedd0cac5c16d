"""The specification of each kernel, in numpy and double precision, against which fast versions are tested.

Shapes: R rows, V vocabulary, H query heads, K key heads, B canvas rows, P prefix rows, E head width, D width, F
outputs.
"""

from typing import NamedTuple

import numpy as np


class Confidence(NamedTuple):
    """For each row the likeliest id, and its probability."""

    ids: np.ndarray
    probability: np.ndarray


def greedy_confidence(logits_RV: np.ndarray) -> Confidence:
    """The greedy choice; the lowest id wins a tie. A logit of -inf forbids an id. A row with NaN, +inf or nothing
    allowed has no distribution and is an error, never an answer."""
    logits_RV = np.asarray(logits_RV, np.float64)
    highest_R = logits_RV.max(-1)
    bad = np.flatnonzero(~np.isfinite(highest_R))
    if bad.size:
        raise ValueError(f"row {bad[0]}: its highest logit is {highest_R[bad[0]]}; logits must be finite or -inf")
    total_R = np.exp(logits_RV - highest_R[:, None]).sum(-1)
    return Confidence(logits_RV.argmax(-1).astype(np.int32), (1 / total_R).astype(np.float32))


def canvas_attention(
    q_HBE: np.ndarray,
    prefix_k_KPE: np.ndarray,
    prefix_v_KPE: np.ndarray,
    canvas_k_KBE: np.ndarray,
    canvas_v_KBE: np.ndarray,
    seen_BB: np.ndarray,
) -> np.ndarray:
    """Every row sees the whole prefix, and those rows of this pass that `seen_BB` marks; a row that sees nothing is
    zero. Query head h reads key head h // (H / K).

    Rows to read or to verify see those before them; a canvas sees them and itself.
    """
    heads, _, width = q_HBE.shape
    group = heads // prefix_k_KPE.shape[0]
    k_HSE = np.concatenate([prefix_k_KPE, canvas_k_KBE], 1).astype(np.float64).repeat(group, 0)
    v_HSE = np.concatenate([prefix_v_KPE, canvas_v_KBE], 1).astype(np.float64).repeat(group, 0)
    seen_BS = np.concatenate([np.ones((len(seen_BB), prefix_k_KPE.shape[1]), bool), seen_BB], 1)
    scores_HBS = q_HBE.astype(np.float64) @ k_HSE.transpose(0, 2, 1) / np.sqrt(width)
    scores_HBS = np.where(seen_BS, scores_HBS, -np.inf)
    highest_HB1 = scores_HBS.max(-1, keepdims=True)
    weights_HBS = np.exp(scores_HBS - np.where(np.isfinite(highest_HB1), highest_HB1, 0))
    totals_HB1 = weights_HBS.sum(-1, keepdims=True)
    return (weights_HBS @ v_HSE / np.where(totals_HB1 == 0, 1, totals_HB1)).astype(q_HBE.dtype)


def rms_normed(x_RD: np.ndarray, weight_D: np.ndarray, epsilon: float) -> np.ndarray:
    x_RD = x_RD.astype(np.float64)
    return x_RD / np.sqrt((x_RD**2).mean(-1, keepdims=True) + epsilon) * weight_D


def gated_feed_forward(
    x_RD: np.ndarray, norm_D: np.ndarray, gate_FD: np.ndarray, up_FD: np.ndarray, epsilon: float
) -> np.ndarray:
    """silu(gate) * up of the normed rows."""
    normed_RD = rms_normed(x_RD, norm_D, epsilon)
    gate_RF = normed_RD @ gate_FD.T.astype(np.float64)
    return gate_RF / (1 + np.exp(-gate_RF)) * (normed_RD @ up_FD.T)


def normed_and_rotated(
    x_RHE: np.ndarray, norm_E: np.ndarray | None, cosines_RE: np.ndarray, sines_RE: np.ndarray, epsilon: float
) -> np.ndarray:
    """Heads of queries or keys, with the cosines and sines of each row's angles for one half of a head."""
    x_RHE = x_RHE.astype(np.float64) if norm_E is None else rms_normed(x_RHE, norm_E, epsilon)
    first, second = np.split(x_RHE, 2, -1)
    cosines, sines = cosines_RE[:, None], sines_RE[:, None]
    return np.concatenate([first * cosines - second * sines, second * cosines + first * sines], -1)
