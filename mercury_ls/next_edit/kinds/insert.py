"""Insert: lines were added; the same lines may be added between other lines like their neighbours."""

import re
from collections.abc import Iterator, Mapping
from operator import itemgetter

from mercury_ls.code.differences import WORD
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import indentation, kinship, shape_of, tokens_of
from mercury_ls.code.modules import Project
from mercury_ls.next_edit import suppress as habits
from mercury_ls.next_edit.examples import Example
from mercury_ls.next_edit.kinds.templates import WholeLines
from mercury_ls.next_edit.places import Place

HEADS = {"x": r"[^\W\d]\w*+", "0": r"\d[\w.]*+"}
MOST_INSERTIONS = 24
MOST_COMPARED = 4096
LEAST_RESEMBLANCE = 0.8
BLANKS = 0.2
"""The resemblance of two blank neighbours."""
IMPORTED = re.compile(r"\s*(?:import|from|use|using|#include|export\b.*\bfrom)\b")
"""What a file needs once."""
LINES = re.compile(r"[^\n]*\n|[^\n]+")


class Insert(WholeLines, frozen=True, kw_only=True):
    kind = "insert"
    copies_code = True

    @property
    def copied(self) -> str:
        return self.lines_after


def learn(example: Example) -> Iterator[Insert]:
    for line, text in example.added:
        yield Insert(lines_after=text, line=line)


def find(rule: Insert, snapshot: Snapshot, home: Snapshot | None, project: Project) -> Iterator[Place]:
    if home is None or not rule.lines_after.strip():
        return
    count = len(LINES.findall(rule.lines_after))
    above, below = _line_or_none(home, rule.line - 1), _line_or_none(home, rule.line + count)
    own = range(rule.line, rule.line + count + 1) if home is snapshot else ()
    insertions: list[tuple[float, int, int, float, float]] = []
    for number in worth_comparing(above, below, snapshot, rule.line):
        on_top, beneath = _line_or_none(snapshot, number - 1), _line_or_none(snapshot, number)
        upper, lower = _resemblance(above, on_top), _resemblance(below, beneath)
        if number not in own and upper + lower >= LEAST_RESEMBLANCE:
            insertions.append((-(upper + lower), abs(number - rule.line), number, upper, lower))
    for _, _, number, upper, lower in sorted(sorted(insertions)[:MOST_INSERTIONS], key=itemgetter(2)):
        on_top, beneath = _line_or_none(snapshot, number - 1), _line_or_none(snapshot, number)
        like, old = (on_top, above) if upper >= lower else (beneath, below)
        names = {**_names_instead(above, on_top), **_names_instead(below, beneath)}
        text = _transplanted(rule.lines_after, old or "", like or "", names)
        once = IMPORTED.match(text) and text.strip() in snapshot.text
        if number < snapshot.line_count and not once and not _stands(snapshot, number, text):
            start = snapshot.line_start(number)
            yield Place(start, start, text, (upper + lower) / 2, same_role=upper == lower == 1.0, around=(upper, lower))


def suppress(rule: Insert, place: Place, snapshot: Snapshot) -> bool:
    return habits.is_no_habit(rule, place, snapshot) or (rule.count == 1 and _says_the_same(rule, place))


def label(rule: Insert) -> str:
    return "insert the same lines"


def _says_the_same(rule: Insert, place: Place) -> bool:
    """Whether a message would be repeated word for word: it is about one place."""
    return any(
        WORD.search(literal) and literal in (place.text or "") for literal in habits.STRING.findall(rule.lines_after)
    )


def worth_comparing(above: str | None, below: str | None, snapshot: Snapshot, near: int) -> list[int]:
    """The lines at which a neighbour begins like one of the old neighbours; the nearest, if there are many."""
    numbers = {*(number + 1 for number in _beginning_like(above, snapshot)), *_beginning_like(below, snapshot)}
    if len(numbers) > MOST_COMPARED:
        numbers = set(sorted(numbers, key=lambda number: abs(number - near))[:MOST_COMPARED])
    return sorted(numbers)


def _beginning_like(old: str | None, snapshot: Snapshot) -> Iterator[int]:
    """Lines whose shape begins with the same two tokens."""
    heads = [HEADS.get(token, re.escape(token)) for token in shape_of(old or "").split()[:2]]
    pattern = re.compile(r"^[^\S\n]*+" + r"[^\S\n]*+".join(heads), re.MULTILINE)
    return (snapshot.line_of(match.end() - 1) for match in pattern.finditer(snapshot.text)) if heads else iter(())


def _line_or_none(snapshot: Snapshot, number: int) -> str | None:
    return snapshot.line(number) if 0 <= number < snapshot.line_count else None


def _resemblance(old: str | None, line: str | None) -> float:
    """1 for the same line, less for the same shape, depending on the names, still less for the same beginning, little
    for two blank lines."""
    if old is None or line is None:
        return BLANKS if old is line is None else 0.0
    if not old.strip() or not line.strip():
        return BLANKS if old.strip() == line.strip() else 0.0
    if old.strip() == line.strip():
        return 1.0
    old_shape, new_shape = shape_of(old), shape_of(line)
    if old_shape == new_shape:
        return 0.7 + 0.25 * kinship(old, line)
    return 0.4 if old_shape.split()[:2] == new_shape.split()[:2] else 0.0


def _transplanted(inserted: str, old: str, like: str, names: Mapping[str, str]) -> str:
    """The lines with the indentation and the names of the new neighbours."""
    before, after = indentation(old), indentation(like)
    lines: list[str] = []
    for line in LINES.findall(inserted):
        fresh = after + line.removeprefix(before) if line.startswith(before) and line.strip() else line
        lines.append(WORD.sub(lambda match: names.get(match.group(), match.group()), fresh))
    text = "".join(lines)
    return text if text.endswith("\n") else text + "\n"


def _names_instead(old: str | None, like: str | None) -> dict[str, str]:
    """The names that a line of the same shape has in place of the old ones."""
    if old is None or like is None or shape_of(old) != shape_of(like):
        return {}
    pairs = zip(tokens_of(old), tokens_of(like), strict=True)
    return {a: b for a, b in pairs if a != b and a.isidentifier() and len(a) > 1}


def _stands(snapshot: Snapshot, number: int, text: str) -> bool:
    """Whether the lines are there already, above or below."""
    lines = [line.strip() for line in LINES.findall(text)]
    for first in (number - len(lines), number):
        around = [_line_or_none(snapshot, first + at) for at in range(len(lines))]
        if [line and line.strip() for line in around] == lines:
            return True
    return False
