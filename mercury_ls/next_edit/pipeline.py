"""The straight path of next edits: from what the user has just done to what follows, over several files, or silence.

    async for answer in next_edits(NextQuestion(..., others=snapshots), engine): ...

What follows from the last edits by rule comes first and needs no engine (`engine=None` is fine); a model then checks it
and writes what no rule knows. The last answer is final. Offsets are of the snapshots whose versions the answer names.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from contextlib import aclosing
from itertools import groupby
from typing import Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Draft, InfillRequest, Span, Window, Worth
from mercury_ls.code import syntax
from mercury_ls.code.differences import on_the_way
from mercury_ls.code.documents import Snapshot, remembered, reparse
from mercury_ls.code.edits import TextEdit
from mercury_ls.code.languages import find
from mercury_ls.completion import target
from mercury_ls.completion.offers import Answer, Offer
from mercury_ls.completion.polish import in_the_files_style, without_sentinels
from mercury_ls.completion.suggest import Infill, Question
from mercury_ls.completion.target import Silence
from mercury_ls.next_edit import ranking
from mercury_ls.next_edit.candidates import Candidate, distinct, permitted
from mercury_ls.next_edit.imports import Diagnosed
from mercury_ls.next_edit.lexemes import minimal
from mercury_ls.next_edit.modules import Project
from mercury_ls.next_edit.propagation import rules
from mercury_ls.next_edit.renames import Renames

__all__ = [
    "NextQuestion",
    "Opinion",
    "admissible",
    "answers",
    "edits_of",
    "next_edits",
    "opinions",
    "regions_of",
    "requests",
]

MOST_HOLES = 4
"""At once: models learn from as many."""
MOST_REQUESTS = 3
MOST_CHECKED = 5
MOST_QUESTIONS = 3
LEAST_CHANCE = 0.05
"""Below that nothing is asked of a model."""
LONGEST_LABEL = 40
ABOUT = 0.7
"""Of the likeliest edit's chance, what another has to have to be shown with it."""
TURN_SECONDS = 0.01
PATIENCE = 4
"""Times that of a keystroke: what a long file would parse like is worth waiting for here."""
AS_LIKELY = 0.9
"""Of the likeliest edit's chance, what another has to have to come first because it is of a later edit."""


T = TypeVar("T")


class NextQuestion(Question, frozen=True, kw_only=True):
    """`others` are the files besides the current one that may be edited as well: open ones, and those of the
    workspace that have been read for it; `diagnosed` is what the editor's language servers say of the current one;
    `worth` is what the model's word counts. It is asked where its word can change what is shown, or `always`: to learn
    what it counts. What follows from the last `fresh` edits comes first: the user left an offer alone to make them."""

    others: tuple[Snapshot, ...] = ()
    diagnosed: tuple[Diagnosed, ...] = ()
    project: Project | None = None
    worth: Worth = Worth()
    asks: Literal["deciding", "always"] = "deciding"
    fresh: int = 0


class Region(Struct, frozen=True):
    """Whole lines of a file that a model is asked to write again, what the rules would make of them, whether the model
    has to find something there itself, and how likely it is that they change."""

    snapshot: Snapshot
    start: int
    end: int
    candidates: tuple[Candidate, ...]
    is_open: bool
    chance: float

    @property
    def old(self) -> str:
        return self.snapshot.text[self.start : self.end]


class Opinion(Struct, frozen=True):
    """A model's word on one edit: how sure it is of what it wrote there, and whether that is this edit (1), another
    (-1), or the edit was its own (0)."""

    candidate: Candidate
    p_model: float
    agreement: float

    def chance(self, worth: Worth) -> float:
        return ranking.checked(worth, self.candidate.p_edit, self.p_model, self.agreement)


async def next_edits(question: NextQuestion, engine: Infill | None) -> AsyncGenerator[Answer]:
    """What the rules know at once, then what a model makes of it as its drafts improve."""
    edits = edits_of(question)
    known = question.others, question.diagnosed, question.project, question.history.accepted()
    found = await in_turns(target.searching(question.snapshot, question.offset, edits, *known))
    if isinstance(found, Silence):
        yield Answer(silence=found.reason, final=True)
        return
    async with aclosing(answers(question, admissible(question, found), engine)) as given:
        async for answer in given:
            yield answer


async def in_turns(work: Generator[None, None, T]) -> T:
    """What the work comes to; whatever else is to be done has its turn every few milliseconds."""
    began = time.thread_time()
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value
        if time.thread_time() - began > TURN_SECONDS:
            await asyncio.sleep(0)
            began = time.thread_time()


async def answers(question: NextQuestion, found: Sequence[Candidate], engine: Infill | None) -> AsyncGenerator[Answer]:
    """What these edits come to at once, then as the model has it."""
    known = ranking.load()
    answer = await checked(question, found, known.bar)
    asked = requests(question, regions_of(question, found)) if engine else []
    if engine is None or not asked:
        yield replace(answer, final=True)
        return
    yield answer
    heard: list[Opinion] = []
    for regions, wanted in asked:
        said: list[Opinion] = []
        async with aclosing(engine.infill(wanted)) as drafts:
            async for draft in drafts:
                said = opinions(question, regions, found, draft)
                sure = judged(question, found, [*heard, *said])
                latest = await checked(question, sure, question.worth.bar or known.bar)
                answer = replace(latest, step=draft.step)
                yield answer
        heard += said
    yield replace(answer, final=True)


# What the rules know


def edits_of(question: NextQuestion) -> tuple:
    """The user's own: what an accepted offer did is no news."""
    return question.history.edits(question.recent_edits, own=True)


def files(question: NextQuestion) -> dict[str, Snapshot]:
    return {each.uri: each for each in (question.snapshot, *question.others)}


def admissible(question: NextQuestion, found: Iterable[Candidate]) -> list[Candidate]:
    """Nothing that the user has taken back: not there, and nowhere else by the same rule."""
    known = files(question)
    found = list(found)
    taken_back = [each.rule for each in found if each.text is not None and reverses(question, known[each.uri], each)]
    return [each for each in found if each.rule is None or each.rule not in taken_back]


def reverses(question: NextQuestion, snapshot: Snapshot, edit: Candidate | TextEdit) -> bool:
    text = edit.text or ""
    return question.history.reverses(snapshot.path, snapshot.text, edit.start, edit.end, text)


def group(question: NextQuestion, found: Sequence[Candidate], fitted: float) -> list[Candidate]:
    """The likeliest edit, of several about as likely the latest one's; the others that the same edit taught and that
    are about as likely, and what else is due on their lines. Nothing is below the bar, but for what is bound."""
    sure = [each for each in found if each.text is not None and each.p_edit >= bar_of(question, each, fitted)]
    if not sure:
        return []
    leading = [each for each in sure if each.rule and each.rule.age < question.fresh] or sure
    likeliest = max(each.p_edit for each in leading)
    leader = min((each for each in leading if each.p_edit >= AS_LIKELY * likeliest), key=latest)
    chosen = [each for each in sure if each is leader or goes_with(each, leader)]
    lines = {line_of(question, each) for each in chosen}
    if is_certain(leader):
        # Certain renames are right as they are, and what else may follow from them comes afterwards.
        return [each for each in sure if is_certain(each) and line_of(question, each) in lines]
    whole = [each.rule for each in chosen if each.bound]
    shown = [each for each in sure if line_of(question, each) in lines]
    return shown + [each for each in found if each.bound and each.rule in whole and each not in shown]


def is_certain(candidate: Candidate) -> bool:
    return candidate.bound and candidate.kind == "rename"


def latest(candidate: Candidate) -> tuple[int, float]:
    """What the latest edit taught comes first, then what is likeliest."""
    return candidate.rule.age if candidate.rule else 0, -candidate.p_edit


def bar_of(question: NextQuestion, candidate: Candidate, fitted: float) -> float:
    """How likely it has to be: the more so, the likelier it is that nothing is due."""
    return min(question.bar, fitted) if question.invoked else max(question.bar, fitted / candidate.p_due)


def goes_with(candidate: Candidate, leader: Candidate) -> bool:
    """Taught by the same edit, and about as likely, but for a name: half a rename is none."""
    rule, leading = candidate.rule, leader.rule
    if rule is None or leading is None or rule.age != leading.age:
        return False
    return candidate.p_edit >= ABOUT * leader.p_edit or (rule == leading and rule.kind == "rename")


def line_of(question: NextQuestion, candidate: Candidate) -> tuple[str, int]:
    return candidate.uri, files(question)[candidate.uri].line_of(candidate.start)


async def checked(question: NextQuestion, found: Sequence[Candidate], fitted: float) -> Answer:
    """The answer, after the parser has been asked all that it will be asked, one text at a time."""
    chosen = group(question, found, fitted)
    await in_turns(parses(question, chosen))
    return answered(question, found, chosen, fitted)


def parses(question: NextQuestion, chosen: Sequence[Candidate]) -> Generator[None, None, None]:
    for uri, snapshot in files(question).items():
        together = in_order(each for each in chosen if each.uri == uri and not is_certain(each))
        alone = together if parses_worse(snapshot, together, PATIENCE) else ()
        yield
        for each in alone:
            parses_worse(snapshot, [each])
            yield


def answered(question: NextQuestion, found: Sequence[Candidate], chosen: Sequence[Candidate], fitted: float) -> Answer:
    """The chosen edits, without those that would leave a file parsing worse than before."""
    if not chosen:
        return Answer(silence=unsure(question, found, fitted))
    known = files(question)
    kept = [each for uri, snapshot in known.items() for each in parsing(snapshot, [c for c in chosen if c.uri == uri])]
    if not kept:
        return Answer(silence="the file would parse worse than before")
    edits = tuple(TextEdit(each.start, each.end, each.text or "", each.uri) for each in kept)
    leader = max(kept, key=lambda each: each.p_edit)
    p_accept = sum(each.p_edit for each in kept) / len(kept)
    base = {edit.uri: known[edit.uri] for edit in edits}
    return Answer((Offer(edits, p_accept, base, kind=leader.kind, label=what(leader)),))


def unsure(question: NextQuestion, found: Sequence[Candidate], fitted: float) -> str:
    written = [each for each in found if each.text is not None]
    if not written:
        return "unsure: no rule says what is due, and the model is not sure enough"
    likeliest = max(written, key=lambda each: each.p_edit)
    chance, bar = likeliest.p_edit, bar_of(question, likeliest, fitted)
    if bar * likeliest.p_due <= fitted:  # what counts is whether anything is due at all
        chance, bar = chance * likeliest.p_due, fitted
    return f"unsure: {what(likeliest)} is {chance:.0%} likely, under the bar of {bar:.0%}"


def parsing(snapshot: Snapshot, chosen: Sequence[Candidate]) -> list[Candidate]:
    """All of them where the file parses no worse with all of them, else those that are harmless one by one."""
    ordered = in_order(chosen)
    if all(map(is_certain, ordered)):
        # One name for another makes no difference to a parser.
        return ordered
    if not parses_worse(snapshot, ordered, PATIENCE):
        return ordered
    harmless = [each for each in ordered if not parses_worse(snapshot, [each])]
    return [] if parses_worse(snapshot, harmless, PATIENCE) else harmless


def in_order(chosen: Iterable[Candidate]) -> list[Candidate]:
    return sorted(chosen, key=lambda each: each.start)


def parses_worse(snapshot: Snapshot, chosen: Sequence[Candidate], patience: int = 1) -> bool:
    changes = tuple(TextEdit(each.start, each.end, each.text or "") for each in reversed(chosen))
    return bool(changes) and _parses_worse(snapshot, changes, patience)


@remembered
def _parses_worse(snapshot: Snapshot, changes: tuple[TextEdit, ...], patience: int) -> bool:
    """Most drafts say the same."""
    language = find(snapshot.language, snapshot.path)
    if language is None or snapshot.tree is None:
        return False
    tree = reparse(snapshot.tree, language, snapshot.text, changes, patience * snapshot.patience)
    return tree is None or syntax.problems(tree) > syntax.problems(snapshot.tree)


def what(candidate: Candidate) -> str:
    """A label for the edits of which this is the likeliest. Where they are, each editor says as it sees them."""
    rule = candidate.rule
    if rule is None:
        return "edit"
    before, after = short(rule.before), short(rule.after)
    match candidate.kind:
        case "rename" | "part":
            return f"rename {before} → {after}"
        case "argument" | "parameter":
            return f"add {after} to calls of {short(rule.name)}" if rule.after else f"remove {before}"
        case "extract" | "derive":
            return f"use {after}"
        case "import" | "lacking":
            return f"add {after}" if rule.after else f"import {short(rule.name)}"
        case "unused":
            return f"remove the unused import {before}"
        case "delete":
            return "delete these lines too"
        case "insert":
            return "insert the same lines"
        case "clone":
            return "change this line alike"
        case "entry":
            return "add an entry like the new one"
        case "stored":
            return f"keep {after}"
        case "signature":
            return f"change the parameters of {short(rule.name)}"
        case "trim":
            return "remove blanks at the ends of lines"
        case "align":
            return "align these lines too"
    if rule.before.strip() and rule.after.strip():
        return f"replace {before} → {after}"
    return f"add {after}" if rule.after.strip() else f"remove {before}"


def short(text: str) -> str:
    text = text.strip(" ,\t\r\n")
    return f"`{text if len(text) <= LONGEST_LABEL else text[:LONGEST_LABEL] + '…'}`"


# What a model adds


def regions_of(question: NextQuestion, found: Sequence[Candidate]) -> list[Region]:
    """The lines of the likeliest edits to check and those around the likeliest places to write."""
    known = files(question)
    ranked = sorted((each for each in found if is_worth_asking(question, each)), key=lambda each: -each.p_edit)
    certain = [each for each in ranked if each.text is not None]
    asked = asked_lines(question, [each for each in ranked if each.text is None])
    leader = certain[0].rule if certain else None
    checked = [each for each in certain if each.rule == leader][:MOST_CHECKED]
    lines = sorted(asked | {(each.uri, number) for each in checked for number in lines_of(known[each.uri], each)})
    regions = []
    for (uri, _), stretch in groupby(enumerate(lines), key=lambda item: (item[1][0], item[1][1] - item[0])):
        numbers = [number for _, (_, number) in stretch]
        regions.append(region(known[uri], numbers[0], numbers[-1], ranked))
    return regions


def is_worth_asking(question: NextQuestion, candidate: Candidate) -> bool:
    """A word that cannot change what is shown is not worth the wait."""
    if is_certain(candidate) and question.asks == "deciding":
        return False
    worth = question.worth
    bar = bar_of(question, candidate, worth.bar or ranking.load().bar)
    decides = question.asks == "always" or ranking.is_open(worth, candidate.p_edit, candidate.text is not None, bar)
    return candidate.p_edit >= LEAST_CHANCE and decides


def asked_lines(question: NextQuestion, ranked: Iterable[Candidate]) -> set[tuple[str, int]]:
    """Each of the likeliest places with the line above and the line below: the change may be there."""
    known, asked, places = files(question), set(), 0
    for each in ranked:
        snapshot = known[each.uri]
        lines = lines_of(snapshot, each)
        if places < MOST_QUESTIONS and not {(each.uri, number) for number in lines} <= asked:
            places += 1
            first, stop = max(lines.start - 1, 0), min(lines.stop + 1, snapshot.line_count)
            asked |= {(each.uri, number) for number in range(first, stop)}
    return asked


def lines_of(snapshot: Snapshot, candidate: Candidate) -> range:
    return range(snapshot.line_of(candidate.start), snapshot.line_of(max(candidate.end - 1, candidate.start)) + 1)


def region(snapshot: Snapshot, first: int, last: int, ranked: Iterable[Candidate]) -> Region:
    start = snapshot.line_start(first)
    end = snapshot.line_stop(last)
    inside = [each for each in ranked if each.uri == snapshot.uri and start <= each.start and each.end <= end]
    certain = tuple(each for each in inside if each.text is not None)
    likeliest = max((each.p_edit for each in inside), default=0.0)
    return Region(snapshot, start, end, certain, len(certain) < len(inside), likeliest)


def requests(question: NextQuestion, regions: Sequence[Region]) -> list[tuple[tuple[Region, ...], InfillRequest]]:
    """Regions that lie close are asked about at once, in a window around them, the likeliest first: what stands
    between them has to fit into the model's context."""
    room = question.budget.characters // 4
    close: list[list[Region]] = []
    for each in regions:
        if each.end - each.start > room:
            continue
        together = close and close[-1][0].snapshot is each.snapshot and each.end - close[-1][0].start <= room
        if together and len(close[-1]) < MOST_HOLES:
            close[-1].append(each)
        else:
            close.append([each])
    close.sort(key=lambda some: -max(each.chance for each in some))
    return [(tuple(some), request(question, some, room)) for some in close[:MOST_REQUESTS]]


def request(question: NextQuestion, regions: Sequence[Region], room: int) -> InfillRequest:
    """To agree with a rule takes less of the file than to find what nobody knows."""
    snapshot = regions[0].snapshot
    room = room if any(each.is_open for each in regions) else room // 2
    first = snapshot.line_of(max(regions[0].start - room, 0))
    last = snapshot.line_of(min(regions[-1].end + room, len(snapshot.text)))
    start, end = snapshot.line_start(first), snapshot.line_end(last)
    return InfillRequest(
        session=question.session,
        windows=(Window(snapshot.path, snapshot.language, snapshot.text[start:end]),),
        spans=tuple(Span(0, each.start - start, min(each.end, end) - start, "edit") for each in regions),
        snippets=question.related.snippets,
        edits=edits_of(question),
        effort=question.effort,
        deadline_ms=question.deadline_ms,
    )


def judged(question: NextQuestion, found: Sequence[Candidate], given: Sequence[Opinion]) -> list[Candidate]:
    """What the rules say, as sure as the model makes it, and what the model has written itself."""
    chances = {place_of(each.candidate): each.chance(question.worth) for each in given}
    own = [each.candidate for each in given if each.candidate.rule is None]
    written = [replace(each, p_edit=chances[place_of(each)]) for each in own]
    ruled = [replace(each, p_edit=believed(each, found, chances)) for each in found]
    return list(distinct([*ruled, *written]))


def opinions(
    question: NextQuestion, regions: Sequence[Region], found: Sequence[Candidate], draft: Draft
) -> list[Opinion]:
    """Of every edit of the regions that a rule proposes, and of those that the model writes where it was asked."""
    given = []
    for each, filled in zip(regions, draft.spans, strict=True):
        text = in_the_files_style(without_sentinels(filled.text, each.snapshot.text), each.snapshot)
        given += [Opinion(one, filled.p_accept, agreement(each, one, text)) for one in each.candidates]
        if filled.complete and (edit := written_edit(question, each, text, found)):
            given.append(Opinion(edit, filled.p_accept, 0.0))
    return given


def agreement(region: Region, candidate: Candidate, text: str) -> float:
    """Whether the model makes this edit as well, whatever else it changes there: 1 or -1."""
    start, end = candidate.start - region.start, candidate.end - region.start
    after = region.old[:start] + (candidate.text or "") + region.old[end:]
    return 1.0 if after.strip() == text.strip() or on_the_way(region.old, after, text) else -1.0


def written_edit(question: NextQuestion, region: Region, text: str, found: Iterable[Candidate]) -> Candidate | None:
    """The model's own edit of a region in which something was asked; whole lines stay whole lines."""
    asked = [
        each.p_edit
        for each in found
        if each.text is None and each.uri == region.snapshot.uri and region.start <= each.start < region.end
    ]
    if not asked or text.split() == region.old.split():
        return None
    if region.old.endswith("\n") and not text.endswith("\n"):
        text += "\n"
    change = minimal(region.old, text)
    start, end = region.start + change.start, region.start + change.end
    due = ranking.load().is_due("line", {}, max(asked))
    edit = Candidate(region.snapshot.uri, start, end, change.text, "line", None, {}, max(asked), due)
    return None if reverses(question, region.snapshot, edit) or renames_another(question, edit, found) else edit


def renames_another(question: NextQuestion, edit: Candidate, found: Iterable[Candidate]) -> bool:
    """Whether a model gives the new name to what only was called like the thing that was renamed."""
    known = files(question)
    learned = rules(edits_of(question))
    renames = Renames.of(learned, known.values(), (question.project or Project()).with_files(known.values()))
    return permitted([*found, edit], renames, known)[-1:] != [edit]


def believed(candidate: Candidate, found: Iterable[Candidate], chances: dict[tuple, float]) -> float:
    """What the model thinks of it; of a place that it was not asked about, no more than of the rule's other places."""
    if candidate.text is None or place_of(candidate) in chances:
        return chances.get(place_of(candidate), candidate.p_edit)
    others = [chances[place_of(each)] for each in found if each.rule == candidate.rule and place_of(each) in chances]
    return min(candidate.p_edit, sum(others) / len(others)) if others else candidate.p_edit


def place_of(candidate: Candidate) -> tuple[str, int, int, str | None]:
    return candidate.uri, candidate.start, candidate.end, candidate.text
