"""Tokens behind one another as a model reads them: with their positions, and where their hints stand."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.tokens import hints
from mercury_engine.tokens.hints import LineEnds
from mercury_engine.tokens.layout import CUR, LINE, Row
from mercury_engine.tokens.tokenizer import Tokenizer

__all__ = ["Listener", "Trail", "common_prefix"]

NOTHING = np.zeros(0, np.int32)


class Trail(Struct, frozen=True, eq=False):
    """Rows from the first on, and the hints of each: none for a model that reads none. `sources_RH` say where hints
    stand, in `beyond_B` and these rows behind it. Those of the first `settled` rows depend on no anchor."""

    ids_R: np.ndarray
    positions_R: np.ndarray
    sources_RH: np.ndarray
    hints_RH: np.ndarray
    beyond_B: np.ndarray = NOTHING
    settled: int = 0
    line_ends: LineEnds | None = None

    @classmethod
    def plain(cls, ids: Sequence[int], positions: Sequence[int]) -> "Trail":
        """For whoever is told nothing."""
        nothing = np.zeros((len(ids), 0), np.int32)
        return cls(np.array(ids, np.int32), np.array(positions, np.int32), nothing, nothing)

    def __len__(self) -> int:
        return len(self.ids_R)

    def hints_ahead(self, row: int, size: int) -> np.ndarray:
        """Of a canvas on a row, SH."""
        heard = np.concatenate([self.beyond_B, self.ids_R[: row + 1]])
        return hints.ahead(heard, self.sources_RH[row], size, self.line_ends)

    def upto(self, row: int) -> "Trail":
        return replace(
            self,
            ids_R=self.ids_R[:row],
            positions_R=self.positions_R[:row],
            sources_RH=self.sources_RH[:row],
            hints_RH=self.hints_RH[:row],
        )


class Listener(Struct, frozen=True, eq=False):
    """Finds the hints of trails that begin as one row of the layout; none for a model that reads none.

    Row `anchor` predicts the first answer's first token; from row `settled` on hints may depend on where that is. With
    `line_ends` the answer is one line.
    """

    spelled: Sequence[bytes]
    anchor: int | None
    settled: int
    beyond_B: np.ndarray = NOTHING
    line_ends: LineEnds | None = None
    hints: bool = True

    @classmethod
    def to(cls, row: Row, tokenizer: Tokenizer, *, hints: bool) -> "Listener":
        anchor = row.holes[0].anchor
        cursors = np.flatnonzero(row.ids[: anchor + 1] == CUR)
        settled = int(cursors[-1]) if cursors.size else anchor
        one_line = cursors.size and row.ids[settled - 1] == LINE
        ends = tokenizer.line_ends if one_line else None
        return cls(tokenizer.token_bytes, anchor, settled, np.array(row.beyond, np.int32), ends, hints)

    def trail(self, ids_R: np.ndarray, positions_R: np.ndarray, known: Trail | None = None) -> Trail:
        """With the hints of all rows; those of a `known` trail that begins it are its own."""
        if not self.hints:
            return Trail.plain(ids_R, positions_R)
        start, offset = 0 if known is None else len(known), len(self.beyond_B)
        heard = np.concatenate([self.beyond_B, ids_R])
        anchor = None if self.anchor is None else self.anchor + offset
        sources_RH = hints.sources(heard, anchor, self.spelled, start + offset)
        if known is not None:
            sources_RH = np.concatenate([known.sources_RH, sources_RH])
        hints_RH = hints.read(heard, sources_RH)
        if self.line_ends is not None:
            hints.end_with_the_line(hints_RH, ids_R, self.anchor, self.line_ends)
        return Trail(ids_R, positions_R, sources_RH, hints_RH, self.beyond_B, self.settled, self.line_ends)

    def resumed(self, ids_R: np.ndarray, positions_R: np.ndarray, other: Trail | None) -> Trail:
        """The same, where another listener's trail may begin alike."""
        if other is None or not np.array_equal(other.beyond_B, self.beyond_B):
            return self.trail(ids_R, positions_R)
        common = common_prefix([other.ids_R[: other.settled]], [ids_R[: self.settled]])
        return self.trail(ids_R, positions_R, other.upto(common))


def common_prefix(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> int:
    """How many leading places agree in every pair of arrays."""
    length = min(len(ours[0]), len(theirs[0]))
    differs = np.zeros(length, bool)
    for one, other in zip(ours, theirs, strict=True):
        differs |= one[:length] != other[:length]
    return int(differs.argmax()) if differs.any() else length
