"""Packed rows: made by the layout, alone under their mask, predicting what follows, the same for the same number."""

import numpy as np
import pytest
from msgspec.structs import replace

from mercury_engine.api import Edit, Gap, Snippet
from mercury_engine.tokens.layout import Budget, freeze, lay_out, until_end
from mercury_engine.tokens.vocabulary import BOS, EOM, HOLES, MASK, OLD, PAD, PART, PRE, SPECIALS, SUF
from mercury_training.rows import examples
from mercury_training.rows.examples import Removal, Site, completion, left_to_right, next_edit
from mercury_training.rows.holes import AnchoredRow, answer_ids
from mercury_training.rows.loader import Batches
from mercury_training.rows.packing import RowShape, pack, stack
from mercury_training.rows.streams import with_answers
from tests.training.small import TOKENIZER, edit_row, open_rows, source, write_corpus

BUDGET = Budget()
WIDE = replace(BUDGET, suffix=1024)
"""With room for a whole document behind the cursor."""
SHAPE = RowShape(512, 192)
MODES = {SPECIALS.index(name) for name in ("<line>", "<block>", "<region>")}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return open_rows(write_corpus(tmp_path_factory.mktemp("corpus")))


@pytest.fixture(scope="module")
def packed(rows):
    return [rows.packed(number, SHAPE) for number in range(40)]


def place(text=None, offset=300, snippets=()):
    return Site("shapes.py", "python", text or source(0), offset, snippets)


def many(make, count=150):
    found = [make(np.random.default_rng(seed)) for seed in range(count)]
    return [example for example in found if example is not None]


def spelled(ids):
    return TOKENIZER.decode(ids)


def test_completion_is_the_row_that_serving_would_lay_out(monkeypatch):
    """The same calls on the same text, by hand."""
    text = "def area(self):\n    return self.width * 2\n\nprint(area)\n"
    start, stop = text.index("self.width"), text.index(" * 2")
    monkeypatch.setattr(
        examples, "CUTTERS", {kind: lambda *_: Removal(start, stop, block=False) for kind in examples.CUTTERS}
    )
    monkeypatch.setattr(examples, "STALE", 0)
    monkeypatch.setattr(examples, "RECENT", 0)
    monkeypatch.setattr(examples, "NO_MODE", 0)
    monkeypatch.setattr(examples, "KINDS", {"tail": 1.0})
    snippets = (Snippet("other.py", "x = 1\n" * 20),)
    found = completion(TOKENIZER, place(text, 20, snippets), BUDGET, np.random.default_rng(0))
    gap = Gap(
        session="",
        path="shapes.py",
        language="python",
        before=text[:start],
        after=text[stop:],
        snippets=snippets,
    )
    row = lay_out(TOKENIZER, gap, freeze(TOKENIZER, gap, BUDGET), BUDGET)
    expected = with_answers(AnchoredRow.of(row), [answer_ids(TOKENIZER, row.part, "self.width")])
    assert found.stream.ids.tolist() == expected.ids.tolist()
    assert found.stream.blocks == expected.blocks


@pytest.mark.parametrize("kind", ["tail", "line", "block", "characters", "holes"])
def test_text_and_answers_together_are_the_document(kind, monkeypatch):
    monkeypatch.setattr(examples, "KINDS", {kind: 1.0})
    monkeypatch.setattr(examples, "RECENT", 0)
    monkeypatch.setattr(examples, "STALE", 0)
    text = source(0, 6)
    found = many(lambda draw: completion(TOKENIZER, place(text, int(draw.integers(len(text)))), WIDE, draw))
    assert len(found) > 75
    for example in found:
        answers = [spelled(until_end(answer)[0]) for answer in example.answers]
        assert all(answer[-1] == EOM and answer.count(EOM) == 1 for answer in example.answers)
        assert all(answers)
        assert max(text.find(answer.lstrip()) for answer in answers) >= 0
        before = spelled(example.stream.ids[: example.base])
        assert len(before) > len(text) - sum(map(len, answers))
    if kind in ("tail", "line"):
        assert not any("\n" in answer.rstrip("\n") for answer in answers)


def test_answer_stands_nowhere_before_it():
    text = "".join(f"value_{number} = {number}\n" for number in range(30)) + "unique = 'needle'\n" + "x = 1\n" * 9
    at = text.index("needle")
    found = many(lambda draw: completion(TOKENIZER, place(text, at), BUDGET, draw))
    hiding = [one for one in found if "needle" in spelled(one.answers[0]) and PART not in one.stream.ids]
    assert len(hiding) > 20
    assert not any("needle" in spelled(one.stream.ids[: one.base]) for one in hiding)


def test_completions_of_each_kind_vary_in_mode_part_and_staleness():
    found = many(lambda draw: completion(TOKENIZER, place(), BUDGET, draw), 300)
    without_mode = np.mean([not MODES & set(example.stream.ids[: example.base].tolist()) for example in found])
    assert 0.1 < without_mode < 0.3
    assert np.mean([PART in example.stream.ids for example in found]) > 0.3
    assert 0.03 < np.mean([len(example.answers) > 1 for example in found]) < 0.2
    suffixes = {tuple(example.stream.ids[: int(np.argmax(example.stream.ids == PRE))]) for example in found}
    assert len(suffixes) > 50


def test_next_edit_rewrites_region_around_expected_lines():
    for seed in range(60):
        row = edit_row(seed)
        example = next_edit(TOKENIZER, row, BUDGET, np.random.default_rng(seed))
        assert example is not None
        for answer, draft in zip(example.answers, example.drafts, strict=True):
            old, new = spelled(draft), spelled(until_end(answer)[0])
            if not row.expected:
                assert new.endswith(old) or old == ""
            elif len(example.answers) == 1:
                assert row.expected[row.next].text in new
            if old:
                assert OLD in example.stream.ids


def test_silence_keeps_the_old_text():
    example = next_edit(TOKENIZER, edit_row(0), BUDGET, np.random.default_rng(3))
    request = example.drafts[0]
    assert list(example.answers[0][:-1]) == list(request)


def test_form_feed_ends_no_line_of_the_edit_window():
    row = edit_row(1)
    torn = replace(row, window=row.window.replace("import math", "import\x0c math"))
    for seed in range(9):
        draws = (np.random.default_rng(seed) for _ in range(2))
        whole, split = (next_edit(TOKENIZER, each, BUDGET, draw) for each, draw in zip((row, torn), draws, strict=True))
        assert whole.answers == split.answers


def test_edits_of_several_places_are_several_holes():
    found = many(lambda draw: next_edit(TOKENIZER, edit_row(1), BUDGET, draw))
    several = [example for example in found if len(example.answers) == 2]
    assert 0.15 < len(several) / len(found) < 0.45
    for example in several:
        assert [int(example.stream.ids[anchor]) for anchor in example.anchors] == list(HOLES[:2])
        assert "value < 7" in spelled(example.answers[0])
        assert "count = 1" in spelled(example.answers[1])


def test_running_text_takes_the_whole_room():
    tokens = np.array(TOKENIZER.encode(source(0)), np.uint16)
    example = left_to_right(TOKENIZER, "a.py", "python", tokens, 100)
    ids = example.stream.ids
    assert len(ids) == 100
    start = int(np.argmax(ids == PRE))
    assert ids[start - 1] == SUF
    assert ids[start + 1 :].tolist() == tokens[: 99 - start].tolist()
    assert left_to_right(TOKENIZER, "a.py", "python", tokens, 5) is None


def test_row_depends_on_its_number_alone(rows, tmp_path, packed):
    again = open_rows(write_corpus(tmp_path))
    for number in (7, 3):
        for name in packed[number].__struct_fields__:
            found = getattr(again.packed(number, SHAPE), name)
            assert np.array_equal(found, getattr(packed[number], name))
    assert not np.array_equal(packed[0].ids, packed[1].ids)
    other = open_rows(tmp_path, seed=1)
    assert not np.array_equal(other.packed(3, SHAPE).ids, packed[3].ids)


def test_numbers_visit_the_corpus_evenly(rows):
    places = [(rows._offset + number * 0.6180339887498949) % 1 for number in range(100)]
    assert np.histogram(places, 20, (0, 1))[0].min() >= 4


def test_rows_are_full_and_mostly_masked(packed):
    batch = stack(packed)
    clean, canvas = batch.ids[:, : SHAPE.clean], batch.ids[:, SHAPE.clean :]
    assert (clean == PAD).mean() < 0.02
    assert (canvas == PAD).mean() < 0.05
    assert 0.75 < (canvas == MASK).mean() < 0.95
    assert (clean != MASK).all()


def test_clean_rows_predict_what_the_stream_holds_next(packed):
    """A row's target is what a causal reader of it meets at the next position; several anchors may precede one."""
    for row in packed[:12]:
        clean = slice(0, SHAPE.clean)
        for at in np.flatnonzero(row.weights[clean]):
            following = np.flatnonzero(row.positions[clean] == row.positions[at] + 1)
            seen_from = [column for column in following if sees(row, column, at)]
            assert row.targets[at] in row.ids[seen_from] or row.ids[at] in HOLES


def sees(row, at, column):
    return any(first <= column < stop for first, stop in row.ranges[at])


def test_canvas_rows_see_their_own_past_and_nothing_that_they_predict(packed):
    for row in packed:
        for at in range(SHAPE.clean, SHAPE.rows):
            if not row.weights[at]:
                continue
            clean = [c for first, stop in row.ranges[at] for c in range(first, min(stop, SHAPE.clean))]
            assert clean, "a canvas reads something"
            assert row.positions[clean].max() < row.positions[at]
            assert row.ids[clean[0]] == BOS
            assert (row.ids[clean] == BOS).sum() == 1
            drafts = [c for first, stop in row.ranges[at] for c in range(max(first, SHAPE.clean), stop)]
            assert at in drafts


def test_canvas_target_is_the_token_of_clean_row_at_its_place(packed):
    """What a slot should hold is what the clean stream holds at that position, ends aside."""
    checked = 0
    for row in packed:
        for at in range(SHAPE.clean, SHAPE.rows):
            if row.weights[at] == 0 or row.targets[at] == EOM:
                continue
            own = [c for first, stop in row.ranges[at] for c in range(first, min(stop, SHAPE.clean))]
            start = own[0]
            stop = start + 1
            while stop < SHAPE.clean and row.ids[stop] != BOS:
                stop += 1
            there = np.flatnonzero(row.positions[start:stop] == row.positions[at] + 1) + start
            assert row.targets[at] in row.ids[there]
            checked += 1
    assert checked > 1000


def test_reader_of_a_canvas_row_predicts_the_same_behind_the_same_context(packed):
    """Only what has no place in the stream, an end behind the first one, has no reader."""
    for row in packed:
        for at in range(SHAPE.clean, SHAPE.rows):
            reader = row.readers[at - SHAPE.clean]
            if not row.weights[at]:
                continue
            if reader < 0:
                assert row.targets[at] == EOM
                continue
            assert row.targets[reader] == row.targets[at]
            assert row.positions[reader] == row.positions[at]
            assert row.ranges[reader][0][0] == row.ranges[at][0][0]


def test_canvases_are_different_and_in_the_order_of_what_they_see(packed):
    for row in packed:
        canvas = slice(SHAPE.clean, SHAPE.rows)
        starts = row.ranges[canvas, 0, 0][row.ids[canvas] != PAD]
        assert (np.diff(starts) >= 0).all()


@pytest.mark.slow
def test_worker_processes_give_the_same_batches_in_the_same_order(tmp_path):
    corpus, shape = write_corpus(tmp_path), RowShape(256, 64)
    alone = Batches(corpus, tmp_path / "scratch", 0, 0).take(3, 4, shape, 20)
    workers = Batches(corpus, tmp_path / "scratch", 0, 2)
    helped = workers.take(3, 4, shape, 20)
    workers.close()
    halves = [Batches(corpus, tmp_path / "scratch", 0, 0, rank, 2).take(3, 2, shape, 20) for rank in (0, 1)]
    for number, batch in enumerate(alone):
        assert np.array_equal(batch.ids, helped[number].ids)
        assert np.array_equal(batch.ids, np.concatenate([half[number].ids for half in halves]))


def test_another_shape_or_row_starts_anew(tmp_path):
    corpus = write_corpus(tmp_path)
    batches = Batches(corpus, tmp_path / "scratch", 0, 0)
    first = batches.take(1, 1, RowShape(256, 64), 0)[0]
    longer = batches.take(1, 1, RowShape(512, 64), 1)[0]
    again = batches.take(1, 1, RowShape(256, 64), 0)[0]
    assert longer.ids.shape == (1, 576)
    assert np.array_equal(first.ids, again.ids)


def test_examples_that_do_not_fit_are_refused():
    example = many(lambda draw: completion(TOKENIZER, place(), BUDGET, draw), 3)[0]
    with pytest.raises(AssertionError, match="fit"):
        pack([example] * 9, RowShape(256, 64), TOKENIZER.vocabulary, np.random.default_rng(0))


def test_typed_lines_are_told_as_edits():
    text = "".join(f"x{n} = {n}\n" for n in range(50))
    found = [examples._recent("a.py", text, np.random.default_rng(seed)) for seed in range(40)]
    assert () in found
    edits = [edit for one in found for edit in one]
    assert all(isinstance(edit, Edit) and edit.after in text for edit in edits)
