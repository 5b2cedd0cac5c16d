"""Where the next edit may be due though no rule knows its text: small places for a model that rewrites several at once.

    due_places = yield from places(question, candidates)   # a step for each file
    regions(question, due_places)                           # what the model is asked

First come the places that rules name without knowing what to write, then the likeliest lines of all files by
`mercury_engine.spots`: those that share names with the last edits, look like the lines that changed, or lie near.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import LINES_AROUND, Edit, Region, Regions, Rewritten
from mercury_engine.mentions import Edited, changed_names, mentions
from mercury_engine.prompts.lines import lines_of as whole_lines
from mercury_engine.spots import APART, MARGIN, IndexedLines, PastEdit, likeliest, scored
from mercury_ls.code.documents import Snapshot, cached, unified
from mercury_ls.code.private import shown
from mercury_ls.completion.target import Silence
from mercury_ls.next_edit.candidates import Candidate
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.next_edit.region import RegionRewrite, rewritten

REMEMBERED = 8
"""Edits of the past that a model reads."""

FileLines = Mapping[str, Sequence[str]]


class DuePlace(Struct, frozen=True):
    """Lines `first` to `stop` of a file."""

    snapshot: Snapshot
    first: int
    stop: int

    @property
    def start(self) -> int:
        return self.snapshot.line_start(self.first)

    @property
    def end(self) -> int:
        return self.snapshot.line_end(self.stop - 1)


def places(question: NextQuestion, candidates: Sequence[Candidate]) -> Generator[None, None, list[DuePlace]]:
    """The likeliest, apart from each other."""
    chosen: list[DuePlace] = []
    _add(chosen, _unanswered(question, candidates))
    if len(chosen) < question.places:
        _add(chosen, (yield from _likeliest(question)))
    return chosen[: question.places]


def _add(chosen: list[DuePlace], lines: Iterable[tuple[Snapshot, int]]) -> None:
    for snapshot, line in lines:
        is_near = (place.snapshot is snapshot and place.first - APART < line < place.stop + APART for place in chosen)
        if not any(is_near):
            chosen.append(_around(snapshot, line))


def regions(question: NextQuestion, due_places: Sequence[DuePlace]) -> Regions:
    files = _texts(question)
    return Regions(
        session=question.session,
        edits=tuple(_with_mentions(_newest(question), files)),
        regions=tuple(_region(place, files[place.snapshot.path]) for place in due_places),
        cursor=0,
    )


def rewrite_of(
    question: NextQuestion, place: DuePlace, answer: Rewritten, candidates: Sequence[Candidate]
) -> RegionRewrite | Silence:
    """What the model makes of a place, or why that is not offered."""
    # A region ends with the line break of its last line, the place before it.
    answer = replace(answer, text=answer.text.removesuffix("\n"))
    rewrite = rewritten(question, place.snapshot, (place.start, place.end), answer, candidates)
    if isinstance(rewrite, Silence) or _writes_a_line(question.files, rewrite.edits):
        return rewrite
    return Silence("the model only adds or removes lines")


def _writes_a_line(files: Mapping[str, Snapshot], edits: Sequence[Candidate]) -> bool:
    """Whether any line becomes another. Where quicksilver only added or removed lines on unseen commits, it was never
    right in 80 times, in 33 of 230 where it did not."""
    return any(not _is_of_lines(files[edit.uri].text[edit.start : edit.end], edit.text or "") for edit in edits)


def _is_of_lines(old: str, new: str) -> bool:
    return (not old.strip() and "\n" in new) or (not new.strip() and "\n" in old)


def _unanswered(question: NextQuestion, candidates: Sequence[Candidate]) -> Iterator[tuple[Snapshot, int]]:
    """The lines that rules name without knowing what to write, the likeliest first."""
    unanswered = (candidate for candidate in candidates if candidate.text is None)
    for candidate in sorted(unanswered, key=lambda candidate: -candidate.p_edit):
        snapshot = question.files[candidate.uri]
        yield snapshot, snapshot.line_of(candidate.start)


def _likeliest(question: NextQuestion) -> Generator[None, None, list[tuple[Snapshot, int]]]:
    files = {snapshot.path: snapshot for snapshot in question.files.values()}
    past = [_as_past(edit) for edit in _newest(question)]
    if not past:
        return []
    texts: dict[str, IndexedLines] = {}
    for path, snapshot in files.items():
        texts[path] = _indexed(snapshot)
        yield
    scores: dict[str, np.ndarray] = {}
    for path, scores_L in scored(past, texts):
        scores[path] = scores_L
        yield
    return [(files[spot.path], spot.line) for spot in likeliest(scores, question.places)]


def _newest(question: NextQuestion) -> Sequence[Edit]:
    return question.history.edits(REMEMBERED)


def _texts(question: NextQuestion) -> dict[str, list[str]]:
    """The lines of all files as a model may see them."""
    return {snapshot.path: _lines_of(snapshot) for snapshot in question.files.values()}


@cached
def _lines_of(snapshot: Snapshot) -> list[str]:
    return whole_lines(unified(shown(snapshot)))


@cached
def _indexed(snapshot: Snapshot) -> IndexedLines:
    return IndexedLines.of(_lines_of(snapshot))


def _as_past(edit: Edit) -> PastEdit:
    above, below = whole_lines(edit.above)[-1:], whole_lines(edit.below)[:1]
    old, new = tuple(whole_lines(edit.before)), tuple(whole_lines(edit.after))
    return PastEdit(edit.path, edit.line, old, new, "".join(above), "".join(below))


def _with_mentions(edits: Iterable[Edit], files: FileLines) -> Iterator[Edit]:
    """The edits with the lines that hold what they changed; a name is looked up for the first that changed it."""
    mentioned_names: set[str] = set()
    for edit in edits:
        old, new = whole_lines(edit.before), whole_lines(edit.after)
        names = changed_names(old, new) - mentioned_names
        mentioned_names |= names
        lines = mentions(names, files, Edited(edit.path, edit.line, edit.line + len(new)))
        yield replace(edit, mentions=tuple(lines))


def _around(snapshot: Snapshot, line: int) -> DuePlace:
    return DuePlace(snapshot, max(0, line - MARGIN), min(line + MARGIN + 1, snapshot.line_count))


def _region(place: DuePlace, lines: Sequence[str]) -> Region:
    above = islice(lines, max(0, place.first - LINES_AROUND), place.first)
    old, below = lines[place.first : place.stop], lines[place.stop : place.stop + LINES_AROUND]
    snapshot = place.snapshot
    return Region(snapshot.path, snapshot.language, "".join(old), "".join(above), "".join(below), place.first)
