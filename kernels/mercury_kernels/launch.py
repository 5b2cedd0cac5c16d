"""How launches follow each other, and how programs of one launch meet."""

# Triton: what `tl.extra` holds is not declared.
# pyright: reportAttributeAccessIssue=false

from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

TILES = 4096
"""The most tiles whose programs can meet."""

DEPENDENT = (9, 0)
"""The first GPUs whose kernels can begin before those before them end (programmatic dependent launch)."""

FEW_ROWS = 16
"""With more rows, programs that begin early take room from those before them: a pass of 40 became slower on an H100."""


@triton.jit
def begin_early():
    """Let the next kernel's programs begin, and wait for the kernels before this one."""
    gdc_launch_dependents()
    gdc_wait()


@triton.jit
def is_last(arrivals_ptr, programs):
    """True in the last of the programs that share a tile, which sees what all of them have stored."""
    tl.debug_barrier()
    last = tl.atomic_add(arrivals_ptr, 1, sem="acq_rel") == programs - 1
    if last:
        tl.store(arrivals_ptr, 0)
    return last


@cache
def counters(device: torch.device) -> Tensor:
    """Zeros, for `is_last`, which leaves zeros behind."""
    with torch.inference_mode(False):
        return torch.zeros(TILES, dtype=torch.int32, device=device)


def early_options(rows: int, device: torch.device) -> dict[str, bool]:
    """Whether a kernel of this many rows begins before those before it end."""
    early = rows <= FEW_ROWS and _depends(device)
    return {"EARLY": early, **({"launch_pdl": True} if early else {})}


@cache
def _depends(device: torch.device) -> bool:
    """True on GPUs with dependent launch; `meta` is any GPU compiled for."""
    return device.type == "meta" or (device.type == "cuda" and torch.cuda.get_device_capability(device) >= DEPENDENT)


@cache
def processors(device: torch.device) -> int:
    """The processors among which programs are spread: one in the interpreter, where one runs after the other."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).multi_processor_count
    return COMPILED_FOR if device.type == "meta" else 1


COMPILED_FOR = 132
"""The processors of an H100 and H200."""
