"""What a model thinks of the edits that rules propose: how likely each is as the next one after those of the user."""

from collections.abc import Mapping, Sequence
from itertools import islice
from statistics import mean

from msgspec.structs import replace

from mercury_engine.api import Likelihood, Proposal, Proposals, Region
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

MOST_PROPOSALS = 2
LINES_ABOVE, LINES_BELOW = 3, 3
LONGEST = 4000
"""In characters, the lines around a proposal included: reading more takes long."""

Bundle = tuple[Candidate, ...]
"""Candidates on the same lines, which would be shown together; the likeliest is the first."""


def bundles(question: NextQuestion, candidates: Sequence[Candidate]) -> list[Bundle]:
    """The likeliest that a model can make likely enough."""
    worth_asking = (bundle for bundle in by_lines(question, candidates) if _is_worth_asking(question, bundle))
    return [*islice(worth_asking, MOST_PROPOSALS)]


def by_lines(question: NextQuestion, candidates: Sequence[Candidate]) -> list[Bundle]:
    """All that rules propose, the likeliest first; what is certain needs no opinion."""
    lines: dict[tuple[str, range], list[Candidate]] = {}
    for candidate in sorted(candidates, key=lambda candidate: -candidate.p_edit):
        if _is_uncertain(candidate):
            rows = lines_of(question.files[candidate.uri], candidate.start, candidate.end)
            together = lines.setdefault((candidate.uri, rows), [])
            if not together or candidate.p_edit >= ABOUT * together[0].p_edit:
                together.append(candidate)
    return [tuple(together) for together in lines.values()]


def _is_worth_asking(question: NextQuestion, bundle: Bundle) -> bool:
    fitted = ranking.load()
    if fitted.judged(chance_by_rule(bundle[0]), 0.0) < max(question.bar, fitted.bar):
        return False
    proposal = _proposal(question.files[bundle[0].uri], bundle)
    region = proposal.region
    return sum(map(len, (region.above, region.old, region.below, proposal.text))) <= LONGEST


def proposals(question: NextQuestion, bundles: Sequence[Bundle]) -> Proposals:
    return Proposals(
        session=question.session,
        edits=question.history.edits(question.recent_edits),
        proposals=tuple(_proposal(question.files[bundle[0].uri], bundle) for bundle in bundles),
    )


def judged(
    candidates: Sequence[Candidate], bundles: Sequence[Bundle], likelihoods: Sequence[Likelihood | None]
) -> list[Candidate]:
    """The candidates with the chances that they have by the model's opinion. What it says of a proposal also tells of
    the other candidates of its rules. Candidates of which it says nothing are left out."""
    chances: dict[CandidatePlace, float] = {}
    shifts: dict[Rule | None, list[float]] = {}
    for bundle, likelihood in zip(bundles, likelihoods, strict=True):
        if likelihood is not None:
            before = chance_by_rule(bundle[0])
            chance = ranking.load().judged(before, likelihood)
            for candidate in bundle:
                chances[place_of(candidate)] = chance
                shifts.setdefault(candidate.rule, []).append(log_odds(chance) - log_odds(before))
    told = (candidate for candidate in candidates if candidate.rule in shifts or not _is_uncertain(candidate))
    return [_judged(candidate, chances, shifts) for candidate in told]


def chance_by_rule(candidate: Candidate) -> float:
    return candidate.p_edit * candidate.p_due


def _judged(
    candidate: Candidate, chances: Mapping[CandidatePlace, float], shifts: Mapping[Rule | None, Sequence[float]]
) -> Candidate:
    if not _is_uncertain(candidate):
        return candidate
    shifted = logistic(log_odds(chance_by_rule(candidate)) + mean(shifts[candidate.rule]))
    return replace(candidate, p_edit=chances.get(place_of(candidate), shifted), p_due=1.0)


def _is_uncertain(candidate: Candidate) -> bool:
    return candidate.text is not None and not candidate.certain


def _proposal(snapshot: Snapshot, bundle: Bundle) -> Proposal:
    """The lines that change, between some that stay, and what they become."""
    text, rows = shown(snapshot), lines_of(snapshot, bundle[0].start, bundle[0].end)
    start, end = snapshot.line_start(rows[0]), snapshot.line_stop(rows[-1])
    first, last = max(rows[0] - LINES_ABOVE, 0), min(rows[-1] + LINES_BELOW, snapshot.line_count - 1)
    changes = [TextEdit(c.start - start, c.end - start, c.text or "") for c in bundle]
    old, new = (whole_lines(unified(lines)) for lines in (text[start:end], applied(text[start:end], changes)))
    head, tail = shared_ends(old, new)
    region = Region(
        snapshot.path,
        snapshot.language,
        old="".join(old[head : len(old) - tail]),
        above=unified(text[snapshot.line_start(first) : start]) + "".join(old[:head]),
        below="".join(old[len(old) - tail :]) + unified(text[end : snapshot.line_stop(last)]),
        first_line=first,
    )
    return Proposal(region, "".join(new[head : len(new) - tail]))
