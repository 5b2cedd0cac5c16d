"""An answer ends before a member that does not exist, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_engine.api import Members
from mercury_engine.decode.names import KnownNames
from tests.engine.tiny import TOKENIZER

SHAPE = Members("self", ("width", "height", "with_name"))
HERE = Members("", ("width", "height", "with_name"))


@pytest.mark.parametrize(
    ("text", "complete", "expected"),
    [
        (" self.width + self.depth", True, " self.width + self"),
        (" self.depth", True, " self"),
        (" self.depth = 3", True, " self.depth = 3"),
        (" self.depth == 3", True, " self"),
        (" f(self.width.real)", True, " f(self.width.real)"),
        (" self.wid", False, " self.wid"),
        (" self.wid", True, " self"),
        (" self.wid + 1", False, " self"),
        (" other.depth", True, " other.depth"),
        (" 'self.depth'", True, " 'self.depth'"),
        (" 1  # self.depth", True, " 1  # self.depth"),
        (" 1\nself.depth", True, " 1\nself"),
    ],
)
def test_answer_ends_before_name_that_cannot_exist(text, complete, expected):
    head = "return "
    known = KnownNames([SHAPE], head, TOKENIZER.split_part(head)[1])
    assert text[: known.fitting(text, complete=complete)] == expected


def test_answer_may_end_before_its_first_name():
    known = KnownNames([HERE], "return self.de", ".de")
    assert known.fitting(".depth", complete=True) == 0
    assert known.fitting(".width", complete=True) == 6


@pytest.mark.parametrize(
    ("text", "expected"), [("_", 1), ("_ + 1", 5), ("_ght", 0), ("_ght + self.type_", 0), ("_.real", 6)]
)
def test_name_may_have_begun_before_what_is_spelled_again(text, expected):
    known = KnownNames([Members("", ("type_",))], "return self.type_", "_")
    assert known.fitting(text, complete=True) == expected


NAMES = st.text("ab_éß名1", min_size=1, max_size=6).filter(str.isidentifier) | st.just("long" * 60)


@given(st.text("ab_.=é ('#\n", max_size=20), st.lists(NAMES, min_size=1, max_size=3), st.booleans())
def test_answer_is_never_longer_than_it_was(text, names, complete):
    known = KnownNames([Members("", tuple(names))], "return self.", "self.")
    assert 0 <= known.fitting(text, complete=complete) <= len(text)
