"""A prefix in the form that a model reads: tokens with their positions and their n-gram hints.

Shapes: R rows, H hints of a row, S slots of a canvas, U tokens beyond the row.
"""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.tokens import hints
from mercury_engine.tokens.hints import LineEnds
from mercury_engine.tokens.layout import LayoutRow
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import CUR, LINE

NOTHING = np.zeros(0, np.int32)


class HintedPrefix(Struct, frozen=True, eq=False):
    """Rows from the first on with their hints, which are empty for a model without hints.

    `sources_RH` are the rows of the hints, counted through `unread_U` and then these rows. The hints of the first
    `stable` rows do not depend on the anchor.
    """

    ids_R: np.ndarray
    positions_R: np.ndarray
    sources_RH: np.ndarray
    hints_RH: np.ndarray
    unread_U: np.ndarray = NOTHING
    stable: int = 0
    line_ends: LineEnds | None = None

    @classmethod
    def without_hints(cls, ids: Sequence[int] | np.ndarray, positions: Sequence[int] | np.ndarray) -> "HintedPrefix":
        empty = np.zeros((len(ids), 0), np.int32)
        return cls(np.array(ids, np.int32), np.array(positions, np.int32), empty, empty)

    def __len__(self) -> int:
        return len(self.ids_R)

    def canvas_hints(self, row: int, size: int) -> np.ndarray:
        """The hints of a canvas behind a row, SH."""
        ids = np.concatenate([self.unread_U, self.ids_R[: row + 1]])
        return hints.continuations(ids, self.sources_RH[row], size, self.line_ends)

    def upto(self, row: int) -> "HintedPrefix":
        return replace(
            self,
            ids_R=self.ids_R[:row],
            positions_R=self.positions_R[:row],
            sources_RH=self.sources_RH[:row],
            hints_RH=self.hints_RH[:row],
        )


class HintBuilder(Struct, frozen=True, eq=False):
    """Adds hints to prefixes that start like one row of the layout; empty ones for a model without hints.

    Row `anchor` predicts the first answer's first token; from row `stable` on hints may depend on where that is. With
    `line_ends` the answer is a single line.
    """

    spelled: Sequence[bytes]
    anchor: int | None
    stable: int
    unread_U: np.ndarray = NOTHING
    line_ends: LineEnds | None = None
    hints: bool = True

    @classmethod
    def without_hints(cls) -> "HintBuilder":
        return cls((), None, 0, hints=False)

    @classmethod
    def of(cls, row: LayoutRow, tokenizer: Tokenizer, *, hints: bool) -> "HintBuilder":
        anchor = row.holes[0].anchor
        cursors = np.flatnonzero(row.ids[: anchor + 1] == CUR)
        stable = int(cursors[-1]) if cursors.size else anchor
        one_line = cursors.size and row.ids[stable - 1] == LINE
        ends = tokenizer.line_ends if one_line else None
        return cls(tokenizer.token_bytes, anchor, stable, np.array(row.unread, np.int32), ends, hints)

    def build(self, ids_R: np.ndarray, positions_R: np.ndarray, cached: HintedPrefix | None = None) -> HintedPrefix:
        """The rows with their hints. A `cached` prefix of them keeps its own."""
        if not self.hints:
            return HintedPrefix.without_hints(ids_R, positions_R)
        start, offset = 0 if cached is None else len(cached), len(self.unread_U)
        ids = np.concatenate([self.unread_U, ids_R])
        anchor = None if self.anchor is None else self.anchor + offset
        sources_RH = hints.locate(ids, anchor, self.spelled, start + offset)
        if cached is not None:
            sources_RH = np.concatenate([cached.sources_RH, sources_RH])
        hints_RH = hints.look_up(ids, sources_RH)
        if self.line_ends is not None and self.anchor is not None:
            hints.end_with_line(hints_RH, ids_R, self.anchor, self.line_ends)
        return HintedPrefix(ids_R, positions_R, sources_RH, hints_RH, self.unread_U, self.stable, self.line_ends)

    def build_from(self, ids_R: np.ndarray, positions_R: np.ndarray, other: HintedPrefix | None) -> HintedPrefix:
        """The same, reusing the common part of another builder's prefix."""
        if other is None or not np.array_equal(other.unread_U, self.unread_U):
            return self.build(ids_R, positions_R)
        common = common_prefix([other.ids_R[: other.stable]], [ids_R[: self.stable]])
        return self.build(ids_R, positions_R, other.upto(common))


def common_prefix(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> int:
    """The number of leading indices at which all pairs of arrays are equal."""
    length = min(len(ours[0]), len(theirs[0]))
    differs = np.zeros(length, bool)
    for our_token, other in zip(ours, theirs, strict=True):
        differs |= our_token[:length] != other[:length]
    return int(differs.argmax()) if differs.any() else length


def common_length(first: Sequence[object], second: Sequence[object]) -> int:
    """The length of the common prefix of two sequences of one type."""
    limit = min(len(first), len(second))
    return bisect_left(range(1, limit + 1), True, key=lambda count: first[:count] != second[:count])
