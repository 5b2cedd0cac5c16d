"""Sweep's answers go on from the cursor's line; some of them its own server discards."""

import pytest

from mercury_engine.prompts.edits import edit_format
from tests.engine.prompts.examples import count, request

TEXT = "def f():\n    a = 1\n    b = $0\n    c = 3\n    return a\n"


def ask(text=TEXT, **options):
    return edit_format("sweep").ask(request(text, mode="region", **options), budget=2000, count=count)


def prefill(asked):
    return "".join(asked.prompt.pieces).rpartition("updated/")[2].partition("\n")[2]


@pytest.mark.parametrize(
    ("answer", "new"),
    [
        ("    b = 2\n    c = 3\n    return a\n", TEXT.replace("$0", "2")),
        ("    b = 2\n    c = 3\n    return a", TEXT.replace("$0", "2")),
        ("    b = 2\n    c = 3\n    return a\n\\ No newline at end of file", TEXT.replace("$0", "2")),
        ("    b = 2\n    c = 3\n    return a No newline at end of file", TEXT.replace("$0", "2")),
        ("    b = 2\n    c = 3\n    return a\n<|file_sep|>other.py\n", TEXT.replace("$0", "2")),
        ("    b = \n    c = 3\n    return a\n", None),
        ("<|file_sep|>x", None),
        ("", None),
        ("    x = 0\n    b = \n    c = 3\n    return a\n", None),
        ("    b = 2\n" + "    x = 1\n" * 30 + "    return a\n", None),
        ("    x\n" * 9 + "    return a\n", None),
    ],
)
def test_what_its_answers_mean(answer, new):
    assert ask().read(answer, True) == new


def test_the_answer_goes_on_from_the_cursors_line():
    assert prefill(ask()) == "def f():\n    a = 1\n"
    assert ask().prompt.copied == "    b = \n    c = 3\n    return a\n"


def test_after_an_insertion_above_nearly_everything_may_change():
    text = "def f():\n\n    a = 1\n    b = $0\n"
    edit = ("src/cart.py", 2, "", "    a = 1\n")
    assert prefill(ask(text, edits=[edit])) == "def f():\n\n"
    assert prefill(ask(text, edits=[("other.py", *edit[1:])])) == "def f():\n\n    a = 1\n"


def test_the_original_is_what_stood_there_before_the_last_edit():
    text = "a = 1\nb = 2\nc = $0\n"
    prompt = "".join(ask(text, edits=[("src/cart.py", 7, "b = 0\n", "b = 2\n")], first_line=6).prompt.pieces)
    assert "<|file_sep|>original/src/cart.py:7:9\na = 1\nb = 0\nc = \n" in prompt
    assert "<|file_sep|>current/src/cart.py:7:9\na = 1\nb = 2\nc = <|cursor|>\n" in prompt


def test_related_code_is_three_pieces_of_twenty_five_lines():
    snippets = [(f"m{i}.py", "x = 1\n" * 40) for i in range(5)]
    prompt = "".join(ask(snippets=snippets).prompt.pieces)
    assert [name for name in ("m0", "m1", "m2", "m3") if f"{name}.py" in prompt] == ["m0", "m1", "m2"]
    assert prompt.count("x = 1\n") == 75
