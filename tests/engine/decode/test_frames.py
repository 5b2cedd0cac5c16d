"""What those see who watch a draft: the text of each token, what is typed already left out, and what was revised."""

import pytest
from msgspec.structs import replace

from mercury_engine.api import Slot
from mercury_engine.decode.frames import Frames, slots_of
from tests.engine.tiny import engine, final, gap, random_runtime


def check(spellings, expected, typed=b""):
    """Of tokens with these spellings, None for a mask."""
    held = [spelled and (spelled, 0.5, True) for spelled in spellings]
    assert [slot.text for slot in slots_of(held, typed)] == expected


def test_slot_has_text_of_its_token_or_nothing_while_it_is_masked():
    check([b"a", None, b" = 1"], ["a", "", " = 1"])
    assert [slot.settled for slot in slots_of([(b"a", 0.5, True), None])] == [True, False]


def test_typed_text_has_no_slot():
    check([b"se", b"lf", b"."], ["f", "."], typed=b"sel")
    check([b"self"], [], typed=b"self")


def test_character_stands_where_its_last_byte_is():
    check([b"\xc3", b"\xa4", b"x"], ["", "ä", "x"])
    check([b"\xc3", None, b"x"], ["", "", "x"])


def test_slot_that_held_another_token_was_revised():
    frames = Frames()
    texts = [("a", ""), ("b", "c"), ("b", "c"), ("b",), ("b", "d")]
    seen = [[slot.revised for slot in frames.next(map(Slot, each))] for each in texts]
    assert seen == [[False, False], [True, False], [True, False], [True], [True, True]]


@pytest.mark.parametrize("effort", ["instant", "low", "medium", "high"])
@pytest.mark.parametrize("block", [False, True])
def test_watching_changes_no_answer_and_the_settled_slots_are_the_answer(effort, block):
    marked = "a = 1\nreturn self.wi$0\n"
    asked = gap(marked, block=block, most_tokens=12, effort=effort)
    drafts = list(engine(random_runtime()).fill(replace(asked, slots=True)))
    unwatched = final(engine(random_runtime()), asked)
    assert not unwatched.slots
    last = drafts[-1]
    assert last.text == unwatched.text
    shown = "".join(slot.text for slot in last.slots)
    assert shown.partition("\ufffd")[0].startswith(last.text)
    if effort != "instant":
        assert all(slot.settled for slot in last.slots)
    settled = [sum(slot.settled for slot in draft.slots) for draft in drafts]
    assert effort == "high" or settled == sorted(settled)


def test_masks_stand_for_what_is_to_be_drafted_while_the_context_is_read():
    first = next(engine(random_runtime()).fill(gap("x = 1\n" * 90 + "y$0", slots=True)))
    assert [slot.text for slot in first.slots] == [""] * 15
