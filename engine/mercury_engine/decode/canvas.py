"""Fuses clean rows and the canvases behind them into one forward.

Shapes: R rows of a forward, W rows whose logits are wanted, V vocabulary, S slots of a canvas.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.decode.tree import NO_DRAFT, DraftTree
from mercury_engine.model.runtime import Rows
from mercury_engine.tokens.vocabulary import CANVASES, MASK


class Canvas(Struct, frozen=True, eq=False):
    """Slots behind the clean row `anchor`, counted within the forward: masks, or provisional tokens."""

    anchor: int
    inputs: np.ndarray


class Fused(Struct, frozen=True, eq=False):
    """The rows of a forward, and where in its logits the predictions are. The clean rows are pending ones, of which
    `first` is the first with logits, then those of a draft."""

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
    ids: np.ndarray,
    first: int,
    canvases: Sequence[Canvas] = (),
    *,
    draft: DraftTree = NO_DRAFT,
    permitted_V: np.ndarray | None = None,
) -> Fused:
    """The rows of the tokens `ids` behind the `cached` ones, with logits from the row `first` of them on, then a draft
    behind the last one, then canvases. The logits of a canvas's last slot are not wanted."""
    pending = len(ids) - cached
    clean = pending + len(draft.ids)
    positions = [*range(cached, len(ids)), *(len(ids) + depth for depth in draft.depths)]
    wanted = list(range(first, clean))
    for canvas in canvases:
        at, start, size = len(positions), positions[canvas.anchor] + 1, len(canvas.inputs)
        positions += range(start, start + size)
        wanted += range(at, at + size - 1)
    inputs = (ids[cached:], draft.ids, *(canvas.inputs for canvas in canvases))
    ids_R = np.concatenate([np.array(part, np.int32) for part in inputs])
    mask_RC = None if draft.is_chain and not canvases else _mask(cached, pending, draft, canvases)
    rows = Rows(ids_R, np.array(positions, np.int32), mask_RC=mask_RC, rows=wanted, permitted_V=permitted_V)
    return Fused(rows, clean, first, tuple(canvases))


def masked(size: int) -> np.ndarray:
    return np.full(size, MASK, np.int32)


def canvas_for(slots: int) -> int:
    """The smallest canvas with this many slots, or the largest of all."""
    return next((size for size in CANVASES if size >= slots), CANVASES[-1])


def _mask(cached: int, pending: int, draft: DraftTree, canvases: Sequence[Canvas]) -> np.ndarray:
    """True where a row sees a column: all cached ones, what a clean row follows, and all of its canvas."""
    owners = np.repeat(np.arange(len(canvases)), [len(canvas.inputs) for canvas in canvases])
    clean = pending + len(draft.ids)
    mask_RC = np.zeros((clean + len(owners), cached + clean + len(owners)), bool)
    mask_RC[:, :cached] = True
    own_RR = mask_RC[:, cached:]
    own_RR[:pending, :pending] = np.tri(pending, dtype=bool)
    for row, parent in enumerate(draft.parents, start=pending):
        own_RR[row] = own_RR[pending + parent]
        own_RR[row, row] = True
    own_RR[clean:, clean:] = owners[:, None] == owners
    at = clean
    for canvas in canvases:
        own_RR[at : at + len(canvas.inputs), :clean] = own_RR[canvas.anchor, :clean]
        at += len(canvas.inputs)
    return mask_RC
