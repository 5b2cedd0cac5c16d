"""Shared by the torch runtimes: precisions, and which passes are computed together."""

from collections.abc import Sequence

import torch

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

BATCH_ROWS = 4096
"""The number of rows that passes computed together may have once all are padded to the longest."""


def groups(lengths: Sequence[int]) -> list[list[int]]:
    """Indices of passes to batch, in the order of their lengths: as many as fit into BATCH_ROWS once padded."""
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not groups or (len(groups[-1]) + 1) * lengths[index] > BATCH_ROWS:
            groups.append([])
        groups[-1].append(index)
    return groups
