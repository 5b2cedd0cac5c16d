"""Lines of one shape: found by a mark that all of them have, and by how they begin."""

import pytest

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
