"""Trim: blanks at the ends of lines were removed; those of other lines may go, too."""

import re
from collections.abc import Iterator

from mercury_ls.code.documents import Snapshot
from mercury_ls.code.modules import Project
from mercury_ls.next_edit.examples import Example
from mercury_ls.next_edit.places import Place, nearest
from mercury_ls.next_edit.rule import Rule
from mercury_ls.next_edit.suppress import never

suppress = never

TRAILING = re.compile(r"(?<![ \t])[ \t]++(?=\r?$)", re.MULTILINE)


class Trim(Rule, frozen=True, kw_only=True):
    kind = "trim"


def learn(example: Example) -> Iterator[Trim]:
    if example.blanks == "trailing":
        yield Trim()


def find(rule: Trim, snapshot: Snapshot, home: Snapshot | None, project: Project) -> Iterator[Place]:
    spans = [match.span() for match in TRAILING.finditer(snapshot.text)]
    for start, end in nearest(spans, snapshot, rule):
        yield Place(start, end, "", float(snapshot.text[start - 1 : start] in ("", "\n")))


def label(rule: Trim) -> str:
    return "remove trailing whitespace"
