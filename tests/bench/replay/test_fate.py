import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.replay.fate import EditRegion, Fate, ShownOffer, TypedEdit, fates, saved


def typing(text: str, at: int, t: float = 0.0) -> list[TypedEdit]:
    return [TypedEdit(t + 100 * n, at + n, at + n, character, 1) for n, character in enumerate(text)]


def check(drawn: str, offer: str, edits: list[TypedEdit], expected: str) -> None:
    """`drawn` has the cursor as `$0`; `expected` names what became of the offer there: typed, line, kept."""
    text, at = drawn.replace("$0", ""), drawn.index("$0")
    (fate,) = fates(text, edits, [ShownOffer(0, at, at, offer)])
    assert " ".join(name for name in ("typed", "line", "kept") if getattr(fate, name)) == expected


AT = len("x = ")


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        (typing("f(1)", AT), "typed line kept"),
        (typing("f(1) + 2", AT), "typed kept"),
        (typing("f(1)\ny", AT), "typed line kept"),
        (typing("f(2)", AT), ""),
        ([], ""),
        ([TypedEdit(0, AT, AT, "f()", 2), TypedEdit(1, AT + 2, AT + 2, "1", 1)], "typed line kept"),
        ([*typing("f(1)", AT), TypedEdit(900, 0, AT + 4, "", 0)], "typed"),
        ([*typing("f(1)", AT), TypedEdit(900, 0, 0, "# top\n", 6)], "typed line kept"),
        ([*typing("f(", AT), TypedEdit(900, AT, AT + 2, "", 0), *typing("f(1)", AT, 1000)], "typed line kept"),
        ([*typing("f(1)", AT), TypedEdit(60_000, AT, AT + 4, "", 0)], "typed line kept"),
    ],
    ids=[
        "just that",
        "more on the line",
        "and a line",
        "else",
        "nothing",
        "with a closed bracket",
        "and taken away",
        "and above",
        "in two goes",
        "and changed a minute later",
    ],
)
def test_fate_of_insertion_follows_the_later_edits(edits, expected):
    check("x = $0\nz\n", "f(1)", edits, expected)


def test_rewrite_came_true_when_its_place_says_just_that():
    text, offer = "a = old(1)\n", ShownOffer(0, 4, 7, "new", rewrites=True)
    assert fates(text, [TypedEdit(0, 4, 7, "", 0), *typing("new", 4)], [offer])[0].typed
    assert not fates(text, [TypedEdit(0, 4, 7, "", 0), *typing("now", 4)], [offer])[0].typed


def test_characters_count_once_and_accepting_costs_a_key():
    made = [Fate(0, True, 10, 10), Fate(3, True, 10, 7), Fate(10, True, 14, 4), Fate(20, False, 0, 0)]
    assert saved(made) == 9 + 3


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3), st.text("ab", max_size=3)), max_size=8))
def test_region_stays_what_it_was_while_nothing_touches_it(edits):
    text, region = "0123MARK4567", EditRegion(4, 8)
    for start, length, new in edits:
        start = min(start, len(text))
        edit = TypedEdit(0, start, min(start + length, len(text)), new)
        text = text[: edit.start] + new + text[edit.end :]
        if region.follow(edit):
            break
        assert text[region.start : region.end] == "MARK"
    assert 0 <= region.start <= region.end <= len(text)
