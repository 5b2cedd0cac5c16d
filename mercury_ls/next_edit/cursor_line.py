"""The line where the user rests after an edit, or asks by hand: a model that was taught to edit rewrites it.

    asked_lines = at_cursor(question)
    regions(question, asked_lines)    # what the model is asked

Nobody knows so well where the next edit is due as the user who has gone there. What the model writes elsewhere was
hardly ever right (docs/log/2026-Q4.md), so it is asked about nothing else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import LINES_AROUND, MARGIN, Edit, Region, Regions, Rewritten
from mercury_engine.mentions import Edited, changed_names, mentions
from mercury_engine.prompts.lines import lines_of as whole_lines
from mercury_ls.code.documents import Snapshot, cached, unified
from mercury_ls.code.private import shown
from mercury_ls.completion.target import Silence
from mercury_ls.next_edit.candidates import Candidate
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.next_edit.region import UNCHANGED, RegionRewrite, rewritten

REMEMBERED = 8
"""Edits of the past that a model reads."""


class AskedLines(Struct, frozen=True):
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


def is_elsewhere(snapshot: Snapshot, offset: int, edits: Sequence[Edit]) -> bool:
    """Whether a place is not in the last edit."""
    if not edits or edits[-1].path != snapshot.path:
        return bool(edits)
    return snapshot.line_of(offset) not in edits[-1].rows


def at_cursor(question: NextQuestion) -> AskedLines:
    snapshot, line = question.snapshot, question.snapshot.line_of(question.offset)
    return AskedLines(snapshot, max(0, line - MARGIN), min(line + MARGIN + 1, snapshot.line_count))


def regions(question: NextQuestion, asked_lines: AskedLines) -> Regions:
    files = {snapshot.path: _lines_of(snapshot) for snapshot in question.files.values()}
    edits = question.history.edits(REMEMBERED)
    return Regions(
        session=question.session,
        edits=tuple(_with_mentions(edits, files)),
        regions=(_region(asked_lines, files[asked_lines.snapshot.path]),),
        cursor=0,
    )


def rewrite_of(
    question: NextQuestion, asked_lines: AskedLines, answer: Rewritten, candidates: Sequence[Candidate]
) -> RegionRewrite | Silence:
    """What the model makes of the lines, or why that is not offered."""
    # A region ends with the line break of its last line, the asked lines before it.
    answer = replace(answer, text=answer.text.removesuffix("\n"))
    rewrite = rewritten(question, asked_lines.snapshot, (asked_lines.start, asked_lines.end), answer, candidates)
    if rewrite == Silence(UNCHANGED):
        lines = f"lines {asked_lines.first + 1} to {asked_lines.stop}"
        return Silence(f"the model leaves {lines} as they are ({answer.p_keep:.0%} likely)")
    if isinstance(rewrite, Silence) or _writes_a_line(asked_lines.snapshot, rewrite.edits):
        return rewrite
    return Silence("the model only adds or removes lines")


def _writes_a_line(snapshot: Snapshot, edits: Iterable[Candidate]) -> bool:
    """Whether any line becomes another. Where quicksilver only added or removed lines on unseen commits, it was never
    right in 80 times, in 33 of 230 where it did not."""
    return any(not _is_of_lines(snapshot.text[edit.start : edit.end], edit.text or "") for edit in edits)


def _is_of_lines(old: str, new: str) -> bool:
    return (not old.strip() and "\n" in new) or (not new.strip() and "\n" in old)


@cached
def _lines_of(snapshot: Snapshot) -> list[str]:
    """As a model may see them."""
    return whole_lines(unified(shown(snapshot)))


def _with_mentions(edits: Iterable[Edit], files: Mapping[str, Sequence[str]]) -> Iterator[Edit]:
    """The edits with the lines that hold what they changed; a name is looked up for the first that changed it."""
    mentioned_names: set[str] = set()
    for edit in edits:
        old, new = whole_lines(edit.before), whole_lines(edit.after)
        names = changed_names(old, new) - mentioned_names
        mentioned_names |= names
        lines = mentions(names, files, Edited(edit.path, edit.line, edit.line + len(new)))
        yield replace(edit, mentions=tuple(lines))


def _region(asked_lines: AskedLines, lines: Sequence[str]) -> Region:
    first, stop, snapshot = asked_lines.first, asked_lines.stop, asked_lines.snapshot
    above, below = lines[max(0, first - LINES_AROUND) : first], lines[stop : stop + LINES_AROUND]
    old = "".join(lines[first:stop])
    return Region(snapshot.path, snapshot.language, old, "".join(above), "".join(below), first)
