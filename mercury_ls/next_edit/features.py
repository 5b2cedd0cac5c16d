"""What the chance of an edit depends on: what was done, how much a place is like the edited one, what lies between."""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct
from tree_sitter import Node

from mercury_engine.api import Edit
from mercury_ls.code import scopes, syntax
from mercury_ls.code.documents import Snapshot, remembered
from mercury_ls.next_edit import templates
from mercury_ls.next_edit.habits import COPIED, is_literal
from mercury_ls.next_edit.places import Place, place_of
from mercury_ls.next_edit.propagation import KEYWORDS, Rule

__all__ = ["Surroundings", "features_of", "ranges_of_locals", "unknown_names"]

NEAR_LINES = 24
FAR_LINES = 60
MOST_NAMES = 32
ANCESTORS = 3
WORD = re.compile(r"(?<![\w.])[^\W\d]\w*")
OF_NAMES = frozenset({"rename", "part", "import", "unused", "entry", "stored", "signature", "trim", "align"})
WHOLE_LINES = frozenset({"clone", "delete", "insert"})
ONCE = COPIED | {"delete"}
COMMON = frozenset({"clone", "delete", "insert", "phrase", "rename"})
"""Kinds that history has often enough to learn of each what these features say of it."""
OF_KIND = (
    *("above", "all places", "length", "likeness", "words alike"),
    *("names alike", "neighbours", "pieces", "rank", "times"),
)
RARE = frozenset({"align", "signature", "stored"})
"""History has them too seldom to learn when they are right: they are narrow enough to be so mostly."""


class Surroundings(Struct, frozen=True):
    """What is the same for all places of one rule in a file: `lines` are those of the places, in order, `edited` those
    that each edit left there, with its age, `locals` the ranges in which each name is known that the rule brings along
    and that only a part of its file knows, by that name."""

    snapshot: Snapshot
    current: Snapshot
    offset: int
    edits: Sequence[Edit]
    lines: Sequence[int]
    edited: Sequence[tuple[int, int]] = ()
    locals: Mapping[str, Sequence[tuple[int, int]]] = {}


def features_of(rule: Rule, place: Place, around: Surroundings, home: Snapshot | None) -> dict[str, float]:
    """Every number grows slowly, so that none decides alone."""
    if rule.kind in RARE:
        return {"age": math.log2(1 + rule.age)}
    snapshot, current, lines = around.snapshot, around.current, around.lines
    line = snapshot.line_of(place.start)
    here = rule.path == snapshot.path
    edited = [number for path, number in rule.places if path == snapshot.path]
    distance = line - rule.line if here else line - current.line_of(around.offset) if snapshot is current else 0
    neighbours = neighbours_alike(rule, line, snapshot, home)
    length = math.log2(1 + len(re.sub(r"\W", "", rule.before or rule.lines_before)))
    since = [number for age, number in around.edited if age <= rule.since]
    between = within(lines, min(line, rule.line), max(line, rule.line)) if here else 0
    names_alike = templates.kinship(rule.lines_before or rule.lines_after, line_at(snapshot, place))
    found = {
        "distance": math.log2(1 + abs(distance)),
        "far": float(abs(distance) > FAR_LINES),
        "above": float(distance < 0 and not place.orphan),
        "orphan": float(place.orphan),
        "own line": float(here and distance == 0 and not place.orphan),
        "visited": float(line in since and not place.orphan),
        "skipped": float(bool(since) and min(since) < line < max(since) and not place.orphan),
        "rank": math.log2(1 + between),
        "same function": float(here and same_function(snapshot, rule, place)),
        "other place": float(not here),
        "other file": float(snapshot is not current),
        "in text": float(syntax.inside(snapshot, place.start) is not None),
        "foreign": float(place.foreign),
        "likeness": place.likeness,
        "alike": float(place.likeness == 1.0),
        "words alike": words_alike(rule, place, snapshot),
        "names alike": names_alike,
        **meaning(rule, names_alike),
        "kin": kin(rule, place, snapshot, home) if home is not None else 0.0,
        "neighbours": neighbours,
        "like above": place.sides[0],
        "like below": place.sides[1],
        "other role": float(not place.same_role),
        "defines": float(place.defines),
        "times": math.log2(rule.count),
        "often": float(rule.count > 2),
        "age": math.log2(1 + rule.age),
        "edits": math.log2(len(around.edits)),
        "places": math.log2(max(within(lines, line - NEAR_LINES - 1, line + NEAR_LINES + 1), 1)),
        "all places": math.log2(max(len(lines), 1)),
        "passed": math.log2(1 + within(lines, min(edited), max(edited)) if edited else 1),
        "left above": math.log2(1 + bisect_left(lines, min(edited)) if edited else 1),
        "changed": rule.changed,
        "pieces": math.log2(rule.pieces),
        "kept": float(rule.before in words_of(rule.lines_after)),
        "lines": math.log2(rule.lines),
        "contested": float(rule.contested),
        "length": length,
        "bound": float(place.bound and rule.kind == "rename"),
        "empty": float(not rule.before.strip()),
        "strange": math.log2(1 + unknown_names(place, around)),
        **(once(rule, place, around, neighbours, names_alike) if rule.count == 1 and rule.kind in ONCE else {}),
    }
    return found | {f"{rule.kind} {name}": found[name] for name in OF_KIND if rule.kind in COMMON}


def within(lines: Sequence[int], first: int, last: int) -> int:
    """How many lines are between these two."""
    return max(bisect_left(lines, last) - bisect_right(lines, first), 0)


def once(rule: Rule, place: Place, around: Surroundings, neighbours: float, alike: float) -> dict[str, float]:
    """What one example alone is worth: it is hardly a habit yet."""
    return {
        f"once {rule.kind}": 1.0,
        "once likeness": place.likeness,
        "once neighbours": neighbours,
        "once empty": float(not rule.before.strip()),
        "once in text": float(syntax.inside(around.snapshot, place.start) is not None),
        **{f"once {name}": value for name, value in meaning(rule, alike).items()},
    }


def meaning(rule: Rule, alike: float) -> dict[str, float]:
    """That a number became another, or one keyword, says little of a line that is about other things."""
    changed = f"{rule.before} {rule.after}"
    literal = is_literal(rule.before) and is_literal(rule.after)
    nameless = not literal and all(word in KEYWORDS for word in WORD.findall(changed))
    return {
        "literal": float(literal),
        "literal alike": literal * alike,
        "nameless": float(nameless),
        "nameless alike": nameless * alike,
    }


def words_alike(rule: Rule, place: Place, snapshot: Snapshot) -> float:
    """The share of the words of both lines that both have."""
    old = words_of(rule.lines_before)
    new = words_of(line_at(snapshot, place))
    return len(old & new) / max(len(old | new), 1)


def line_at(snapshot: Snapshot, place: Place) -> str:
    """All lines that the place has a part of."""
    start, end = snapshot.line_of(place.start), snapshot.line_of(place.end)
    return snapshot.text[snapshot.line_start(start) : snapshot.line_end(end)]


@lru_cache(maxsize=1 << 14)
def words_of(text: str) -> frozenset[str]:
    return frozenset(templates.tokens_of(text))


def kin(rule: Rule, place: Place, snapshot: Snapshot, home: Snapshot) -> float:
    """How far up the two places are the same parts of the tree."""
    if rule.kind in WHOLE_LINES:
        one = statement_at(home, rule.line + (rule.lines_after.count("\n") if rule.kind == "insert" else 0))
        other = statement_at(snapshot, snapshot.line_of(place.start))
    else:
        one, other = scopes.node_at(home, place_of(rule, home)), scopes.node_at(snapshot, place.start)
    same = 0
    for _ in range(ANCESTORS):
        if one is None or other is None or one.type != other.type:
            break
        same, one, other = same + 1, one.parent, other.parent
    return same / ANCESTORS


def statement_at(snapshot: Snapshot, number: int) -> Node | None:
    """The whole of what begins on a line."""
    if number >= snapshot.line_count:
        return None
    line = snapshot.line(number)
    start = snapshot.line_start(number) + len(line) - len(line.lstrip())
    node = scopes.node_at(snapshot, start)
    while node is not None and (around := node.parent) is not None and around.parent is not None:
        if around.start_byte != node.start_byte:
            break
        node = around
    return node


def unknown_names(place: Place, around: Surroundings) -> int:
    """How many locals of the example's function the new text has that are none here."""
    brought = set(WORD.findall(place.text or "")) & around.locals.keys()
    return sum(not any(start <= place.start < end for start, end in around.locals[name]) for name in brought)


def ranges_of_locals(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> dict[str, list[tuple[int, int]]]:
    """For each name of the new text that is a local where the rule was learned: where it is known in this file."""
    if home is None or rule.kind in OF_NAMES:
        return {}
    at = home.line_start(min(rule.line, home.line_count - 1)) + rule.column
    found = {}
    came = rule.lines_after if rule.kind == "insert" else rule.after
    for name in sorted(set(WORD.findall(came)) - KEYWORDS)[:MOST_NAMES]:
        if any(start <= at <= end for start, end in scopes.binding_ranges(home, name)):
            found[name] = scopes.binding_ranges(snapshot, name)
    return found


def neighbours_alike(rule: Rule, line: int, snapshot: Snapshot, home: Snapshot | None) -> float:
    """The share of the two lines above and below that have the shape of those around the edit."""
    if home is None:
        return 0.0
    grown = rule.lines_after.count("\n") or 1
    gone = rule.lines_before.count("\n")
    old = [*(shape_at(home, rule.line - n) for n in (1, 2)), *(shape_at(home, rule.line + grown + n) for n in (0, 1))]
    new = [*(shape_at(snapshot, line - n) for n in (1, 2)), *(shape_at(snapshot, line + gone + n) for n in (0, 1))]
    return sum(one == other for one, other in zip(old, new, strict=True)) / len(old)


@remembered
def shape_at(snapshot: Snapshot, number: int) -> str:
    return templates.shape_of(snapshot.line(number)) if 0 <= number < snapshot.line_count else ""


def same_function(snapshot: Snapshot, rule: Rule, place: Place) -> bool:
    start, end = scopes.function_range(snapshot, place.start)
    edited = snapshot.line_start(min(rule.line, snapshot.line_count - 1))
    return (start, end) != (0, len(snapshot.text)) and start <= edited + rule.column <= end
