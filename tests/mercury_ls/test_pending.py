from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_ls.pending import Pending, Remainder
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
