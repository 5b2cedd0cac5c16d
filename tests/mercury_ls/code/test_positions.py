import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_ls.code.positions import column, units

ENCODINGS = ["utf-8", "utf-16", "utf-32"]

lines = st.text(st.sampled_from("ab\t \f\x85\x1c\u2028é中e\u0301😀👩\u200d"), max_size=12)


def check(line: str, encoding: str, expected: list[int]):
    """`expected[n]` is the column of `n` units, to one past the end."""
    assert [column(line, n, encoding) for n in range(len(expected))] == expected


def test_position_inside_character_is_its_start():
    check("a😀b", "utf-8", [0, 1, 1, 1, 1, 2, 3, 3])
    check("a😀b", "utf-16", [0, 1, 1, 2, 3, 3])
    check("a😀b", "utf-32", [0, 1, 2, 3, 3])


def test_combining_character_is_a_place_of_its_own():
    check("e\u0301x", "utf-8", [0, 1, 1, 2, 3, 3])
    check("e\u0301x", "utf-16", [0, 1, 2, 3, 3])


def test_position_past_the_end_is_the_end():
    check("ab", "utf-16", [0, 1, 2, 2, 2])
    check("", "utf-8", [0, 0])
    check("é", "utf-8", [0, 0, 1, 1, 1])


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(lines)
def test_columns_come_back(encoding: str, line: str):
    assert [column(line, units(line, n, encoding), encoding) for n in range(len(line) + 1)] == [*range(len(line) + 1)]


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(lines)
def test_units_are_the_lengths_of_the_encoded_text(encoding: str, line: str):
    codec, width = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}[encoding]
    for n in range(len(line) + 1):
        assert units(line, n, encoding) == len(line[:n].encode(codec)) // width
