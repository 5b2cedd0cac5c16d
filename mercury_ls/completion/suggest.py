"""The straight path of an inline completion: from a text and a cursor to offers, or to the reason for none."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import count
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Draft, Effort, EngineInfo, InfillRequest, Members, Proposed, Span, SpanMode, Window
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.history import History
from mercury_ls.completion import target
from mercury_ls.completion.calibration import AS_GIVEN, Correction
from mercury_ls.completion.context import Budget, Related, window
from mercury_ls.completion.deadline import Deadline
from mercury_ls.completion.offers import Answer, Offer
from mercury_ls.completion.polish import polish
from mercury_ls.completion.target import Silence, Target
from mercury_ls.settings.schema import SuggestSettings

__all__ = ["EVERYTHING", "NO_DRAFT", "Infill", "Question", "asked_modes", "request", "suggest", "where"]

NO_DRAFT = Answer(silence="the engine returned no draft")
LATE = Answer(silence="the deadline passed before there was a draft: the engine was busy, or the deadline is too short")

EVERYTHING: tuple[SpanMode, ...] = ("line", "block", "edit")
"""What a model of this project answers."""

MIN_EXPECTED_SAVING = 20.0
"""Keystrokes that an unfinished suggestion must save on average, times the bar: five with the default bar. Nobody
needs to be told that an `if` comes next."""


SEARCHED = 4
"""Other answers that effort *high* asks for until one can be shown."""

UNSURE = "unsure"
"""How the reasons begin for which no other answer is asked for."""


class Infill(Protocol):
    """The engine, near or far: drafts of growing quality; closing the iterator cancels."""

    def infill(self, request: InfillRequest) -> AsyncGenerator[Draft]: ...


class Question(Struct, frozen=True, kw_only=True):
    """Everything that a suggestion depends on; `modes` are the spans to ask the engine about, `slots` is for those who
    watch the draft, `correction` is how the engine's probabilities are corrected, `most_tokens` how long a suggestion
    may become."""

    snapshot: Snapshot
    offset: int
    history: History
    related: Related
    settings: SuggestSettings
    recent_edits: int = 16
    budget: Budget
    session: str
    bar: float
    invoked: bool = False
    alternatives: int = 1
    effort: Effort = "low"
    deadline_ms: float | None = None
    members: tuple[Members, ...] = ()
    proposals: tuple[Proposed, ...] = ()
    modes: tuple[SpanMode, ...] = EVERYTHING
    slots: bool = False
    correction: Correction = AS_GIVEN
    most_tokens: int = 64


def asked_modes(info: EngineInfo | None) -> tuple[SpanMode, ...]:
    """The spans to ask an engine about: all that it answers, but edits only if it is known how much its word about them
    counts."""
    if info is None:
        return EVERYTHING
    is_judge = info.calibrated or info.rescoring is not None
    return tuple(mode for mode in info.answers if mode != "edit" or is_judge)


async def suggest(question: Question, engine: Infill) -> AsyncGenerator[Answer]:
    """Answers as the drafts improve; the last one is final, and the only one that an editor needs."""
    span = where(question)
    if isinstance(span, Silence):
        yield Answer(silence=span.reason, final=True)
        return
    answer, deadline = NO_DRAFT, Deadline(question.deadline_ms)
    found: list[Offer] = []
    for seed in count():
        wanted = seed < question.alternatives or goes_on(question, answer, found, seed)
        if not wanted or (seed and not deadline.left):
            break
        asked = deadline.limited(request(question, span, seed))
        async with aclosing(engine.infill(asked)) as drafts:
            async for draft in drafts:
                answer = answered(question, span, draft)
                if seed == 0 and not draft.final:
                    yield answer
        found += [each for each in answer.offers if each.edits not in [other.edits for other in found]]
    yield best(answer, found)


def goes_on(question: Question, answer: Answer, found: list[Offer], seed: int) -> bool:
    """Whether another answer is tried: at effort *high*, while what the model is sure enough of cannot be shown."""
    is_held_back = answer.step > 0 and not answer.silence.startswith(UNSURE)
    return question.effort == "high" and not found and is_held_back and seed <= SEARCHED


def where(question: Question) -> Target | Silence:
    settings, modes = question.settings, question.modes
    if "line" not in modes and "block" not in modes:
        return Silence("the model only proposes next edits; `mercury-ls model recommend` names some that complete code")
    found = target.at_cursor(
        question.snapshot,
        question.offset,
        invoked=question.invoked,
        in_comments=settings.in_comments,
        in_strings=settings.in_strings,
        multi_line=settings.multi_line,
    )
    if isinstance(found, Target) and found.mode not in modes:
        return Silence(f"the model only completes {'blocks' if 'block' in modes else 'lines'}")
    return found


def request(question: Question, span: Target, seed: int = 0) -> InfillRequest:
    snapshot = question.snapshot
    start, end = window(snapshot, span.start, question.budget.characters)
    return InfillRequest(
        session=question.session,
        windows=(Window(snapshot.path, snapshot.language, snapshot.text[start:end]),),
        spans=(Span(0, span.start - start, span.end - start, span.mode, question.most_tokens),),
        snippets=question.related.snippets,
        edits=question.history.edits(question.recent_edits),
        effort=question.effort,
        seed=seed,
        members=question.members,
        slots=question.slots,
        proposals=question.proposals,
        invoked=question.invoked,
    )


def answered(question: Question, span: Target, draft: Draft) -> Answer:
    """The gate comes first, since it is cheap; what passes is polished."""
    if not (draft.step or draft.sent):
        return replace(LATE, final=draft.final)
    filled = draft.spans[0]
    p_accept = question.correction(filled.p_accept)
    known = {"step": draft.step, "draft": filled.text, "tokens": len(filled.confidence), "final": draft.final}
    known |= {"sent": draft.sent, "slots": filled.slots}
    if not question.invoked and p_accept < question.bar:
        return Answer(
            silence=f"{UNSURE}: {p_accept:.0%} likely to be accepted, under the bar of {question.bar:.0%}", **known
        )
    edit = polish(question.snapshot, span, filled.text, question.history, complete=filled.complete)
    if isinstance(edit, Silence):
        return Answer(silence=edit.reason, **known)
    saved = p_accept * len(edit.text.strip())
    if not (question.invoked or filled.complete) and saved < MIN_EXPECTED_SAVING * question.bar:
        return Answer(silence=f"{UNSURE} how it goes on: it would save {saved:.1f} keystrokes on average", **known)
    base = {edit.uri: question.snapshot}
    offer = Offer((edit,), p_accept, base, p_model=filled.p_accept, tokens=len(filled.confidence))
    return Answer((offer,), **known)


def best(last: Answer, found: list[Offer]) -> Answer:
    offers = tuple(sorted(found, key=lambda offer: -offer.p_accept))
    silence = "" if offers else last.silence
    return replace(last, offers=offers, silence=silence, final=True)
