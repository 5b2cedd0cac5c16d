"""The features of a candidate: what was done, how similar the place is to the edited one, what lies between."""

import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from mercury_ls.code import scopes
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.code.lexemes import KEYWORDS, kinship, shape_of, tokens_of
from mercury_ls.next_edit.places import Place
from mercury_ls.next_edit.rule import Rule
from mercury_ls.next_edit.situation import Situation

MOST_NAMES = 32
WORD = re.compile(r"(?<![\w.])[^\W\d]\w*")


class Surroundings(Struct, frozen=True):
    """What is the same for all places of one rule in a file: `lines` are those of the places, in order, `edited` those
    that each edit left there, with its age, `locals` the ranges in which each name is known that the rule brings along
    and that only a part of its file knows."""

    snapshot: Snapshot
    situation: Situation
    lines: Sequence[int]
    edited: Sequence[tuple[int, int]]
    locals: Mapping[str, Sequence[tuple[int, int]]]


def features_of(rule: Rule, place: Place, around: Surroundings, home: Snapshot | None) -> dict[str, float]:
    """Counts enter as logarithms, so that none decides alone."""
    if rule.is_rare:
        return {"age": math.log2(1 + rule.age)}
    snapshot, lines = around.snapshot, around.lines
    line, column = snapshot.line_of(place.start), _line_at(snapshot, place)
    edited = [number for path, number in rule.places if path == snapshot.path]
    since = [number for age, number in around.edited if age <= rule.since]
    declared = not place.declaration_gone
    old, new = _words_of(rule.lines_before), _words_of(column)
    return {
        "above": float(declared and _is_above(rule, line, around)),
        "declaration gone": float(place.declaration_gone),
        "visited": float(declared and line in since),
        "skipped": float(declared and bool(since) and min(since) < line < max(since)),
        "likeness": place.likeness,
        "words alike": len(old & new) / max(len(old | new), 1),
        "names alike": kinship(rule.lines_before or rule.lines_after, column),
        "neighbours": _neighbours_alike(rule, line, snapshot, home),
        "other role": float(not place.same_role),
        "times": math.log2(rule.count),
        "age": math.log2(1 + rule.age),
        "edits": math.log2(len(around.situation.edits)),
        "all places": math.log2(max(len(lines), 1)),
        "left above": math.log2(1 + bisect_left(lines, min(edited)) if edited else 1),
        "changed": rule.changed,
        "lines": math.log2(rule.lines),
        "length": math.log2(1 + len(re.sub(r"\W", "", rule.before or rule.lines_before))),
        "empty": float(not rule.before.strip()),
        "foreign names": math.log2(1 + foreign_names(place, around)),
    }


def _is_above(rule: Rule, line: int, around: Surroundings) -> bool:
    """Whether it is above the edit, or above the cursor if the edit was made in another file."""
    snapshot, situation = around.snapshot, around.situation
    if rule.path == snapshot.path:
        return line < rule.line
    return snapshot is situation.snapshot and line < snapshot.line_of(situation.offset)


def _line_at(snapshot: Snapshot, place: Place) -> str:
    """The lines that the place touches."""
    start, end = snapshot.line_of(place.start), snapshot.line_of(place.end)
    return snapshot.text[snapshot.line_start(start) : snapshot.line_end(end)]


@lru_cache(maxsize=1 << 14)
def _words_of(text: str) -> frozenset[str]:
    return frozenset(tokens_of(text))


def foreign_names(place: Place, around: Surroundings) -> int:
    """How many locals of the edited function the new text uses that are unknown here."""
    brought = set(WORD.findall(place.text or "")) & around.locals.keys()
    return sum(not any(start <= place.start < end for start, end in around.locals[name]) for name in brought)


def ranges_of_locals(rule: Rule, snapshot: Snapshot, home: Snapshot | None) -> dict[str, list[tuple[int, int]]]:
    """The scopes in this file of each name of the new text that is a local where the rule was learned."""
    if home is None or not rule.after:
        return {}
    at = home.line_start(min(rule.line, home.line_count - 1)) + rule.column
    names = sorted(set(WORD.findall(rule.after)) - KEYWORDS)[:MOST_NAMES]
    local = (name for name in names if any(first <= at <= end for first, end in scopes.binding_ranges(home, name)))
    return {name: scopes.binding_ranges(snapshot, name) for name in local}


def _neighbours_alike(rule: Rule, line: int, snapshot: Snapshot, home: Snapshot | None) -> float:
    """The share of the two lines above and below that have the shape of those around the edit."""
    if home is None:
        return 0.0
    grown = rule.lines_after.count("\n") or 1
    removed = rule.lines_before.count("\n")
    old = [*(_shape_at(home, rule.line - n) for n in (1, 2)), *(_shape_at(home, rule.line + grown + n) for n in (0, 1))]
    new = [*(_shape_at(snapshot, line - n) for n in (1, 2)), *(_shape_at(snapshot, line + removed + n) for n in (0, 1))]
    return sum(mine == theirs for mine, theirs in zip(old, new, strict=True)) / len(old)


@cached
def _shape_at(snapshot: Snapshot, number: int) -> str:
    return shape_of(snapshot.line(number)) if 0 <= number < snapshot.line_count else ""
