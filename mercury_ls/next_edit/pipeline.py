"""The pipeline of next edits: from what the user has just done to what follows, over several files, or silence.

    async for answer in next_edits(NextQuestion(..., neighbours=snapshots), engine): ...

What follows from the last edits by rule comes first and needs no engine (`engine=None` is fine); a model then judges
it, or, if it is a next-edit model, writes what no rule knows. The last answer is final. Offsets are of the snapshots
whose versions the answer names.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import aclosing, suppress
from typing import Protocol

from msgspec.structs import replace

from mercury_engine.api import EngineError, Opinions, Proposals, Regions, Rewrites
from mercury_ls.code import syntax
from mercury_ls.code.documents import Snapshot, cached, reparse
from mercury_ls.code.edits import TextEdit
from mercury_ls.code.history import LARGEST_HUNK
from mercury_ls.code.languages import find
from mercury_ls.code.modules import Project
from mercury_ls.completion.context import window
from mercury_ls.completion.deadline import Deadline
from mercury_ls.completion.offers import PLACE, Answer, Offer
from mercury_ls.completion.target import Silence
from mercury_ls.link.client import EngineUnavailable
from mercury_ls.next_edit import broken, cursor_line, opinion, ranking, region
from mercury_ls.next_edit.candidates import ABOUT, Candidate, distinct, renames
from mercury_ls.next_edit.kinds import kind_of
from mercury_ls.next_edit.kinds.rename.rule import Rename
from mercury_ls.next_edit.kinds.rename.unjudged import note_of
from mercury_ls.next_edit.kinds.signatures import Signature, calls_left, changed_signatures
from mercury_ls.next_edit.places import Left
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.next_edit.search import searching
from mercury_ls.next_edit.undone import undone

log = logging.getLogger(__name__)

TOO_LONG = "it takes too long to find what follows from the last edits"
UNJUDGED = "it takes too long to judge the other places"
PATIENCE = 4
"""Times that of a keystroke: parsing a long file is worth waiting for here."""
AS_LIKELY = 0.9
"""The share of the likeliest edit's probability that one taught by a later edit needs to come first."""


ASKED_ALONE = "only the model was asked about this line"
NOTHING_FOLLOWS = "no rule knows what follows from the last edits"
SHORT_WAIT_SECONDS = 1.0
"""How long an edit that is likely enough by rule waits for a model that may know more."""


class Suggesting(Protocol):
    """The engine, near or far; closing an iterator cancels."""

    def rewrite(self, regions: Regions) -> AsyncGenerator[Rewrites]: ...
    def judge(self, proposals: Proposals) -> AsyncGenerator[Opinions]: ...


def next_edits(question: NextQuestion, engine: Suggesting | None) -> AsyncGenerator[Answer]:
    """What follows from the last edits, or, of a user who rests, from the model's word on this line alone."""
    return _at_rest(question, engine) if question.rests else _after_an_edit(question, engine)


async def _after_an_edit(question: NextQuestion, engine: Suggesting | None) -> AsyncGenerator[Answer]:
    """What follows by rule at once, then again with each draft of the model."""
    found = await question.cost.in_turns(searching(question.situation), Silence(TOO_LONG))
    reason = _unlearnable(question) or (found.reason if isinstance(found, Silence) else NOTHING_FOLLOWS)
    if isinstance(found, Silence) and (engine is None or not question.is_for_a_rewriter):
        yield Answer(silence=reason, final=True)
        return
    candidates = [] if isinstance(found, Silence) else [*_admissible(question, found), *broken.candidates(question)]
    async with aclosing(answers(question, candidates, engine, reason)) as model_answers:
        async for answer in model_answers:
            yield answer


async def _at_rest(question: NextQuestion, engine: Suggesting | None) -> AsyncGenerator[Answer]:
    """What a model makes of the line to which the user has gone; all else was answered before."""
    answer = Answer(silence=ASKED_ALONE)
    if engine is not None:
        async with aclosing(_line_rewritten_by(question, (), answer, engine)) as drafts:
            async for answer in drafts:
                yield answer
    yield replace(answer, final=True)


def _unlearnable(question: NextQuestion) -> str:
    """Why the rules learn nothing of the last edit, if it or its file is too large for them."""
    if question.history.is_last_too_large:
        return f"the last edit is too large to follow: its lines have more than {LARGEST_HUNK:,} characters"
    path = question.edits[-1].path if question.edits else ""
    limit = next((file.why_no_tree for file in question.files.values() if file.path == path), "")
    return f"the syntax of the edited file is unknown: {limit}" if limit else ""


async def answers(
    question: NextQuestion, candidates: Sequence[Candidate], engine: Suggesting | None, reason: str = NOTHING_FOLLOWS
) -> AsyncGenerator[Answer]:
    """The answer by these candidates alone, then with what the model says of them. `reason` says why there are no
    candidates, if there are none."""
    answer = await _checked(question, candidates, ranking.load().bar) if candidates else Answer(silence=reason)
    if engine is not None:
        yield answer
        asking = _asking(question)
        async with aclosing(asking(question, candidates, answer, engine)) as better:
            async for answer in better:
                yield answer
    places = [candidate for candidate in candidates if candidate.kind == PLACE]
    answer = await _noted(question, candidates, broken.leading_there(question, places, answer))
    yield replace(answer, final=True)


async def _noted(question: NextQuestion, candidates: Sequence[Candidate], answer: Answer) -> Answer:
    """The answer with what a rename says of the places that it does not change, and other parameters of the calls; of
    an edit before the last one only if calls do not fit it, or it is what is offered."""
    offer, files = answer.offer, question.files
    places = {(edit.uri, edit.start) for edit in answer.edits}
    made = [candidate.rule for candidate in candidates if (candidate.uri, candidate.start) in places]
    project = (question.project or Project()).with_files(files.values())
    for rule, home in (*renames(question.situation), *_signatures(question)):
        is_due = rule.age == 0 or isinstance(rule, Signature)
        is_told = is_due if offer is None else rule in made
        if not is_told:
            continue
        if offer is not None and offer.kind != rule.kind:
            return answer
        if isinstance(rule, Signature):
            work = calls_left(rule, home, files.values(), project, places)
        else:
            work = note_of(rule, home, files.values(), project, places)
        leavings = await question.cost.in_turns(work, Left(UNJUDGED))
        if offer is not None:
            return replace(answer, offers=(replace(offer, note=leavings.note), *answer.offers[1:]))
        if leavings.note:
            return _led_by(rule, question, leavings, answer)
    return answer if offer is not None or not question.edits else await _with_undone(question, project, answer)


def _led_by(rule: Rename | Signature, question: NextQuestion, leavings: Left, answer: Answer) -> Answer:
    answer = replace(answer, silence=_because_of(rule, leavings.note, answer.silence))
    is_on_it = rule.known_as in question.edits[-1].after
    return broken.leading_to_left(question, leavings, answer) if is_on_it or not rule.age else answer


async def _with_undone(question: NextQuestion, project: Project, answer: Answer) -> Answer:
    """The answer with what the last edit leaves, where no rule knows what to write."""
    leavings = await question.cost.in_turns(undone(question.situation, project), Left(""))
    if not leavings.note:
        return answer
    silence = "; ".join(filter(None, (leavings.note, answer.silence.removeprefix(NOTHING_FOLLOWS).removeprefix("; "))))
    return broken.leading_to_left(question, leavings, replace(answer, silence=silence))


def _because_of(rule: Rename | Signature, note: str, silence: str) -> str:
    """The reason for silence with this note, and with the edit that it is about."""
    about = f"{note}, since {rule.done}"
    if rule.age:
        return f"{silence}; of an edit before the last: {about}"
    return "; ".join(filter(None, (about, silence.removeprefix(NOTHING_FOLLOWS).removeprefix("; "))))


def _signatures(question: NextQuestion) -> Iterator[tuple[Signature, Snapshot]]:
    """The signatures that the edits changed, each with the file that declares it."""
    homes = {file.path: file for file in question.files.values()}
    for signature in changed_signatures(question.files.values(), question.edits):
        if signature.path in homes:
            yield signature, homes[signature.path]


def _asking(question: NextQuestion) -> Callable[..., AsyncGenerator[Answer]]:
    if question.rewrites_lines:
        return _line_rewritten_by if question.invoked else _judged_by
    return _window_rewritten_by if question.rewrites else _judged_by


async def _line_rewritten_by(
    question: NextQuestion, candidates: Sequence[Candidate], answer: Answer, engine: Suggesting
) -> AsyncGenerator[Answer]:
    """The answer with what a model makes of the cursor's line, unless rules are certain of what follows: at the line to
    which the user has gone, a sure model is right more often than they are."""
    by_rule, bar = answer, ranking.load().bar
    if not question.history.mark or any(candidate.certain for candidate in group(question, candidates, bar)):
        return
    asked_lines = cursor_line.at_cursor(question)
    regions = Deadline(question.deadline_ms).limited(cursor_line.regions(question, asked_lines))
    try:
        async with aclosing(engine.rewrite(regions)) as drafts:
            async for draft in drafts:
                if draft.final:
                    rewrite = cursor_line.rewrite_of(question, asked_lines, draft.regions[0], candidates)
                    answer = await _with_written(question, (), rewrite, by_rule)
                    is_sure = answer.offer is not None and answer.offer.p_accept >= bar
                    answer = answer if is_sure or by_rule.offer is None else by_rule
                yield replace(answer, step=draft.step)
    except (EngineUnavailable, EngineError) as error:
        log.info("the engine wrote no next edit: %s", error)


async def _window_rewritten_by(
    question: NextQuestion, candidates: Sequence[Candidate], answer: Answer, engine: Suggesting
) -> AsyncGenerator[Answer]:
    """The answer with what a next-edit model rewrites around the cursor, and if that is nothing, elsewhere. What is
    certain does not wait for it."""
    bar, by_rule = ranking.load().bar, answer
    if any(candidate.certain for candidate in group(question, candidates, bar)):
        return
    deadline = Deadline(question.deadline_ms)
    is_sure = answer.offer is not None and answer.offer.p_accept >= region.SURE_ENOUGH
    until = asyncio.get_running_loop().time() + SHORT_WAIT_SECONDS if is_sure else None
    for number, (snapshot, offset) in enumerate(region.places(question, candidates)):
        if number and (answer.offer or deadline.left < (question.deadline_ms or 0) / 2):
            return
        regions = deadline.limited(region.regions_at(question, snapshot, offset, question.diagnostics_of(snapshot)))
        rewrite: region.RegionRewrite | Silence = Silence(region.LATE)
        async with aclosing(engine.rewrite(regions)) as drafts:
            while draft := await _next_draft(drafts, until):
                answer = replace(answer, step=draft.step, sent=draft.sent)
                if draft.final and draft.step:
                    lines = window(snapshot, offset, question.budget.characters)
                    rewrite = region.rewritten(question, snapshot, lines, draft.regions[0], candidates)
                else:
                    yield answer
        better = await _with_written(question, candidates, rewrite, by_rule)
        yield (answer := replace(better, step=answer.step, sent=answer.sent))


async def _next_draft(drafts: AsyncGenerator[Rewrites], until: float | None) -> Rewrites | None:
    """The next draft, None after the last one and if none comes until then, by the loop's clock."""
    with suppress(TimeoutError):
        async with asyncio.timeout_at(until):
            return await anext(drafts, None)
    return None


async def _with_written(
    question: NextQuestion, candidates: Sequence[Candidate], rewrite: region.RegionRewrite | Silence, by_rule: Answer
) -> Answer:
    """The answer by the rules and what the model has written, or why that adds nothing."""
    if isinstance(rewrite, Silence):
        return by_rule if by_rule.offer else replace(by_rule, silence=f"{by_rule.silence}; {rewrite.reason}")
    answer = await _checked(question, region.merged_candidates(question, candidates, rewrite.edits), ranking.load().bar)
    return _with_evidence(question, answer if answer.offer or not by_rule.offer else by_rule, rewrite)


def _with_evidence(question: NextQuestion, answer: Answer, rewrite: region.RegionRewrite) -> Answer:
    """The answer with what the model's edits are judged by, whether they are in it or not."""
    evidence = rewrite.evidence
    if answer.offer and answer.offer.kind == "region":
        return replace(answer, offers=(replace(answer.offer, evidence=evidence),))
    edits = tuple(TextEdit(edit.start, edit.end, edit.text or "", edit.uri) for edit in _in_order(rewrite.edits))
    base = {edit.uri: question.files[edit.uri] for edit in edits}
    return replace(answer, unshown=Offer(edits, rewrite.edits[0].p_edit, base, kind="region", evidence=evidence))


async def _judged_by(
    question: NextQuestion, candidates: Sequence[Candidate], answer: Answer, engine: Suggesting
) -> AsyncGenerator[Answer]:
    """The answer with the first of the rules' likeliest edits that a model finds likely enough, unless it is asked for
    by hand, or anything is certain. The answer by rule stays if the model has no opinion."""
    is_asked = question.judges and not question.invoked and not any(c.certain for c in candidates)
    bar, bundles = ranking.load().bar, opinion.bundles(question, candidates) if is_asked else []
    if not bundles:
        return
    proposals = Deadline(question.deadline_ms).limited(opinion.proposals(question, bundles))
    try:
        async with aclosing(engine.judge(proposals)) as drafts:
            async for opinions in drafts:
                is_told = any(likelihood is not None for likelihood in opinions.likelihoods)
                if is_told:
                    judged = opinion.judged(candidates, bundles, opinions.likelihoods)
                    answer = await _checked(question, distinct(judged), bar)
                yield replace(answer, step=opinions.step)
                if is_told and answer.offer:
                    return
    except (EngineUnavailable, EngineError) as error:
        log.info("the engine had no opinion of a next edit: %s", error)


def _admissible(question: NextQuestion, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Without what the user has undone, and without all other candidates of its rule."""
    candidates = list(candidates)
    undone = [
        candidate.rule
        for candidate in candidates
        if candidate.text is not None and question.is_reversal(candidate.uri, candidate)
    ]
    return [candidate for candidate in candidates if candidate.rule is None or candidate.rule not in undone]


def group(question: NextQuestion, candidates: Sequence[Candidate], fitted: float) -> list[Candidate]:
    """The leader and what is shown with it, all above the bar unless bound: candidates about as likely that the same
    edit taught, and others on their lines."""
    sure = [candidate for candidate in candidates if _is_above_bar(question, candidate, fitted)]
    if not sure:
        return []
    leader = _leading(question, sure)
    rest = [candidate for candidate in candidates if candidate not in sure and _is_rest_of(candidate, leader)]
    chosen = [leader, *(candidate for candidate in (*sure, *rest) if _goes_with(candidate, leader))]
    visible = _on_lines_of(question, chosen, (*sure, *rest))
    if not leader.certain:
        return visible + _bound_to(chosen, candidates, visible)
    # Certain renames are right as they are, and what else may follow from them comes afterwards.
    return [candidate for candidate in visible if candidate.certain]


def _on_lines_of(
    question: NextQuestion, chosen: Sequence[Candidate], candidates: Sequence[Candidate]
) -> list[Candidate]:
    lines = {_line_of(question, candidate) for candidate in chosen}
    return [candidate for candidate in candidates if _line_of(question, candidate) in lines]


def _is_above_bar(question: NextQuestion, candidate: Candidate, fitted: float) -> bool:
    return candidate.text is not None and candidate.p_edit >= question.bar_for(candidate, fitted)


def _bound_to(
    chosen: Sequence[Candidate], candidates: Sequence[Candidate], visible: Sequence[Candidate]
) -> list[Candidate]:
    """What else belongs to the edits of which a part was chosen."""
    rules = [candidate.rule for candidate in chosen if candidate.bound]
    parts = [candidate for candidate in candidates if candidate.bound and candidate.rule in rules]
    return [candidate for candidate in parts if candidate not in visible]


def _leading(question: NextQuestion, sure: Sequence[Candidate]) -> Candidate:
    """The likeliest of those that come first, or one nearly as likely of a later edit."""
    first = [candidate for candidate in sure if _follows_from_fresh(question, candidate)] or sure
    likeliest = max(candidate.p_edit for candidate in first)
    return min((candidate for candidate in first if candidate.p_edit >= AS_LIKELY * likeliest), key=_latest)


def _follows_from_fresh(question: NextQuestion, candidate: Candidate) -> bool:
    """Whether it follows from the edits that come first: what a next-edit model writes follows from the latest."""
    if candidate.kind == "region":
        return question.fresh > 0
    return candidate.rule is not None and candidate.rule.age < question.fresh


def _latest(candidate: Candidate) -> tuple[int, float]:
    """Sorts candidates of later edits first, then likelier ones."""
    return candidate.rule.age if candidate.rule else 0, -candidate.p_edit


def _goes_with(candidate: Candidate, leader: Candidate) -> bool:
    """Whether the same edit taught both and they are about as likely; a rename is shown whole."""
    rule, leading = candidate.rule, leader.rule
    if rule is None or leading is None or rule.age != leading.age:
        return False
    return candidate.p_edit >= ABOUT * leader.p_edit or (rule == leading and rule.is_indivisible)


def _is_rest_of(candidate: Candidate, leader: Candidate) -> bool:
    """Whether leaving it out would tear apart what the leader begins, though it alone would not be shown."""
    if candidate.text is None or leader.rule is None or not leader.rule.is_indivisible:
        return False
    return candidate.rule == leader.rule and candidate.p_edit >= ABOUT * leader.p_edit


def _line_of(question: NextQuestion, candidate: Candidate) -> tuple[str, int]:
    return candidate.uri, question.files[candidate.uri].line_of(candidate.start)


async def _checked(question: NextQuestion, candidates: Sequence[Candidate], fitted: float) -> Answer:
    """The answer; what the parser has to say is computed first, in turns."""
    chosen = group(question, candidates, fitted)
    await question.cost.in_turns(_parses(question, chosen), None)
    return _answered(question, candidates, chosen, fitted)


def _parses(question: NextQuestion, chosen: Sequence[Candidate]) -> Generator[None, None, None]:
    for uri, snapshot in question.files.items():
        together = _in_order(candidate for candidate in chosen if candidate.uri == uri and not candidate.certain)
        alone = together if _parses_worse(snapshot, together, PATIENCE) else ()
        yield
        for candidate in alone:
            _parses_worse(snapshot, [candidate])
            yield


def _answered(
    question: NextQuestion, candidates: Sequence[Candidate], chosen: Sequence[Candidate], fitted: float
) -> Answer:
    """The chosen edits, without those that make a file parse worse."""
    if not chosen:
        return Answer(silence=_unsure(question, candidates, fitted))
    files = question.files
    parsed = [
        candidate
        for uri, snapshot in files.items()
        for candidate in _parsing(snapshot, [c for c in chosen if c.uri == uri])
    ]
    if not parsed:
        return Answer(silence="the file would have more syntax errors than before")
    edits = tuple(TextEdit(candidate.start, candidate.end, candidate.text or "", candidate.uri) for candidate in parsed)
    leader = max(parsed, key=lambda candidate: candidate.p_edit)
    p_accept = sum(candidate.p_edit for candidate in parsed) / len(parsed)
    base = {edit.uri: files[edit.uri] for edit in edits}
    return Answer((Offer(edits, p_accept, base, kind=leader.kind, label=_label(leader)),))


def _unsure(question: NextQuestion, candidates: Sequence[Candidate], fitted: float) -> str:
    """Why none of these is shown, by the likeliest that follows from the last edit."""
    candidates = [candidate for candidate in candidates if candidate.rule is None or candidate.rule.age == 0]
    if not candidates:
        return NOTHING_FOLLOWS
    edits = [candidate for candidate in candidates if candidate.text is not None]
    if not edits:
        return "no rule says what to write"
    likeliest = max(edits, key=lambda candidate: candidate.p_edit)
    chance, bar = likeliest.p_edit, question.bar_for(likeliest, fitted)
    if bar == fitted / likeliest.p_due:  # what counts is whether anything is due at all
        chance, bar = chance * likeliest.p_due, fitted
    return f"unsure: {_label(likeliest)} is {chance:.0%} likely, under the bar of {bar:.0%}"


def _parsing(snapshot: Snapshot, chosen: Sequence[Candidate]) -> list[Candidate]:
    """All of them if the file parses no worse with them, otherwise those that do no harm one by one."""
    ordered = _in_order(chosen)
    if all(candidate.certain for candidate in ordered):
        # One name for another makes no difference to a parser.
        return ordered
    if not _parses_worse(snapshot, ordered, PATIENCE):
        return ordered
    harmless = [candidate for candidate in ordered if not _parses_worse(snapshot, [candidate])]
    return [] if _parses_worse(snapshot, harmless, PATIENCE) else harmless


def _in_order(chosen: Iterable[Candidate]) -> list[Candidate]:
    return sorted(chosen, key=lambda candidate: candidate.start)


def _parses_worse(snapshot: Snapshot, chosen: Sequence[Candidate], patience: int = 1) -> bool:
    changes = tuple(TextEdit(candidate.start, candidate.end, candidate.text or "") for candidate in reversed(chosen))
    return bool(changes) and _is_worse_with(snapshot, changes, patience)


@cached
def _is_worse_with(snapshot: Snapshot, changes: tuple[TextEdit, ...], patience: int) -> bool:
    """Remembered, since most drafts propose the same."""
    language = find(snapshot.language, snapshot.path)
    if language is None or snapshot.tree is None:
        return False
    tree = reparse(snapshot.tree, language, snapshot.text, changes, patience * snapshot.patience)
    before = syntax.problems(snapshot.tree)
    old, new = _touched(snapshot.text, changes)
    if tree is None or syntax.empty_blocks(tree, new) > syntax.empty_blocks(snapshot.tree, old):
        return True
    if not 0 < before < syntax.problems(tree):
        return syntax.problems(tree) > before
    return syntax.problems(tree, new) > syntax.problems(snapshot.tree, old)


def _touched(text: str, changes: Sequence[TextEdit]) -> tuple[list[range], list[range]]:
    """The rows of a text that these changes, the last one first, replace, and those that they make of them."""
    old: list[range] = []
    new: list[range] = []
    grown = 0
    for change in reversed(changes):
        row, came = text.count("\n", 0, change.start), change.text.count("\n")
        went = text.count("\n", change.start, change.end)
        old.append(range(row, row + went + 1))
        new.append(range(row + grown, row + grown + came + 1))
        grown += came - went
    return old, new


def _label(candidate: Candidate) -> str:
    """What the offer is called, after its likeliest edit; where the edits are, each editor shows in its own way."""
    return kind_of(candidate.rule).label(candidate.rule) if candidate.rule is not None else "edit"
