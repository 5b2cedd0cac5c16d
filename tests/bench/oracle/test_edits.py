"""Rows whose next edit is known, and the server that knows it."""

import pytest

from bench.oracle.edits import FORMATS, all_rows, edit_rows, edits_asked, row_of
from mercury_engine.prompts.edits import FORMATS as KNOWN
from mercury_ls.code.edits import TextEdit, applied


def test_row_is_drawn_with_edit_and_what_is_due():
    row = row_of("a name", "a.py", "python", "f(⟦a→bb⟧)\ng(⟪a→bb⟫)\n⟪→h()\n⟫")
    assert row.before == "f(a)\ng(a)\n"
    assert row.edit == TextEdit(2, 3, "bb")
    assert row.text == "f(bb)\ng(a)\n"
    assert row.text[: row.cursor] == "f(bb"
    assert applied(row.text, row.due) == "f(bb)\ng(bb)\nh()\n"


@pytest.mark.parametrize("row", [*edit_rows(), *edit_rows(unseen=True)], ids=lambda row: f"{row.language}: {row.name}")
def test_rows_are_quiet_where_they_say_so(row):
    assert row.text != row.before
    assert bool(row.due) != row.name.startswith("quiet")


def test_formats_are_all_asked():
    assert {form.name for form in KNOWN} < {*FORMATS}


@pytest.mark.parametrize("row", all_rows(), ids=lambda row: f"{row.kind}: {row.file}: {row.name}")
def test_same_edit_is_due_in_long_file(row):
    lines = iter(applied(row.text, row.due).splitlines())
    short = next((short for short in edit_rows() if row.file.endswith(short.file)), row)
    assert all(line in lines for line in applied(short.text, short.due).splitlines())
    assert (row.text.count("\n") > 200) is (row.kind in ("long", "distant", "beyond"))
    if row.kind in ("distant", "beyond"):
        distance = row.text.count("\n", row.cursor, row.due[-1].start)
        assert distance >= (12 if row.kind == "distant" else 400)


def test_part_of_the_due_edit_is_right_if_nothing_else_was_shown():
    row = row_of("a name", "a.py", "python", "f(⟦a→b⟧)\ng(⟪a→b⟫)\nh(⟪a→b⟫)\n")
    first, second = row.due
    assert row.is_due([first, second], frozenset([first, second]))
    assert row.is_due([first], frozenset([first]))
    assert row.is_due([first, second], frozenset([first]))
    assert row.is_due([], frozenset())
    assert not row.is_due([first], frozenset([second]))
    assert not row.is_due([first, TextEdit(0, 0, "x")], frozenset([first]))


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
async def test_next_to_nothing_of_a_perfect_model_is_lost(name):
    """All rows in one format; what a format reads and writes is the same for them."""
    offered = await edits_asked(name, all_rows(most=3 if name == "zeta-2" else 1))
    lost = [f"{one.row.kind}: {one.row.name}" for one in offered if one.row.due and not one.exact]
    assert len(lost) <= 1, lost
    assert [one.row.name for one in offered if one.shown and not one.row.due] == []
