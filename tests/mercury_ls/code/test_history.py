import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_ls.code.edits import TextEdit, difference
from mercury_ls.code.history import History
from tests.private_keys import BEGIN, BODY, END, KEY, LAST, is_told


class Editor:
    """One file and the clock. Every edit is a pause later than the one before."""

    def __init__(self, text: str, path: str = "a", history: History | None = None):
        self.text = text
        self.path = path
        self.history = History() if history is None else history
        self.now = 0.0

    def change(self, start: int, end: int, text: str, pause: float = 10.0) -> "Editor":
        self.now += pause
        before, self.text = self.text, self.text[:start] + text + self.text[end:]
        self.history.record(self.path, before, TextEdit(start, end, text), self.now)
        return self

    def reload(self, text: str) -> "Editor":
        """The editor shows what another program has written."""
        self.now += 10.0
        before, self.text = self.text, text
        self.history.reloaded(self.path, before, difference(before, text), self.now)
        return self

    def replace(self, old: str, new: str, pause: float = 10.0) -> "Editor":
        at = self.text.index(old)
        return self.change(at, at + len(old), new, pause)

    def type(self, after: str, text: str, pause: float = 0.1) -> "Editor":
        """Letter by letter, behind `after`."""
        at = self.text.index(after) + len(after)
        for n, character in enumerate(text):
            self.change(at + n, at + n, character, pause)
        return self

    def erase(self, before: str, count: int) -> "Editor":
        """That many backspaces, behind `before`."""
        at = self.text.index(before) + len(before)
        for n in range(count):
            self.change(at - n - 1, at - n, "", 0.1)
        return self

    def paste(self, after: str, text: str, pause: float = 10.0) -> "Editor":
        at = self.text.index(after) + len(after)
        return self.change(at, at, text, pause)


def made(history: History) -> list[tuple[str, int, str, str]]:
    """The edits without the lines around them."""
    return [(edit.path, edit.line, edit.before, edit.after) for edit in history.edits()]


def check(editor: Editor, *expected: tuple[int, str, str]):
    assert made(editor.history) == [(editor.path, *edit) for edit in expected]


LINES = "a\nb\nc\nd\ne\nf\ng\n"


@pytest.mark.parametrize(
    ("old", "new", "above", "below"),
    [
        ("d\n", "D\n", "a\nb\nc\n", "e\nf\ng\n"),
        ("a\n", "A\n", "", "b\nc\nd\ne\n"),
        ("g\n", "G\n", "c\nd\ne\nf\n", ""),
        ("d\n", "", "a\nb\nc\n", "e\nf\ng\n"),
        ("c\nd\n", "c\nnew\nd\n", "a\nb\nc\n", "d\ne\nf\ng\n"),
        ("e\n", "e", "a\nb\nc\nd\n", "g\n"),
    ],
)
def test_edit_has_lines_around_it(old: str, new: str, above: str, below: str):
    (edit,) = Editor(LINES).replace(old, new).history.edits()
    assert (edit.above, edit.below) == (above, below)


def test_lines_around_edit_are_those_of_its_time_unless_overlong():
    editor = Editor(LINES).replace("c", "C").replace("e", "E").replace("a\n", "")
    around = [(edit.above, edit.below) for edit in editor.history.edits()]
    assert around == [("a\nb\n", "d\ne\nf\ng\n"), ("a\nb\nC\nd\n", "f\ng\n"), ("", "b\nC\nd\nE\n")]
    (edit,) = Editor(f"{'x' * 700}\na\nb\n{'y' * 700}\n").replace("a", "A").history.edits()
    assert (edit.above, edit.below) == ("", "b\n")


def test_lines_around_a_piece_of_a_change_are_those_behind_all_pieces():
    editor = Editor("a\r\naa").change(3, 3, "a", 0.1).change(2, 5, "a\n\n", 0.1).change(2, 6, "\n", 0.1)
    (edit,) = editor.history.edits()
    assert editor.text == "a\r\n"
    assert (edit.above, edit.below) == ("a\r\n", "")


@given(st.data())
def test_text_around_an_edit_is_recorded(data: st.DataObject):
    editor = Editor(data.draw(st.text("ab\r\n", max_size=30)))
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(editor.text)))
        end = data.draw(st.integers(start, len(editor.text)))
        mark = editor.history.mark
        editor.change(start, end, data.draw(st.text("abc\n", max_size=6)), data.draw(st.sampled_from([0.1, 10.0])))
        edits = editor.history.edits()
        if editor.history.since(mark):  # and not only taken back
            assert edits[-1].above + edits[-1].after + edits[-1].below in editor.text


def check_reverses(editor: Editor, proposed: str, expected: bool):
    """`proposed` is the text after the model's edit, given as the smallest edit and as the edit of whole lines."""
    edit = difference(editor.text, proposed)
    first = editor.text.rfind("\n", 0, edit.start) + 1
    rest = len(editor.text) - (editor.text + "\n").index("\n", edit.end)
    for start, end in ((edit.start, edit.end), (first, len(editor.text) - max(rest, 0))):
        replacement = proposed[start : len(proposed) - (len(editor.text) - end)]
        assert editor.history.reverses(editor.path, editor.text, start, end, replacement) is expected


def unwound(history: History, path: str, text: str) -> str:
    for hunk in reversed([hunk for hunk in history._hunks if hunk.path == path]):
        assert text[hunk.start : hunk.end] == hunk.after
        text = text[: hunk.start] + hunk.before + text[hunk.end :]
    return text


# Edits


def test_typing_is_one_edit():
    check(Editor("a\nb\nc\n").type("b", " = foo"), (1, "b\n", "b = foo\n"))
    check(Editor("a\nb\n").type("b", "cd", pause=30), (1, "b\n", "bcd\n"))
    check(Editor("foo(a)\n").erase("foo", 3).type("", "bar"), (0, "foo(a)\n", "bar(a)\n"))
    again = Editor("foo(a)\n").paste("a", ", b").replace(", b", "").paste("a", ", b")
    check(again, (0, "foo(a)\n", "foo(a, b)\n"))


def test_edits_join_where_they_touch_or_follow_at_once():
    check(Editor("a = 1\n").replace("1", "2").replace("a", "b"), (0, "a = 1\n", "a = 2\n"), (0, "a = 2\n", "b = 2\n"))
    check(
        Editor("a\nb\nc\nd\n").replace("a", "A").replace("d", "D", pause=0.1),
        (0, "a\n", "A\n"),
        (3, "d\n", "D\n"),
    )
    check(Editor("a\nb\n").replace("a", "A").replace("b", "B", pause=0.5), (0, "a\nb\n", "A\nB\n"))
    check(Editor("a\nb\n").replace("a", "A").replace("b", "B", pause=2), (0, "a\n", "A\n"), (1, "b\n", "B\n"))
    check(Editor("a = b\n").type("b", "cd").erase("bcd", 2))
    check(Editor("a = b\n").replace("b", "c").replace("c", "b"))
    check(Editor("a\n").paste("a\n", "x\n" * 20).replace("x\n" * 20, ""))


def test_edit_grows_to_eight_lines():
    editor = Editor("a\n")
    for n in range(12):
        editor.paste("a\n" + "x\n" * n, "x\n", pause=0.1)
    check(editor, (1, "", "x\n" * 8), (9, "", "x\n" * 4))


@pytest.mark.parametrize("order", ["123", "321"])
def test_several_cursors_make_one_edit_each(order: str):
    editor = Editor("a1\nx\na2\nx\na3\n")
    for letter in "bc":
        for number in order:
            editor.change(editor.text.index(number), editor.text.index(number), letter, 0.1)
    assert editor.text == "abc1\nx\nabc2\nx\nabc3\n"
    check(editor, *((int(number) * 2 - 2, f"a{number}\n", f"abc{number}\n") for number in order))


def test_lines_of_an_edit_are_those_of_the_file_as_it_is_now():
    editor = Editor("a\nb\nc\nd\ne\n").replace("e", "E").paste("a\n", "x\ny\n").replace("c\n", "")
    check(editor, (5, "e\n", "E\n"), (1, "", "x\ny\n"), (4, "c\n", ""))
    check(Editor("a\nb\n").type("a", "\nx"), (1, "", "x\n"))
    check(Editor("a\nb\nc\n").replace("b\n", ""), (1, "b\n", ""))
    check(Editor("a\nb").replace("\nb", ""), (0, "a\nb", "a"))
    check(Editor("a\r\nb\r\n").type("b", "c"), (1, "b\r\n", "bc\r\n"))
    check(Editor("a\rb\r").type("b", "c"), (1, "b\r", "bc\r"))
    check(Editor("a\fb\u2028\nc").type("c", "d"), (1, "c", "cd"))


def test_latest_edits_are_the_only_ones_told():
    editor = Editor("a\nb\nc\n").replace("a", "A").replace("b", "B").replace("c", "C")
    assert [edit.after for edit in editor.history.edits(limit=2)] == ["B\n", "C\n"]


# Files


def test_files_are_kept_apart():
    history = History()
    one, two = Editor("x\n", "one", history), Editor("x\n", "two", history)
    one.type("x", "a")
    two.type("x", "b")
    one.type("xa", "c")
    assert made(history) == [("two", 0, "x\n", "xb\n"), ("one", 0, "x\n", "xac\n")]
    assert (unwound(history, "one", one.text), unwound(history, "two", two.text)) == ("x\n", "x\n")


def test_file_can_be_forgotten_and_renamed():
    history = History()
    Editor("x\n", "one", history).type("x", "a")
    two = Editor("x\n", "two", history).type("x", "b")
    history.forget("one")
    history.rename("two", "three")
    assert made(history) == [("three", 0, "x\n", "xb\n")]
    assert history.reverses("three", two.text, 1, 2, "")
    assert not history.reverses("two", two.text, 1, 2, "")
    history.clear()
    assert history.edits() == ()
    assert not history.reverses("three", two.text, 1, 2, "")


def test_memory_is_bounded():
    history = History()
    for n in range(1000):
        Editor("x\n" * 100, str(n), history).change(0, 100, "y" * 600).change(150, 160, "")
    assert len(history._hunks) <= 64
    assert sum(len(hunk.before) + len(hunk.after) for hunk in history._hunks) <= 64 << 10
    assert len(history._traces) <= 64
    assert sum(len(trace.removed) for trace in history._traces) <= 64 << 10
    assert len(history._lengths) <= 256
    assert history.edits(1)[0].path == "999"


@pytest.mark.parametrize("edits", [64, 1000])
def test_accepted_offer_of_many_edits_leaves_the_users_own(edits):
    history = History()
    Editor("x\n", "own", history).type("x", "a")
    for number in range(edits):
        history.record(
            f"{number % 9}", "use(x)  # of many\n" * 1000, TextEdit(18 * number + 4, 18 * number + 5, "xa"), 0.0, False
        )
    assert [edit.after for edit in history.edits(own=True)] == ["xa\n"]
    assert len(history.accepted()) == edits


def test_memory_for_accepted_offers_is_bounded():
    history = History()
    for number in range(2000):
        history.record(f"{number}", "x" * 300, TextEdit(0, 1, "y"), 0.0, False)
    assert len(history.accepted()) <= 1024
    assert sum(len(hunk.before) + len(hunk.after) for hunk in history._hunks) <= 256 << 10


def test_change_too_large_to_remember_leaves_other_files_alone():
    history = History()
    one, two = Editor("x\n", "one", history).type("x", "a"), Editor("x\n", "two", history).type("x", "b")
    one.paste("xa\n", "y" * 100_000)
    assert made(history) == [("two", 0, "x\n", "xb\n")]
    one.type("xa", "c")
    assert unwound(history, "one", one.text) == "xa\n" + "y" * 100_000
    assert unwound(history, "two", two.text) == "x\n"


PIECES = st.sampled_from(["", "x", "y", "\n", "\r\n", "\r", "ab", "a\nb\n", "\n\n", "\f", "é"])


@given(
    st.lists(PIECES, max_size=12).map("".join),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4), PIECES, st.sampled_from([0.1, 5])), max_size=25),
)
@settings(max_examples=200)
def test_undone_edits_restore_the_text(text: str, edits):
    editor = Editor(text)
    for start, length, inserted, pause in edits:
        start = min(start, len(editor.text))
        editor.change(start, min(start + length, len(editor.text)), inserted, pause)
        assert unwound(editor.history, "a", editor.text) == text
        assert all(0 <= trace.start <= trace.end <= len(editor.text) for trace in editor.history._traces)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3), st.sampled_from(["", "x", "\n", "y\nz"])), max_size=12)
)
@settings(max_examples=200)
def test_undoing_the_last_edit_is_always_a_reversal(edits):
    editor = Editor("ab\ncd\nef\n" * 3)
    for start, length, inserted in edits:
        before, start = editor.text, min(start, len(editor.text))
        edit = difference(before[start : start + length], inserted)
        if not (edit.text + before[start + edit.start : start + edit.end]).strip():
            continue
        edit = TextEdit(start + edit.start, start + edit.end, edit.text)
        editor.change(edit.start, edit.end, edit.text)
        assert editor.history.reverses(
            "a", editor.text, edit.start, edit.start + len(edit.text), before[edit.start : edit.end]
        )
        assert editor.history.reverses("a", editor.text, 0, len(editor.text), before)


# What must not be undone


def test_deleted_text_does_not_come_back():
    editor = Editor("foo(a, b)\n").replace(", b", "")
    check_reverses(editor, "foo(a, b)\n", True)
    check_reverses(editor, "foo(a, b, c)\n", True)
    check_reverses(editor, "foo(a, c)\n", False)
    check_reverses(editor, "foo(a, bar)\n", False)
    check_reverses(editor, "foo(a).b\n", False)
    check_reverses(Editor("foo(a, b)\n").erase("a, b", 3), "foo(a, b)\n", True)
    forwards = Editor("foo(a, b)\n")
    for _ in ", b":
        forwards.change(5, 6, "")
    check_reverses(forwards, "foo(a, b)\n", True)
    editor = editor.paste("a", ", b")
    check_reverses(editor, "foo(a)\n", True)
    check_reverses(editor, "foo(a, b, c)\n", False)


@pytest.mark.parametrize(
    ("typed", "proposed", "undoes"),
    [
        (["imfrom"], "x\nfrom\n", False),
        (["fromm"], "x\nfrom\n", False),
        (["im", "from"], "x\nfrom\n", False),
        (["imfrom"], "x\n\n", True),
        (["area", "_2"], "x\narea\n", True),
        (["area_2", " + b"], "x\narea + b\n", True),
        (["f(a, b)"], "x\nf(a)\n", True),
    ],
)
def test_letters_of_a_word_that_was_just_typed_may_go(typed: list[str], proposed: str, undoes: bool):
    """Before each text but the first is a pause."""
    editor = Editor("x\n\n")
    for text in typed:
        at = len(editor.text) - 1
        editor.change(at, at, text[0])
        for n, letter in enumerate(text[1:], 1):
            editor.change(at + n, at + n, letter, 0.1)
    check_reverses(editor, proposed, undoes)


def test_deleted_line_does_not_come_back():
    editor = Editor("a()\nb()\nc()\n").replace("b()\n", "")
    check_reverses(editor, "a()\nb()\nc()\n", True)
    check_reverses(editor, "a()\nb()\nd()\nc()\n", True)
    check_reverses(editor, "a()\nd()\nc()\n", False)
    check_reverses(editor, "a()\nc()\nb()\n", False)
    assert editor.history.reverses("a", editor.text, 3, 3, "\nb()\nd()")
    assert not editor.history.reverses("a", editor.text, 3, 3, "\nd()\nb()")
    blank = Editor("a()\n\n\nb()\n").change(4, 5, "")
    check_reverses(blank, "a()\n\n\nb()\n", True)
    check_reverses(blank, "a()\nc()\n\nb()\n", False)


def test_renamed_text_is_not_renamed_back():
    editor = Editor("x = count + 1\n").replace("count", "amount")
    check_reverses(editor, "x = count + 1\n", True)
    check_reverses(editor, "x = counter + 1\n", False)
    check_reverses(editor, "x = amount + 2\n", False)
    check_reverses(editor, "x = amount + count + 1\n", False)
    editor = Editor("x = foo\n").replace("foo", "bar").type("bar", " + baz")
    check_reverses(editor, "x = foo + baz\n", True)
    check_reverses(editor, "x = bar + bazaar\n", False)


def test_replacement_with_the_old_word_is_a_reversal_even_with_more():
    editor = Editor("x = foo\n").replace("foo", "bar")
    check_reverses(editor, "x = foo\n", True)
    check_reverses(editor, "x = foo(1)\n", True)
    check_reverses(editor, "x = not foo\n", True)
    check_reverses(editor, "x = bar + foo\n", False)
    check_reverses(editor, "x = food\n", False)


def test_typed_text_is_not_deleted():
    editor = Editor("a\n\nc\n").type("a\n", "foo(b)")
    check_reverses(editor, "a\n\nc\n", True)
    check_reverses(editor, "a\nfoo()\nc\n", True)
    check_reverses(editor, "a\nc\n", True)
    check_reverses(editor, "a\nfoo(b, d)\nc\n", False)
    check_reverses(editor, "a\nfoo(d)\nc\n", False)
    check_reverses(editor, "a\nfoo(b)\n", False)
    check_reverses(Editor("x = width\n").type("width", "s"), "x = width\n", True)
    check_reverses(Editor("").type("", "retrun x"), "return x", False)
    check_reverses(Editor("").type("", "prnt(x)"), "print(x)", False)


def test_accepted_and_then_deleted_text_is_not_offered_again():
    editor = Editor("x = \n").paste("x = ", "foo(a, b)").erase("foo(a, b)", 4)
    check(editor, (0, "x = \n", "x = foo(a\n"))
    check_reverses(editor, "x = foo(a, b)\n", True)
    check_reverses(editor, "x = foo(a)\n", False)


def test_retyped_word_may_be_completed():
    editor = Editor("x = foobar\n").erase("foobar", 6).type("x = ", "foo")
    check_reverses(editor, "x = foobar\n", False)
    check_reverses(editor, "x = fooqux\n", False)


def test_deleted_word_may_occur_elsewhere():
    editor = Editor("x = foo\n").erase("foo", 3).type("x = ", "bar(")
    check_reverses(editor, "x = bar(foo)\n", False)
    check_reverses(editor, "x = bar(1) + foo\n", False)
    check_reverses(editor, "x = bar(\ny = foo\n", False)
    check_reverses(Editor("x = foo\n").erase("foo", 3), "x = bar(foo)\n", False)


def test_earlier_edits_are_remembered_where_they_have_moved_to():
    editor = Editor("foo(a, b)\n").replace(", b", "").paste("", "import foo\n").type("foo(a)\n", "bar()")
    check_reverses(editor, "import foo\nfoo(a, b)\nbar()", True)
    check_reverses(editor, "import foo\nfoo(a)\nbar(b)", False)


@pytest.mark.parametrize("edit", [(0, 0, ""), (0, 3, "foo"), (9, 9, "")])
def test_edit_of_nothing_reverses_nothing(edit):
    editor = Editor("foo(a, b)\n").replace(", b", "")
    assert editor.history.reverses("a", editor.text, *edit) is False
    assert History().reverses("a", "x", 0, 1, "") is False


STEP = st.tuples(st.integers(0, 12), st.integers(0, 4), st.text("ab\n", max_size=4))


@settings(max_examples=200)
@given(st.lists(STEP, min_size=1, max_size=6), st.integers(0, 6), STEP)
def test_answer_for_older_text_can_be_judged(steps, back, proposal):
    editor = Editor("ab\nab\n")
    texts = [editor.text]
    for start, length, text in steps:
        first = min(start, len(editor.text))
        editor.change(first, min(first + length, len(editor.text)), text)
        texts.append(editor.text)
    older = texts[max(0, len(texts) - 1 - back)]
    first = min(proposal[0], len(older))
    last = min(first + proposal[1], len(older))
    assert editor.history.reverses("a", older, first, last, proposal[2]) in (True, False)


def test_edits_of_a_file_that_changed_while_closed_are_forgotten():
    def after(text: str) -> int:
        editor = Editor("a = 1\nb = 2\nc = 3\n").replace("2", "20")
        editor.history.reopened("a", text)
        return len(editor.history.edits())

    assert after("a = 1\nb = 20\nc = 3\n") == 1
    assert after("a = 1\nb = 2\nc = 3\n") == 0
    assert after("a = 1\nb = 20\n") == 0
    assert after("") == 0


def test_edits_of_which_some_do_not_fit_a_reopened_file_are_forgotten():
    editor = Editor(LINES).replace("b\nc\n", "c\nb\n").replace("f", "F")
    editor.history.reopened("a", editor.text)
    check(editor, (1, "b\nc\n", "c\nb\n"), (5, "f\n", "F\n"))
    editor.history.reopened("a", LINES.replace("f", "F"))
    check(editor)


def test_reload_takes_back_the_edits_that_it_discards():
    editor = Editor(LINES).replace("b\nc\n", "c\nb\n").replace("f", "F")
    mark = editor.history.mark
    editor.replace(editor.text[2:12], LINES[2:12])
    check(editor)
    assert editor.history.has_changed_since(mark)


def test_reload_leaves_the_edits_that_stay():
    editor = Editor(LINES).replace("b", "B").replace("d", "D").replace("f", "F")
    editor.replace("B\nc\nD\ne\nF\n", "b\nc\nD\ne\nf\n")
    check(editor, (3, "d\n", "D\n"))


def test_reload_changes_nothing_else_in_the_users_name():
    editor = Editor(LINES).replace("b", "B")
    editor.replace("B\nc\nd\ne\n", "b\nc\nd\nE\n")
    assert editor.history.edits(own=True) == ()
    assert made(editor.history) == [("a", 4, "e\n", "E\n")]


def test_another_program_makes_no_edits_and_takes_back_what_it_reverts():
    editor = Editor(LINES).replace("b", "B").replace("f", "F")
    mark = editor.history.mark
    editor.reload("0\na\nB\nc\nd\nE\nF\ng\n")
    check(editor, (2, "b\n", "B\n"), (6, "f\n", "F\n"))
    assert not editor.history.has_changed_since(mark)
    editor.reload("0\na\nb\nc\nd\nE\nF\ng\n")
    check(editor, (6, "f\n", "F\n"))
    assert editor.history.has_changed_since(mark)
    editor.reload(editor.text.replace("F", "other"))
    check(editor)
    assert editor.history.accepted() == ()


def test_removal_by_another_program_may_be_undone():
    editor = Editor(LINES).reload(LINES.replace("d\n", ""))
    check_reverses(editor, LINES, False)


@given(st.lists(st.tuples(st.booleans(), st.text(st.sampled_from("ab\n"), max_size=12)), max_size=12))
@settings(max_examples=300)
def test_edits_fit_the_text_whoever_changes_it(steps):
    editor = Editor("a\nb\na\nb\n")
    for is_reload, text in steps:
        if is_reload:
            editor.reload(text)
        elif text != editor.text:
            change = difference(editor.text, text)
            editor.change(change.start, change.end, change.text)
        assert unwound(editor.history, "a", editor.text) is not None


def test_edit_whose_result_is_deleted_is_no_example_until_it_is_back():
    lines = "".join(f"{n}\n" for n in range(20))
    editor = Editor(lines).replace("7\n", "x\n")
    deleted = editor.text[2:-3]
    editor.replace(deleted, "")
    assert all("x" not in edit.after for edit in editor.history.edits())
    editor.paste("0\n", deleted)
    check(editor, (7, "7\n", "x\n"))


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.text(st.sampled_from("\r\nab"), max_size=4)), max_size=12
    )
)
@settings(max_examples=300)
def test_whatever_ends_lines_no_edit_is_of_a_line_before_the_first(changes):
    editor = Editor("\r\na\rb\n")
    for start, end, text in changes:
        low, high = sorted((min(start, len(editor.text)), min(end, len(editor.text))))
        if low < high or text:
            editor.change(low, high, text, 0.5)
        assert all(edit.line >= 0 for edit in editor.history.edits())


@pytest.mark.parametrize(
    "edited",
    [
        lambda editor: editor.replace(BODY[1] + "\n", ""),
        lambda editor: editor.replace(LAST + "\n", ""),
        lambda editor: editor.replace(KEY, ""),
        lambda editor: editor.replace(KEY, "").paste("a = 1", f"\n{KEY}b = 2"),
        lambda editor: editor.replace(END, "x = 2"),
        lambda editor: editor.replace(BEGIN, "").replace(END, "").replace(f"{LAST}\n", "b = 1\n"),
        lambda editor: editor.type("a = 1", "0"),
        lambda editor: editor.type(LAST[:2], "\n"),
    ],
)
def test_key_is_masked_in_edits_also_when_it_is_gone(edited):
    editor = edited(Editor(f"a = 1\n{KEY}"))
    assert editor.history.edits()
    assert not is_told(editor.history.edits())
    editor.history.rename("a", "b")
    assert not is_told(editor.history.edits())


def test_deletion_is_where_text_went_and_none_came_instead():
    editor = Editor("a = int64\n").erase("int64", 2)
    assert editor.history.has_deletion_at("a", 7)
    assert not editor.history.has_deletion_at("a", 6)
    assert not editor.history.has_deletion_at("b", 7)
    assert not editor.type("int", "8").history.has_deletion_at("a", 8)
    assert not Editor("a = int64\n").replace("int64", "int").history.has_deletion_at("a", 7)
