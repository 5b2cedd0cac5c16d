"""Lines that a model may be asked about, where no rule says what to write."""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from mercury_engine.api import Edit
from mercury_ls.code import syntax
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import IMPORT, KEYWORDS, shape_of
from mercury_ls.next_edit.candidates import Candidate
from mercury_ls.next_edit.situation import Situation, edited_lines

__all__ = ["questions"]

NEAR_LINES = 24
LONGEST_LINE = 400
MOST_MENTIONS = 32
MOST_NAMES = 32


def questions(situation: Situation) -> Iterator[Candidate]:
    """Lines near the cursor, lines that mention a changed name, and lines with a diagnostic."""
    snapshot, edits = situation.snapshot, situation.edits
    line = snapshot.line_of(situation.offset)
    complained = {snapshot.line_of(diagnostic.start) for diagnostic in situation.diagnostics}
    edited = [(snapshot.line_of(start), snapshot.line_of(end)) for _, (start, end) in edited_lines(snapshot, edits)]
    typed = {number for first, stop in edited for number in range(first, max(stop, first + 1))}
    went, shapes = changed_names(edits), shapes_of(edits)
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
            "line alike": float(shape_of(text) in shapes),
            "line mentions": mentioning.get(number, 0.0),
            "line mentions below": mentioning.get(number, 0.0) * (number > line),
            "line touches": float(number - 1 in typed or number + 1 in typed),
            "line opens": float(text.rstrip()[-1] in ":{(["),
            "line closes": float(text.strip()[0] in ")]}"),
            "line import": float(bool(IMPORT.match(text))),
            "line comment": float(text.strip()[:1] in "#/*"),
            "line elsewhere": float(not edited),
            "line edits": math.log2(max(len(edits), 1)),
            "line diagnosed": float(number in complained),
        }
        blank = len(text) - len(text.lstrip())
        yield Candidate(snapshot.uri, start + blank, start + len(text), None, "line", None, features)


def lines_with(snapshot: Snapshot, names: set[str]) -> dict[int, float]:
    """How much each line mentions these names; frequent names count less."""
    chances: dict[int, float] = {}
    for name in names:
        letters = re.escape(name)
        matches = re.finditer(rf"{letters}(?<!\w{letters})\b", snapshot.text)
        at = [match.start() for match in islice(matches, MOST_MENTIONS)]
        for number in {snapshot.line_of(offset) for offset in at}:
            chances[number] = chances.get(number, 0.0) + 1 / math.sqrt(len(at))
    return chances


def changed_names(edits: Sequence[Edit]) -> set[str]:
    """Names that the last edits changed or introduced."""
    words = [(set(syntax.identifiers(e.before)), set(syntax.identifiers(e.after))) for e in edits[-3:]]
    return set(sorted({word for old, new in words for word in old ^ new if len(word) > 2} - KEYWORDS)[:MOST_NAMES])


def shapes_of(edits: Sequence[Edit]) -> set[str]:
    return {shape_of(line) for edit in edits[-3:] for line in edit.before.splitlines() if len(line.strip()) > 3}
