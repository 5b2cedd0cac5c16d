"""Candidates for the next edit: where the last edits lead to, and how likely the user is to make each."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Edit
from mercury_ls.code.documents import CLOSED, Snapshot, cached
from mercury_ls.code.lexemes import in_the_files_lines, tokens_of
from mercury_ls.code.modules import Project
from mercury_ls.code.syntax import definitions
from mercury_ls.next_edit import ranking
from mercury_ls.next_edit.alternatives import doubles_alternative
from mercury_ls.next_edit.features import Surroundings, features_of, foreign_names, ranges_of_locals
from mercury_ls.next_edit.kinds import kind_of
from mercury_ls.next_edit.kinds.imports import NAME, unknown_names
from mercury_ls.next_edit.kinds.rename.clash import clash
from mercury_ls.next_edit.kinds.rename.declared import where_declared
from mercury_ls.next_edit.kinds.rename.rule import Rename
from mercury_ls.next_edit.kinds.signatures import changed_signatures
from mercury_ls.next_edit.learn import rules
from mercury_ls.next_edit.once import is_about_its_place
from mercury_ls.next_edit.places import MOST_PLACES, Place
from mercury_ls.next_edit.renamed import Renames
from mercury_ls.next_edit.rule import Rule
from mercury_ls.next_edit.situation import Situation, edited_lines, typed_ranges

T = TypeVar("T")

CandidatePlace = tuple[str, int, int, str | None]

MOST_RANKED = 200
PLACES_AT_ONCE = 64
ABOUT = 0.7
"""The share of the likeliest edit's probability that others need to be shown with it."""
SURE = 0.9


class Candidate(Struct, frozen=True):
    """An edit that may come next: `[start, end)` of a snapshot becomes `text`; None where no rule knows what.

    `p_edit` is the chance that the user would make it, from `features`, and `p_due` that of having anything left to do
    where this is the likeliest; after a model has judged it, `p_edit` is both. `rule` is what it follows from, `reach`
    the lines for which it does all of the rule's edit. Edits of one rule that are `bound` are made together or not at
    all; a `certain` one renames the very thing that was renamed where it is declared.
    """

    uri: str
    start: int
    end: int
    text: str | None
    kind: str
    rule: Rule | None
    features: dict[str, float]
    p_edit: float = 0.0
    p_due: float = 1.0
    reach: tuple[int, int] | None = None
    bound: bool = False
    certain: bool = False


def place_of(candidate: Candidate) -> CandidatePlace:
    return candidate.uri, candidate.start, candidate.end, candidate.text


def batches(situation: Situation) -> Generator[list[Candidate], None, None]:
    """All candidates, not yet scored, in steps of one rule and file, so that other work can be done in between; several
    may change the same place."""
    files = situation.files
    project = (situation.project or Project()).with_files(files)
    homes = {file.path: file for file in files}
    learned = list[Rule]()
    for rule in rules(situation.edits):
        learned.append((yield from _in_turns(project, partial(where_declared, rule, homes, project, situation.edits))))
    made = yield from _in_turns(project, partial(Renames.of, learned, files, project))
    learned = [*changed_signatures(files, situation.edits), *learned]
    for file in files:
        candidates: list[Candidate] = []
        for batch in _following(file, situation, learned, homes, project):
            candidates += batch
            yield []
        yield permitted(candidates, made, {file.uri: file})


def _of_place(snapshot: Snapshot, rule: Rule, place: Place, features: dict[str, float]) -> Candidate:
    """A place without a text is a call whose new argument no rule knows."""
    return Candidate(
        uri=snapshot.uri,
        start=place.start,
        end=place.end,
        text=place.text,
        kind=rule.kind if place.text is not None else "call",
        rule=rule,
        features=features,
        reach=place.reach,
        bound=place.bound,
        certain=place.certain,
    )


def clashes(situation: Situation) -> str:
    """Why the last edit, a rename, is not carried on; empty if nothing speaks against it."""
    project = (situation.project or Project()).with_files(situation.files)
    latest = ((rule, home) for rule, home in renames(situation) if rule.age == 0)
    reasons = (clash(rule, home, project, situation.accepted) for rule, home in latest)
    return next(reasons, "")


def renames(situation: Situation) -> Iterator[tuple[Rename, Snapshot]]:
    """What was renamed, the latest first, and the files in which that was done."""
    homes = {file.path: file for file in situation.files}
    project = (situation.project or Project()).with_files(situation.files)
    for learned in rules(situation.edits):
        rule = where_declared(learned, homes, project, situation.edits)
        if isinstance(rule, Rename) and rule.path in homes:
            yield rule, homes[rule.path]


def permitted(candidates: list[Candidate], renames: Renames, files: Mapping[str, Snapshot]) -> list[Candidate]:
    """Without those that would rename something else, whichever rule they follow from."""
    uses = {(candidate.uri, candidate.start) for candidate in candidates if candidate.certain}
    return [
        candidate
        for candidate in candidates
        if candidate.text is None
        or (candidate.rule is not None and candidate.rule.is_indivisible)
        or all(
            (candidate.uri, at) in uses
            for at in renames.made_by(files[candidate.uri], candidate.start, candidate.end, candidate.text)
        )
    ]


def scored(candidates: Iterable[Candidate]) -> list[Candidate]:
    fitted = ranking.load()
    return [_with_score(candidate, fitted) for candidate in candidates]


def _with_score(candidate: Candidate, fitted: ranking.Ranking) -> Candidate:
    if candidate.certain:
        # Nothing has the old name by now.
        return replace(candidate, p_edit=SURE, p_due=1.0)
    chance = fitted.probability(candidate.kind, candidate.features)
    return replace(candidate, p_edit=chance, p_due=fitted.is_due(candidate.features, chance))


def distinct(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The likeliest first; of several that change the same place only the likeliest, or one that does more of the
    same edit."""
    ordered = sorted(candidates, key=lambda candidate: -candidate.p_edit)
    bound = [candidate for candidate in ordered if candidate.bound]
    ranked = sorted(
        [*bound, *[candidate for candidate in ordered if not candidate.bound][:MOST_RANKED]], key=lambda e: -e.p_edit
    )
    by_file: dict[str, list[Candidate]] = {candidate.uri: [] for candidate in ranked}
    free_beside: dict[tuple[str, bool], list[tuple[int, int]]] = defaultdict(list)
    templates: dict[str, list[Candidate]] = {uri: [] for uri in by_file}
    for candidate in ranked:
        if candidate.reach is not None:
            templates[candidate.uri].append(candidate)
    for candidate in ranked:
        in_file = by_file[candidate.uri]
        covered = any(_is_part_of(candidate, whole) for whole in templates[candidate.uri])
        # Questions about a line do not collide with edits of it.
        if not covered and _fits_in(candidate, free_beside[candidate.uri, candidate.text is None]):
            in_file.append(candidate)
    return tuple(
        sorted(
            (candidate for in_file in by_file.values() for candidate in in_file),
            key=lambda candidate: -candidate.p_edit,
        )
    )


def _following(
    snapshot: Snapshot, situation: Situation, learned: Iterable[Rule], homes: Mapping[str, Snapshot], project: Project
) -> Generator[list[Candidate], None, None]:
    """For each rule its places in this file, except where the user has typed since or an accepted offer has been.
    Files that are not open are searched only for names."""
    typed, lines_typed = typed_ranges(snapshot, situation.edits), edited_lines(snapshot, situation.edits)
    accepted = [(0, reach) for _, reach in typed_ranges(snapshot, situation.accepted)]
    edited = [(age, number) for age, (start, end) in lines_typed for number in lines_of(snapshot, start, end)]
    for rule in learned:
        is_elsewhere = snapshot.version == CLOSED or _is_made_once_elsewhere(rule, snapshot, situation)
        if is_elsewhere and not rule.known_as:
            continue
        home = homes.get(rule.path)
        places = yield from _in_turns(project, partial(_places_of, rule, snapshot, home, project, situation))
        touched = lines_typed if rule.is_of_lines else typed
        free = _untouched(places, (*touched, *accepted), rule.since)
        lines = sorted(snapshot.line_of(place.start) for place in free)
        locals_of_rule = ranges_of_locals(rule, snapshot, home) if free else {}
        around = Surroundings(snapshot, situation, lines, edited, locals_of_rule)
        for at in range(0, len(free), PLACES_AT_ONCE):
            places = free[at : at + PLACES_AT_ONCE]
            fitting = (place for place in places if not _is_unlikely(rule, place, around))
            yield [_of_place(snapshot, rule, place, features_of(rule, place, around, home)) for place in fitting]


def _untouched(places: Iterable[Place], touched: Iterable[tuple[int, tuple[int, int]]], since: int) -> list[Place]:
    """The places where nothing was typed in so many edits; an argument that is missing may be beside what was."""
    recent = [reach for age, reach in touched if age <= since]
    return [place for place in places if place.is_gap or not any(_overlap(place, reach) for reach in recent)]


def _is_unlikely(rule: Rule, place: Place, around: Surroundings) -> bool:
    """Whether nobody who saw the edit would repeat it there."""
    if _is_foreign(rule, place, around) or kind_of(rule).suppress(rule, place, around.snapshot):
        return True
    if is_about_its_place(rule, place, around.snapshot):
        return True
    return _repeats_neighbour(place, around) or doubles_alternative(place, around.snapshot)


def _is_made_once_elsewhere(rule: Rule, snapshot: Snapshot, situation: Situation) -> bool:
    """Whether the edit was made once, and neither in this file nor is the user in it now."""
    return rule.count == 1 and snapshot.path not in (rule.path, situation.snapshot.path)


def _is_declared(rule: Rule, home: Snapshot | None) -> bool:
    """Whether the file of the edit declares what the edit is about: other files may know it from there."""
    return home is not None and rule.known_as in _declared_names(home)


@cached
def _declared_names(snapshot: Snapshot) -> frozenset[str]:
    return frozenset(definition.name for definition in definitions(snapshot))


def lines_of(snapshot: Snapshot, start: int, end: int) -> range:
    return range(snapshot.line_of(start), snapshot.line_of(max(end - 1, start)) + 1)


def _in_turns(project: Project, ask: Callable[[], T]) -> Generator[list[Candidate], None, T]:
    """The answer, with no candidates for the time being."""
    asking = project.in_turns(ask)
    while True:
        try:
            next(asking)
        except StopIteration as end:
            return end.value
        yield []


def _places_of(
    rule: Rule, snapshot: Snapshot, home: Snapshot | None, project: Project, situation: Situation
) -> list[Place]:
    """At most 64 in the order of the text, but all that are bound; none of a rule that is held back, and only certain
    ones in files that cannot know of the edit."""
    if home is not None and _is_held_back(rule, home, project, situation.accepted):
        return []
    places: list[Place] = []
    for place in kind_of(rule).find(rule, snapshot, home, project):
        places.append(_in_the_files_lines(place, snapshot))
        if len(places) == MOST_PLACES and not place.bound:
            break
    if _is_made_once_elsewhere(rule, snapshot, situation) and not _is_declared(rule, home):
        return [place for place in places if place.certain]
    return places


def _is_held_back(rule: Rule, home: Snapshot, project: Project, accepted: Sequence[Edit]) -> bool:
    """Whether the new name is taken, or a name that came with the edit, of which a rule may be a part, has to be
    imported first."""
    if isinstance(rule, Rename) and clash(rule, home, project, accepted):
        return True
    if not rule.copies_code or rule.count > 1:
        return False
    came = {*NAME.findall(rule.lines_after or rule.after)} - {*NAME.findall(rule.lines_before)}
    return bool(unknown_names(replace(rule, after=" ".join(sorted(came))), home, project))


def _in_the_files_lines(place: Place, snapshot: Snapshot) -> Place:
    text = place.text and in_the_files_lines(place.text, snapshot)
    return place if text == place.text else replace(place, text=text)


def _is_foreign(rule: Rule, place: Place, around: Surroundings) -> bool:
    """Whether code that was written once would bring in names that are unknown there."""
    return rule.count == 1 and rule.copies_code and foreign_names(place, around) > 0


def _repeats_neighbour(place: Place, around: Surroundings) -> bool:
    """Whether its line would say the same as the one above or below, which differs on purpose. Where the user has just
    written that one, both may have been the same before."""
    snapshot, number = around.snapshot, around.snapshot.line_of(place.start)
    if place.bound or place.text is None or "\n" in snapshot.text[place.start : place.end] + place.text:
        return False
    start, line = snapshot.line_start(number), snapshot.line(number)
    after = (line[: place.start - start] + place.text + line[place.end - start :]).strip()
    edited_lines = {line for _, line in around.edited}
    neighbours = [
        line_number
        for line_number in (number - 1, number + 1)
        if 0 <= line_number < snapshot.line_count and line_number not in edited_lines
    ]
    return len(tokens_of(after)) > 1 and any(snapshot.line(neighbour).strip() == after for neighbour in neighbours)


def _overlap(place: Place, typed: tuple[int, int]) -> bool:
    start, end = typed
    if place.start == place.end:
        return start < place.start < end or (place.start in (start, end) and start < end)
    return place.start < end and place.end > start


def _is_part_of(part: Candidate, whole: Candidate) -> bool:
    """Whether, in one file, `whole` does for the line what `part` does for a part of it, and is about as likely."""
    if part.reach is not None or whole.reach is None:
        return False
    if part.rule is None or whole.rule is None:
        return False
    if whole.rule.age != part.rule.age:
        return False
    start, end = whole.reach
    about = 1.0 if part.bound else ABOUT
    return start <= part.start and part.end <= end and whole.p_edit >= about * part.p_edit


def _fits_in(candidate: Candidate, ranges: list[tuple[int, int]]) -> bool:
    """Whether it changes nothing that these ranges of its file do, which are in order; then it is put among them.
    Insertions also collide where they touch."""
    place = candidate.start, candidate.end
    at = bisect_left(ranges, place)
    fits = not any(_collide(place, other) for other in ranges[max(at - 1, 0) : at + 1])
    if fits:
        ranges.insert(at, place)
    return fits


def _collide(first: tuple[int, int], second: tuple[int, int]) -> bool:
    if first[0] == first[1] or second[0] == second[1]:
        return first[0] <= second[1] and second[0] <= first[1]
    return first[0] < second[1] and second[0] < first[1]
