"""Lines of one shape: found by a mark that all of them have, and by how they begin."""

import pytest

from mercury_ls.code.documents import Document
from mercury_ls.code.modules import Project
from mercury_ls.next_edit.kinds import insert
from mercury_ls.next_edit.kinds.templates import learned_template, occurrences

TEXT = """\
def first(rows):
    total = rows.sum()
    log.info("total", total)
    if total > 3:
        return total
    return rows

class Table:
    def second(self, rows):
        total = rows.sum()
        log.info("other", total)
        if total > 3:
            return total
        return self.rows

total = other.sum()
total = last.sum()"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_templates_match_where_a_pattern_tried_at_every_line_does(end, count):
    text, lines = TEXT.replace("\n", end), TEXT.splitlines(keepends=True)
    matched = 0
    for first in range(len(lines) - count):
        before = "".join(lines[first : first + count])
        for old, new in (("total", "whole"), ("rows", "cells"), ("(", "(a, "), ("return", "yield")):
            template = learned_template(before, before.replace(old, new, 1))
            if template is not None:
                expected = [match.span() for match in template.pattern.finditer(text)]
                assert [match.span() for match in occurrences(template, text)] == expected
                matched += len(expected)
    assert matched > 50


def test_lines_are_put_where_they_would_be_if_every_line_were_compared(monkeypatch):
    lines = TEXT.splitlines(keepends=True)
    for at in range(len(lines)):
        text = "".join([*lines[:at], "    check(rows)\n", *lines[at:]])
        snapshot = Document("file:///a.py", "a.py", "python", 1, text).snapshot()
        rule = insert.Insert(lines_after="    check(rows)\n", line=at, path="a.py")
        places = [*insert.find(rule, snapshot, snapshot, Project())]
        with monkeypatch.context() as patch:
            patch.setattr(insert, "worth_comparing", lambda above, below, text, near: range(text.line_count + 1))
            assert places == [*insert.find(rule, snapshot, snapshot, Project())]


def test_few_lines_of_a_long_text_are_compared():
    text = "x = f(1)\n" * 3000 + "with a as b:\n    check()\n    return b\n" * 3
    snapshot = Document("file:///a.py", "a.py", "python", 1, text).snapshot()
    numbers = insert.worth_comparing("with a as b:\n", "    return b\n", snapshot, 3001)
    assert numbers == [3001, 3002, 3004, 3005, 3007, 3008]
    assert len(insert.worth_comparing("x = 1\n", None, snapshot, 0)) == 3000
