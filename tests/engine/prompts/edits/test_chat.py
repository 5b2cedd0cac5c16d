"""Next edits by models that only chat: the message, and the lines in answers of all kinds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mercury_engine.api import Diagnostic, EngineError
from mercury_engine.prompts.edits.asked import CUT, Refused
from mercury_engine.prompts.edits.chat import CHAT_EDIT, INSTRUCTION
from tests.engine.prompts.examples import GOLDEN, count, window

OLD = """\
def area(width, height):
    return w$0 * h


def volume(width, height, depth):
    return area(w, h) * depth
"""
NEW = OLD.replace("$0", "").replace("w * h", "width * height").replace("(w, h)", "(width, height)")


FRAGMENT = "it is not the lines that were asked for, or only a part of them"


def ask(text=OLD, **options):
    return CHAT_EDIT.ask(window(text, **options), budget=4000, count=count)


def check(answer, expected, text=OLD):
    assert ask(text).read(answer, True) == expected


def test_chat_message_tells_edits_snippets_and_diagnostics():
    edits = [("src/cart.py", 0, "def area(w, h):\n", "def area(width, height):\n")]
    asked = window(OLD, snippets=[("src/units.py", "INCH = 2.54\n")], edits=edits)
    asked = replace(asked, diagnostics=(Diagnostic("src/cart.py", 1, 11, "w is not defined"),))
    message = CHAT_EDIT.ask(asked, budget=4000, count=count).prompt.text
    assert message == INSTRUCTION + (GOLDEN / "chat.txt").read_text("utf-8")


@pytest.mark.parametrize(
    "answer",
    [
        NEW,
        f"```python\n{NEW}```",
        f"```\n{NEW}\n```\n",
        f"Here are the lines:\n\n```python\n{NEW}```\n\nI renamed both uses.",
        f"<think>w is gone.\n```\nw\n```\n</think>\n\n```python\n{NEW}```",
        f"```python\n<|edit_this|>\n{NEW}<|/edit_this|>\n```",
        f"<|edit_this|>\n{NEW}<|/edit_this|>",
        f"~~~python\n{NEW}~~~",
        f"{NEW}```",
        "```python\n" + NEW.replace("return width", "return wi<|cursor|>dth") + "```",
    ],
)
def test_lines_are_taken_from_whatever_surrounds_them(answer):
    check(answer, NEW)


@pytest.mark.parametrize("answer", ["NO_EDIT", "`NO_EDIT`", "```\nNO_EDIT\n```", f"```\n{OLD.replace('$0', '')}```"])
def test_unchanged_answer_is_no_edit(answer):
    check(answer, None)


@pytest.mark.parametrize(
    "line",
    [
        "# ... existing code ...",
        "    # … unchanged …",
        "// rest of the file...",
        "# (rest of the code remains the same ...)",
        "...",
        "... (unchanged)",
        "…",
        "/* ... */",
    ],
)
def test_lines_that_were_left_out_are_never_taken_away(line):
    head, _, tail = NEW.partition("\n\n\n")
    for answer in (f"```python\n{head}\n{line}\n```", f"```python\n{line}\n{tail}```"):
        check(answer, Refused("it leaves lines out"))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("The code looks fine to me.", FRAGMENT),
        ("I'm sorry, but I cannot help with that.", FRAGMENT),
        ("```python\n    return width * height\n```", FRAGMENT),
        ("I would write:\n```python\nreturn width * height\n```", FRAGMENT),
        ("", FRAGMENT),
        ("```python\n```", FRAGMENT),
        (f"```python\n{NEW}```\nor\n```python\n{NEW}```", "it has several blocks of code"),
        (
            f"<|edit_this|>\n{NEW}<|/edit_this|>\n<|edit_this|>\n{NEW}<|/edit_this|>",
            "it has several blocks of code",
        ),
        (f"```python\n{NEW}<|fim_middle|>\n```", "it has marks of a format of prompts in it"),
    ],
)
def test_prose_fragments_and_several_blocks_are_refused(answer, reason):
    check(answer, Refused(reason))


def test_body_of_three_dots_is_an_edit():
    check(
        "```\nclass A:\n    ...\n\n    def f(self):\n        pass\n```",
        "class A:\n    ...\n\n    def f(self):\n        pass\n",
        "class A:\n    $0\n    def f(self):\n        pass\n",
    )


def test_lines_with_fences_in_them():
    old = "# Use\n\n```sh\nrun$0\n```\n\nThen stop.\n"
    new = old.replace("run$0", "run --now")
    check(f"```markdown\n{new}```", new, old)


def test_truncated_answer_is_not_taken():
    assert ask().read(f"```python\n{NEW}", False) == CUT


def test_format_marks_in_the_file_are_refused():
    with pytest.raises(EngineError, match="a mark of the chat format"):
        ask("x = '<|edit_this|>'$0\n")


LINES = st.lists(st.text("abc(){}=+ .#\tß", min_size=1, max_size=20), min_size=2, max_size=10, unique_by=str.strip)


@given(
    LINES, st.integers(0, 9), st.sampled_from(["", "```\n{}\n```", "```python\n{}\n```\nDone.", "Sure:\n```\n{}\n```"])
)
def test_changed_line_is_applied_exactly_whatever_surrounds_answer(lines, row, around):
    lines = [line for line in lines if line.strip()]
    text = "\n".join(lines) + "\n"
    row %= max(len(lines), 1)
    new = "\n".join([*lines[:row], "changed = 1", *lines[row + 1 :]]) + "\n"
    answer = (around or "{}").replace("{}", new.rstrip("\n"), 1)
    read = ask("$0" + text).read(answer, True)
    assert read == new or not isinstance(read, str)
    if len(lines) > 2 and "..." not in text and "# " not in new:
        assert read == new
