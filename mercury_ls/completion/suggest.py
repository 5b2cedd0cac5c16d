"""The straight path, behind every face: from a text and a cursor to suggestions, or to the reason for none."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Protocol

from msgspec import Struct

from mercury_engine.api import Draft, Effort, InfillRequest
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.history import History
from mercury_ls.completion import context, targets
from mercury_ls.completion.context import Budget, Related
from mercury_ls.completion.polish import Proposal, polish
from mercury_ls.completion.targets import Silence, Target
from mercury_ls.settings.schema import SuggestSettings

__all__ = ["Answer", "Infill", "Question", "Suggestion", "suggest"]


WORTH_READING = 20.0
"""Times the bar: keystrokes that the beginning of an answer must save on average, five where nothing was set. Nobody
needs to be told that an `if` comes next."""


class Infill(Protocol):
    """The engine, near or far: drafts of growing quality; closing the iterator cancels."""

    def infill(self, request: InfillRequest) -> AsyncGenerator[Draft]: ...


class Question(Struct, frozen=True, kw_only=True):
    """Everything that a suggestion depends on."""

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


class Suggestion(Struct, frozen=True):
    proposal: Proposal
    p_accept: float


class Answer(Struct, frozen=True):
    """Suggestions, best first; or none and why. `draft` is the raw text of the pass it was made from, in `tokens`."""

    suggestions: tuple[Suggestion, ...] = ()
    silence: str = ""
    step: int = 0
    draft: str = ""
    tokens: int = 0
    final: bool = False


async def suggest(question: Question, engine: Infill) -> AsyncGenerator[Answer]:
    """Answers as the drafts improve; the last is final and the only one that an editor needs."""
    target = where(question)
    if isinstance(target, Silence):
        yield Answer(silence=target.reason, final=True)
        return
    answer = Answer(silence="the engine gave no draft")
    found: list[Suggestion] = []
    for seed in range(question.alternatives):
        async with aclosing(engine.infill(request(question, target, seed))) as drafts:
            async for draft in drafts:
                answer = judged(question, target, draft)
                if seed == 0 and not draft.final:
                    yield answer
        found += [s for s in answer.suggestions if s.proposal not in [f.proposal for f in found]]
    yield finished(answer, found)


def where(question: Question) -> Target | Silence:
    settings = question.settings
    return targets.at_cursor(
        question.snapshot,
        question.offset,
        invoked=question.invoked,
        in_comments=settings.in_comments,
        in_strings=settings.in_strings,
        multi_line=settings.multi_line,
    )


def request(question: Question, target: Target, seed: int) -> InfillRequest:
    return context.build(
        question.snapshot,
        [target],
        question.related,
        question.history.edits(question.recent_edits),
        question.budget,
        session=question.session,
        effort=question.effort,
        deadline_ms=question.deadline_ms,
        seed=seed,
    )


def judged(question: Question, target: Target, draft: Draft) -> Answer:
    """Gate first, since it is cheap; polish what passes."""
    filled = draft.spans[0]
    known = {"step": draft.step, "draft": filled.text, "tokens": len(filled.confidence), "final": draft.final}
    if not question.invoked and filled.p_accept < question.bar:
        return Answer(silence=f"unsure: {filled.p_accept:.0%} is under the bar of {question.bar:.0%}", **known)
    proposal = polish(question.snapshot, target, filled.text, question.history, complete=filled.complete)
    if isinstance(proposal, Silence):
        return Answer(silence=proposal.reason, **known)
    saved = filled.p_accept * len(proposal.text.strip())
    if not (question.invoked or filled.complete) and saved < WORTH_READING * question.bar:
        return Answer(silence=f"unsure how it goes on: it would save {saved:.1f} keystrokes on average", **known)
    return Answer(suggestions=(Suggestion(proposal, filled.p_accept),), **known)


def finished(last: Answer, found: Sequence[Suggestion]) -> Answer:
    best = tuple(sorted(found, key=lambda s: -s.p_accept))
    silence = "" if best else last.silence
    return Answer(suggestions=best, silence=silence, step=last.step, draft=last.draft, tokens=last.tokens, final=True)
