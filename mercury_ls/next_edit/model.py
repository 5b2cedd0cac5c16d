"""What a model adds: it checks the edits that rules propose, and writes where no rule knows what."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Draft, InfillRequest, RescoringWeights, Span, Window
from mercury_ls.code import syntax
from mercury_ls.code.differences import is_step_towards
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import minimal
from mercury_ls.code.modules import Project
from mercury_ls.completion.polish import in_the_files_style, without_sentinels
from mercury_ls.next_edit import ranking
from mercury_ls.next_edit.candidates import Candidate, distinct, lines_of, permitted
from mercury_ls.next_edit.learn import rules
from mercury_ls.next_edit.once import is_prose
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.next_edit.renamed import Renames

__all__ = ["Opinion", "opinions", "place_of", "regions_of", "requests", "rescored", "unwelcome"]

CandidatePlace = tuple[str, int, int, str | None]

WORD = re.compile(r"\w+")
MOST_HOLES = 4
"""In one request: models are trained with as many."""
MOST_REQUESTS = 3
MOST_CHECKED = 5
MOST_QUESTIONS = 3
LEAST_CHANCE = 0.05
"""A model is not asked about less likely candidates."""


class AskedRegion(Struct, frozen=True):
    """Whole lines of a file that a model is asked to rewrite, with the candidates there. `is_open` says that a place
    without a text is among them, `chance` how likely it is that the lines change."""

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
    """What a model says about one edit: how sure it is of what it wrote, and whether that is this edit (1), another
    (-1), or the edit is the model's own (0)."""

    candidate: Candidate
    p_model: float
    agreement: float

    def probability(self, rescoring: RescoringWeights) -> float:
        return ranking.rescored_probability(rescoring, self.candidate.p_edit, self.p_model, self.agreement)


def regions_of(question: NextQuestion, candidates: Sequence[Candidate]) -> list[AskedRegion]:
    """The lines of the likeliest edits to check and those around the likeliest places to write."""
    files = question.files
    ranked = sorted(
        (candidate for candidate in candidates if is_worth_asking(question, candidate)),
        key=lambda candidate: -candidate.p_edit,
    )
    certain = [candidate for candidate in ranked if candidate.text is not None]
    line_spans = asked_lines(question, [candidate for candidate in ranked if candidate.text is None])
    leader = certain[0].rule if certain else None
    checked = [candidate for candidate in certain if candidate.rule == leader][:MOST_CHECKED]
    spans = [(candidate.uri, lines_of(files[candidate.uri], candidate.start, candidate.end)) for candidate in checked]
    lines = sorted(line_spans | {(uri, number) for uri, numbers in spans for number in numbers})
    regions: list[AskedRegion] = []
    for (uri, _), stretch in groupby(enumerate(lines), key=lambda item: (item[1][0], item[1][1] - item[0])):
        numbers = [number for _, (_, number) in stretch]
        regions.append(region(files[uri], numbers[0], numbers[-1], ranked))
    return regions


def is_worth_asking(question: NextQuestion, candidate: Candidate) -> bool:
    """Not if the answer cannot change what is shown."""
    if candidate.certain and question.asks == "deciding":
        return False
    rescoring = question.rescoring
    bar = question.bar_for(candidate, rescoring.bar or ranking.load().bar)
    decides = question.asks == "always" or ranking.is_open(rescoring, candidate.p_edit, candidate.text is not None, bar)
    return candidate.p_edit >= LEAST_CHANCE and decides


def asked_lines(question: NextQuestion, ranked: Iterable[Candidate]) -> set[tuple[str, int]]:
    """The likeliest places, each with the lines above and below, where the change may be."""
    files, places = question.files, 0
    lines_asked: set[tuple[str, int]] = set()
    for candidate in ranked:
        snapshot = files[candidate.uri]
        lines = lines_of(snapshot, candidate.start, candidate.end)
        if places < MOST_QUESTIONS and not {(candidate.uri, number) for number in lines} <= lines_asked:
            places += 1
            first, stop = max(lines.start - 1, 0), min(lines.stop + 1, snapshot.line_count)
            lines_asked |= {(candidate.uri, number) for number in range(first, stop)}
    return lines_asked


def region(snapshot: Snapshot, first: int, last: int, ranked: Iterable[Candidate]) -> AskedRegion:
    start = snapshot.line_start(first)
    end = snapshot.line_stop(last)
    inside = [
        candidate
        for candidate in ranked
        if candidate.uri == snapshot.uri and start <= candidate.start and candidate.end <= end
    ]
    certain = tuple(candidate for candidate in inside if candidate.text is not None)
    likeliest = max((candidate.p_edit for candidate in inside), default=0.0)
    return AskedRegion(snapshot, start, end, certain, len(certain) < len(inside), likeliest)


def requests(
    question: NextQuestion, regions: Sequence[AskedRegion]
) -> list[tuple[tuple[AskedRegion, ...], InfillRequest]]:
    """Nearby regions share a request, as long as the text between them fits into the model's context; the likeliest
    come first."""
    room = question.budget.characters // 4
    close: list[list[AskedRegion]] = []
    for region in regions:
        if region.end - region.start > room:
            continue
        together = close and close[-1][0].snapshot is region.snapshot and region.end - close[-1][0].start <= room
        if together and len(close[-1]) < MOST_HOLES:
            close[-1].append(region)
        else:
            close.append([region])
    close.sort(key=lambda together: -max(region.chance for region in together))
    return [(tuple(together), request(question, together, room)) for together in close[:MOST_REQUESTS]]


def request(question: NextQuestion, regions: Sequence[AskedRegion], room: int) -> InfillRequest:
    """Checking a rule's edit takes less of the file as context than writing a new one."""
    snapshot = regions[0].snapshot
    room = room if any(region.is_open for region in regions) else room // 2
    first = snapshot.line_of(max(regions[0].start - room, 0))
    last = snapshot.line_of(min(regions[-1].end + room, len(snapshot.text)))
    start, end = snapshot.line_start(first), snapshot.line_end(last)
    return InfillRequest(
        session=question.session,
        windows=(Window(snapshot.path, snapshot.language, snapshot.text[start:end]),),
        spans=tuple(Span(0, region.start - start, min(region.end, end) - start, "edit") for region in regions),
        snippets=question.related.snippets,
        edits=question.edits,
        effort=question.effort,
    )


def rescored(question: NextQuestion, candidates: Sequence[Candidate], opinions: Sequence[Opinion]) -> list[Candidate]:
    """The candidates with their probabilities rescored by the model, and the model's own."""
    chances = {place_of(opinion.candidate): opinion.probability(question.rescoring) for opinion in opinions}
    own = [opinion.candidate for opinion in opinions if opinion.candidate.rule is None]
    own_edits = [replace(candidate, p_edit=chances[place_of(candidate)]) for candidate in own]
    ruled = [
        replace(candidate, p_edit=rescored_probability(candidate, candidates, chances)) for candidate in candidates
    ]
    return list(distinct([*ruled, *own_edits]))


def opinions(
    question: NextQuestion, regions: Sequence[AskedRegion], candidates: Sequence[Candidate], draft: Draft
) -> list[Opinion]:
    """About each candidate of the regions, and about the edits that the model wrote itself."""
    collected: list[Opinion] = []
    for region, filled in zip(regions, draft.spans, strict=True):
        text = in_the_files_style(without_sentinels(filled.text, region.snapshot.text), region.snapshot)
        collected += [
            Opinion(candidate, filled.p_accept, agreement(region, candidate, text)) for candidate in region.candidates
        ]
        if filled.complete and (edit := written_edit(question, region, text, candidates)):
            collected.append(Opinion(edit, filled.p_accept, 0.0))
    return collected


def agreement(region: AskedRegion, candidate: Candidate, text: str) -> float:
    """1 if the model makes this edit as well, whatever else it changes there, otherwise -1."""
    start, end = candidate.start - region.start, candidate.end - region.start
    after = region.old[:start] + (candidate.text or "") + region.old[end:]
    return 1.0 if after.strip() == text.strip() or is_step_towards(region.old, after, text) else -1.0


def written_edit(
    question: NextQuestion, region: AskedRegion, text: str, candidates: Iterable[Candidate]
) -> Candidate | None:
    """The model's own edit of an open region; whole lines stay whole lines."""
    questions = [
        candidate.p_edit
        for candidate in candidates
        if candidate.text is None
        and candidate.uri == region.snapshot.uri
        and region.start <= candidate.start < region.end
    ]
    if not questions or text.split() == region.old.split():
        return None
    if region.old.endswith("\n") and not text.endswith("\n"):
        text += "\n"
    change = minimal(region.old, text)
    start, end = region.start + change.start, region.start + change.end
    due = ranking.load().is_due({}, max(questions))
    edit = Candidate(region.snapshot.uri, start, end, change.text, "line", None, {}, max(questions), due)
    return None if unwelcome(question, [edit], candidates) else edit


def unwelcome(question: NextQuestion, own_edits: Sequence[Candidate], candidates: Iterable[Candidate]) -> str:
    """Why what a model has written is not shown: it restores what the user has just changed, unless that was a typo, or
    in code it writes the new name for something else that has the old one; empty if it does neither."""
    files = question.files
    reversals = [edit for edit in own_edits if question.is_reversal(edit.uri, edit)]
    if not all(mends_a_word(files[edit.uri], edit) for edit in reversals):
        return "it would undo what was done a moment ago"
    learned = rules(question.edits)
    renames = Renames.of(learned, files.values(), (question.project or Project()).with_files(files.values()))
    allowed = permitted([*candidates, *own_edits], renames, files)
    is_welcome = all(edit in allowed or is_prose(files[edit.uri], edit.start) for edit in own_edits)
    return "" if is_welcome else "it would rename something else too"


def mends_a_word(snapshot: Snapshot, edit: Candidate) -> bool:
    """Whether the edit makes one word of another, after which the file has fewer syntax errors."""
    old = snapshot.text[edit.start : edit.end]
    change = minimal(old, edit.text or "")
    words = old[change.start : change.end], change.text
    before = syntax.problems(snapshot.tree) if all(WORD.fullmatch(word) for word in words) else 0
    return bool(before) and syntax.problems_after(snapshot, edit.start, edit.end, edit.text or "") < before


def rescored_probability(
    candidate: Candidate, candidates: Iterable[Candidate], chances: dict[CandidatePlace, float]
) -> float:
    """The rescored probability; if the model was not asked about the place, at most its rule's average."""
    if candidate.text is None or place_of(candidate) in chances:
        return chances.get(place_of(candidate), candidate.p_edit)
    other_chances = [
        chances[place_of(peer)] for peer in candidates if peer.rule == candidate.rule and place_of(peer) in chances
    ]
    return min(candidate.p_edit, sum(other_chances) / len(other_chances)) if other_chances else candidate.p_edit


def place_of(candidate: Candidate) -> CandidatePlace:
    return candidate.uri, candidate.start, candidate.end, candidate.text
