"""The search for next edits: all candidates, scored, the likeliest first, in steps of a few milliseconds."""

from collections.abc import Generator, Sequence

from mercury_engine.api import Edit
from mercury_ls.code.diagnostics import Diagnostic
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.modules import Project
from mercury_ls.completion.target import Silence
from mercury_ls.next_edit.candidates import Candidate, batches, distinct, scored
from mercury_ls.next_edit.questions import questions
from mercury_ls.next_edit.settled import unsettled

__all__ = ["candidates_after", "searching"]

MOST_CANDIDATES = 64


def candidates_after(
    snapshot: Snapshot,
    offset: int,
    edits: Sequence[Edit],
    others: Sequence[Snapshot] = (),
    diagnostics: Sequence[Diagnostic] = (),
    project: Project | None = None,
) -> tuple[Candidate, ...] | Silence:
    """Where the last edits, oldest first, and complaints lead to, in this file and in others."""
    search = searching(snapshot, offset, edits, others, diagnostics, project)
    while True:
        try:
            next(search)
        except StopIteration as end:
            return end.value


def searching(
    snapshot: Snapshot,
    offset: int,
    edits: Sequence[Edit],
    others: Sequence[Snapshot] = (),
    diagnostics: Sequence[Diagnostic] = (),
    project: Project | None = None,
    accepted: Sequence[Edit] = (),
) -> Generator[None, None, tuple[Candidate, ...] | Silence]:
    """The same, step by step."""
    if not edits and not diagnostics:
        return Silence("nothing has been edited yet")
    if edits and (reason := unsettled(snapshot, offset, edits)):
        return Silence(reason)
    yield
    found: list[Candidate] = []
    for some in batches(snapshot, offset, edits, others, diagnostics, project, accepted):
        found += scored(some)
        yield
    complained = {snapshot.line_of(each.start) for each in diagnostics}
    found += scored(questions(snapshot, offset, edits, complained))
    kept = distinct(found)
    return kept[: MOST_CANDIDATES + sum(each.bound for each in kept)] or Silence("nothing follows from the last edits")
