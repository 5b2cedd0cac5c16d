"""A commit as a row: hunks one behind the other, branches that nobody else sees, weights on what can be known."""

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.tokens.vocabulary import EOM, INS, SPECIALS
from mercury_training.corpus.history import Change, hunks_between
from mercury_training.corpus.synthetic import lines_of
from mercury_training.edits.commits import Commit
from mercury_training.edits.rows import edit_row, joined, packed, shape_of
from mercury_training.train.attention import dense_mask
from tests.training.small import TOKENIZER

import torch  # isort: skip
import itertools

LINES = st.lists(st.sampled_from([f"{name} = {value}\n" for name in ("ab", "cd") for value in "12"]), max_size=24)
BEFORE = "def area(w, h):\n    return w * h\n\n\na = area(1, 2)\n\n\nb = area(3, 4)\n\n\nc = 5\nd = 6\ne = 7\n"
AFTER = BEFORE.replace("area", "surface")


def commit(before: str, after: str) -> Commit:
    hunks = hunks_between("a.py", lines_of(before), lines_of(after)) or []
    return Commit("some/where", {"a.py": "MIT"}, Change("0" * 40, {"a.py": lines_of(before)}, hunks))


def rows(before: str, after: str, count: int = 20):
    made = [edit_row(TOKENIZER, commit(before, after), random.Random(seed)) for seed in range(count)]
    return [row for row in made if row is not None]


def shown(ids) -> str:
    return "".join(SPECIALS[token] if token < len(SPECIALS) else TOKENIZER.decode([token]) for token in ids)


def test_first_hunk_is_past_and_the_others_are_learned():
    for row in rows(BEFORE, AFTER):
        chain = row.blocks[0].size
        ends = [index for index, token in enumerate(row.ids[:chain]) if token == EOM]
        assert len(ends) == 3
        assert not any(row.weights[: ends[0] + 1])
        assert all(row.weights[end] == 1 for end in ends[1:])


def test_answer_that_needs_an_unknown_name_is_learned_up_to_it():
    before, after = "one = 1\n{}two = 2\n", "one = 3\n{}two = unheard_of\n"
    apart = "\n" * 30
    for row in rows(before.format(apart), after.format(apart)):
        learned = shown([token for token, weight in zip(row.ids, row.weights, strict=True) if weight])
        assert "unheard" not in learned


def test_places_where_nothing_is_due_repeat_the_old_lines():
    kept = [
        shown(branch)
        for row in rows(BEFORE, AFTER, 60)
        for branch in np.split(row.ids, np.cumsum([block.size for block in row.blocks])[:-1])[1:]
    ]
    questions = [text.partition("<ins>") for text in kept]
    olds = [question.partition("<old>")[2].partition("</old>")[0] for question, _, _ in questions]
    same = [old == answer.removesuffix("<eom>") for old, (_, _, answer) in zip(olds, questions, strict=True)]
    assert len(same) > 5
    assert any(same)


def test_likeliest_place_behind_each_edit_is_asked_about_as_an_editor_asks():
    uses = "".join(f"{name} = area({name}, 2)\n\n\n" for name in "abc")
    made = rows(f"def area(w):\n    pass\n\n\n{uses}", f"def surface(w):\n    pass\n\n\n{uses}area = 3\n")
    kept = [shown(row.ids[answer.start : answer.stop]) for row in made for answer in row.answers if answer.repeats]
    assert any("area(" in answer for answer in kept), "it looks alike, and stays"
    made = rows(BEFORE, AFTER)
    branches = [answer for row in made for answer in row.answers if answer.start >= row.blocks[0].size and answer.due]
    assert len(branches) > len(made) // 2, "what is due there is asked about in the same way"


def test_branches_see_the_chain_before_them_and_nothing_of_each_other():
    row = max(rows(BEFORE, AFTER, 60), key=lambda row: len(row.blocks))
    assert len(row.blocks) > 2
    mask = dense_mask(torch.from_numpy(packed(row, shape_of(row)).ranges)[None].long())[0].numpy()
    starts = np.cumsum([0, *(block.size for block in row.blocks)])
    for block, start in list(zip(row.blocks, starts, strict=False))[1:]:
        seen = np.flatnonzero(mask[start])
        assert seen.tolist() == [*range(block.parent + 1), start]
        assert row.positions[start] == block.parent + 1
        assert row.ids[block.parent] != INS


@given(LINES, LINES, st.integers(0, 99))
@settings(max_examples=60)
def test_chain_ends_with_the_text_of_the_commit(before, after, seed):
    change = commit("".join(before), "".join(after))
    made = edit_row(TOKENIZER, change, random.Random(seed)) if change.change.hunks else None
    if made is None:
        return
    assert len(made.ids) == len(made.weights) == len(made.positions) == sum(block.size for block in made.blocks)
    arrays = packed(made, shape_of(made))
    learned = np.flatnonzero(arrays.weights)
    assert [made.ids[index + 1] for index in learned] == arrays.targets[learned].tolist()


@given(LINES, LINES)
@settings(max_examples=60)
def test_joined_hunks_lead_to_the_same_text(before, after):
    lines = list(before)
    hunks = [*joined(hunks_between("a.py", before, after) or [], {"a.py": before})]
    for hunk in reversed(hunks):
        assert tuple(before[hunk.first : hunk.stop]) == hunk.old
        lines[hunk.first : hunk.stop] = hunk.new
    assert lines == after
    assert all(later.first - earlier.stop > 1 for earlier, later in itertools.pairwise(hunks))


def test_judged_row_also_asks_each_hunk_with_the_old_lines():
    for seed in range(20):
        row = edit_row(TOKENIZER, commit(BEFORE, AFTER), random.Random(seed), judged=True)
        assert row is not None
        repeated = [answer for answer in row.answers if answer.due and answer.repeats]
        written = [answer for answer in row.answers if answer.due and not answer.repeats]
        assert len(repeated) == 2
        assert len(written) >= 2
        assert all(row.ids[answer.start - 1] == INS for answer in row.answers)
        assert all(row.ids[answer.stop - 1] == EOM for answer in row.answers)
