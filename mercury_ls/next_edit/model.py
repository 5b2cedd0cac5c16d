"""What a model adds: it writes where a rule leaves open what."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Draft, InfillRequest, Span, Window
from mercury_ls.code import syntax
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import minimal
from mercury_ls.code.modules import Project
from mercury_ls.completion.polish import in_the_files_style, without_sentinels
from mercury_ls.next_edit import ranking
from mercury_ls.next_edit.candidates import Candidate, lines_of, permitted
from mercury_ls.next_edit.learn import rules
from mercury_ls.next_edit.once import is_prose
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.next_edit.renamed import Renames

CandidatePlace = tuple[str, int, int, str | None]

WORD = re.compile(r"\w+")
MOST_HOLES = 4
"""In one request: models are trained with as many."""
MOST_REQUESTS = 3
MOST_PLACES = 3
LEAST_CHANCE = 0.05
"""A model is not asked about less likely places."""


class _AskedRegion(Struct, frozen=True):
    """Whole lines of a file that a model is asked to rewrite; `chance` is how likely it is that they change."""

    snapshot: Snapshot
    start: int
    end: int
    chance: float

    @property
    def old(self) -> str:
        return self.snapshot.text[self.start : self.end]


def requests(
    question: NextQuestion, candidates: Sequence[Candidate]
) -> list[tuple[tuple[_AskedRegion, ...], InfillRequest]]:
    """Nearby regions share a request, as long as the text between them fits into the model's context; the likeliest
    come first."""
    room = question.budget.characters // 4
    close: list[list[_AskedRegion]] = []
    for region in _regions_of(question, candidates):
        if region.end - region.start > room:
            continue
        together = close and close[-1][0].snapshot is region.snapshot and region.end - close[-1][0].start <= room
        if together and len(close[-1]) < MOST_HOLES:
            close[-1].append(region)
        else:
            close.append([region])
    close.sort(key=lambda together: -max(region.chance for region in together))
    return [(tuple(together), request(question, together, room)) for together in close[:MOST_REQUESTS]]


def _regions_of(question: NextQuestion, candidates: Sequence[Candidate]) -> list[_AskedRegion]:
    """The lines around the likeliest places whose text no rule knows."""
    ranked = sorted(
        (candidate for candidate in candidates if _is_worth_asking(question, candidate)),
        key=lambda candidate: -candidate.p_edit,
    )
    lines = sorted(_asked_lines(question, ranked))
    regions: list[_AskedRegion] = []
    for (uri, _), stretch in groupby(enumerate(lines), key=lambda item: (item[1][0], item[1][1] - item[0])):
        numbers = [number for _, (_, number) in stretch]
        snapshot = question.files[uri]
        start, end = snapshot.line_start(numbers[0]), snapshot.line_stop(numbers[-1])
        regions.append(_AskedRegion(snapshot, start, end, _chance_of_change(snapshot, start, end, ranked)))
    return regions


def _is_worth_asking(question: NextQuestion, candidate: Candidate) -> bool:
    """Not if nothing that is written there can be shown."""
    if candidate.text is not None or candidate.p_edit < LEAST_CHANCE:
        return False
    return ranking.can_be_shown(candidate.p_edit, question.bar_for(candidate, ranking.load().bar))


def _asked_lines(question: NextQuestion, ranked: Iterable[Candidate]) -> set[tuple[str, int]]:
    """The likeliest places, each with the lines above and below, where the change may be."""
    files, places = question.files, 0
    lines_asked: set[tuple[str, int]] = set()
    for candidate in ranked:
        snapshot = files[candidate.uri]
        lines = lines_of(snapshot, candidate.start, candidate.end)
        if places < MOST_PLACES and not {(candidate.uri, number) for number in lines} <= lines_asked:
            places += 1
            first, stop = max(lines.start - 1, 0), min(lines.stop + 1, snapshot.line_count)
            lines_asked |= {(candidate.uri, number) for number in range(first, stop)}
    return lines_asked


def _chance_of_change(snapshot: Snapshot, start: int, end: int, places: Iterable[Candidate]) -> float:
    """That of the likeliest of these places there, 0 if there is none."""
    inside = (
        candidate.p_edit for candidate in places if candidate.uri == snapshot.uri and start <= candidate.start < end
    )
    return max(inside, default=0.0)


def request(question: NextQuestion, regions: Sequence[_AskedRegion], room: int) -> InfillRequest:
    snapshot = regions[0].snapshot
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


def written_edits(
    question: NextQuestion, regions: Sequence[_AskedRegion], candidates: Sequence[Candidate], draft: Draft
) -> list[Candidate]:
    """What the model has made of these regions, with how likely the user is to make it."""
    collected: list[Candidate] = []
    for region, filled in zip(regions, draft.spans, strict=True):
        text = in_the_files_style(without_sentinels(filled.text, region.snapshot.text), region.snapshot)
        if filled.complete and (edit := _written_edit(question, region, text, candidates)):
            collected.append(replace(edit, p_edit=ranking.written_probability(edit.p_edit, filled.p_accept)))
    return collected


def _written_edit(
    question: NextQuestion, region: _AskedRegion, text: str, candidates: Iterable[Candidate]
) -> Candidate | None:
    """The model's edit of a region; whole lines stay whole lines."""
    if text.split() == region.old.split():
        return None
    if region.old.endswith("\n") and not text.endswith("\n"):
        text += "\n"
    change = minimal(region.old, text)
    start, end = region.start + change.start, region.start + change.end
    due = ranking.load().is_due({}, region.chance)
    edit = Candidate(region.snapshot.uri, start, end, change.text, "written", None, {}, region.chance, due)
    return None if unwelcome(question, [edit], candidates) else edit


def unwelcome(question: NextQuestion, own_edits: Sequence[Candidate], candidates: Iterable[Candidate]) -> str:
    """Why what a model has written is not shown: it restores what the user has just changed, unless that was a typo, or
    in code it writes the new name for something else that has the old one; empty if it does neither."""
    files = question.files
    reversals = [edit for edit in own_edits if question.is_reversal(edit.uri, edit)]
    if not all(_mends_a_word(files[edit.uri], edit) for edit in reversals):
        return "it would undo what was done a moment ago"
    learned = rules(question.edits)
    renames = Renames.of(learned, files.values(), (question.project or Project()).with_files(files.values()))
    allowed = permitted([*candidates, *own_edits], renames, files)
    is_welcome = all(edit in allowed or is_prose(files[edit.uri], edit.start) for edit in own_edits)
    return "" if is_welcome else "it would rename something else too"


def _mends_a_word(snapshot: Snapshot, edit: Candidate) -> bool:
    """True if the edit makes one word of another, after which the file has fewer syntax errors."""
    old = snapshot.text[edit.start : edit.end]
    change = minimal(old, edit.text or "")
    words = old[change.start : change.end], change.text
    before = syntax.problems(snapshot.tree) if all(WORD.fullmatch(word) for word in words) else 0
    return bool(before) and syntax.problems_after(snapshot, edit.start, edit.end, edit.text or "") < before


def place_of(candidate: Candidate) -> CandidatePlace:
    return candidate.uri, candidate.start, candidate.end, candidate.text
