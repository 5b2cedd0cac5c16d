"""Edits that may come next: where the last ones lead to, and how likely the user is to make each."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Edit
from mercury_ls import occurrences, ranking, scopes, syntax
from mercury_ls.documents import Snapshot
from mercury_ls.occurrences import Place
from mercury_ls.propagation import KEYWORDS, Rule, balanced, rules, shape, touches_of

__all__ = ["Candidate", "distinct", "find", "judged"]

NEAR_LINES = 24
FAR_LINES = 60
LONGEST_LINE = 400
MOST_RANKED = 200
ABOUT = 0.7
OF_LINES = frozenset({"clone", "delete", "insert"})


class Candidate(Struct, frozen=True):
    """An edit that may come next: `[start, end)` of a snapshot becomes `text`, or what a model writes if that is None.

    `p_edit` is the chance that the user would make it, from `features`; `rule` is what it follows from, and `reach` the
    lines that it does all of the rule's edit for.
    """

    uri: str
    start: int
    end: int
    text: str | None
    kind: str
    rule: Rule | None
    features: dict[str, float]
    p_edit: float = 0.0
    reach: tuple[int, int] | None = None


def find(snapshot: Snapshot, offset: int, edits: Sequence[Edit], others: Sequence[Snapshot] = ()) -> list[Candidate]:
    """All that could follow, not yet judged, and the same place as often as something speaks for it."""
    learned = rules(edits)
    files = (snapshot, *others)
    found = [each for file in files for each in following(file, learned, edits, snapshot, files, offset)]
    return [*found, *questions(snapshot, offset, edits)]


def judged(found: Iterable[Candidate]) -> list[Candidate]:
    known = ranking.load()
    return [replace(each, p_edit=known.probability(each.kind, each.features)) for each in found]


def distinct(found: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The likeliest first; of those that change the same place only that one, or one that does more of the same edit
    there."""
    ranked = sorted(found, key=lambda each: -each.p_edit)[:MOST_RANKED]
    clones = [each for each in ranked if each.kind == "clone"]
    kept: list[Candidate] = []
    for candidate in ranked:
        covered = any(fuller(clone, candidate) for clone in clones)
        if not covered and not any(collide(candidate, other) for other in kept):
            kept.append(candidate)
    return tuple(kept)


def following(
    snapshot: Snapshot,
    learned: Iterable[Rule],
    edits: Sequence[Edit],
    current: Snapshot,
    files: Sequence[Snapshot],
    offset: int,
) -> Iterator[Candidate]:
    """The places of this file that follow the rules, but for what the user has typed there since."""
    homes = {each.path: each for each in files}
    typed, lines_typed = typed_ranges(snapshot, edits), edited_lines(snapshot, edits)
    for rule in learned:
        places = occurrences.find(rule, snapshot, homes.get(rule.path))
        taken = lines_typed if rule.kind in OF_LINES else typed
        free = [place for place in places if not any(age <= rule.since and overlap(place, r) for age, r in taken)]
        lines = [snapshot.line_of(place.start) for place in free]
        for place, line in zip(free, lines, strict=True):
            features = features_of(rule, place, line, lines, snapshot, current, offset)
            known = (snapshot.uri, place.start, place.end, place.text, rule.kind, rule, features)
            yield Candidate(*known, reach=place.reach)


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


def overlap(place: Place, typed: tuple[int, int]) -> bool:
    start, end = typed
    if place.start == place.end:
        return start < place.start < end or (place.start in (start, end) and start < end)
    return place.start < end and place.end > start


def features_of(
    rule: Rule, place: Place, line: int, lines: Sequence[int], snapshot: Snapshot, current: Snapshot, offset: int
) -> dict[str, float]:
    """What the chance of an edit depends on; every number grows slowly, so that none decides alone."""
    here = rule.path == snapshot.path
    edited = [number for path, number in rule.places if path == snapshot.path]
    distance = line - rule.line if here else line - current.line_of(offset) if snapshot is current else 0
    return {
        "distance": math.log2(1 + abs(distance)),
        "far": float(abs(distance) > FAR_LINES),
        "above": float(distance < 0),
        "orphan": float(place.orphan),
        "orphan above": float(place.orphan and distance < 0),
        "own line": float(here and distance == 0),
        "same function": float(here and same_function(snapshot, rule, place)),
        "other place": float(not here),
        "other file": float(snapshot is not current),
        "in text": float(syntax.inside(snapshot, place.start) is not None),
        "likeness": place.likeness,
        "alike": float(place.likeness == 1.0),
        "other role": float(not place.same_role),
        "defines": float(place.defines),
        "times": math.log2(rule.count),
        "age": math.log2(1 + rule.age),
        "places": math.log2(max(sum(abs(other - line) <= NEAR_LINES for other in lines), 1)),
        "passed": math.log2(1 + sum(min(edited) < other < max(edited) for other in lines) if edited else 1),
        "left above": math.log2(1 + sum(other < min(edited) for other in lines) if edited else 1),
        "changed": rule.changed,
        "lines": math.log2(rule.lines),
        "contested": float(rule.contested),
        "length": math.log2(1 + len(re.sub(r"\W", "", rule.before or rule.lines_before))),
    }


def same_function(snapshot: Snapshot, rule: Rule, place: Place) -> bool:
    start, end = scopes.function_range(snapshot, place.start)
    edited = snapshot.line_start(min(rule.line, snapshot.line_count - 1))
    return (start, end) != (0, len(snapshot.text)) and start <= edited + rule.column <= end


def questions(snapshot: Snapshot, offset: int, edits: Sequence[Edit]) -> Iterator[Candidate]:
    """Lines that a model may be asked about: below the cursor, like the edited ones, or with a name that went."""
    line = snapshot.line_of(offset)
    typed = {snapshot.line_of(start) for _, (start, end) in typed_ranges(snapshot, edits)} | {line}
    went, shapes = gone(edits), shapes_of(edits)
    for number in range(max(line - NEAR_LINES, 0), min(line + NEAR_LINES + 1, snapshot.line_count)):
        text = snapshot.line(number)
        if number in typed or not text.strip() or len(text) > LONGEST_LINE:
            continue
        mentions = len(went & set(syntax.identifiers(text)))
        alike = shape(text) in shapes
        if mentions or alike or 0 < number - line <= 2:
            start = snapshot.line_start(number)
            features = {
                "line distance": math.log2(1 + abs(number - line)),
                "line above": float(number < line),
                "line alike": float(alike),
                "line mentions": math.log2(1 + mentions),
            }
            blank = len(text) - len(text.lstrip())
            yield Candidate(snapshot.uri, start + blank, start + len(text), None, "line", None, features)


def gone(edits: Sequence[Edit]) -> set[str]:
    """Names that the last edits changed or introduced."""
    words = [(set(syntax.identifiers(e.before)), set(syntax.identifiers(e.after))) for e in edits[-3:]]
    return {word for before, after in words for word in before ^ after if len(word) > 2} - KEYWORDS


def shapes_of(edits: Sequence[Edit]) -> set[str]:
    return {shape(line) for edit in edits[-3:] for line in edit.before.splitlines() if len(line.strip()) > 3}


def fuller(clone: Candidate, part: Candidate) -> bool:
    """Whether one does as a whole line what the other does a part of, and is about as likely."""
    if part.kind == "clone" or clone.rule is None or part.rule is None or clone.reach is None:
        return False
    start, end = clone.reach
    inside = clone.uri == part.uri and start <= part.start and part.end <= end
    return inside and clone.rule.age == part.rule.age and clone.p_edit >= ABOUT * part.p_edit


def collide(one: Candidate, other: Candidate) -> bool:
    """Whether they change the same text; an insertion also where it touches the other."""
    if one.uri != other.uri:
        return False
    if one.start == one.end or other.start == other.end:
        return one.start <= other.end and other.start <= one.end
    return one.start < other.end and other.start < one.end
