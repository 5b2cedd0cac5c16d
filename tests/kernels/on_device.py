"""Where the kernels run and how exactly: on a GPU if there is one, else in the interpreter."""

import numpy as np
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PRECISIONS = (torch.float32, torch.float16, *([torch.bfloat16] if DEVICE == "cuda" else []))
"""The interpreter computes wrongly in bfloat16."""

TOLERANCE = {torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def random(*shape, seed=0, scale=1.0, dtype=torch.float32):
    values = np.random.default_rng(seed).normal(0, scale, shape)
    return torch.tensor(values, dtype=dtype, device=DEVICE)


def poisoned(*shape, dtype=torch.float32):
    """Memory of which nothing may be read before it is written."""
    return torch.full(shape, float("nan"), dtype=dtype, device=DEVICE)


def whole(values):
    return torch.tensor(np.asarray(values), dtype=torch.int32, device=DEVICE)


def bits(mask):
    """A boolean mask over its last axis in pairs of words of 32, as the kernels read it."""
    mask = np.asarray(mask, bool)
    padded = np.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, -mask.shape[-1] % 64)])
    return whole(np.packbits(padded, -1, bitorder="little").view("<i4"))


def exact(tensor):
    return tensor.detach().double().cpu().numpy()


def check_close(found, expected, dtype=torch.float32):
    """Relative to the length of what is expected; NaN never passes."""
    found, expected = exact(found), np.asarray(expected, np.float64)
    assert found.shape == expected.shape
    assert np.isfinite(found).all()
    error = np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-9)
    assert error < TOLERANCE[dtype], error
