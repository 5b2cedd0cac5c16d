"""Rows whose next edit is known, and the server that knows it."""

import pytest

from bench.oracle.edits import FORMATS, edit_rows, edits_asked, row_of
from mercury_engine.prompts.edits import FORMATS as KNOWN
from mercury_ls.code.edits import TextEdit


def test_a_row_is_drawn_with_the_edit_and_what_is_due():
    row = row_of("a name", "a.py", "python", "f(⟦a→bb⟧)\ng(⟪a→bb⟫)\n⟪→h()\n⟫")
    assert row.before == "f(a)\ng(a)\n"
    assert row.edit == TextEdit(2, 3, "bb")
    assert row.text == "f(bb)\ng(a)\n"
    assert row.text[: row.cursor] == "f(bb"
    assert row.final == "f(bb)\ng(bb)\nh()\n"


@pytest.mark.parametrize("row", [*edit_rows(), *edit_rows(unseen=True)], ids=lambda row: f"{row.language}: {row.name}")
def test_rows_are_quiet_where_they_say_so(row):
    assert row.text != row.before
    assert bool(row.due) != row.name.startswith("quiet")


def test_each_format_is_asked():
    assert {form.name for form in KNOWN} < {*FORMATS}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zeta-2.1", "chat"])
async def test_next_to_nothing_of_a_perfect_model_is_lost(name):
    offered = await edits_asked(name, edit_rows())
    lost = [one.row.name for one in offered if one.row.due and not one.exact]
    assert len(lost) <= 1, lost
    assert [one.row.name for one in offered if one.shown and not one.row.due] == []
