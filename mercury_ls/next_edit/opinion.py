"""What a model thinks of the edits that rules propose: how likely each is as the next one after those of the user."""

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from statistics import mean

from msgspec.structs import replace

from mercury_engine.api import Filled, InfillRequest, Span, Window
from mercury_engine.prompts.lines import lines_of as whole_lines
from mercury_engine.prompts.lines import shared_ends
from mercury_ls.code.documents import Snapshot, unified
from mercury_ls.code.edits import TextEdit, applied
from mercury_ls.code.private import shown
from mercury_ls.completion.judge import logistic
from mercury_ls.next_edit import ranking
from mercury_ls.next_edit.candidates import ABOUT, Candidate, CandidatePlace, lines_of, place_of
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.next_edit.ranking import log_odds
from mercury_ls.next_edit.rule import Rule

MOST_PROPOSALS = 4
LINES_ABOVE, LINES_BELOW = 6, 3
LONGEST = 4000
"""In characters, the lines around a proposal included: reading more takes long."""
SMALLEST_PROBABILITY = 1e-9

Proposal = tuple[Candidate, ...]
"""Candidates on the same lines, which would be shown together; the likeliest is the first."""


def proposals(question: NextQuestion, candidates: Sequence[Candidate]) -> list[Proposal]:
    """The likeliest that a model can make likely enough."""
    worth_asking = (proposal for proposal in by_lines(question, candidates) if _is_worth_asking(question, proposal))
    return [*islice(worth_asking, MOST_PROPOSALS)]


def by_lines(question: NextQuestion, candidates: Sequence[Candidate]) -> list[Proposal]:
    """All that rules propose, the likeliest first; what is certain needs no opinion."""
    lines: dict[tuple[str, range], list[Candidate]] = {}
    for candidate in sorted(candidates, key=lambda candidate: -candidate.p_edit):
        if candidate.text is not None and not candidate.certain:
            rows = lines_of(question.files[candidate.uri], candidate.start, candidate.end)
            together = lines.setdefault((candidate.uri, rows), [])
            if not together or candidate.p_edit >= ABOUT * together[0].p_edit:
                together.append(candidate)
    return [tuple(together) for together in lines.values()]


def _is_worth_asking(question: NextQuestion, proposal: Proposal) -> bool:
    fitted = ranking.load()
    if fitted.judged(chance_by_rule(proposal[0]), 0.0) < max(question.bar, fitted.bar):
        return False
    window, span = _changed_lines(question.files[proposal[0].uri], proposal)
    return len(window.text) + len(span.text) <= LONGEST


def request(question: NextQuestion, proposals: Sequence[Proposal]) -> InfillRequest:
    lines = [_changed_lines(question.files[proposal[0].uri], proposal) for proposal in proposals]
    return InfillRequest(
        session=question.session,
        windows=tuple(window for window, _ in lines),
        spans=tuple(replace(span, window=number) for number, (_, span) in enumerate(lines)),
        edits=question.history.edits(question.recent_edits),
        invoked=False,
    )


def judged(
    candidates: Sequence[Candidate], proposals: Sequence[Proposal], answers: Sequence[Filled]
) -> list[Candidate]:
    """The candidates with the chances that they have by the model's opinion. What it says of a proposal also tells of
    the other candidates of its rules."""
    chances: dict[CandidatePlace, float] = {}
    shifts: dict[Rule | None, list[float]] = {}
    for proposal, answer in zip(proposals, answers, strict=True):
        if answer.confidence:
            before = chance_by_rule(proposal[0])
            chance = ranking.load().judged(before, likelihood(answer))
            for candidate in proposal:
                chances[place_of(candidate)] = chance
                shifts.setdefault(candidate.rule, []).append(log_odds(chance) - log_odds(before))
    return [_judged(candidate, chances, shifts) for candidate in candidates] if chances else list(candidates)


def chance_by_rule(candidate: Candidate) -> float:
    return candidate.p_edit * candidate.p_due


def likelihood(answer: Filled) -> float:
    """The logarithm of how likely the model finds a proposal."""
    return sum(math.log(max(probability, SMALLEST_PROBABILITY)) for probability in answer.confidence)


def _judged(
    candidate: Candidate, chances: Mapping[CandidatePlace, float], shifts: Mapping[Rule | None, Sequence[float]]
) -> Candidate:
    if candidate.text is None or candidate.certain:
        return candidate
    shift = mean(shifts.get(candidate.rule, (0.0,)))
    shifted = logistic(log_odds(chance_by_rule(candidate)) + shift)
    return replace(candidate, p_edit=chances.get(place_of(candidate), shifted), p_due=1.0)


def _changed_lines(snapshot: Snapshot, proposal: Proposal) -> tuple[Window, Span]:
    """The lines that the proposal changes, between some that it leaves, and what they become."""
    text, rows = shown(snapshot), lines_of(snapshot, proposal[0].start, proposal[0].end)
    start, end = snapshot.line_start(rows[0]), snapshot.line_stop(rows[-1])
    first, last = max(rows[0] - LINES_ABOVE, 0), min(rows[-1] + LINES_BELOW, snapshot.line_count - 1)
    changes = [TextEdit(c.start - start, c.end - start, c.text or "") for c in proposal]
    old, new = (whole_lines(unified(lines)) for lines in (text[start:end], applied(text[start:end], changes)))
    head, tail = shared_ends(old, new)
    above = unified(text[snapshot.line_start(first) : start]) + "".join(old[:head])
    changed, below = "".join(old[head : len(old) - tail]), "".join(old[len(old) - tail :])
    window = above + changed + below + unified(text[end : snapshot.line_stop(last)])
    span = Span(0, len(above), len(above + changed), "proposal", text="".join(new[head : len(new) - tail]))
    return Window(snapshot.path, snapshot.language, window, first), span
