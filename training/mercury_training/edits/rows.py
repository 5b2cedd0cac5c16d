"""Rows of edits from a commit: its hunks one after the other, and places where nothing is due.

A row is a chain, which reads as `mercury_engine.tokens.revisions` says: each hunk is a question and its answer, with
all earlier ones in the past. Questions that are no part of the past branch off the chain: behind each hunk the
likeliest place, as an editor asks about it, so that what is due there comes as often as it does in use; places that
look alike, or lie near, and stay as they are; and hunks that are asked before their turn.
"""

import random
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.api import LINES_AROUND, MARGIN, Region
from mercury_engine.mentions import COMMON, NAME, Edited, changed_names, mentions
from mercury_engine.tokens import revisions
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import PAD
from mercury_training.corpus.history import CommitHunk, in_plausible_order
from mercury_training.corpus.sources import language_of
from mercury_training.edits.commits import Commit
from mercury_training.edits.spots import PastEdit, indexed, spots
from mercury_training.rows.blocks import Block, visible_ranges
from mercury_training.rows.packing import RANGES, Packed, RowShape

SHAPES = tuple(RowShape(clean, 0) for clean in range(384, 1025, 128))
KEEPS = 2
"""The most places after an edit at which nothing is due."""
KEEP, EARLY = 0.25, 0.1
"""How likely each of them is, and a hunk that is asked before its turn."""
LIKE = 0.65
"""How often such a place is one where the past makes an edit likely; the others lie below the edit."""
LIKELIEST = 8
NEAR = 12
MARGINS = (0, 1, 1, 2, 2, 3)
"""Lines of a region on either side of what changes there, so that its borders tell nothing."""
LONG = 8
TAUGHT = 8
"""New lines of a hunk that is taught, at most: longer ones can hardly be inferred, and would be most of all tokens."""


class AnswerSpan(Struct, frozen=True):
    """Where an answer stands in a row, behind which row of the chain its question does, whether a change was due there,
    and whether it repeats the old lines."""

    start: int
    stop: int
    behind: int
    due: bool
    repeats: bool


class RevisionRow(Struct, frozen=True, eq=False):
    """Token ids with the weight of each as a target, the blocks (the chain, then its branches), and the answers that
    are more than past."""

    ids: list[int]
    weights: list[float]
    blocks: list[Block]
    answers: list[AnswerSpan]

    @property
    def positions(self) -> np.ndarray:
        positions = np.zeros(len(self.ids), np.int32)
        at = 0
        for block in self.blocks:
            first = 0 if block.parent < 0 else int(positions[block.parent]) + 1
            positions[at : at + block.size] = np.arange(first, first + block.size)
            at += block.size
        return positions


class _Pending(Struct):
    """A hunk that is still to come, where it is now."""

    path: str
    first: int
    old: list[str]
    new: list[str]

    @property
    def stop(self) -> int:
        return self.first + len(self.old)

    @property
    def is_short(self) -> bool:
        return len(self.new) <= TAUGHT


class _SideQuestion(Struct, frozen=True):
    """A question behind a row of the chain, and its answer."""

    parent: int
    question: list[int]
    answer: list[int]
    weights: list[float]
    due: bool
    repeats: bool

    @property
    def size(self) -> int:
        return len(self.question) + len(self.answer)


class _Chain:
    """The texts as edited so far, and the row as it grows."""

    def __init__(self, tokenizer: Tokenizer, commit: Commit, first: str, limit: int) -> None:
        self.tokenizer, self.limit = tokenizer, limit
        self.texts = {path: list(lines) for path, lines in commit.change.before.items()}
        self.here = first
        self.ids = revisions.opening(tokenizer, language_of(first) or "text", first)
        self.weights = [0.0] * len(self.ids)
        self.branches: list[_SideQuestion] = []
        self.answers: list[AnswerSpan] = []
        self.changed: set[str] = set()
        """The names that the hunks so far have changed."""
        self.past: list[PastEdit] = []

    @property
    def size(self) -> int:
        return len(self.ids) + sum(branch.size for branch in self.branches)

    def ask(self, path: str, first: int, stop: int, answer: Sequence[str]) -> tuple[list[int], list[int]]:
        lines = self.texts[path]
        above, below = lines[max(0, first - LINES_AROUND) : first], lines[stop : stop + LINES_AROUND]
        region = Region(path, "", "".join(lines[first:stop]), "".join(above), "".join(below))
        question = revisions.question(self.tokenizer, region, self.here)
        return question, revisions.answer(self.tokenizer, "".join(answer))

    def append(self, question: list[int], answer: list[int], weights: list[float]) -> None:
        self.ids += [*question, *answer]
        self.weights += [*([0.0] * len(question)), *weights]

    def branch(self, question: list[int], answer: list[int], weights: list[float], *, due: bool, repeats: bool) -> None:
        branch = _SideQuestion(len(self.ids) - 1, question, answer, weights, due, repeats)
        if self.size + branch.size <= self.limit:
            self.branches.append(branch)

    def make(self, hunk: _Pending) -> None:
        """Change the text as a hunk does."""
        lines = self.texts[hunk.path]
        above, below = "".join(lines[: hunk.first][-1:]), "".join(lines[hunk.stop :][:1])
        lines[hunk.first : hunk.stop] = hunk.new
        self.past = [edit.moved(hunk.path, hunk.first, len(hunk.new) - len(hunk.old)) for edit in self.past]
        self.past.append(PastEdit(hunk.path, hunk.first, tuple(hunk.old), tuple(hunk.new), above, below))
        self.here = hunk.path

    def mention(self, hunk: _Pending) -> None:
        """Show lines that hold the names which the hunk changed, unless they were shown before."""
        names = changed_names(hunk.old, hunk.new) - self.changed
        self.changed |= names
        edited = Edited(hunk.path, hunk.first, hunk.first + len(hunk.new))
        ids = revisions.mention(self.tokenizer, mentions(names, self.texts, edited), self.here)
        self.ids += ids
        self.weights += [0.0] * len(ids)

    def row(self) -> RevisionRow:
        blocks = [Block(len(self.ids))]
        ids, weights, answers = list(self.ids), list(self.weights), list(self.answers)
        for branch in self.branches:
            blocks.append(Block(branch.size, parent=branch.parent))
            start = len(ids) + len(branch.question)
            ids += [*branch.question, *branch.answer]
            weights += [*[0.0] * len(branch.question), *branch.weights]
            answers.append(AnswerSpan(start, len(ids), branch.parent, branch.due, branch.repeats))
        return RevisionRow(ids, weights, blocks, answers)


def edit_row(
    tokenizer: Tokenizer,
    commit: Commit,
    draw: random.Random,
    limit: int = SHAPES[-1].clean,
    *,
    judged: bool = False,
) -> RevisionRow | None:
    """The row of a commit; None if nothing in it can be learned. If `judged`, each hunk also branches off, in its turn,
    with the old lines as its answer: how likely these are tells whether the model expects a change, and which."""
    pending = _ordered([*joined(commit.change.hunks, commit.change.before)], draw)
    chain = _Chain(tokenizer, commit, pending[0].path, limit)
    edits = taught = 0
    while pending:
        hunk = pending.pop(0)
        first, stop = _region(hunk, len(chain.texts[hunk.path]), draw)
        question, answer, weights = _due(chain, hunk, first, stop)
        if chain.size + len(question) + len(answer) > limit:
            break
        if edits:
            start = len(chain.ids) + len(question)
            span = AnswerSpan(start, start + len(answer), len(chain.ids) - 1, due=True, repeats=False)
            chain.answers.append(span)
        if edits and judged:
            chain.branch(*_kept(chain, hunk.path, first, stop), due=True, repeats=True)
        is_taught = edits > 0 and hunk.is_short
        taught += is_taught
        chain.append(question, answer, weights if is_taught else [0.0] * len(answer))
        chain.make(hunk)
        _shift(pending, hunk)
        edits += 1
        chain.mention(hunk)
        if len(pending) > 1 and not judged and draw.random() < EARLY:
            early = draw.choice(pending[1:])
            if early.is_short:
                region = _region(early, len(chain.texts[early.path]), draw)
                chain.branch(*_due(chain, early, *region), due=True, repeats=False)
        if not judged:
            _ask_likeliest(chain, hunk, pending)
        for spot in _spots(chain, hunk, pending, draw):
            chain.branch(*_kept(chain, *spot), due=False, repeats=True)
    row = chain.row() if taught or (judged and edits) else None
    return row if row is not None and len(row.ids) <= limit and any(row.weights) else None


def packed(row: RevisionRow, shape: RowShape) -> Packed:
    """The arrays of a row, padded to a shape."""
    size, padding = len(row.ids), shape.rows - len(row.ids)
    blocks = [*row.blocks, Block(padding)] if padding else row.blocks
    ranges = visible_ranges(blocks).astype(np.int16)
    targets, weights = np.full(shape.rows, PAD, np.int32), np.zeros(shape.rows, np.float32)
    targets[: size - 1], weights[: size - 1] = row.ids[1:], row.weights[1:]
    return Packed(
        np.array([*row.ids, *[PAD] * padding], np.int32),
        np.concatenate([row.positions, np.arange(padding, dtype=np.int32)]),
        np.pad(ranges, [(0, 0), (0, RANGES - ranges.shape[1]), (0, 0)]),
        targets,
        weights,
        np.empty(0, np.int32),
    )


def shape_of(row: RevisionRow) -> RowShape:
    return next(shape for shape in SHAPES if len(row.ids) <= shape.clean)


def joined(hunks: Iterable[CommitHunk], before: dict[str, list[str]]) -> Iterator[CommitHunk]:
    """The hunks, neighbours at most one line apart as one: a person changes them together."""
    last: CommitHunk | None = None
    for hunk in hunks:
        if last is not None and hunk.path == last.path and 0 <= hunk.first - last.stop <= 1:
            between = tuple(before[hunk.path][last.stop : hunk.first])
            last = CommitHunk(
                hunk.path, last.first, hunk.stop, (*last.old, *between, *hunk.old), (*last.new, *between, *hunk.new)
            )
            continue
        if last is not None:
            yield last
        last = hunk
    if last is not None:
        yield last


def _ordered(hunks: Sequence[CommitHunk], draw: random.Random) -> list[_Pending]:
    """Declarations before uses in half of the rows, else from a random hunk on; each where it is at its turn."""
    return [_Pending(hunk.path, hunk.first, list(hunk.old), list(hunk.new)) for hunk in _order(hunks, draw)]


def _order(hunks: Sequence[CommitHunk], draw: random.Random) -> Sequence[CommitHunk]:
    if draw.random() < 0.5:
        return in_plausible_order(hunks)
    start = draw.randrange(len(hunks))
    return [*hunks[start:], *hunks[:start]]


def _shift(pending: list[_Pending], edit: _Pending) -> None:
    """Move what lies below a hunk that was edit."""
    for hunk in pending:
        if hunk.path == edit.path and hunk.first >= edit.first:
            hunk.first += len(edit.new) - len(edit.old)


def _region(hunk: _Pending, lines: int, draw: random.Random) -> tuple[int, int]:
    margins = MARGINS if len(hunk.old) <= LONG else MARGINS[:2]
    first = max(0, hunk.first - draw.choice(margins))
    stop = min(lines, hunk.stop + draw.choice(margins))
    if first == stop:
        return max(0, first - 1), min(lines, stop + 1)
    return first, stop


def _due(chain: _Chain, hunk: _Pending, first: int, stop: int) -> tuple[list[int], list[int], list[float]]:
    """A question with its answer. Weights end where the answer first needs a name that nothing before it has: that
    cannot be inferred."""
    lines = chain.texts[hunk.path]
    above, below = lines[first : hunk.first], lines[hunk.stop : stop]
    question, answer = chain.ask(hunk.path, first, stop, [*above, *hunk.new, *below])
    names = set(NAME.findall(chain.tokenizer.decode([*chain.ids, *question]))) | COMMON
    weights = [1.0] * _size(chain.tokenizer, *above)
    for line in hunk.new:
        new_names = set(NAME.findall(line)) - names
        inferred = min((line.index(name) for name in new_names), default=len(line))
        size = _size(chain.tokenizer, line)
        learned = size if inferred == len(line) else _size(chain.tokenizer, line[:inferred].rstrip())
        weights += [1.0] * learned + [0.0] * (size - learned)
        names |= new_names
    return question, answer, weights + [1.0] * (_size(chain.tokenizer, *below) + 1)


def _kept(chain: _Chain, path: str, first: int, stop: int) -> tuple[list[int], list[int], list[float]]:
    question, answer = chain.ask(path, first, stop, chain.texts[path][first:stop])
    return question, answer, [1.0] * len(answer)


def _size(tokenizer: Tokenizer, *lines: str) -> int:
    return sum(len(tokenizer.encode(line)) for line in lines)


def _ask_likeliest(chain: _Chain, edit: _Pending, pending: Sequence[_Pending]) -> None:
    """Ask about the likeliest place behind an edit, unless a hunk lies in it only partly."""
    for spot in spots(chain.past, indexed(chain.texts), 1):
        lines = chain.texts[spot.path]
        first, stop = max(0, spot.line - MARGIN), min(len(lines), spot.line + MARGIN + 1)
        due = [hunk for hunk in pending if _touches(hunk, spot.path, first, stop)]
        if not due and not _is_at(edit, spot.path, first, stop):
            chain.branch(*_kept(chain, spot.path, first, stop), due=False, repeats=True)
        elif len(due) == 1 and due[0].is_short and first <= due[0].first and due[0].stop <= stop:
            chain.branch(*_due(chain, due[0], first, stop), due=True, repeats=False)


def _is_at(edit: _Pending, path: str, first: int, stop: int) -> bool:
    return path == edit.path and first <= edit.first + len(edit.new) and stop >= edit.first


def _spots(
    chain: _Chain, edit: _Pending, pending: Sequence[_Pending], draw: random.Random
) -> Iterator[tuple[str, int, int]]:
    """Regions that stay as they are: where nothing is pending, and not the edit itself."""
    count = sum(draw.random() < KEEP for _ in range(KEEPS))
    if not count:
        return
    likeliest = spots(chain.past, indexed(chain.texts), LIKELIEST)
    for _ in range(count):
        path, number = edit.path, edit.first + len(edit.new) + draw.randrange(1, NEAR)
        if likeliest and draw.random() < LIKE:
            spot = draw.choice(likeliest)
            path, number = spot.path, spot.line
        lines = chain.texts[path]
        first, stop = max(0, number - draw.randrange(3)), min(len(lines), number + 1 + draw.randrange(3))
        if (
            first < stop
            and not _is_at(edit, path, first, stop)
            and not any(_touches(hunk, path, first, stop) for hunk in pending)
        ):
            yield path, first, stop


def _touches(hunk: _Pending, path: str, first: int, stop: int) -> bool:
    return hunk.path == path and hunk.first - 2 < stop and first < max(hunk.stop, hunk.first + 1) + 2
