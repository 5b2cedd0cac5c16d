"""Align: blanks within lines were changed to line up a column; other tables like it may follow."""

import re
from collections.abc import Iterator

from msgspec import Struct

from mercury_ls.code import scopes
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import indentation
from mercury_ls.code.modules import Project
from mercury_ls.next_edit.examples import Example
from mercury_ls.next_edit.places import Place
from mercury_ls.next_edit.rule import Rule
from mercury_ls.next_edit.suppress import never

suppress = never

COLUMNS = re.compile(r"[ \t]*+(?P<head>[\w.\"']++:?+)(?P<gap>[ \t]++)(?P<rest>\S.*)")


class Align(Rule, frozen=True, kw_only=True):
    kind = "align"
    is_rare = True


class _Column(Struct, frozen=True):
    """The gap behind a line's first column, that column's width, and what kind of line it is."""

    start: int
    end: int
    width: int
    margin: str
    kind: tuple[str, ...]

    @property
    def second(self) -> int:
        return self.width + self.end - self.start


def learn(example: Example) -> Iterator[Align]:
    if example.blanks == "inner":
        yield Align(lines_after=example.after)


def find(rule: Align, snapshot: Snapshot, home: Snapshot | None, project: Project) -> Iterator[Place]:
    """Lines that stand apart from the column of their table, after an edit that aligned lines of such a table."""
    kinds = _kinds_of(rule, home) if home is not None else frozenset[tuple[str, ...]]()
    if not kinds:
        return
    for table in _tables(snapshot):
        if table[0].kind not in kinds:
            continue
        second = max(row.width for row in table) + 1
        apart = [row for row in table if row.second != second]
        for row in apart:
            yield Place(row.start, row.end, " " * (second - row.width), 1 - len(apart) / len(table))


def label(rule: Align) -> str:
    return "align these lines too"


def _kinds_of(rule: Rule, home: Snapshot) -> set[tuple[str, ...]]:
    """The kinds of the tables that the edit aligned."""
    lines = range(rule.line, rule.line + rule.lines)
    kinds: set[tuple[str, ...]] = set()
    for table in _tables(home):
        second = max(row.width for row in table) + 1
        edited = [row for row in table if home.line_of(row.start) in lines]
        if edited and all(row.second == second for row in edited):
            kinds.add(table[0].kind)
    return kinds


def _tables(snapshot: Snapshot) -> Iterator[list[_Column]]:
    """Two or more consecutive lines of one kind."""
    table: list[_Column] = []
    for number in range(snapshot.line_count):
        column = _column_of(snapshot, number)
        if table and (column is None or (column.margin, column.kind) != (table[0].margin, table[0].kind)):
            if len(table) > 1:
                yield table
            table = []
        if column is not None:
            table.append(column)
    if len(table) > 1:
        yield table


def _column_of(snapshot: Snapshot, number: int) -> _Column | None:
    """None if the line has no columns or continues in the next."""
    line = snapshot.line(number).rstrip()
    match = COLUMNS.match(line)
    if match is None or line[-1] in "([{":
        return None
    start = snapshot.line_start(number)
    node = scopes.node_at(snapshot, start + match.start("head"))
    if node is None or node.parent is None or node.parent.parent is None:
        return None
    first, last = start + match.start("gap"), start + match.end("gap")
    kind = match["head"][-1], node.type, node.parent.type, node.parent.parent.type
    kind = kind if kind[0] == ":" else kind[1:]
    return _Column(first, last, len(match["head"]), indentation(line), kind)
