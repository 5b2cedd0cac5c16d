"""Symmetric weights: int8 with one scale per output channel, or int4 with one for each group of inputs."""

import numpy as np

LARGEST = 127
SMALLEST_SCALE = np.float32(1e-12)

GROUP = 128
"""The inputs that share a scale in int4."""


def quantize(weight_NK: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Integers in -127..127, and the float32 scales, N1, that turn them back into weights."""
    largest_N1 = np.abs(weight_NK).max(axis=1, keepdims=True).astype(np.float32)
    scales_N1 = np.maximum(largest_N1 / LARGEST, SMALLEST_SCALE)
    return np.rint(weight_NK / scales_N1).astype(np.int8), scales_N1


def dequantize(values_NK: np.ndarray, scales_N1: np.ndarray) -> np.ndarray:
    return values_NK * scales_N1


def relative_error(weight_NK: np.ndarray, rounded_NK: np.ndarray) -> float:
    """The norm of the quantisation error over the norm of the weight."""
    length = float(np.linalg.norm(weight_NK))
    return float(np.linalg.norm(rounded_NK - weight_NK)) / length if length else 0.0


def quantize_groups(weight_NK: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray]:
    """Two integers in -8..7 per byte, the first in its low half, and a float16 scale for each `group` of a row.

    The value furthest from zero is -8, whatever its sign, so that no level of the sixteen is wasted.
    """
    weight_NGK = weight_NK.reshape(len(weight_NK), -1, group)
    at_NG1 = np.abs(weight_NGK).argmax(axis=2, keepdims=True)
    scales_NG1 = (np.take_along_axis(weight_NGK, at_NG1, 2) / -8).astype(np.float16)
    safe_NG1 = np.where(scales_NG1 == 0, 1, scales_NG1).astype(np.float32)
    values_NK = np.clip(np.rint(weight_NGK / safe_NG1), -8, 7).astype(np.int8).reshape(weight_NK.shape)
    return packed(values_NK), scales_NG1[..., 0]


def packed(values_NK: np.ndarray) -> np.ndarray:
    """int8 values in -8..7, two per byte."""
    return ((values_NK[:, ::2] & 15) | (values_NK[:, 1::2] << 4)).view(np.uint8)


def dequantize_groups(packed_NK: np.ndarray, scales_NG: np.ndarray) -> np.ndarray:
    pairs_NK2 = np.stack([packed_NK << 4, packed_NK & 0xF0], -1).view(np.int8) >> 4
    values_NGK = pairs_NK2.reshape(*scales_NG.shape, -1)
    return (values_NGK * scales_NG[..., None].astype(np.float32)).reshape(len(packed_NK), -1)
