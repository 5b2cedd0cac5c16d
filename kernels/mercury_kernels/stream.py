"""The stream between layers, and how it begins: a row's embedding.

Shapes: N rows, D width, P parts of it.
"""

# Triton: a launch takes options of the compiler that the kernel does not declare.
# pyright: reportCallIssue=false

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from mercury_kernels.launch import begin_early, early_options

PART = 16
"""The columns whose squares are summed together; a tile of outputs is a multiple of them."""


class Stream(NamedTuple):
    """The rows in float32, and what the next product reads of them: the rows times the weight of its norm, in its
    precision, and the squares of each part. Products write all three in place."""

    values_ND: Tensor
    scaled_ND: Tensor
    squares_NP: Tensor

    @classmethod
    def empty(cls, rows: int, norm_D: Tensor) -> "Stream":
        width, device = len(norm_D), norm_D.device
        return cls(
            torch.empty(rows, width, dtype=torch.float32, device=device),
            torch.empty(rows, width, dtype=norm_D.dtype, device=device),
            torch.empty(rows, -(-width // PART), dtype=torch.float32, device=device),
        )

    @classmethod
    def of(cls, values_ND: Tensor, norm_D: Tensor) -> "Stream":
        """A stream of these rows, by torch."""
        stream = cls.empty(len(values_ND), norm_D)
        stream.values_ND.copy_(values_ND)
        stream.rescale(norm_D)
        return stream

    def rescale(self, norm_D: Tensor) -> None:
        """Prepare the rows for the next product, by torch."""
        rows, parts = self.squares_NP.shape
        self.scaled_ND.copy_(self.values_ND * norm_D.float())
        padded = torch.nn.functional.pad(self.values_ND, (0, parts * PART - self.values_ND.shape[1]))
        self.squares_NP.copy_(padded.square().view(rows, parts, PART).sum(2))


@triton.jit
def begin_kernel(
    table_ptr,
    ids_ptr,
    norm_ptr,
    values_ptr,
    scaled_ptr,
    squares_ptr,
    width,
    WIDTH_TILE: tl.constexpr,
    PART: tl.constexpr,
    EARLY: tl.constexpr,
):
    """A row: its line of the table."""
    if EARLY:
        begin_early()
    row = tl.program_id(0)
    column = tl.arange(0, WIDTH_TILE)
    is_column = column < width
    line = tl.load(ids_ptr + row).to(tl.int64)
    values = tl.load(table_ptr + line * width + column, mask=is_column, other=0.0).to(tl.float32)
    tl.store(values_ptr + row * width + column, values, mask=is_column)
    scaled = values * tl.load(norm_ptr + column, mask=is_column, other=0.0).to(tl.float32)
    tl.store(scaled_ptr + row * width + column, scaled.to(scaled_ptr.dtype.element_ty), mask=is_column)
    part = tl.arange(0, WIDTH_TILE // PART)
    parts = tl.cdiv(width, PART)
    squares = tl.sum((values * values).reshape(WIDTH_TILE // PART, PART), 1)
    tl.store(squares_ptr + row * parts + part, squares, mask=part < parts)


def begun(table_VD: Tensor, ids_N: Tensor, norm_D: Tensor) -> Stream:
    """The stream of rows with these lines of a table, for a product behind this norm."""
    rows = len(ids_N)
    stream = Stream.empty(rows, norm_D)
    width = table_VD.shape[1]
    begin_kernel[(rows,)](
        table_VD,
        ids_N,
        norm_D,
        *stream,
        width,
        WIDTH_TILE=max(PART, triton.next_power_of_2(width)),
        PART=PART,
        num_warps=4,
        **early_options(rows, table_VD.device),
    )
    return stream
