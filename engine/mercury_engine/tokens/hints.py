"""N-gram hint features: for every row, the tokens that followed the same last 1, 2, 4 and 8 tokens earlier on.

Code repeats itself. A small model spends most of its attention on finding where the last tokens occurred before, which
numpy does in a moment, so the model reads the answer beside each token and learns how far to trust it. A canvas reads
how the text went on behind the match, so that it can draft a whole copy at once.

Hints are a function of the tokens up to their row: a contract between training and inference, like the layout. Around
an anchor the text does not continue the row: the lines before a cursor end at `<near>`, those before a hole at its
marker. Where `<part>` spells a partial word, only hints that spell it too are found.

Shapes: R rows, H hints of a row, S slots of a canvas.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from mercury_engine.tokens.vocabulary import CUR, EOM, HOLES, NEAR, PAD, PART, SPECIALS

ORDERS = (1, 2, 4, 8)
HINTS = len(ORDERS)
WEIGHTS = ("hint.weight", "trust.weight")
"""The weights that only a model with hints has."""

LineEnds = Mapping[int, Sequence[int]]
"""For each token with a line end, the tokens that spell the text before it."""

NONE = -1
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(29)
FEW = 12
"""Up to this many rows, scanning all matches is faster than sorting them."""
PART_MATCHES = 64
"""The number of matches compared with a partial word."""


def locate(ids_R: np.ndarray, anchor: int | None, spelled: Sequence[bytes], start: int = 0) -> np.ndarray:
    """The rows of each row's hints, int32 of shape (rows from `start` on, HINTS): the rows behind the latest earlier
    occurrences of the last tokens; -1 where there are none. Row `anchor` predicts the first answer's first token."""
    text_R, context_R, part = _contexts(ids_R, anchor)
    previous_R = np.where(text_R, np.append(NONE, context_R[:-1]), NONE)
    asking = start + np.flatnonzero(context_R[start:] != NONE)
    found_RH = np.full((len(ids_R) - start, HINTS), NONE, np.int32)
    for column, (hashes_R, whole_R) in enumerate(_ngrams(ids_R, previous_R)):
        followers = np.flatnonzero((previous_R != NONE) & whole_R[previous_R])
        rows = asking[whole_R[context_R[asking]]]
        follower_hashes, row_hashes = hashes_R[previous_R[followers]], hashes_R[context_R[rows]]
        found_RH[rows - start, column] = _latest(followers, follower_hashes, rows, row_hashes)
        for row in rows[(rows > part) & (rows <= (anchor or 0))].tolist():
            matches = followers[(follower_hashes == hashes_R[context_R[row]]) & (followers <= row)]
            typed = b"".join(spelled[token] for token in ids_R[part + 1 : row + 1])
            found_RH[row - start, column] = _spelling(ids_R, matches, typed, spelled)
    return found_RH


def look_up(ids_R: np.ndarray, sources_RH: np.ndarray) -> np.ndarray:
    """The hints at these rows; PAD where there are none."""
    return np.append(ids_R, PAD).astype(np.int32)[sources_RH]


def continuations(ids_R: np.ndarray, sources_H: np.ndarray, size: int, line_ends: LineEnds | None = None) -> np.ndarray:
    """The hints of a canvas behind the last of these rows, SH: the text behind each of that row's sources, up
    to a marker or the row itself; with `line_ends` up to the end of the line, which ends the answer."""
    rows_SH = sources_H + np.arange(size + 1)[:, None]
    inside_SH = (sources_H != NONE) & (rows_SH < len(ids_R))
    ids_SH = np.where(inside_SH, ids_R[np.minimum(rows_SH, len(ids_R) - 1)], PAD).astype(np.int32)
    whole_SH = np.logical_and.accumulate(ids_SH >= len(SPECIALS), 0)
    found_SH = np.where(whole_SH, ids_SH, PAD)
    if line_ends is not None:
        for column in range(HINTS):
            found_SH[:, column] = _one_line(found_SH[:, column].tolist(), line_ends)
    return found_SH[1:].astype(np.int32)


def end_with_line(hints_RH: np.ndarray, ids_R: np.ndarray, anchor: int, line_ends: LineEnds) -> None:
    """From the anchor on, replace each hint that ends a line by the text before the line end, then by `<eom>`."""
    for row in range(anchor, len(ids_R)):
        for column in range(HINTS):
            before = line_ends.get(int(hints_RH[row, column]))
            if before is not None:
                hints_RH[row, column] = before[0] if before else EOM
                if len(before) == 1 and row + 1 < len(ids_R) and ids_R[row + 1] == before[0]:
                    hints_RH[row + 1, column] = EOM


def _one_line(ids: list[int], line_ends: LineEnds) -> list[int]:
    ending = next((index for index, token in enumerate(ids) if token in line_ends), None)
    if ending is None:
        return ids
    line = [*ids[:ending], *line_ends[ids[ending]], EOM]
    return (line + [PAD] * len(ids))[: len(ids)]


def _contexts(ids_R: np.ndarray, anchor: int | None) -> tuple[np.ndarray, np.ndarray, int]:
    """Which rows are text, the text row that each row continues, and the row of `<part>` (the end without one)."""
    text_R = ids_R >= len(SPECIALS)
    part = len(ids_R)
    if anchor is None:
        return text_R, np.where(text_R, np.arange(len(ids_R)), NONE), part
    if ids_R[anchor] in HOLES:
        context_R = np.where(text_R, np.arange(len(ids_R)), NONE)
        anchors = anchor + np.flatnonzero((ids_R[anchor:] >= HOLES[0]) & (ids_R[anchor:] <= HOLES[-1]))
        for row in anchors:
            marker = int(np.argmax(ids_R == ids_R[row]))
            context_R[row] = marker - 1 if marker < anchor and text_R[marker - 1] else NONE
        return text_R, context_R, part
    cursor, near = (int(np.flatnonzero(ids_R[: anchor + 1] == marker)[-1]) for marker in (CUR, NEAR))
    parts = cursor + np.flatnonzero(ids_R[cursor : anchor + 1] == PART)
    if parts.size:
        part = int(parts[0])
        text_R[part : anchor + 1] = False
    context_R = np.where(text_R, np.arange(len(ids_R)), NONE)
    context_R[cursor] = near - 1 if text_R[near - 1] else NONE
    context_R[part : anchor + 1] = context_R[part - 1]
    return text_R, context_R, part


def _ngrams(ids_R: np.ndarray, previous_R: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each order, a hash of the n-gram that ends in each row, and whether the text before is that long."""
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


def _latest(followers: np.ndarray, follower_hashes: np.ndarray, rows: np.ndarray, row_hashes: np.ndarray) -> np.ndarray:
    """For each row, the last follower up to it with the same hash of an n-gram."""
    if len(rows) <= FEW:
        hits = [
            followers[(follower_hashes == row_hash) & (followers <= row)]
            for row, row_hash in zip(rows, row_hashes, strict=True)
        ]
        return np.array([hit[-1] if hit.size else NONE for hit in hits], np.int32)
    if not followers.size:
        return np.full(len(rows), NONE)
    size = int(max(rows[-1], followers[-1])) + 1
    groups = np.unique(np.concatenate([follower_hashes, row_hashes]), return_inverse=True)[1]
    keys = np.sort(groups[: len(follower_hashes)] * size + followers)
    places = np.searchsorted(keys, groups[len(follower_hashes) :] * size + rows, "right") - 1
    latest = keys[places]
    is_recent = (places >= 0) & (latest // size == groups[len(follower_hashes) :])
    return np.where(is_recent, latest % size, NONE)


def _spelling(ids_R: np.ndarray, matches: np.ndarray, typed: bytes, spelled: Sequence[bytes]) -> int:
    """The latest match whose text starts with the typed bytes."""
    for row in matches[::-1][:PART_MATCHES].tolist():
        text = b"".join(spelled[token] for token in ids_R[row : row + len(typed)])
        if text.startswith(typed):
            return row
    return NONE
