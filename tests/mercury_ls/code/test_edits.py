"""Where edits stand after the text has changed: while they are typed, while they are made, and beside them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_ls.code.edits import TextEdit, applied, rebase
from tests.marked import marked


def suggested(drawn: str, text: str, replaced: str = "") -> tuple[str, TextEdit]:
    snapshot, offset = marked(drawn)
    return snapshot.text, TextEdit(offset, offset + len(replaced), text)


def check(suggestion: tuple[str, TextEdit], drawn: str, expected: str | None, replaces: str = "") -> None:
    """`expected` is what is left to be inserted at the cursor; empty if all has been typed."""
    before, edit = suggestion
    snapshot, offset = marked(drawn)
    wanted = [TextEdit(offset, offset + len(replaces), expected)] if expected else None if expected is None else []
    assert rebase([edit], before, snapshot.text, offset) == wanted


def test_suggestion_follows_typing_and_backspace_until_contradicted():
    suggestion = suggested("x = $0\ny = 2\n", "compute(y)")
    check(suggestion, "x = $0\ny = 2\n", "compute(y)")
    check(suggestion, "x = comp$0\ny = 2\n", "ute(y)")
    check(suggestion, "x = compute(y)$0\ny = 2\n", "")
    check(suggestion, "x = cum$0\ny = 2\n", None)
    check(suggestion, "x = \ny = 2$0\n", None)
    check(suggestion, "x = $0\ny = 3\n", None)
    suggestion = suggested("x = co$0\n", "mpute(y)")
    check(suggestion, "x = c$0\n", "ompute(y)")
    check(suggestion, "x = $0\n", "compute(y)")
    check(suggested("x\ny$0\n", "ield"), "x$0\n", None)


def test_text_behind_the_cursor_is_replaced_where_the_suggestion_has_it():
    suggestion = suggested("$0\n", "print(value)")
    check(suggestion, "print($0)\n", "value)", replaces=")")
    check(suggestion, "print(val$0)\n", "ue)", replaces=")")
    check(suggested("$0\n", "print(value"), "print($0)\n", None)
    suggestion = suggested("x = $0  \n", "1", replaced="  ")
    check(suggestion, "x = $0  \n", "1", replaces="  ")


@settings(max_examples=200)
@given(
    before=st.text("ab\n", max_size=6),
    text=st.text("abc\n", min_size=1, max_size=8),
    after=st.text("ab\n", max_size=6),
    typed=st.integers(0, 8),
)
def test_whatever_was_typed_of_it_the_rest_completes_the_same_text(before, text, after, typed):
    taken = text[:typed]
    base, edit = suggested(before + "$0" + after, text)
    snapshot, offset = marked(before + taken + "$0" + after)
    rest = rebase([edit], base, snapshot.text, offset)
    assert rest is not None
    assert applied(snapshot.text, rest) == before + text + after


def check_edits(text: str, edits: list[tuple[str, str]], after: str, expected: str | None) -> None:
    """Each edit replaces the only occurrence of a word; `expected` is the later text with all that is left of them."""
    made = [TextEdit(text.index(old), text.index(old) + len(old), new) for old, new in edits]
    left = rebase(made, text, after)
    assert (None if left is None else applied(after, left)) == expected


ONE, THREE = ("one", "1"), ("three", "3")


def test_edits_move_along_and_are_used_up_once_made():
    check_edits("one\ntwo\nthree\n", [ONE, THREE], "one\ntwo\nthree\n", "1\ntwo\n3\n")
    check_edits("one\ntwo\nthree\n", [ONE, THREE], "one\ntwo and more\nthree\n", "1\ntwo and more\n3\n")
    check_edits("one\ntwo\nthree\n", [ONE, THREE], "zero\none\ntwo\nthree\n", "zero\n1\ntwo\n3\n")
    check_edits("one\ntwo\nthree\n", [ONE, THREE], "1\ntwo\nthree\n", "1\ntwo\n3\n")
    check_edits("one\ntwo\nthree\n", [ONE, THREE], "one\ntwo\n3\n", "1\ntwo\n3\n")
    assert rebase([TextEdit(0, 3, "1")], "one\ntwo\n", "1\ntwo\n") == []
    check_edits("one\ntwo\n", [ONE], "ane\ntwo\n", None)


@settings(max_examples=200)
@given(head=st.text("ab\n", max_size=6), tail=st.text("ab\n", max_size=6), typed=st.text("xy\n", max_size=4))
def test_typing_elsewhere_never_changes_what_an_edit_does(head, tail, typed):
    before = head + "WORD" + tail
    check_edits(before, [("WORD", "DONE")], typed + before, typed + head + "DONE" + tail)
    check_edits(before, [("WORD", "DONE")], before + typed, head + "DONE" + tail + typed)


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
            edits.append(TextEdit(start, start + len(old), new))
    made = [each for each in edits if data.draw(st.booleans())]
    after = applied(text, made)
    left = rebase(edits, text, after)
    assert left is not None
    assert applied(after, left) == applied(text, edits)
