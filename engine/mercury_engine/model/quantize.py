"""Symmetric int8 weights with one scale per output channel."""

import numpy as np

__all__ = ["dequantize", "quantize", "relative_error"]

LARGEST = 127
SMALLEST_SCALE = np.float32(1e-12)


def quantize(weight_NK: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Integers in -127..127, and the float32 scales, N1, that turn them back into weights."""
    largest_N1 = np.abs(weight_NK).max(axis=1, keepdims=True).astype(np.float32)
    scales_N1 = np.maximum(largest_N1 / LARGEST, SMALLEST_SCALE)
    return np.rint(weight_NK / scales_N1).astype(np.int8), scales_N1


def dequantize(values_NK: np.ndarray, scales_N1: np.ndarray) -> np.ndarray:
    return values_NK * scales_N1


def relative_error(weight_NK: np.ndarray) -> float:
    """The norm of the quantisation error over the norm of the weight."""
    moved_NK = dequantize(*quantize(weight_NK)) - weight_NK
    length = float(np.linalg.norm(weight_NK))
    return float(np.linalg.norm(moved_NK)) / length if length else 0.0
