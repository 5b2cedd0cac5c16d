"""Rows are cut out of files that parse, and put together they are the file again."""

import pytest

from bench.oracle.rows import KINDS, UNSEEN, parse, rows, sources

FILES = [*sources(), *sources(unseen=True)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_rows_are_their_file_with_a_gap(file):
    cut = rows([file])
    assert cut
    for row in cut:
        assert row.before + row.middle + row.behind == file.text
        assert row.middle.strip()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_files_of_rows_parse(file):
    assert not [node for node in parse(file).nodes if node.is_error or node.is_missing]


def test_three_files_of_each_language_one_of_them_unseen():
    languages = [file.language for file in FILES]
    assert {language: languages.count(language) for language in languages} == dict.fromkeys(languages, 3)
    assert {file.name for file in sources(unseen=True)} == UNSEEN
    assert sorted({file.language for file in sources(unseen=True)}) == sorted(set(languages))


def test_row_kinds_are_all_cut_and_always_the_same():
    assert {row.kind for row in rows(FILES)} == set(KINDS)
    assert rows(FILES[:1]) == rows(FILES[:1]) != rows(FILES[:1], seed=1)


def kinds_of(middle: str) -> set[str]:
    """Of all gaps that are found, not only the ones that are cut."""
    return {
        kind
        for file in FILES
        for kind, (find, _) in KINDS.items()
        if any(file.text[gap.start : gap.end] == middle for gap in find(parse(file)))
    }


def test_row_kinds_are_recognised_by_their_text():
    assert "rest of a line" in kinds_of(" Ledger(kept)")
    assert "line" in kinds_of("self.difference = difference")
    assert "empty body" in kinds_of("return {posting.account for posting in self.postings}")
    assert "below comment" in kinds_of("kept = [entry for entry in self.entries if first <= entry.day <= last]")
    assert "call closed" in kinds_of('\n      "nothing to pay",\n      cart.id,\n      customer,\n    ')
