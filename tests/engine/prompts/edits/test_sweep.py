"""Sweep's answers go on from the cursor's line; some of them its own server discards."""

import pytest
from msgspec.structs import replace

from mercury_engine.api import Diagnostic
from mercury_engine.prompts.edits import edit_format
from mercury_engine.prompts.edits.asked import MARKED, Refused
from tests.engine.prompts.examples import count, window

TEXT = "def f():\n    a = 1\n    b = $0\n    c = 3\n    return a\n"


def ask(text=TEXT, name="sweep-2", **options):
    return edit_format(name).ask(window(text, **options), budget=2000, count=count)


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
        ("<|file_sep|>x", MARKED),
        ("", Refused("it stops in the middle of what it copies")),
        ("    x = 0\n    b = \n    c = 3\n    return a\n", TEXT.replace("    b", "    x = 0\n    b").replace("$0", "")),
        ("    b = 2\n" + "    x = 1\n" * 30 + "    return a\n", Refused("it adds 29 lines, and 20 are the most")),
        ("    x\n" * 9 + "    return a\n", "def f():\n    a = 1\n" + "    x\n" * 9 + "    return a\n"),
    ],
)
def test_answers_are_read_as_new_text(answer, new):
    assert ask().read(answer, True) == new


@pytest.mark.parametrize(
    ("answer", "new"),
    [
        (TEXT.replace("$0", "2"), TEXT.replace("$0", "2")),
        (TEXT.replace("$0", "2").replace("a = 1", "a = 0").rstrip(), TEXT.replace("$0", "2").replace("a = 1", "a = 0")),
        (TEXT.replace("$0", ""), None),
        ("<|file_sep|>x", MARKED),
    ],
)
def test_first_generation_answers_with_all_lines(answer, new):
    assert ask(name="sweep").read(answer, True) == new
    assert ask(name="sweep").prompt.copied == TEXT.replace("$0", "")


def test_much_that_is_written_anew_above_the_cursor_is_discarded():
    above = "".join(f"    a{n} = 1\n" for n in range(6))
    asked = ask(f"{above}    b = $0\n", name="sweep")
    refused = Refused("it changes more than 5 lines, and some above the cursor")
    assert asked.read(f"{above.replace('1', '2')}    b = \n", True) == refused
    assert isinstance(asked.read(f"{above.replace('a0 = 1', 'a0 = 2')}    b = \n", True), str)
    below = ask(f"    b = $0\n{above}")
    assert isinstance(below.read(f"    b = \n{above.replace('1', '2')}", True), str)


def test_answer_continues_from_line_of_cursor():
    assert prefill(ask()) == "def f():\n    a = 1\n"
    assert ask().prompt.copied == "    b = \n    c = 3\n    return a\n"


def test_after_an_insertion_above_nearly_everything_may_change():
    text = "def f():\n\n    a = 1\n    b = $0\n"
    edit = ("src/cart.py", 2, "", "    a = 1\n")
    assert prefill(ask(text, edits=[edit])) == "def f():\n\n"
    assert prefill(ask(text, edits=[("other.py", *edit[1:])])) == "def f():\n\n    a = 1\n"
    assert prefill(ask(text, edits=[("src/cart.py", 3, "", "    b = \n")])) == "def f():\n\n    a = 1\n"


def test_original_is_the_text_before_the_last_edit():
    text = "a = 1\nb = 2\nc = $0\n"
    prompt = "".join(ask(text, edits=[("src/cart.py", 7, "b = 0\n", "b = 2\n")], first_line=6).prompt.pieces)
    assert "<|file_sep|>original/src/cart.py:7:9\na = 1\nb = 0\nc = \n" in prompt
    assert "<|file_sep|>current/src/cart.py:7:9\na = 1\nb = 2\nc = <|cursor|>\n" in prompt


@pytest.mark.parametrize(
    ("edit", "original"),
    [
        (("src/cart.py", 1, "b = 1\nx\n", "b = 2\n"), "a = 1\nb = 1\nx\nb = 2\nc = \n"),
        (("src/cart.py", 2, "gone\n", "", "b = 2\n", "b = 2\n"), "a = 1\nb = 2\ngone\nb = 2\nc = \n"),
        (("src/cart.py", 4, "gone\n", ""), "a = 1\nb = 2\nb = 2\nc = \ngone\n"),
        (("src/cart.py", 2, "gone\n", ""), "a = 1\nb = 2\nb = 2\nc = \n"),
        (("other.py", 1, "b = 1\n", "b = 2\n"), "a = 1\nb = 2\nb = 2\nc = \n"),
    ],
)
def test_last_edit_is_taken_back_where_it_was_made(edit, original):
    for name in ("sweep", "sweep-2"):
        prompt = "".join(ask("a = 1\nb = 2\nb = 2\nc = $0\n", name, edits=[edit]).prompt.pieces)
        assert prompt.rpartition("original/")[2].partition("\n")[2].partition("<|file_sep|>")[0] == original


def test_diagnostics_stand_before_related_code_the_nearest_first_to_be_kept():
    said = [Diagnostic("src/cart.py", line, 4, f"no such name: x{line}") for line in (90, 4, 1)]
    asked = replace(window(TEXT, snippets=[("m.py", "x = 1")]), diagnostics=tuple(said))
    prompt = edit_format("sweep-2").ask(asked, budget=2000, count=count).prompt.text
    lines = "".join(f"src/cart.py:{n + 1}:5: error: no such name: x{n}\n" for n in (1, 4, 90))
    assert f"\n<|file_sep|>diagnostics\n{lines}\n\n<|file_sep|>m.py\nx = 1\n" in prompt
    short = edit_format("sweep-2").ask(asked, budget=170, count=count).prompt.text
    assert [f"x{n}" in short for n in (1, 4, 90)] == [True, False, False]


def test_related_code_is_three_pieces_of_twenty_five_lines():
    snippets = [(f"m{i}.py", "x = 1\n" * 40) for i in range(5)]
    prompt = "".join(ask(snippets=snippets).prompt.pieces)
    assert [name for name in ("m0", "m1", "m2", "m3") if f"{name}.py" in prompt] == ["m0", "m1", "m2"]
    assert prompt.count("x = 1\n") == 75
