"""Rows with their anchors, as training asks more than the product does: texts with several holes, and lines to rewrite.

A gap is laid out as in `mercury_engine.tokens.layout`, all else as

    <bos> <lang:x> <path> p {<snip> path text}* <edits> edits
    <pre> text <hole0> <mode> <part> bytes <old> text </old> text <hole1> …
    <hole0> ▸ <hole1> ▸
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.tokens.layout import Budget, Frozen, LayoutError, LayoutRow, keep_end, part_ids
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import BLOCK, EOM, HOLES, LINE, OLD, OLD_END, PRE, REGION

MODES = (LINE, BLOCK, REGION)
HOLE_STRIDE = 65
"""Positions from one anchor to the next: the anchor's own and 64 for its slots, whatever the size of the canvas.

Among several holes a longer answer is continued in a new row that holds the accepted text.
"""


class Hole(Struct, frozen=True):
    """A range of a text to write anew, in the order of the text; `mode` is the token that says how much."""

    start: int
    end: int
    mode: int


class Anchor(Struct, frozen=True):
    """The place of one answer: the row at index `at` predicts its first token.

    The answer starts by spelling `part` again. `old` is the text to replace, empty for an insertion.
    """

    at: int
    part: str = ""
    old: tuple[int, ...] = ()


class AnchoredRow(Struct, frozen=True, eq=False):
    """Clean tokens with their positions, and the anchors of its answers."""

    ids: np.ndarray
    positions: np.ndarray
    anchors: tuple[Anchor, ...]

    @classmethod
    def of(cls, row: LayoutRow) -> "AnchoredRow":
        """The row of a gap, which ends with its anchor."""
        positions = np.arange(len(row.ids), dtype=np.int32)
        return cls(row.ids, positions, (Anchor(len(row.ids) - 1, row.part),))


def answer_ids(tokenizer: Tokenizer, part: str, text: str) -> list[int]:
    """The tokens of an answer: the partial word spelled again, the text, the end."""
    return [*tokenizer.encode(part + text), EOM]


def lay_out_holes(
    tokenizer: Tokenizer, text: str, holes: Sequence[Hole], frozen: Frozen, budget: Budget
) -> AnchoredRow:
    """The row of a text with holes: only the text before the first and after the last one may be trimmed."""
    pieces: list[list[int]] = []
    anchors: list[Anchor] = []
    at = 0
    for number, hole in enumerate(holes):
        line = max(at, text.rfind("\n", 0, hole.start) + 1)
        stable, part = tokenizer.split_part(text[line : hole.start])
        replaced = text[hole.start : hole.end]
        old = tuple(tokenizer.encode(part + replaced)) if replaced else ()
        quoted = (OLD, *old, OLD_END) if old else ()
        pieces.append([*tokenizer.encode(text[at:line]), *stable])
        pieces.append([HOLES[number], hole.mode, *part_ids(tokenizer, part), *quoted])
        anchors.append(Anchor(number, part, old))
        at = hole.end
    middle = [token for piece in pieces[1:] for token in piece]
    count = len(holes)
    room = budget.context - max(budget.answer, HOLE_STRIDE * count) - len(frozen.preamble) - 1 - len(middle)
    if room < 0:
        raise LayoutError(f"{budget.context - room} tokens do not fit the model's {budget.context}")
    ids = [*frozen.preamble, PRE, *_around(pieces[0], middle, tokenizer.encode(text[at:]), room, budget.quantum)]
    positions = np.arange(len(ids) + count, dtype=np.int32)
    positions[len(ids) :] = len(ids) + HOLE_STRIDE * np.arange(count)
    placed = tuple(Anchor(len(ids) + anchor.at, anchor.part, anchor.old) for anchor in anchors)
    return AnchoredRow(np.array([*ids, *HOLES[:count]], np.int32), positions, placed)


def _around(before: list[int], middle: list[int], after: list[int], room: int, quantum: int) -> list[int]:
    """The text around the holes: a third of the room is for the text after the last one, and either side may use the
    room that the other leaves."""
    before_room = max(room * 2 // 3, room - len(after))
    kept = keep_end(before, before_room, max(1, min(quantum, before_room // 4)))
    return [*kept, *middle, *after[: room - len(kept)]]
