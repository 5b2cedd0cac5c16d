"""What a family reads around a gap: whole lines, the nearest ones, and no more than there is room for."""

from hypothesis import given
from hypothesis import strategies as st

from mercury_engine.families.context import around, first_lines, last_lines
from mercury_engine.families.family import FAMILIES, family_named
from mercury_engine.families.vocabulary import FamilyVocabulary
from tests.engine.families.fakes import tokenizer_of


def text_of(name, before, after, room):
    family = family_named(name)
    tokenizer = tokenizer_of(family)
    vocabulary = FamilyVocabulary(family, tokenizer, tokenizer.vocabulary)
    found = around(family, vocabulary, tokenizer, before, after, room)
    decoded = [tokenizer.decode_bytes(ids).decode("utf-8", "replace") for ids in (found.before, found.after)]
    return found, *decoded, found.typed.decode()


def test_lines_next_to_gap():
    assert last_lines("aa\nbb\ncc", 6, len) == "bb\ncc"
    assert last_lines("aa\nbb\ncc", 8, len) == "aa\nbb\ncc"
    assert last_lines("aa\nbbbbbbbbbb", 3, len) == "bbbbbbbbbb"
    assert first_lines("aa\nbb\ncc", 6, len) == "aa\nbb\n"
    assert first_lines("aaaaaaaaaa\nbb", 3, len) == "aaaaaaaaaa\n"
    assert last_lines("", 3, len) == first_lines("", 3, len) == ""


def test_head_is_dropped_in_steps():
    text = "".join(f"{number:03}\n" for number in range(100))
    kept = [last_lines(text[:size], 100, len, step=40) for size in range(200, 220, 4)]
    assert len({each[:4] for each in kept}) == 1
    assert all(len(each) <= 100 for each in kept)


def test_begun_word_is_left_to_answer():
    _, before, after, typed = text_of("open-dcoder", "x\na = sel", "\n", 99)
    assert (before, after, typed) == ("x\na =", "\n", " sel")
    _, before, _, typed = text_of("open-dcoder", "x\n", "\n", 99)
    assert (before, typed) == ("x\n", "")


def test_space_unused_by_the_suffix_goes_to_the_prefix():
    _, before, after, _ = text_of("dream", "12\n" * 100, "", 62)
    assert (before, after) == ("12\n" * 18, "")
    _, before, after, _ = text_of("dream", "12\n" * 100, "34\n" * 100, 62)
    assert (before, after) == ("12\n" * 13, "34\n" * 6)
    _, before, after, _ = text_of("dream", "12\n" * 2, "34\n" * 100, 62)
    assert (before, after) == ("12\n" * 2, "34\n" * 18)


@given(st.text("ab \n", max_size=300), st.text("ab \n", max_size=300), st.integers(8, 120))
def test_never_more_than_there_is_room_for(before, after, room):
    for family in FAMILIES:
        found, head, tail, typed = text_of(family.name, before, after, room)
        assert len(found.before) + len(found.after) <= room
        assert before.endswith(head + typed)
        assert after.startswith(tail)
