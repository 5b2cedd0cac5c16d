"""Extract: an expression was given a name; where it is repeated below, the name can replace it."""

import re
from collections.abc import Iterator
from itertools import takewhile

from mercury_ls.code import scopes, syntax
from mercury_ls.code.differences import LINE, WORD, tokens
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import indentation, openness
from mercury_ls.code.modules import Project
from mercury_ls.code.scopes import whole
from mercury_ls.next_edit.examples import Example
from mercury_ls.next_edit.places import Place, sequence, with_likeness
from mercury_ls.next_edit.rule import Rule, quoted
from mercury_ls.next_edit.suppress import never as suppress

__all__ = ["Extract", "find", "label", "learn", "suppress"]

DECLARED = re.compile(
    r"\s*(?:(?:const|let|var|auto|final|val|mut|[A-Z]\w*)\s+)*(?P<name>[^\W\d]\w*)\s*(?::[^=]+)?:?=(?![=>~])\s*(?P<value>\S.*?);?\s*$"
)
MAKING = re.compile(r"(?<![\w)\]])\[|\{|\+\+|--|<-|:=|=>|\b(?:await|fn|func|function|lambda|make|new|yield)\b")
"""Expressions that wait, construct or change something: repeated, they are not the same value."""
ASSIGNED = re.compile(r"[ \t]*(?:[-+*/%&|^?:@]|\*\*|//|<<|>>>?|&&|\|\||\?\?)?=(?![=>~])|\+\+|--")
CHANGED = re.compile(r"(?:\bdel\b.*|\bdelete |&mut |\+\+|--)[ \t]*$")
CALLED = re.compile(r"[\w)\]>!?]\(")


class Extract(Rule, frozen=True, kw_only=True):
    """The expression `before` was assigned to the variable `after`."""

    kind = "extract"


def learn(example: Example) -> Iterator[Extract]:
    for number, text in example.added:
        for line in LINE.findall(text):
            match = DECLARED.match(line)
            value = match["value"] if match else ""
            lasts = len(tokens(value)) > 1 and WORD.search(value) and not MAKING.search(value)
            if match and lasts and openness(value) == 0:
                yield Extract(before=value, after=match["name"], lines_after=text, line=number)


def find(rule: Extract, snapshot: Snapshot, home: Snapshot | None, project: Project) -> Iterator[Place]:
    """From the new variable to the end of its function, or to where the value may change. Repeated calls may return
    something else each time."""
    if home is not snapshot or rule.line >= snapshot.line_count:
        return
    begun = snapshot.line_end(min(rule.line + rule.lines_after.count("\n"), snapshot.line_count) - 1)
    _, last = scopes.function_range(snapshot, snapshot.line_start(rule.line) + len(indentation(rule.lines_after)))
    pattern = re.compile(sequence([token.text for token in tokens(rule.before)]))
    matches = (match.span() for match in pattern.finditer(snapshot.text, begun, last))
    read = takewhile(lambda span: not is_written(snapshot.text, span), matches)
    other_spans = (span for span in read if not declares_it(rule, snapshot, span[0]))
    uses = [span for span in other_spans if syntax.inside(snapshot, span[0]) is None]
    if CALLED.search(rule.before) and (len(uses) > 1 or any(is_another_call(rule, snapshot, span) for span in uses)):
        return
    for start, end in uses:
        yield with_likeness(Place(start, end, rule.after, bound=True), (), (), snapshot)


def label(rule: Extract) -> str:
    return f"use {quoted(rule.after)}"


def declares_it(rule: Extract, snapshot: Snapshot, start: int) -> bool:
    head = snapshot.text[snapshot.line_start(snapshot.line_of(start)) : start]
    return bool(re.search(rf"{whole(rule.after)}[^=]*=[ \t]*$", head))


def is_another_call(rule: Extract, snapshot: Snapshot, span: tuple[int, int]) -> bool:
    """Whether it is assigned to another variable as it is, or is compared with the first one."""
    start, end = span
    line = snapshot.line_of(start)
    head, tail = snapshot.text[snapshot.line_start(line) : start], snapshot.text[end : snapshot.line_end(line)]
    alone = head.rstrip().endswith("=") and not tail.strip("; \t\r\n")
    return alone or bool(re.search(whole(rule.after), head + " " + tail))


def is_written(text: str, span: tuple[int, int]) -> bool:
    """Whether it is assigned to there, or passed to where it may be."""
    start, end = span
    return bool(ASSIGNED.match(text, end) or CHANGED.search(text[text.rfind("\n", 0, start) + 1 : start]))
