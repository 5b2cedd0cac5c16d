"""The oracle finds the gap in its texts, whatever else stands in front of it, and what belongs there."""

import random

from hypothesis import given
from hypothesis import strategies as st

from bench.oracle.truth import Truths, log_probs, tokens, wrong

CART = """\
def total(lines):
    amount = 0
    for line in lines:
        amount += line.price
    return amount


def count(lines):
    amount = 0
    for line in lines:
        amount += 1
    return amount
"""
SHOP = "class Shop:\n    name = 'corner'\n"
TRUTHS = Truths([SHOP, CART])


def check(text: str, middle: str | None) -> None:
    """The gap is drawn as `$0`."""
    before, behind = text.split("$0")
    place = TRUTHS.place(before, behind)
    assert (place and place.middle) == middle


def test_true_answer_is_the_rest_of_a_line():
    check("def total(lines):\n    amount =$0\n    for line in lines:\n", " 0")


def test_repeated_line_is_told_apart_by_lines_above():
    check("def count(lines):\n    amount = 0\n    for line in lines:\n        amount +=$0\n    return amount\n", " 1")


def test_body_ends_where_suffix_begins():
    check("def total(lines):\n    $0\n\n\ndef count(lines):\n", CART[22:].partition("\n\n\n")[0])


def test_true_answer_is_found_at_end_of_file():
    check("class Shop:\n    $0\n", "name = 'corner'")


def test_other_files_in_front():
    check("# shop.py\nclass Shop:\n\ndef total(lines):\n    amount =$0\n    for line in lines:\n        x\n", " 0")


def test_bracket_closed_by_editor():
    check("def count($0):\n    amount = 0\n", "lines")


def test_something_else_was_typed_before():
    check("def total(rows):\n    result = 0\n    for line in$0\n        amount += line.price\n", " lines:")


def test_unlike_text_is_no_match():
    assert Truths([SHOP]).place("§", "§") is None


@given(st.text())
def test_tokens_are_the_text(text):
    assert "".join(tokens(text)) == text


@given(st.integers(0, len(CART)), st.integers(0, len(CART)), st.integers(0, 40))
def test_cut_text_is_found_again(one, other, window):
    """In a window that begins somewhere."""
    start, end = sorted((one, other))
    place = Truths([CART]).place(CART[max(start - 60 - window, 0) : start], CART[end:])
    assert place is not None
    assert CART[: place.start] + place.middle + CART[place.end :] == CART
    assert place.start <= place.end


@given(st.integers())
def test_wrong_answer_is_never_the_right_one(seed):
    place = TRUTHS.place("def total(lines):\n    amount =", "\n    for line in lines:\n")
    assert place is not None
    assert wrong(place, random.Random(seed)).strip() != place.middle.strip()


def test_log_probabilities_tell_right_from_wrong_as_far_as_they_are_to():
    def mean(wisdom, *, right):
        told = log_probs(wisdom, right=right, count=4000, chance=random.Random(1))
        return round(sum(told) / len(told), 2)

    assert log_probs("absent", right=True, count=3, chance=random.Random(1)) is None
    assert mean("constant", right=True) == mean("constant", right=False) == 0.0
    assert abs(mean("sure", right=True) + 0.06) < 0.015
    assert abs(mean("doubting", right=True) + 0.13) < 0.02
    assert mean("sure", right=False) < mean("overlapping", right=False) < mean("overlapping", right=True)
