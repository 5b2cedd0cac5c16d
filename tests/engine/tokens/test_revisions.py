"""Edits as a log that only grows: golden rows, and that an answer continues the question."""

from mercury_engine.api import Mention, Region
from mercury_engine.tokens import revisions
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import SPECIALS
from tests.engine.tokens.test_layout import GOLDEN

TOKENIZER = Tokenizer.load(GOLDEN / "tokenizer.json")
REGION = Region("a.py", "python", "y = x\n", "x = 1\n", "z = y\n")


def check(ids: list[int], expected: str):
    shown = [SPECIALS[token] if token < len(SPECIALS) else TOKENIZER.decode([token]) for token in ids]
    assert "".join(shown) == expected


def test_row_opens_with_language_and_file():
    check(revisions.opening(TOKENIZER, "python", "a.py"), "<bos><lang:python><path>a.py<edits>")


def test_question_ends_where_its_answer_begins():
    check(revisions.question(TOKENIZER, REGION, "a.py"), "<region>x = 1\n<old>y = x\n</old>z = y\n<ins>")


def test_another_file_is_named():
    check(revisions.question(TOKENIZER, REGION, "b.py")[:5], "<path>a.py<region>")


def test_answer_ends():
    check(revisions.answer(TOKENIZER, "y = 2\n"), "y = 2\n<eom>")


def test_lines_that_mention_a_name_stand_behind_their_file():
    lines = [Mention("a.py", 3, "print(x)\n"), Mention("b.py", 0, "import x\n"), Mention("b.py", 9, "x()\n")]
    check(revisions.mention(TOKENIZER, lines, "a.py"), "<snip>print(x)\n<snip>b.py\nimport x\nx()\n")


def test_lines_without_room_are_left_out():
    lines = [Mention("a.py", number, "print(x, y, z)\n") for number in range(99)]
    assert len(revisions.mention(TOKENIZER, lines, "a.py")) <= revisions.MENTIONS


def test_long_line_is_read_only_at_its_beginning():
    long = Region("a.py", "python", "y = " + "x" * 9000 + "\n")
    question = revisions.question(TOKENIZER, long, "a.py")
    check(question, "<region><old>" + ("y = " + "x" * 9000)[: revisions.LONGEST_LINE] + "\n</old><ins>")
