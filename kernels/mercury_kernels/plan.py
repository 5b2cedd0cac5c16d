"""How a product is divided among programs, by what was fastest on an H100 (docs/KERNELS.md)."""

from typing import Literal, NamedTuple

from triton import cdiv, next_power_of_2

from mercury_kernels.launch import FEW_ROWS

Product = Literal["heads", "gated", "product"]

SMALLEST, LARGEST = 8, 128
"""Rows of a tile: with more than the largest, weights are read again for each tile."""

PROGRAMS = 3
"""The programs for each processor that share a product, if its weights are enough for all."""

SHARE = 12_288
"""The fewest weights for which a program is worth its start, and the meeting with those that share its tile."""

STAGES = 4
SHARED = 96 << 10
"""Bytes of shared memory that every GPU has."""


class Plan(NamedTuple):
    """The tiles of a product, the number of programs that share the inputs of each, and how these compute."""

    row_tile: int
    out_tile: int
    inner_tile: int
    splits: int
    warps: int
    stages: int

    def grid(self, rows: int, outer: int) -> tuple[int, int, int]:
        return cdiv(rows, self.row_tile), cdiv(outer, self.out_tile), self.splits


def plan_for(
    product: Product,
    rows: int,
    inner: int,
    outer: int,
    weight_bytes: int,
    input_bytes: int,
    processors: int,
    head_width: int = 0,
) -> Plan:
    """Narrow tiles of outputs, each shared by as many programs as there are processors for. The two halves of a gate
    are tiles of their own width, and those of a head are the head."""
    row_tile, few = row_tile_for(rows), rows <= FEW_ROWS
    out_tile = 16
    if product == "heads":
        out_tile = 2 * max(8, next_power_of_2(cdiv(head_width, 2)))
    elif product == "gated":
        out_tile = 32 if few or weight_bytes == 1 else 64
        while out_tile > 16 and cdiv(outer, out_tile) < processors:
            out_tile //= 2
    inner_tile = 256 if few and product != "heads" and (product == "gated" or inner >= 2048) else 128
    if not few and (product == "gated" or row_tile > 64):
        inner_tile = 64
    while inner_tile * (out_tile * weight_bytes + row_tile * input_bytes) * STAGES > SHARED:
        inner_tile //= 2
    inner_tile = max(16, min(inner_tile, next_power_of_2(inner)))
    tiles = cdiv(rows, row_tile) * cdiv(outer, out_tile)
    wanted = PROGRAMS * processors if product != "gated" or tiles < processors else tiles
    splits = max(1, min(round(wanted / tiles), out_tile * inner // SHARE, cdiv(inner, inner_tile)))
    return Plan(row_tile, out_tile, inner_tile, splits, 2 if few and product != "heads" else 4, STAGES)


def row_tile_for(rows: int) -> int:
    return min(LARGEST, max(SMALLEST, next_power_of_2(rows)))
