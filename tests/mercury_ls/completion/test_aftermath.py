"""What becomes of an answer is read off the text: typed through, typed against, or left alone."""

from hypothesis import given
from hypothesis import strategies as st

from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.code.edits import TextEdit, applied
from mercury_ls.completion import aftermath as module
from mercury_ls.completion.aftermath import Aftermath

URI = "file:///project/file.py"
KEPT, KEPT_UNSEEN, MISSED, MISSED_UNSEEN = (True, True), (True, False), (False, True), (False, False)


class Typing:
    """A document, its cursor, and what was learned from the answers to it."""

    def __init__(self, drawn: str) -> None:
        self.cursor = drawn.index("$0")
        self.text = drawn.replace("$0", "")
        self.aftermath = Aftermath()
        self.learned: list[tuple[bool, bool]] = []

    def snapshot(self) -> Snapshot:
        return Document(URI, "/project/file.py", "python", 1, self.text).snapshot()

    def answer(self, text: str, id: str = "1", *, shown: bool = False, replacing: int = 0) -> None:
        now = self.snapshot()
        edit = TextEdit(self.cursor, self.cursor + replacing, text, URI)
        self.aftermath.generated(id, now, now, edit, self.learn, shown=shown)

    def learn(self, kept: bool, shown: bool) -> None:
        self.learned.append((kept, shown))

    def change(self, start: int, end: int, text: str) -> None:
        before, edit = self.text, TextEdit(start, end, text)
        self.text = applied(before, [edit])
        self.aftermath.changed(URI, before, edit)

    def type(self, keys: str, behind: str = "") -> None:
        """Each character by itself; `<` is backspace, `behind` what the editor puts behind the last one."""
        for key in keys:
            if key == "<":
                self.change(self.cursor - 1, self.cursor, "")
                self.cursor -= 1
            else:
                self.change(self.cursor, self.cursor, key)
                self.cursor += 1
        if behind:
            self.change(self.cursor, self.cursor, behind)

    @property
    def missed(self) -> bool:
        return self.aftermath.missed(self.snapshot(), self.cursor)


def check(drawn: str, answer: str, keys: str, *expected: tuple[bool, bool], shown: bool = True, **more: int) -> None:
    typing = Typing(drawn)
    typing.answer(answer, shown=shown, **more)
    typing.type(keys)
    assert typing.learned == [*expected]


def test_typed_answer_is_kept_and_another_one_is_missed():
    check("x = $0\n", "compute(y)", "compute(y", shown=False)
    check("x = $0\n", "compute(y)", "compute(y)", KEPT_UNSEEN, shown=False)
    check("x = $0\n", "compute(y)", "compute(y) + 1", KEPT)
    check("x = $0\n", "compute(y)", "compile", MISSED)
    check("x = $0\n", "compute(y)", "None", MISSED_UNSEEN, shown=False)
    check("x = $0\n", "compute(y)", "comm")
    check("x = $0\n", "compute(y)", "comm<pute(y)", KEPT)
    check("x = $0\n", "compute(y)", "comm<<<<<<= compute(y)", KEPT)
    check("x = $0\n", "compute(y)", "<<<y = 1")
    check("$0\n", "x", "<", *[])
    block = "if y:\n    return x"
    check("$0\n", block, "if y:\n    return x", KEPT)
    check("$0\n", block, "if y:\n        <<<<return x", KEPT)
    check("$0\n", block, "if y:\n    raise", MISSED)
    check("f($0)\n", "x, y)", "x, y", KEPT, replacing=1)
    check("f($0)\n", "x, y)", "x,", replacing=1)
    check("f($0)\n", "x, y)", "xyz", MISSED, replacing=1)


def test_brackets_that_the_editor_closes_are_no_departure():
    typing = Typing("$0\n")
    typing.answer("print([x])", shown=True)
    typing.type("print(", behind=")")
    typing.type("[", behind="]")
    assert typing.learned == []
    typing.type("x")
    assert typing.learned == [KEPT]


def test_replaced_text_may_be_removed_first_or_overwritten():
    for remove in ("at once", "by and by", "by typing"):
        typing = Typing("x = $0foo\n")
        typing.answer("bar", replacing=3)
        if remove == "by typing":
            typing.change(4, 7, "b")
            typing.cursor = 5
            typing.type("ar")
        else:
            for end in (7,) if remove == "at once" else (7, 6, 5):
                typing.change(4 if remove == "at once" else end - 1, end, "")
            typing.type("bar")
        assert typing.learned == [KEPT_UNSEEN]


def test_accepting_it_shows_in_the_text_or_is_reported_and_counts_once():
    for order in ("text first", "report first", "text alone"):
        typing = Typing("x = $0\n")
        typing.answer("compute(y)", shown=True)
        typing.type("co")
        if order == "report first":
            typing.aftermath.accepted("1")
        typing.change(typing.cursor, typing.cursor, "mpute(y)")
        if order == "text first":
            typing.aftermath.accepted("1")
        assert typing.learned == [KEPT]


def test_half_of_it_word_by_word_keeps_it():
    typing = Typing("$0\n")
    typing.answer("one two three four", shown=True)
    typing.aftermath.accepted("1", 4)
    assert typing.learned == []
    typing.type("one two three ")
    typing.type("xy")
    assert typing.learned == [KEPT]
    typing = Typing("$0\n")
    typing.answer("one two three four", shown=True)
    typing.aftermath.accepted("1", 4)
    typing.type("one xy")
    assert typing.learned == [MISSED]
    typing = Typing("$0\n")
    typing.answer("one two three four", shown=True)
    typing.aftermath.accepted("1", 13)
    assert typing.learned == [KEPT]


def test_dismissed_suggestion_is_not_kept_unless_nobody_saw_it():
    typing = Typing("x = $0\n")
    typing.answer("compute(y)")
    typing.aftermath.dismissed("1")
    assert typing.learned == []
    typing.aftermath.shown("1")
    typing.aftermath.dismissed("1")
    typing.type("compute(y)")
    assert typing.learned == [MISSED]


def test_repeated_answer_counts_once_and_as_shown_if_it_ever_was():
    typing = Typing("x = $0\n")
    for at in range(4):
        typing.answer("compute(y)"[at:], str(at), shown=at == 2)
        typing.type("compute(y)"[at])
    typing.type("ute(y)")
    assert typing.learned == [KEPT]
    typing = Typing("x = $0\n")
    typing.answer("one")
    typing.answer("other", "2", shown=True)
    typing.type("other")
    assert sorted(typing.learned) == [MISSED_UNSEEN, KEPT]


def test_late_answer_is_judged_by_what_was_typed_meanwhile():
    for typed, expected in [("comp", []), ("compute(y)", [KEPT_UNSEEN]), ("open", [MISSED_UNSEEN])]:
        typing = Typing("x = $0\n")
        base = typing.snapshot()
        typing.type(typed)
        edit = TextEdit(4, 4, "compute(y)", URI)
        typing.aftermath.generated("1", base, typing.snapshot(), edit, typing.learn)
        assert typing.learned == expected


def test_leaving_or_closing_the_file_teaches_nothing():
    typing = Typing("x = $0\n\n\n")
    typing.answer("compute(y)", shown=True)
    typing.change(6, 6, "a")
    typing.change(0, 0, "# ")
    typing.cursor += 2
    typing.type("compute(y)")
    assert typing.learned == [KEPT]
    typing.answer(".z", shown=True)
    for _ in range(module.MOST_ELSEWHERE + 1):
        typing.change(0, 0, "#")
        typing.cursor += 1
    typing.type("ab")
    typing.answer(".z", shown=True)
    typing.aftermath.closed(URI)
    typing.type("ab")
    typing.answer(".z", shown=True)
    typing.aftermath.forget()
    typing.type("ab")
    assert typing.learned == [KEPT]


def test_last_answers_are_the_only_ones_followed():
    typing = Typing("$0\n")
    for number in range(module.MOST_FOLLOWED + 3):
        typing.answer(f"{number}xy", str(number))
    typing.type("zz")
    assert typing.learned == [MISSED_UNSEEN] * module.MOST_FOLLOWED


def test_line_knows_that_answer_was_just_missed_there():
    typing = Typing("x = $0\ny\n")
    typing.answer("compute(y)")
    assert not typing.missed
    typing.type("co")
    assert not typing.missed
    typing.type("n")
    assert typing.missed
    typing.type("<")
    assert not typing.missed
    typing.type("nt")
    assert typing.missed
    typing.answer("x")
    typing.type("x")
    assert not typing.missed
    typing.answer("yz")
    typing.answer("ab")
    typing.type("ac")
    assert typing.missed
    typing.change(0, 0, "# a line above\n")
    typing.cursor += 15
    assert typing.missed
    typing.cursor += 2
    assert not typing.missed


TEXTS = st.text("ab(\n )", max_size=12)


@given(TEXTS, TEXTS, TEXTS.filter(bool), st.integers(1, 4))
def test_typing_through_keeps_every_answer(before, after, answer, piece):
    typing = Typing(f"{before}$0{after}")
    typing.answer(answer)
    for at in range(0, len(answer), piece):
        typing.change(typing.cursor, typing.cursor, answer[at : at + piece])
        typing.cursor += len(answer[at : at + piece])
    assert typing.learned == [KEPT_UNSEEN]


@given(TEXTS, st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4), TEXTS, st.booleans()), max_size=12))
def test_change_teaches_at_most_once(text, changes):
    typing = Typing(f"{text}$0")
    answers = 0
    for start, length, new, asks in changes:
        start = min(start, len(typing.text))
        end = min(start + length, len(typing.text))
        if asks and new:
            typing.cursor = start
            answers += 1
            typing.answer(new, str(answers), replacing=end - start)
        typing.change(start, end, new[::-1])
        followed = typing.aftermath._followed
        assert all(0 <= each.start <= each.end <= len(typing.text) for each in followed)
        assert len(typing.learned) + len(followed) <= answers
