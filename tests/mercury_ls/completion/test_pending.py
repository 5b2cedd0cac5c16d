import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_ls.code.documents import Document
from mercury_ls.completion.pending import Pending, PendingEdits, Remainder, SpanEdit, follow, summary, with_all
from tests.marked import marked


def offered(drawn: str, text: str, replaced: str = "") -> Pending:
    snapshot, offset = marked(drawn)
    return Pending("id", snapshot.uri, snapshot.text, offset, offset + len(replaced), text, 0.5)


def check(pending: Pending, drawn: str, expected: str | None, replaces: str = "") -> None:
    snapshot, offset = marked(drawn)
    rest = pending.remainder(snapshot, offset)
    wanted = None if expected is None else Remainder(offset, offset + len(replaces), expected)
    assert rest == wanted


def test_typing_along_takes_from_the_front():
    pending = offered("x = $0\ny = 2\n", "compute(y)")
    check(pending, "x = $0\ny = 2\n", "compute(y)")
    check(pending, "x = comp$0\ny = 2\n", "ute(y)")
    check(pending, "x = compute(y)$0\ny = 2\n", "")


def test_typing_something_else_ends_it():
    pending = offered("x = $0\ny = 2\n", "compute(y)")
    check(pending, "x = cum$0\ny = 2\n", None)
    check(pending, "x = \ny = 2$0\n", None)
    check(pending, "x = $0\ny = 3\n", None)


def test_backspace_gives_back_what_it_took_even_before_the_start():
    pending = offered("x = co$0\n", "mpute(y)")
    check(pending, "x = c$0\n", "ompute(y)")
    check(pending, "x = $0\n", "compute(y)")


def test_backspace_over_the_line_start_ends_it():
    check(offered("x\ny$0\n", "ield"), "x$0\n", None)


def test_a_bracket_that_the_editor_closed_is_replaced():
    pending = offered("$0\n", "print(value)")
    check(pending, "print($0)\n", "value)", replaces=")")
    check(pending, "print(val$0)\n", "ue)", replaces=")")


def test_a_bracket_that_the_suggestion_does_not_close_stays():
    check(offered("$0\n", "print(value"), "print($0)\n", None)


def test_the_replaced_blanks_stay_replaced():
    pending = offered("x = $0  \n", "1", replaced="  ")
    check(pending, "x = $0  \n", "1", replaces="  ")


@settings(deadline=None, max_examples=200)
@given(
    before=st.text("ab\n", max_size=6),
    text=st.text("abc\n", min_size=1, max_size=8),
    after=st.text("ab\n", max_size=6),
    typed=st.integers(0, 8),
)
def test_whatever_was_typed_of_it_the_rest_completes_the_same_text(before, text, after, typed):
    taken = text[:typed]
    pending = offered(before + "$0" + after, text)
    snapshot, offset = marked(before + taken + "$0" + after)
    rest = pending.remainder(snapshot, offset)
    assert rest is not None
    assert snapshot.text[: rest.start] + rest.text + snapshot.text[rest.end :] == before + text + after


def offered_edits(text: str, *edits: tuple[str, str]) -> PendingEdits:
    """Each edit replaces the only place of a word by another."""
    spans = tuple(SpanEdit("u", text.index(old), text.index(old) + len(old), new) for old, new in edits)
    return PendingEdits("id", "label", 0.5, spans, {"u": text}, {"u": 1})


def check_edits(pending: PendingEdits, text: str, expected: str | None) -> None:
    """`expected` is the text with all that is left of the offer applied."""
    snapshot = Document("u", "/a.py", "python", 2, text).snapshot()
    left = pending.on({"u": snapshot})
    if expected is None:
        assert left is None
        return
    assert left is not None
    assert left.versions == {"u": 2}
    for edit in sorted(left.edits, key=lambda edit: -edit.start):
        text = text[: edit.start] + edit.text + text[edit.end :]
    assert text == expected


def test_edits_move_along_with_what_is_typed_around_them():
    pending = offered_edits("one\ntwo\nthree\n", ("one", "1"), ("three", "3"))
    check_edits(pending, "one\ntwo\nthree\n", "1\ntwo\n3\n")
    check_edits(pending, "one\ntwo and more\nthree\n", "1\ntwo and more\n3\n")
    check_edits(pending, "zero\none\ntwo\nthree\n", "zero\n1\ntwo\n3\n")


def test_an_edit_that_is_done_leaves_the_others():
    pending = offered_edits("one\ntwo\nthree\n", ("one", "1"), ("three", "3"))
    check_edits(pending, "1\ntwo\nthree\n", "1\ntwo\n3\n")
    check_edits(pending, "one\ntwo\n3\n", "1\ntwo\n3\n")


def test_the_offer_ends_where_all_is_done_or_something_else_was():
    pending = offered_edits("one\ntwo\n", ("one", "1"))
    check_edits(pending, "1\ntwo\n", None)
    check_edits(pending, "ane\ntwo\n", None)
    assert pending.on({}) is None


@settings(deadline=None, max_examples=200)
@given(head=st.text("ab\n", max_size=6), tail=st.text("ab\n", max_size=6), typed=st.text("xy\n", max_size=4))
def test_typing_elsewhere_never_changes_what_an_edit_does(head, tail, typed):
    pending = offered_edits(head + "WORD" + tail, ("WORD", "DONE"))
    check_edits(pending, typed + head + "WORD" + tail, typed + head + "DONE" + tail)
    check_edits(pending, head + "WORD" + tail + typed, head + "DONE" + tail + typed)


@pytest.mark.parametrize(
    ("uris", "expected"),
    [
        (["file:///p/here.py"] * 5, "5 here"),
        (["file:///p/here.py"] * 5 + ["file:///p/my%20models.py"] * 4, "5 here, 4 in my models.py"),
        (["file:///p/here.py"] * 2 + [f"file:///p/{n}.py" for n in "abc"] * 3, "2 here, 9 in 3 other files"),
        (["file:///p/a.py"], "1 in a.py"),
        (["file:///p/a.py", "file:///q/a.py"], "2 in 2 files"),
    ],
)
def test_where_the_edits_are_is_said_as_seen_from_here(uris, expected):
    assert summary([SpanEdit(uri, 0, 1, "x") for uri in uris], "file:///p/here.py") == expected


@given(
    st.lists(st.tuples(st.text("ab", max_size=3), st.text("ab", max_size=2), st.text("ab,", max_size=3)), max_size=6),
    st.data(),
)
@settings(max_examples=200)
def test_whichever_of_the_edits_were_made_the_rest_completes_them(parts, data):
    """`parts` are the text before each edit, what it replaces and what by; equal edits in one place are one."""
    text, edits = "", []
    for between, old, new in parts:
        start = len(text) + len(between) + 1
        text += f"{between}|{old}|"
        if old != new:
            edits.append(SpanEdit("u", start, start + len(old), new))
    made = [each for each in edits if data.draw(st.booleans())]
    after = with_all(made, text)
    left = follow(edits, text, after)
    assert left is not None
    assert with_all(left, after) == with_all(edits, text)
