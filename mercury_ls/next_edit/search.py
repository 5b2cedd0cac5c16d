"""The search for next edits: all candidates, scored, the likeliest first, in steps of a few milliseconds."""

from collections.abc import Generator

from mercury_ls.completion.target import Silence
from mercury_ls.next_edit.candidates import Candidate, batches, clashes, distinct, scored
from mercury_ls.next_edit.settled import unsettled
from mercury_ls.next_edit.situation import Situation

MOST_CANDIDATES = 64
TAKEN_BACK = "your edits cancel each other out: what you accepted in between stays"


def searching(situation: Situation) -> Generator[None, None, tuple[Candidate, ...] | Silence]:
    """Where the last edits lead to, in this file and in others, step by step."""
    if not situation.edits:
        return Silence(TAKEN_BACK if situation.accepted else "nothing has been edited yet")
    if reason := unsettled(situation):
        return Silence(reason)
    yield
    candidates: list[Candidate] = []
    for batch in batches(situation):
        candidates += scored(batch)
        yield
    if not candidates and (reason := clashes(situation)):
        return Silence(reason)
    distinct_candidates = distinct(candidates)
    return distinct_candidates[: MOST_CANDIDATES + sum(candidate.bound for candidate in distinct_candidates)]
