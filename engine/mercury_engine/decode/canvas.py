"""Fuses clean rows and the canvases behind them into one forward.

Shapes: R rows of a forward, W rows whose logits are wanted, V vocabulary, S slots of a canvas.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.model.runtime import Rows
from mercury_engine.tokens.blocks import Block, canvas_mask, slot_positions
from mercury_engine.tokens.prefix import HintedPrefix
from mercury_engine.tokens.vocabulary import CANVASES, MASK


class Canvas(Struct, frozen=True, eq=False):
    """Slots behind the clean row `anchor`, counted within the forward: masks, or provisional tokens."""

    anchor: int
    inputs: np.ndarray


class Fused(Struct, frozen=True, eq=False):
    """The rows of a forward, and where in its logits the predictions are."""

    rows: Rows
    clean: int
    first: int
    canvases: tuple[Canvas, ...]

    def clean_row(self, logits_WV: np.ndarray, row: int) -> np.ndarray:
        """The logits of clean row `row`, which predicts the token behind it."""
        assert self.first <= row < self.clean, "the logits of this row were wanted"
        return logits_WV[row - self.first]

    def slots(self, logits_WV: np.ndarray, number: int) -> np.ndarray:
        """The logits for the slots of a canvas, SV: the anchor predicts the first slot, each slot the next."""
        canvas = self.canvases[number]
        start = self.clean - self.first + sum(len(canvas.inputs) - 1 for canvas in self.canvases[:number])
        assert self.first <= canvas.anchor < self.clean, "the logits of this row were wanted"
        return logits_WV[[canvas.anchor - self.first, *range(start, start + len(canvas.inputs) - 1)]]


def fuse(
    cached: int,
    prefix: HintedPrefix,
    first: int,
    canvases: Sequence[Canvas] = (),
    *,
    permitted_V: np.ndarray | None = None,
) -> Fused:
    """The rows of a prefix behind the `cached` ones, with logits from the row `first` of them on, and sibling canvases.

    The logits of a canvas's last slot are not wanted.
    """
    ids, positions, hints_RH = prefix.ids_R[cached:], prefix.positions_R[cached:], prefix.hints_RH[cached:]
    clean = len(ids)
    wanted = list(range(first, clean))
    if not canvases:
        rows = Rows(ids, positions, rows=wanted, hints_RH=hints_RH, permitted_V=permitted_V)
        return Fused(rows, clean, first, ())
    blocks = [Block(cached + clean)]
    all_ids, all_positions, all_hints = [ids], [positions], [hints_RH]
    at = clean
    for canvas in canvases:
        size = len(canvas.inputs)
        blocks.append(Block(size, cached + canvas.anchor, causal=False, group=0))
        all_ids.append(canvas.inputs)
        all_positions.append(slot_positions(int(positions[canvas.anchor]), size))
        all_hints.append(prefix.canvas_hints(cached + canvas.anchor, size))
        wanted += range(at, at + size - 1)
        at += size
    rows = Rows(
        np.concatenate(all_ids),
        np.concatenate(all_positions),
        mask_RC=canvas_mask(blocks, cached),
        rows=wanted,
        hints_RH=np.concatenate(all_hints),
        permitted_V=permitted_V,
    )
    return Fused(rows, clean, first, tuple(canvases))


def masked(size: int) -> np.ndarray:
    return np.full(size, MASK, np.int32)


def canvas_for(slots: int) -> int:
    """The smallest canvas with this many slots, or the largest of all."""
    return next((size for size in CANVASES if size >= slots), CANVASES[-1])
