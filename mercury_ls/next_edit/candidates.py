"""Edits that may come next: where the last ones lead to, and how likely the user is to make each."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, islice

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Edit
from mercury_ls.code import syntax
from mercury_ls.code.differences import touches_of
from mercury_ls.code.documents import CLOSED, Snapshot
from mercury_ls.next_edit import imports, occurrences, ranking, templates
from mercury_ls.next_edit.features import Surroundings, features_of, ranges_of_locals, unknown_names
from mercury_ls.next_edit.habits import COPIED, stands_alone
from mercury_ls.next_edit.imports import Diagnosed
from mercury_ls.next_edit.modules import Project
from mercury_ls.next_edit.places import Place
from mercury_ls.next_edit.propagation import IMPORT, KEYWORDS, Rule, balanced, rules
from mercury_ls.next_edit.renames import Renames

__all__ = ["Candidate", "batches", "distinct", "find", "judged"]

NEAR_LINES = 24
LONGEST_LINE = 400
MOST_RANKED = 200
MOST_MENTIONS = 32
MOST_NAMES = 32
ABOUT = 0.7
SURE = 0.9
KINDS = {"import": "lacking", "unused": "unused"}
TRAVELLING = frozenset({"argument", "parameter", "rename", "signature"})
OF_LINES = frozenset({"clone", "delete", "entry", "insert", "stored"})


class Candidate(Struct, frozen=True):
    """An edit that may come next: `[start, end)` of a snapshot becomes `text`, or what a model writes if that is None.

    `p_edit` is the chance that the user would make it, from `features`, and `p_due` that of having anything left to do
    where this is the likeliest; `rule` is what it follows from, `reach` the lines that it does all of the rule's edit
    for. Edits of one rule that are `bound` are made together or not at all.
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


def find(
    snapshot: Snapshot,
    offset: int,
    edits: Sequence[Edit],
    others: Sequence[Snapshot] = (),
    diagnosed: Sequence[Diagnosed] = (),
    project: Project | None = None,
    accepted: Sequence[Edit] = (),
) -> list[Candidate]:
    """All that could follow, not yet judged, and the same place as often as something speaks for it."""
    return [*chain.from_iterable(batches(snapshot, offset, edits, others, diagnosed, project, accepted))]


def batches(
    snapshot: Snapshot,
    offset: int,
    edits: Sequence[Edit],
    others: Sequence[Snapshot] = (),
    diagnosed: Sequence[Diagnosed] = (),
    project: Project | None = None,
    accepted: Sequence[Edit] = (),
) -> Iterator[list[Candidate]]:
    """The same for one rule and file after the other, so that something else can be done in between."""
    files = (snapshot, *others)
    project = (project or Project()).with_files(files)
    homes = {each.path: each for each in files}
    learned = [occurrences.where_declared(rule, homes, project, edits) for rule in rules(edits)]
    renames = Renames.of(learned, files, project)
    for file in files:
        found = []
        for some in following(file, learned, edits, snapshot, files, offset, project, accepted):
            found += some
            yield []
        yield permitted(found, renames, {file.uri: file})
    yield [
        Candidate(snapshot.uri, place.start, place.end, place.text, "lacking", rule, {"age": math.log2(1 + rule.age)})
        for rule, place in imports.needed(snapshot, edits, others)
    ]
    yield [
        Candidate(snapshot.uri, place.start, place.end, place.text, KINDS[rule.kind], rule, {"diagnosed": 1.0})
        for rule, place in imports.diagnosed(snapshot, diagnosed, others)
    ]
    complained = {snapshot.line_of(each.start) for each in diagnosed}
    yield [*questions(snapshot, offset, edits, complained)]


def permitted(found: list[Candidate], renames: Renames, files: Mapping[str, Snapshot]) -> list[Candidate]:
    """Without those that rename what may be something else, whichever rule they are of."""
    uses = {(each.uri, each.start) for each in found if each.bound and each.rule is not None and each.kind == "rename"}
    return [
        each
        for each in found
        if each.text is None
        or each.kind == "rename"
        or all((each.uri, at) in uses for at in renames.made_by(files[each.uri], each.start, each.end, each.text))
    ]


def judged(found: Iterable[Candidate]) -> list[Candidate]:
    known = ranking.load()
    return [chanced(each, known) for each in found]


def chanced(candidate: Candidate, known: ranking.Ranking) -> Candidate:
    if candidate.bound and candidate.kind == "rename":
        # What has got another name where it is declared exists no more by the old one.
        return replace(candidate, p_edit=SURE, p_due=1.0)
    chance = known.probability(candidate.kind, candidate.features)
    return replace(candidate, p_edit=chance, p_due=known.is_due(candidate.kind, candidate.features, chance))


def distinct(found: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The likeliest first; of those that change the same place only that one, or one that does more of the same edit
    there."""
    ordered = sorted(found, key=lambda each: -each.p_edit)
    bound = [each for each in ordered if each.bound]
    ranked = sorted([*bound, *[each for each in ordered if not each.bound][:MOST_RANKED]], key=lambda e: -e.p_edit)
    clones = [each for each in ranked if each.kind == "clone"]
    kept: dict[str, list[Candidate]] = {}
    for candidate in ranked:
        there = kept.setdefault(candidate.uri, [])
        covered = any(fuller(clone, candidate) for clone in clones)
        if not covered and not any(collide(candidate, other) for other in there):
            there.append(candidate)
    return tuple(sorted((each for some in kept.values() for each in some), key=lambda each: -each.p_edit))


def following(
    snapshot: Snapshot,
    learned: Iterable[Rule],
    edits: Sequence[Edit],
    current: Snapshot,
    files: Sequence[Snapshot],
    offset: int,
    project: Project,
    accepted: Sequence[Edit] = (),
) -> Iterator[list[Candidate]]:
    """For each rule the places of this file that follow it, but for what the user has typed there since, and what an
    `accepted` offer has done; of a file that is not open only those that names lead to."""
    homes = {each.path: each for each in files}
    typed, lines_typed = typed_ranges(snapshot, edits), edited_lines(snapshot, edits)
    edited = [(age, number) for age, reach in lines_typed for number in range_of_lines(snapshot, reach)]
    done = [(0, reach) for _, reach in typed_ranges(snapshot, accepted)]
    for rule in learned:
        if snapshot.version == CLOSED and rule.kind not in TRAVELLING:
            continue
        home = homes.get(rule.path)
        places = occurrences.find(rule, snapshot, home, project)
        taken = [*(lines_typed if rule.kind in OF_LINES else typed), *done]
        free = [place for place in places if not any(age <= rule.since and overlap(place, r) for age, r in taken)]
        lines = sorted(snapshot.line_of(each.start) for each in free)
        known = ranges_of_locals(rule, snapshot, home) if free else {}
        surroundings = Surroundings(snapshot, current, offset, edits, lines, edited, known)
        kept = (
            place
            for place in free
            if not (is_strange(rule, place, surroundings) or stands_alone(rule, place, snapshot))
        )
        yield [candidate(rule, place, surroundings, home) for place in kept]


def is_strange(rule: Rule, place: Place, around: Surroundings) -> bool:
    """Whether what was done once would bring names there that are unknown."""
    return rule.count == 1 and rule.kind in COPIED and unknown_names(place, around) > 0


def candidate(rule: Rule, place: Place, around: Surroundings, home: Snapshot | None) -> Candidate:
    kind = rule.kind if place.text is not None else "call"
    features = features_of(rule, place, around, home)
    edit = Candidate(around.snapshot.uri, place.start, place.end, place.text, kind, rule, features)
    return replace(edit, reach=place.reach, bound=place.bound)


def typed_ranges(snapshot: Snapshot, edits: Sequence[Edit]) -> list[tuple[int, tuple[int, int]]]:
    """What each edit put into this file, with the edit's age, where it still stands."""
    found: list[tuple[int, tuple[int, int]]] = []
    for age, (start, end) in edited_lines(snapshot, edits):
        edit = edits[-1 - age]
        if edit.before.strip():
            made = touches_of(edit.before, edit.after)
            made = [*made, *balanced(edit.before, edit.after, made)]
            found += [(age, (start + each.new_start, start + each.new_end)) for each in made]
        else:
            found.append((age, (start, end)))
    return found


def edited_lines(snapshot: Snapshot, edits: Sequence[Edit]) -> list[tuple[int, tuple[int, int]]]:
    """The lines that each edit left in this file, with the edit's age, where they still stand."""
    found: list[tuple[int, tuple[int, int]]] = []
    for age, edit in enumerate(reversed(edits)):
        if edit.path == snapshot.path and edit.line < snapshot.line_count:
            start = snapshot.line_start(edit.line)
            if snapshot.text.startswith(edit.after.rstrip("\r\n"), start):
                found.append((age, (start, start + len(edit.after))))
    return found


def range_of_lines(snapshot: Snapshot, reach: tuple[int, int]) -> range:
    start, end = reach
    return range(snapshot.line_of(start), snapshot.line_of(max(end - 1, start)) + 1)


def overlap(place: Place, typed: tuple[int, int]) -> bool:
    start, end = typed
    if place.start == place.end:
        return start < place.start < end or (place.start in (start, end) and start < end)
    return place.start < end and place.end > start


def questions(snapshot: Snapshot, offset: int, edits: Sequence[Edit], complained: Set[int]) -> Iterator[Candidate]:
    """Lines that a model may be asked about: near the cursor, like the edited ones, with a name that changed, or with
    something that a language server complains of."""
    line = snapshot.line_of(offset)
    left = [(snapshot.line_of(start), snapshot.line_of(end)) for _, (start, end) in edited_lines(snapshot, edits)]
    typed = {number for first, stop in left for number in range(first, max(stop, first + 1))}
    went, shapes = gone(edits), shapes_of(edits)
    mentioning = lines_with(snapshot, went)
    near = range(max(line - NEAR_LINES, 0), min(line + NEAR_LINES + 1, snapshot.line_count))
    for number in sorted({*near, *mentioning, *complained} - typed):
        text = snapshot.line(number)
        if not text.strip() or len(text) > LONGEST_LINE:
            continue
        start = snapshot.line_start(number)
        features = {
            "line distance": math.log2(1 + abs(number - line)),
            "line far": float(abs(number - line) > NEAR_LINES),
            "line above": float(number < line),
            "line next": float(number == line + 1),
            "line second": float(number == line + 2),
            "line alike": float(templates.shape_of(text) in shapes),
            "line mentions": mentioning.get(number, 0.0),
            "line mentions below": mentioning.get(number, 0.0) * (number > line),
            "line touches": float(number - 1 in typed or number + 1 in typed),
            "line opens": float(text.rstrip()[-1] in ":{(["),
            "line closes": float(text.strip()[0] in ")]}"),
            "line import": float(bool(IMPORT.match(text))),
            "line comment": float(text.strip()[:1] in "#/*"),
            "line elsewhere": float(not left),
            "line edits": math.log2(max(len(edits), 1)),
            "line diagnosed": float(number in complained),
        }
        blank = len(text) - len(text.lstrip())
        yield Candidate(snapshot.uri, start + blank, start + len(text), None, "line", None, features)


def lines_with(snapshot: Snapshot, names: set[str]) -> dict[int, float]:
    """How much each line has of these names; a name counts for less the more often it occurs."""
    found: dict[int, float] = {}
    for name in names:
        letters = re.escape(name)
        matches = re.finditer(rf"{letters}(?<!\w{letters})\b", snapshot.text)
        at = [match.start() for match in islice(matches, MOST_MENTIONS)]
        for number in {snapshot.line_of(each) for each in at}:
            found[number] = found.get(number, 0.0) + 1 / math.sqrt(len(at))
    return found


def gone(edits: Sequence[Edit]) -> set[str]:
    """Names that the last edits changed or introduced."""
    words = [(set(syntax.identifiers(e.before)), set(syntax.identifiers(e.after))) for e in edits[-3:]]
    return set(sorted({word for old, new in words for word in old ^ new if len(word) > 2} - KEYWORDS)[:MOST_NAMES])


def shapes_of(edits: Sequence[Edit]) -> set[str]:
    return {templates.shape_of(x) for edit in edits[-3:] for x in edit.before.splitlines() if len(x.strip()) > 3}


def fuller(clone: Candidate, part: Candidate) -> bool:
    """Whether one does as a whole line what the other does a part of, and is about as likely."""
    if part.kind == "clone" or clone.rule is None or part.rule is None or clone.reach is None:
        return False
    start, end = clone.reach
    inside = clone.uri == part.uri and start <= part.start and part.end <= end
    about = 1.0 if part.bound else ABOUT
    return inside and clone.rule.age == part.rule.age and clone.p_edit >= about * part.p_edit


def collide(one: Candidate, other: Candidate) -> bool:
    """Whether they change the same text; an insertion also where it touches the other. To be asked about a line takes
    nothing from what a rule says of it."""
    if one.uri != other.uri or (one.text is None) != (other.text is None):
        return False
    if one.start == one.end or other.start == other.end:
        return one.start <= other.end and other.start <= one.end
    return one.start < other.end and other.start < one.end
