"""What followed the same tokens where they stood before, as something that a model reads beside each token.

Code says most things again. Finding where the last tokens stood before takes a small model most of its attention, and a
few lines of numpy no time: so every row is told which token followed there, for the last one, two, four and eight
tokens. What a hint is worth, the model learns. A canvas is told how the text went on behind that token, so that it can
draft a copy at once.

Hints are a function of the tokens up to their row, a contract between training and inference like the layout itself.
At the cursor the text stands elsewhere in the row: the last lines before end at `<near>`, those around a hole at its
marker. A begun word that is spelled behind `<part>` rules out hints that do not spell it.

Shapes: R rows, H hints of a row.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from mercury_engine.tokens.layout import CUR, EOM, HOLES, NEAR, PAD, PART, SPECIALS

__all__ = ["HINTS", "ORDERS", "WEIGHTS", "LineEnds", "ahead", "end_with_the_line", "read", "sources"]

ORDERS = (1, 2, 4, 8)
HINTS = len(ORDERS)
WEIGHTS = ("hint.weight", "trust.weight")
"""What a model with hints has beside other weights."""

LineEnds = Mapping[int, Sequence[int]]
"""For each token that ends a line what it spells before that, in tokens."""

NONE = -1
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(29)
FEW = 12
"""Rows for which looking at every place is faster than sorting."""
LOOKED_AT = 64
"""How many places a begun word is looked for at."""


def sources(ids_R: np.ndarray, anchor: int | None, spelled: Sequence[bytes], start: int = 0) -> np.ndarray:
    """Where each row's hints stand, int32 of shape (rows from `start` on, HINTS): the rows of the tokens that followed
    the latest equal runs; -1 where there is none. Row `anchor` predicts the first answer's first token."""
    text_R, standing_R, begun = _standing(ids_R, anchor)
    previous_R = np.where(text_R, np.append(NONE, standing_R[:-1]), NONE)
    asking = start + np.flatnonzero(standing_R[start:] != NONE)
    found_RH = np.full((len(ids_R) - start, HINTS), NONE, np.int32)
    for column, (hashes_R, whole_R) in enumerate(_runs(ids_R, previous_R)):
        followers = np.flatnonzero((previous_R != NONE) & whole_R[previous_R])
        rows = asking[whole_R[standing_R[asking]]]
        heard, wanted = hashes_R[previous_R[followers]], hashes_R[standing_R[rows]]
        found_RH[rows - start, column] = _latest(followers, heard, rows, wanted)
        for row in rows[(rows > begun) & (rows <= (anchor or 0))].tolist():
            places = followers[(heard == hashes_R[standing_R[row]]) & (followers <= row)]
            typed = b"".join(spelled[token] for token in ids_R[begun + 1 : row + 1])
            found_RH[row - start, column] = _spelling(ids_R, places, typed, spelled)
    return found_RH


def read(ids_R: np.ndarray, sources_RH: np.ndarray) -> np.ndarray:
    """The hints themselves; PAD where there are none."""
    return np.append(ids_R, PAD).astype(np.int32)[sources_RH]


def ahead(ids_R: np.ndarray, sources_H: np.ndarray, size: int, line_ends: LineEnds | None = None) -> np.ndarray:
    """The hints of a canvas of this size on the last of these rows, whose sources are given: how the text goes on
    behind each of them, up to a marker or the row itself; with `line_ends` up to the end of the line, and so of the
    answer."""
    rows_SH = sources_H + np.arange(size + 1)[:, None]
    going_SH = (sources_H != NONE) & (rows_SH < len(ids_R))
    ids_SH = np.where(going_SH, ids_R[np.minimum(rows_SH, len(ids_R) - 1)], PAD).astype(np.int32)
    whole_SH = np.logical_and.accumulate(ids_SH >= len(SPECIALS), 0)
    found_SH = np.where(whole_SH, ids_SH, PAD)
    for column in range(HINTS) if line_ends is not None else ():
        found_SH[:, column] = _one_line(found_SH[:, column].tolist(), line_ends)
    return found_SH[1:].astype(np.int32)


def end_with_the_line(hints_RH: np.ndarray, ids_R: np.ndarray, anchor: int, line_ends: LineEnds) -> None:
    """From the anchor on a hint that ends its line is what stands before the line's end, then the answer's end."""
    for row in range(anchor, len(ids_R)):
        for column in range(HINTS):
            said = line_ends.get(int(hints_RH[row, column]))
            if said is not None:
                hints_RH[row, column] = said[0] if said else EOM
                if len(said) == 1 and row + 1 < len(ids_R) and ids_R[row + 1] == said[0]:
                    hints_RH[row + 1, column] = EOM


def _one_line(ids: list[int], line_ends: LineEnds) -> list[int]:
    ending = next((place for place, token in enumerate(ids) if token in line_ends), None)
    if ending is None:
        return ids
    line = [*ids[:ending], *line_ends[ids[ending]], EOM]
    return (line + [PAD] * len(ids))[: len(ids)]


def _standing(ids_R: np.ndarray, anchor: int | None) -> tuple[np.ndarray, np.ndarray, int]:
    """Which rows are text, behind which row of text each row stands, and where a begun word's bytes begin."""
    text_R = ids_R >= len(SPECIALS)
    begun = len(ids_R)
    if anchor is None:
        return text_R, np.where(text_R, np.arange(len(ids_R)), NONE), begun
    if ids_R[anchor] in HOLES:
        standing_R = np.where(text_R, np.arange(len(ids_R)), NONE)
        anchors = anchor + np.flatnonzero((ids_R[anchor:] >= HOLES[0]) & (ids_R[anchor:] <= HOLES[-1]))
        for row in anchors:
            marker = int(np.argmax(ids_R == ids_R[row]))
            standing_R[row] = marker - 1 if marker < anchor and text_R[marker - 1] else NONE
        return text_R, standing_R, begun
    cursor, near = (int(np.flatnonzero(ids_R[: anchor + 1] == marker)[-1]) for marker in (CUR, NEAR))
    parts = cursor + np.flatnonzero(ids_R[cursor : anchor + 1] == PART)
    if parts.size:
        begun = int(parts[0])
        text_R[begun : anchor + 1] = False
    standing_R = np.where(text_R, np.arange(len(ids_R)), NONE)
    standing_R[cursor] = near - 1 if text_R[near - 1] else NONE
    standing_R[begun : anchor + 1] = standing_R[begun - 1]
    return text_R, standing_R, begun


def _runs(ids_R: np.ndarray, previous_R: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each order: what tells the run of text that ends in a row from others, and whether it is as long as that."""
    tokens, back = np.append(ids_R, 0).astype(np.uint64), np.append(previous_R, NONE)
    rows = np.arange(len(ids_R))
    hashes_R = np.zeros(len(ids_R), np.uint64)
    found = []
    for depth in range(1, ORDERS[-1] + 1):
        hashes_R = (hashes_R ^ tokens[rows]) * MULTIPLIER
        hashes_R ^= hashes_R >> SHIFT
        if depth in ORDERS:
            found.append((hashes_R, rows != NONE))
        rows = back[rows]
    return found


def _latest(followers: np.ndarray, heard: np.ndarray, rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """For each row the last follower up to it that was heard behind what is wanted."""
    if len(rows) <= FEW:
        hits = [followers[(heard == one) & (followers <= row)] for row, one in zip(rows, wanted, strict=True)]
        return np.array([found[-1] if found.size else NONE for found in hits], np.int32)
    if not followers.size:
        return np.full(len(rows), NONE)
    size = int(max(rows[-1], followers[-1])) + 1
    groups = np.unique(np.concatenate([heard, wanted]), return_inverse=True)[1]
    keys = np.sort(groups[: len(heard)] * size + followers)
    places = np.searchsorted(keys, groups[len(heard) :] * size + rows, "right") - 1
    latest = keys[places]
    same = (places >= 0) & (latest // size == groups[len(heard) :])
    return np.where(same, latest % size, NONE)


def _spelling(ids_R: np.ndarray, places: np.ndarray, typed: bytes, spelled: Sequence[bytes]) -> int:
    """The latest of the places whose text begins as typed."""
    for place in places[::-1][:LOOKED_AT].tolist():
        text = b"".join(spelled[token] for token in ids_R[place : place + len(typed)])
        if text.startswith(typed):
            return place
    return NONE
