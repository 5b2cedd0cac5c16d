"""Fuses clean rows and the canvases behind them into one forward.

Shapes: R rows of a forward, W rows whose logits are wanted, V vocabulary, S slots of a canvas.
"""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.decode.tree import NO_DRAFT, DraftTree
from mercury_engine.model.runtime import Rows
from mercury_engine.tokens.blocks import slot_positions
from mercury_engine.tokens.prefix import Prefix
from mercury_engine.tokens.vocabulary import CANVASES, MASK

Extend = Callable[[Sequence[int]], Prefix]
"""Gives a prefix with further tokens behind it."""


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
    prefix: Prefix,
    first: int,
    canvases: Sequence[Canvas] = (),
    *,
    draft: DraftTree = NO_DRAFT,
    extend: Extend | None = None,
    permitted_V: np.ndarray | None = None,
) -> Fused:
    """The rows of a prefix behind the `cached` ones, with logits from the row `first` of them on, then a draft behind
    the last one, then canvases. A draft is laid out path by path, each with what `extend` gives for it.

    The logits of a canvas's last slot are not wanted.
    """
    pending = len(prefix) - cached
    clean = pending + len(draft.ids)
    sources = [(prefix, row) for row in range(cached, len(prefix))] + _drafted(draft, len(prefix), extend)
    pieces = [_piece(prefix, slice(cached, None)), *(_piece(path, slice(at, at + 1)) for path, at in sources[pending:])]
    wanted = list(range(first, clean))
    at = clean
    for canvas in canvases:
        size, (path, row) = len(canvas.inputs), sources[canvas.anchor]
        pieces.append((canvas.inputs, slot_positions(int(path.positions_R[row]), size)))
        wanted += range(at, at + size - 1)
        at += size
    ids_R, positions_R = (np.concatenate(column) for column in zip(*pieces, strict=True))
    mask_RC = None if draft.is_chain and not canvases else _mask(cached, pending, draft, canvases)
    rows = Rows(ids_R, positions_R, mask_RC=mask_RC, rows=wanted, permitted_V=permitted_V)
    return Fused(rows, clean, first, tuple(canvases))


def masked(size: int) -> np.ndarray:
    return np.full(size, MASK, np.int32)


def canvas_for(slots: int) -> int:
    """The smallest canvas with this many slots, or the largest of all."""
    return next((size for size in CANVASES if size >= slots), CANVASES[-1])


def _piece(path: Prefix, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    return path.ids_R[rows], path.positions_R[rows]


def _drafted(draft: DraftTree, start: int, extend: Extend | None) -> list[tuple[Prefix, int]]:
    """For each drafted token a prefix with it, and its row there."""
    places: dict[int, tuple[Prefix, int]] = {}
    for leaf in draft.leaves():
        assert extend is not None, "a draft extends the prefix"
        numbers = draft.path(leaf)
        path = extend([draft.ids[number] for number in numbers])
        places |= {number: (path, start + depth) for depth, number in enumerate(numbers)}
    return [places[number] for number in range(len(draft.ids))]


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
