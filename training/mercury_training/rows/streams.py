"""Rows with their answers written in, and the targets of canvases."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.tokens.vocabulary import EOM
from mercury_training.rows.blocks import Block, slot_positions
from mercury_training.rows.holes import HOLE_STRIDE, MODES, Anchor, AnchoredRow


class Stream(Struct, frozen=True, eq=False):
    """A row with its answers written in; row `starts[i]` predicts the first token of answer i."""

    ids: np.ndarray
    positions: np.ndarray
    blocks: tuple[Block, ...]
    starts: tuple[int, ...]


def canvas_slots(answer: Sequence[int], size: int) -> tuple[np.ndarray, np.ndarray]:
    """The targets of a canvas, and the weight of each in the loss.

    `answer` is the rest of the answer with its `<eom>`. Every slot behind it is `<eom>` too, and these together weigh
    as much as one token. An answer that does not fit has no end here: the next canvas continues it.
    """
    ids, weights = np.full(size, EOM, np.int32), np.ones(size, np.float32)
    ids[: len(answer)] = answer[:size]
    weights[len(answer) :] = 1 / max(1, size - len(answer))
    return ids, weights


def with_answers(row: AnchoredRow, answers: Sequence[Sequence[int]]) -> Stream:
    """The row in the order of plain autoregression: each anchor followed by its answer, hole after hole.

    With a single hole the answer continues the row. With several, the row ends with all anchors side by side, as
    drafting needs them; the answers branch off at the first anchor, and the later anchors are repeated in the
    branch, where they see the answers before them. Positions are the same in both.
    """
    base, first = len(row.ids), row.anchors[0].at
    ids, positions, starts = [*answers[0]], [*_following(row, first, answers[0])], [first]
    for anchor, answer in zip(row.anchors[1:], answers[1:], strict=True):
        starts.append(base + len(ids))
        ids += [int(row.ids[anchor.at]), *answer]
        positions += [int(row.positions[anchor.at]), *_following(row, anchor.at, answer)]
    blocks = (Block(base), Block(len(ids), parent=first))
    return Stream(
        np.concatenate([row.ids, np.array(ids, np.int32)]),
        np.concatenate([row.positions, np.array(positions, np.int32)]),
        blocks,
        tuple(starts),
    )


def without_modes(row: AnchoredRow) -> AnchoredRow:
    """The row without its mode tokens, as in a fifth of the training rows."""
    is_text = ~np.isin(row.ids, MODES)
    moved = np.cumsum(~is_text)
    anchors = tuple(Anchor(anchor.at - int(moved[anchor.at]), anchor.part, anchor.old) for anchor in row.anchors)
    positions = row.positions[is_text] - moved[is_text].astype(np.int32)
    return AnchoredRow(row.ids[is_text], positions, anchors)


def _following(row: AnchoredRow, anchor: int, answer: Sequence[int]) -> list[int]:
    assert len(row.anchors) == 1 or len(answer) < HOLE_STRIDE, "an answer among several fits between two anchors"
    return slot_positions(int(row.positions[anchor]), len(answer)).tolist()
