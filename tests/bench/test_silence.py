import random

import pytest

from bench.next_edit.measure import question_of
from bench.silence import KINDS, SourceSample, silent_cases
from mercury_ls.code.documents import Document

TEXT = """\
import os


def gather(folder, suffix):
    selected = []
    for entry in os.listdir(folder):
        if entry.endswith(suffix):
            selected.append(entry)
    return selected


def measure(folder):
    amounts = gather(folder, ".py")
    largest = len(amounts) + 1
    print(largest, amounts)
    return largest
"""
FILES = [SourceSample(f"file_{number}.py", "python", TEXT.replace("gather", f"gather_{number}")) for number in range(3)]


def states(kind: str, seed: int = 0) -> list[str]:
    found = KINDS[kind](FILES[0], random.Random(seed))
    assert found is not None
    assert found[-1].count("\0") == 1
    return [state.replace("\0", "") for state in found]


def test_rows_come_in_turn_and_are_the_same_for_the_same_seed():
    cases = silent_cases(FILES, 12, seed=3)
    assert [case.kind for case in cases] == [*KINDS, *KINDS]
    again = silent_cases(FILES, 12, seed=3)
    assert [(c.snapshot.text, c.offset) for c in cases] == [(c.snapshot.text, c.offset) for c in again]
    assert all(not case.expected for case in cases)
    assert all(question_of(case, 0.25).offset <= len(case.snapshot.text) for case in cases)


@pytest.mark.parametrize("kind", ["undone", "retyped"])
def test_what_was_taken_back_or_typed_again_leaves_the_file_as_it_was(kind):
    first, *between, last = states(kind)
    assert first == last == FILES[0].text
    assert any(state != first for state in between)


def test_a_finished_rename_leaves_nothing_of_the_old_name():
    first, *_, last = states("finished")
    gone = set(first.replace("(", " ").split()) - set(last.replace("(", " ").split())
    assert gone
    assert Document("", "a.py", "python", 1, last).snapshot().tree.root_node.has_error is False


def test_what_was_redone_ends_like_the_finished_rename():
    assert states("redone")[-1] == states("finished")[-1]


def test_reformatting_changes_blanks_only():
    first, *_, last = states("reformatted")
    assert first != last
    assert first.replace(" ", "") == last.replace(" ", "")


def test_too_few_files_are_an_error_that_says_so():
    with pytest.raises(ValueError, match="too few for 6 rows"):
        silent_cases([SourceSample("a.py", "python", "x = 1\n")], 6)
