"""Shared by the torch runtimes: precisions, and which passes are computed together."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from mercury_engine.model.runtime import Pass

Computed = TypeVar("Computed")

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

BATCH_ROWS = 4096
"""The number of rows that passes computed together may have once all are padded to the longest."""


def batched(passes: Sequence[Pass], compute: Callable[[list[Pass]], list[Computed]]) -> list[Computed]:
    """Compute passes of similar length together, which need little padding."""
    forwards: dict[int, Computed] = {}
    for group in groups([len(forward_pass.rows.ids_R) for forward_pass in passes]):
        forwards |= zip(group, compute([passes[index] for index in group]), strict=True)
    return [forwards[index] for index in range(len(passes))]


def groups(lengths: Sequence[int]) -> list[list[int]]:
    """Indices of passes to batch, in the order of their lengths: as many as fit into BATCH_ROWS once padded."""
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not groups or (len(groups[-1]) + 1) * lengths[index] > BATCH_ROWS:
            groups.append([])
        groups[-1].append(index)
    return groups
