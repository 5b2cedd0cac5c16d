import random
import re
from pathlib import Path

import pytest

import mercury_ls
from mercury_ls.code.brackets import closing
from mercury_ls.code.edits import TextEdit
from mercury_ls.code.history import History
from mercury_ls.code.syntax import problems_after
from mercury_ls.completion.polish import first_lines, polish
from mercury_ls.completion.target import Silence, Target
from tests.cases import Case, each_case
from tests.marked import marked

SUGGESTED = re.compile("(.*)⟦(.*?)(?:→(.*))?⟧(.*)", re.DOTALL)
CUT = re.compile(r"^( +[^\n#\"']{8,20}\b ?)([^\n#\"']+)$", re.MULTILINE)
SOURCES = [path.read_text() for path in sorted(Path(mercury_ls.__file__).parent.glob("completion/[a-t]*.py"))]
REPEATS = "- the suggestion repeats what is written already"


def check(
    drawn: str, text: str, expected: str, mode: str = "line", language: str = "python", *, complete: bool = True
) -> None:
    """`expected` is the document afterwards with the suggestion in «»; or "-" and the reason's beginning."""
    snapshot, offset = marked(drawn, language)
    found = polish(snapshot, Target(offset, offset, mode == "block"), text, History(), complete=complete)
    if isinstance(found, Silence):
        assert expected.startswith("- "), found.reason
        assert found.reason.startswith(expected[2:]), found.reason
        return
    assert isinstance(found, TextEdit)
    before, after = snapshot.text[: found.start], snapshot.text[found.end :]
    assert f"{before}«{found.text}»{after}" == expected


@each_case(Path(__file__).with_name("polish.txt"))
def test_suggestion_is_polished(case: Case) -> None:
    """`⟦suggested→shown⟧` is drawn at the cursor; a suggestion alone is shown as it is, or not for the reason given."""
    language, mode, *unfinished = case.key.split()
    before, suggested, shown, after = SUGGESTED.fullmatch(case.drawn).groups()
    kept = f"- {case.expected}" if case.expected else f"{before}«{suggested if shown is None else shown}»{after}"
    check(f"{before}$0{after}", suggested, kept, mode, language, complete=not unfinished)


@pytest.mark.parametrize("token", ["<|fim_suffix|>", "<｜fim▁hole｜>", "[SUFFIX]", "<PRE>", "<[fim-middle]>"])
def test_answer_ends_at_special_token_of_any_format(token):
    check("x = $0\n", f"load(){token}rest", "x = «load()»\n")
    check(f"# {token}\nx = $0\n", f'"{token}"', f'# {token}\nx = «"{token}"»\n')


def test_tag_ends_no_answer():
    check("const a = $0\n", "<pre>{text}</pre>", "const a = «<pre>{text}</pre>»\n", language="javascript")


def test_line_that_cannot_parse_is_not_shown():
    """The rest of a random line behind the start of another: in 19 cases of 20, what is shown leaves a file that
    parses once its brackets are closed, while no line's own rest is refused."""
    rng, wrong, refused, count = random.Random(1), 0, 0, 120
    for _ in range(count):
        text = rng.choice(SOURCES)
        cut, foreign = rng.choice(CUT.findall(text)), rng.choice(CUT.findall(rng.choice(SOURCES)))
        snapshot, offset = marked(text.replace("".join(cut), f"{cut[0]}$0", 1))
        own, other = (polish(snapshot, Target(offset, offset), rest, History()) for _, rest in (cut, foreign))
        refused += isinstance(own, Silence) and "syntax error" in own.reason
        if isinstance(other, TextEdit):
            whole = other.text + closing(cut[0] + other.text)
            wrong += problems_after(snapshot, other.start, other.end, whole) > 0
    assert refused == 0
    assert wrong <= count / 20


def test_blanks_and_control_characters_are_no_suggestion():
    check("x = $0\n", "1   ", "x = «1»\n")
    check("x = $0\n", "  \n", "- nothing is left")
    check("x = $0\n", "", "- nothing is left")
    check("x = $0\n", "\x16\x16\x16\x16", "- nothing is left")
    check("x = $0\n", "\x1b\x07", "- nothing is left")


def test_decorated_name_may_be_declared_again():
    getter = "class A:\n    @property\n    def f(self): ...\n    @f.setter\n    "
    check(f"{getter}$0\n", "def f(self, value):", f"{getter}«def f(self, value):»\n")


def test_line_is_said_again_only_behind_a_deeper_block():
    check("try:\n    a()\nexcept E:\n    return False\n    $0\n", "return False", REPEATS)
    drawn = "def f():\n    try:\n        a()\n    except E:\n        return False\n    $0\n"
    check(drawn, "return False", drawn.replace("$0", "«return False»"))


def test_chain_asks_for_condition_once():
    check("if x == 1:\n    a()\nelif x == 2:\n    b()\nelif $0\n", "x == 1:", REPEATS)
    check("if x == 1:\n    a()\nelif x == 2:\n    b()\nelif $0\n", "x == 2:", REPEATS)
    check("if x == 1:\n    a()\nelif $0\n", "x == 2:", "if x == 1:\n    a()\nelif «x == 2:»\n")
    check("match x:\n    case 1:\n        a()\n    $0\n", "case 1:", REPEATS)
    other = "if x == 1:\n    a()\nif y:\n    b()\n"
    check(f"{other}elif $0\n", "x == 1:", f"{other}elif «x == 1:»\n")


def test_line_ends_are_those_of_most_lines_of_the_file():
    check("if x:\r\n    $0\r\n", "a = 1\n    b = 2", "if x:\r\n    «a = 1\r\n    b = 2»\r\n", "block")
    drawn = "a = 1\r\nb = 2\nif x:\n    $0\n"
    check(drawn, "a = 1\n    b = 2", drawn.replace("$0", "«a = 1\n    b = 2»"), "block")


def test_beginning_of_something_is_no_statement_yet():
    drawn = "def test_it():\n    $0\n"
    check(drawn, "with pytest.raises", "- the file would have more syntax errors")
    check(drawn, "with pytest.raises", drawn.replace("$0", "«with pytest.raises»"), complete=False)


def test_user_deletion_is_not_undone():
    before = "x = call(a, b)\n"
    history = History()
    history.record("/project/file.py", before, TextEdit(len("x = call(a"), len("x = call(a, b"), ""), 0.0)
    snapshot, offset = marked("x = call(a$0)\n")
    found = polish(snapshot, Target(offset, offset), ", b", history)
    assert isinstance(found, Silence)
    assert "undo" in found.reason


def test_first_lines_of_long_rest_are_those_of_all_of_it():
    for text in ("a\n\n  b \nc\n", "\n" * 5000 + "a\nb\n", "a" * 9000 + "\nb\nc", "a = 1\r\n" * 3000, ""):
        assert first_lines(text, 2) == [line.rstrip() for line in text.splitlines() if line.strip()][:2]
