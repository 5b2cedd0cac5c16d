"""The n-gram hints of each row: what followed the same tokens earlier, and what a canvas reads of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.tokens.hints import HINTS, ORDERS, continuations, locate, look_up
from mercury_engine.tokens.layout import answer_ids, freeze, lay_out
from mercury_engine.tokens.prefix import HintBuilder
from mercury_engine.tokens.vocabulary import EOM, PAD
from tests.engine.slow_hints import one_line, slow_hints
from tests.engine.tiny import BUDGET, TOKENIZER, request

SPELLED = TOKENIZER.token_bytes
A, B, C, D = 100, 101, 102, 103
N = PAD


def check(ids, *hints, anchor=None):
    """The hints of the last rows of these tokens, for as many of them as are given."""
    ids = np.array(ids, np.int32)
    found = look_up(ids, locate(ids, anchor, SPELLED)).tolist()
    assert found[len(found) - len(hints) :] == [list(one) for one in hints]


def stream(marked, answer, **fields):
    """The tokens of a completion and its answer, and the anchor."""
    asked = request(marked, **fields)
    row = lay_out(TOKENIZER, asked, freeze(TOKENIZER, asked, BUDGET), BUDGET)
    anchor = row.holes[0].anchor
    return np.array([*row.ids[: anchor + 1], *answer_ids(TOKENIZER, row.holes[0], answer)], np.int32), anchor


def longest_hint(marked, **fields):
    """The anchor's hint from its longest match, as text."""
    ids, anchor = stream(marked, "", **fields)
    hints = look_up(ids, locate(ids, anchor, SPELLED))[anchor]
    found = [token for token in hints.tolist() if token != PAD]
    return TOKENIZER.decode(found[-1:])


def test_hint_is_what_followed_the_same_tokens_last_within_one_text():
    check([A, B, C, A, B], (B, N, N, N), (C, C, N, N))
    check([A, B, A, C, A], (C, N, N, N))
    check([A, B, C, D, B, A, B], (A, C, N, N))
    check([A, B, EOM, A], (B, N, N, N))
    check([A, EOM, B, A], (N, N, N, N))


def test_four_and_eight_tokens():
    run = list(range(100, 110))
    check([*run, *run[:8]], (108, 108, 108, 108))
    check([*run, *run[1:5]], (105, 105, 105, N))


def test_cursor_continues_text_like_that_before_it():
    assert longest_hint("x = 1\ny = 2\nx = 1\n$0\nlast = 3\n") == "y"
    assert longest_hint("self.width = 3\nself.height = 4\nself.$0\n").startswith(".h")
    assert longest_hint("self.width = 3\nself.height = 4\nself.w$0\n") == ".width"
    assert longest_hint("self.$0\nheight = 3\nself.width = 4\n") == ".width"
    assert longest_hint("a.b = 1\na.[[c]] = 2\n") == "."


pieces = st.lists(st.sampled_from(["a", "b", ".", " = ", "\n", "self", "width", "w"]), max_size=24).map("".join)


@settings(max_examples=150)
@given(pieces, pieces, pieces, st.sampled_from(["$0", "[[a]]", "[[]]b[[b = ]]"]))
def test_hints_equal_their_definition(before, after, answer, spans):
    ids, anchor = stream(before + spans + after, answer)
    expected = slow_hints(ids.tolist(), anchor, SPELLED)
    assert look_up(ids, locate(ids, anchor, SPELLED)).tolist() == expected


@given(pieces, pieces, pieces, st.data())
def test_hints_do_not_depend_on_later_tokens(before, after, answer, data):
    ids, anchor = stream(f"{before}$0{after}", answer)
    whole = locate(ids, anchor, SPELLED)
    stop = data.draw(st.integers(anchor + 1, len(ids)))
    start = data.draw(st.integers(0, stop))
    assert locate(ids[:stop], anchor, SPELLED, start).tolist() == whole[start:stop].tolist()


def test_many_rows_at_once_have_the_hints_of_few():
    ids = np.random.default_rng(0).integers(64, 80, 500).astype(np.int32)
    whole = locate(ids, None, SPELLED)
    assert (whole != -1).any(0)[:3].all()
    for start in (490, 499):
        assert locate(ids, None, SPELLED, start).tolist() == whole[start:].tolist()


@pytest.mark.parametrize(
    ("ids", "source", "expected"),
    [
        ([A, B, C, D, A], 1, [C, D, A, N]),
        ([A, B, EOM, D, A], 1, [N, N, N, N]),
        ([A, B, C, EOM, A], 1, [C, N, N, N]),
        ([A, B, A, B, A], 3, [A, N, N, N]),
        ([A, B, C, D, A], -1, [N, N, N, N]),
    ],
)
def test_canvas_reads_how_text_went_on(ids, source, expected):
    hints = continuations(np.array(ids, np.int32), np.full(HINTS, source, np.int32), 4)
    assert hints.T.tolist() == [expected] * len(ORDERS)


def test_hints_are_found_in_text_that_has_no_room():
    asked = request("".join(f"line{number} = value{number}\n" for number in range(200)) + "line3 $0\n")
    row = lay_out(TOKENIZER, asked, freeze(TOKENIZER, asked, BUDGET), BUDGET)
    assert "line3 " not in TOKENIZER.decode(row.ids[: row.holes[0].anchor - 8])
    prefix = HintBuilder.of(row, TOKENIZER, hints=True).build(row.ids, row.positions)
    token = [one for one in prefix.hints_RH[row.holes[0].anchor].tolist() if one != PAD][-1]
    assert TOKENIZER.decode([token]).startswith(" =")


def test_unread_text_is_not_in_the_row_too():
    asked = request("".join(f"line{number} = value{number}\n" for number in range(200)) + "$0\n")
    row = lay_out(TOKENIZER, asked, freeze(TOKENIZER, asked, BUDGET), BUDGET)
    text = TOKENIZER.decode([token for token in [*row.unread, *row.ids] if token != PAD])
    counts = [text.count(f"line{number} = value{number}\n") for number in range(200)]
    assert max(counts) == 1
    assert sum(counts) >= 199, "a line may be cut in two"


@settings(max_examples=60)
@given(pieces, pieces, pieces, pieces)
def test_prefix_built_from_another_equals_new_one(before, typed, after, answer):
    prefixes = []
    for text in (before, before + typed):
        ids, _ = stream(f"{text}$0{after}", answer)
        asked = request(f"{text}$0{after}")
        row = lay_out(TOKENIZER, asked, freeze(TOKENIZER, asked, BUDGET), BUDGET)
        builder = HintBuilder.of(row, TOKENIZER, hints=True)
        positions = np.arange(len(ids))
        resumed = builder.build_from(ids, positions, prefixes[-1] if prefixes else None)
        assert resumed.hints_RH.tolist() == builder.build(ids, positions).hints_RH.tolist()
        prefixes.append(resumed)


def test_hints_of_a_line_end_before_the_line_end():
    """What followed was `{` with the line's end: to say is `{`, and then nothing."""
    ids, anchor = stream("call(a) {\ncall(b)$0\n", " {")
    asked = request("call(a) {\ncall(b)$0\n")
    row = lay_out(TOKENIZER, asked, freeze(TOKENIZER, asked, BUDGET), BUDGET)
    hints = HintBuilder.of(row, TOKENIZER, hints=True).build(ids, np.arange(len(ids))).hints_RH
    raw = slow_hints(ids.tolist(), anchor, SPELLED)
    assert hints.tolist() == one_line(raw, ids.tolist(), anchor, TOKENIZER)
    assert not any(b"\n" in SPELLED[token] for token in hints[anchor:].flatten().tolist())


def test_canvas_on_line_reads_line_and_its_end():
    (end,) = (token for token, spelled in enumerate(SPELLED) if spelled == b"\n")
    ids = np.array([A, B, C, end, D, A], np.int32)
    hints = continuations(ids, np.full(HINTS, 1, np.int32), 4, TOKENIZER.line_ends)
    assert hints.T.tolist() == [[C, EOM, N, N]] * HINTS
