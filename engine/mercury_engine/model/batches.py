"""What the runtimes of torch share: precisions, and which passes are computed together."""

from collections.abc import Sequence

import torch

__all__ = ["PRECISIONS", "groups"]

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

BATCH_ROWS = 4096
"""How many rows passes that are computed together may have once all are padded to the longest."""


def groups(lengths: Sequence[int]) -> list[list[int]]:
    """Indices to batch, in the order of their lengths: as many as fit into BATCH_ROWS once padded."""
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not groups or (len(groups[-1]) + 1) * lengths[index] > BATCH_ROWS:
            groups.append([])
        groups[-1].append(index)
    return groups
