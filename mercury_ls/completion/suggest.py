"""The straight path of an inline completion: from a text and a cursor to offers, or to the reason for none."""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from itertools import count
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import (
    Draft,
    Effort,
    EngineInfo,
    Gap,
    Members,
)
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.history import History
from mercury_ls.code.lexemes import line_break
from mercury_ls.code.private import hides, shown, without_quotes
from mercury_ls.completion.budgets import USUAL_BAR
from mercury_ls.completion.context import ContextBudget, Related, window
from mercury_ls.completion.deadline import Deadline
from mercury_ls.completion.judge import UNTAUGHT, Judge
from mercury_ls.completion.offers import Answer, Offer
from mercury_ls.completion.polish import polish, without_loose_end
from mercury_ls.completion.target import Silence, Target, at_cursor
from mercury_ls.settings.schema import SuggestSettings
from mercury_ls.wording import counted

NO_DRAFT = Answer(silence="the engine returned no draft")
LATE = "late: the deadline passed before there was a draft, since the engine was busy, or needs more time"
READING = "late: the model is still reading the code around the cursor, {} to go"
EMPTY = "empty: the model adds nothing here"

OPINION_TOKENS, OPINION_MS = 300, 2000.0
"""What a model reads before it has an opinion of several edits, and how long these wait for it."""

MASK = re.compile(r"\*{6,}")

LEAST_SAVING = 4.0
"""Keystrokes that an unfinished suggestion must save on average; fewer where the bar is lower than usual. Nobody needs
to be told that an `if` comes next."""


SEARCHED = 4
"""Other answers that are asked for, at effort *high* or by hand, until one can be shown."""

UNSURE = "unsure"
"""How the reasons begin for which no other answer is asked for."""
GIVEN_UP = f"{UNSURE}: no answer is likely"


class Filling(Protocol):
    """The engine, near or far: drafts of growing quality; closing the iterator cancels."""

    def fill(self, gap: Gap) -> AsyncGenerator[Draft]: ...


class Question(Struct, frozen=True, kw_only=True):
    """Everything that a suggestion depends on. It goes to the `target`, which is nothing but the cursor until `where`
    has chosen. The engine `fills` gaps, `rewrites` regions, only the cursor's line if it `rewrites_lines`, or `judges`
    proposals in time, `strong` says that it is asked for several lines wherever they fit, `slow` that it is asked by
    hand alone, `grows` that its drafts only ever get longer, `starts` that these may be shown as they are; `slots` is
    for those who watch the draft, `judge` says how likely answers are to be kept, `missed` that the user just typed
    something else than the last one, `most_tokens` how long a suggestion may become, `alternatives` how many answers it
    may have. If it is `persistent`, another answer is asked for where one has to be discarded, and the next line where
    a line is complete. The `blind_bar` is for answers whose model tells no probabilities.
    """

    snapshot: Snapshot
    offset: int
    target: Target
    history: History
    related: Related
    settings: SuggestSettings
    recent_edits: int = 16
    budget: ContextBudget
    session: str
    bar: float
    blind_bar: float = USUAL_BAR
    invoked: bool = False
    seed: int = 0
    effort: Effort = "low"
    deadline_ms: float | None = None
    members: tuple[Members, ...] = ()
    fills: bool = True
    rewrites: bool = False
    rewrites_lines: bool = False
    judges: bool = False
    strong: bool = False
    slow: bool = False
    grows: bool = False
    starts: bool = False
    slots: bool = False
    judge: Judge = UNTAUGHT
    missed: bool = False
    most_tokens: int = 64
    alternatives: int = 1
    persistent: bool = False

    @property
    def hides(self) -> bool:
        """Whether there are private keys that the engine is not told."""
        return self.related.hides or hides(self.snapshot)


def judges_in_time(info: EngineInfo) -> bool:
    return info.judges and 0.0 < info.reading_ms(OPINION_TOKENS) <= 0.75 * OPINION_MS


async def suggest(question: Question, engine: Filling) -> AsyncGenerator[Answer]:
    """Answers as the drafts improve; the last one is final, and the only one that most editors need. It has the offers
    of alternatives too, which are asked for together. None of these takes anything from the first: what fails or comes
    too late is left out."""
    first, deadline = NO_DRAFT, Deadline(question.deadline_ms)
    async with aclosing(_improving(question, engine, deadline)) as answers:
        async for first in answers:
            if not first.final:
                yield first

    async def last(number: int) -> Answer:
        async with aclosing(_improving(alternative(question, number), engine, deadline)) as answers:
            return [answer async for answer in answers][-1]

    numbers = range(1, question.alternatives) if deadline.left else ()
    alternatives = await asyncio.gather(*map(last, numbers), return_exceptions=True)
    yield joined([first, *(other for other in alternatives if isinstance(other, Answer))])


def alternative(question: Question, number: int) -> Question:
    """The question for the first other answer, the second, and so on. None of them is worth further attempts."""
    return replace(question, seed=question.seed + number, persistent=False)


async def _improving(question: Question, engine: Filling, deadline: Deadline) -> AsyncGenerator[Answer]:
    answer = NO_DRAFT
    for attempted in _places(question):
        async with aclosing(_attempts(attempted, engine, deadline)) as answers:
            async for answer in answers:
                if not answer.final:
                    yield answer
        if answer.silence != EMPTY or not deadline.left:
            break
    yield replace(answer, final=True)


def _places(question: Question) -> Iterator[Question]:
    """The question, and by hand at the end of a line the same below, for when the model adds nothing to the line."""
    yield question
    snapshot, target = question.snapshot, question.target
    line = snapshot.line_of(target.start)
    if question.persistent and target.end == snapshot.line_end(line) and snapshot.line(line).strip():
        yield replace(question, target=Target(target.start, target.end, block=True, free=True, below=True))


async def _attempts(question: Question, engine: Filling, deadline: Deadline) -> AsyncGenerator[Answer]:
    """The answers to each seed as they grow, until one is shown or no other is worth a try."""
    answer, is_shown = NO_DRAFT, False
    for seed in count(question.seed):
        async with aclosing(engine.fill(deadline.limited(gap_at(replace(question, seed=seed))))) as drafts:
            async for draft in drafts:
                answer = answered(question, draft)
                is_shown = is_shown or bool(answer.offers)
                yield answer
        if is_shown or not (_goes_on(question, answer, seed - question.seed) and deadline.left):
            return


def _beginning(text: str, *, block: bool, is_last: bool) -> str:
    """What of an unfinished answer may be shown: its whole lines, which will not change; of the last draft else
    what there is of the first line."""
    lines, feed, _ = text.rpartition("\n") if block else ("", "", "")
    return lines if lines.strip() else text if is_last and not feed else ""


def joined(answers: Sequence[Answer]) -> Answer:
    """The first answer with the offers of all, each once, the first one's first and the others by probability."""
    first = answers[0]
    offers = {offer.edits: offer for answer in reversed(answers) for offer in answer.offers}
    ranked = sorted(offers.values(), key=lambda offer: (offer not in first.offers, -offer.p_accept))
    return replace(first, offers=tuple(ranked), silence="" if ranked else first.silence)


def _goes_on(question: Question, answer: Answer, tried: int) -> bool:
    """Whether another answer is tried: at effort *high* while none can be shown that the model is sure enough of, and
    by hand while one had to be discarded."""
    is_held_back = answer.step > 0 and not answer.offers and not answer.silence.startswith(UNSURE)
    is_tried = question.effort == "high" or (question.persistent and answer.silence != EMPTY)
    return is_held_back and is_tried and tried < SEARCHED


def where(question: Question) -> Question | Silence:
    """The question with the place that a completion goes to, or why there is none."""
    snapshot = question.snapshot
    if not question.fills:
        return Silence("the model only proposes next edits; `mercury-ls model recommend` names some that complete code")
    if hides(snapshot, max(question.offset - 1, 0), question.offset + 1):
        return Silence("the cursor is in a private key, which no model is shown")
    if question.slow and not question.invoked:
        return Silence("the model is too slow here to follow your typing: request a suggestion by hand")
    target = at_cursor(
        snapshot,
        question.offset,
        question.settings,
        invoked=question.invoked,
        strong=question.strong,
        edited=_edits_the_line(question),
    )
    return target if isinstance(target, Silence) else replace(question, target=target)


def _edits_the_line(question: Question) -> bool:
    """Whether the last edit is of the line at the cursor."""
    snapshot, latest = question.snapshot, question.history.edits(1)
    return any(edit.path == snapshot.path and snapshot.line_of(question.offset) in edit.rows for edit in latest)


def gap_at(question: Question) -> Gap:
    """The target of a completion replaces nothing but blanks behind the cursor, which no model needs to see."""
    snapshot, target = question.snapshot, question.target
    start, end = window(snapshot, target.start, question.budget.characters)
    before, block = shown(snapshot)[start : target.start], target.block
    if target.below:
        before, block = before.rstrip(" \t") + line_break(snapshot.text), question.strong
    return Gap(
        session=question.session,
        path=snapshot.path,
        language=snapshot.language,
        before=before,
        after=shown(snapshot)[target.end : end],
        block=block,
        most_tokens=question.most_tokens,
        snippets=question.related.snippets,
        edits=question.history.edits(question.recent_edits),
        effort=question.effort,
        seed=question.seed,
        members=tuple(_without_keys(snapshot, names) for names in question.members),
        slots=question.slots,
        invoked=question.invoked,
        bar=0.0 if question.invoked else question.judge.word_for(question.bar, missed=question.missed),
    )


def _without_keys(snapshot: Snapshot, members: Members) -> Members:
    """Without the words that a parser takes for names in a key that stands bare in the text."""
    if not hides(snapshot):
        return members
    names = tuple(name for name in members.names if without_quotes(snapshot, name) == name)
    return Members(without_quotes(snapshot, members.receiver), names)


def answered(question: Question, draft: Draft) -> Answer:
    """What is unlikely to be kept is not shown, but followed: the text that the user writes says what it was worth."""
    if question.target.below and draft.text.strip():
        draft = replace(draft, text="\n" + draft.text)
    answer = Answer(
        step=draft.step,
        draft=draft.text,
        tokens=len(draft.confidence),
        final=draft.final,
        sent=draft.sent,
        slots=draft.slots,
        unread=draft.unread,
    )
    if not draft.step:
        return replace(answer, silence=READING.format(counted(draft.unread, "token")) if draft.unread else LATE)
    if question.grows and not (question.starts or draft.complete):
        draft = replace(draft, text=_beginning(draft.text, block=question.target.block, is_last=draft.final))
    if question.hides and MASK.search(draft.text):
        return replace(answer, silence="it repeats a private key, which the model was not shown")
    if not draft.text.strip():
        return replace(answer, silence=EMPTY if draft.complete or question.invoked else GIVEN_UP)
    evidence = question.judge.evidence(draft, missed=question.missed)
    p_accept, unsure = question.judge.chance(evidence), ""
    answer = replace(answer, evidence=evidence)
    bar = question.bar if evidence.calibrated else question.blind_bar
    if not question.invoked and p_accept < bar:
        unsure = f"{UNSURE}: {p_accept:.0%} likely to be kept, under the bar of {bar:.0%}"
        if not draft.final:
            return replace(answer, silence=unsure)
    is_cut = question.starts and not (question.invoked or draft.complete or draft.text.endswith("\n"))
    text = without_loose_end(draft.text) if is_cut else draft.text
    edit = polish(question.snapshot, question.target, text, question.history, complete=draft.complete)
    if isinstance(edit, Silence):
        return replace(answer, silence=unsure or edit.reason)
    saved = p_accept * len(edit.text.strip())
    if not (unsure or question.invoked or draft.complete) and saved < LEAST_SAVING * min(bar / USUAL_BAR, 1.0):
        size = counted(len(edit.text.strip()), "character")
        unsure = f"{UNSURE} how it goes on: its first {size}, {p_accept:.0%} likely to be kept, are too few to show"
    base = {edit.uri: question.snapshot}
    offer = Offer((edit,), p_accept, base, tokens=len(draft.confidence), evidence=evidence)
    return replace(answer, silence=unsure, unshown=offer) if unsure else replace(answer, offers=(offer,))
