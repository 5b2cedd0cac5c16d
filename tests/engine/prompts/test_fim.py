"""Prompts as the models were trained on them, character by character, within the budget, and stable while typing."""

import re
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mercury_engine.prompts.dialects import DIALECTS, dialect_named
from mercury_engine.prompts.fim import by_words, edit_lines, fim_prompt, whole_head
from mercury_engine.prompts.pieces import Special, joined
from tests.engine.prompts.examples import GOLDEN, count, gap

SORT = "def quicksort(arr):\n    $0\n    return left + right"
FILES = [("src/item.py", "class Item:\n    price = 0"), ("src/tax.py", "RATE = 0.2")]
EDITS = [("src/tax.py", 0, "RATE = 0.1\n", "RATE = 0.2\n"), ("src/cart.py", 0, "item\n", "item = Item()\n")]
CART = "item = Item()\ntotal = $0\nprint(total)\n"
PUBLISHED = re.findall(
    r"=== ([^\n]*)\n--- alone\n(.*?)\n--- among files and edits\n(.*?)\n(?=\n===|\Z)",
    (GOLDEN / "gaps.txt").read_text("utf-8"),
    re.DOTALL,
)


def prompt(name, asked, *, budget=1000, split=whole_head, suffix_lines=None):
    dialect = dialect_named(name)
    return fim_prompt(dialect, asked, budget=budget, count=count, split=split, suffix_lines=suffix_lines)


@pytest.mark.parametrize(("dialect", "alone", "among"), PUBLISHED, ids=lambda part: part.partition("<")[0][:12])
def test_prompt_has_the_published_form(dialect, alone, among):
    assert prompt(dialect, gap(SORT, path="")).text == alone
    assert prompt(dialect, gap(CART, snippets=FILES, edits=EDITS)).text == among


def test_dialects_have_a_published_form():
    assert {dialect for dialect, *_ in PUBLISHED} == {dialect.name for dialect in DIALECTS}


def test_path_helps_models_that_were_trained_with_it():
    assert prompt("starcoder", gap("$0")).text.endswith("<file_sep><fim_prefix>src/cart.py\n<fim_suffix><fim_middle>")
    assert prompt("glm", gap("$0")).text == "<|code_prefix|><|code_suffix|><|code_middle|>"


def test_special_tokens_are_pieces_and_texts_are_joined():
    pieces = prompt("codestral", gap(CART, snippets=FILES)).pieces
    assert pieces[0] == "<s>"
    assert [type(piece) for piece in pieces[1:]] == [Special, str, Special, str]


def test_answer_begins_with_typed_text_and_ends_at_stops():
    typed = prompt("qwen", gap("x = so$0\n"), split=by_words)
    assert (typed.forced, typed.stops, typed.stop_tokens[:2]) == (" so", ("\n",), ("<|endoftext|>", "<|file_sep|>"))
    assert typed.text.endswith("x =<|fim_suffix|>\n<|fim_middle|>")
    assert typed.most_tokens == 64 + count(" so")
    assert prompt("qwen", gap("def f():$0\n", block=True)).stops == ()


@pytest.mark.parametrize(
    ("head", "kept", "forced"),
    [
        ("    self.wid", "    self.", "wid"),
        ("return tot", "return", " tot"),
        ("return ", "return", " "),
        ("    ", "", "    "),
        ("f(a) =", "f(a)", " ="),
        ("", "", ""),
        ("x = äöü", "x =", " äöü"),
    ],
)
def test_last_word_is_taken_back(head, kept, forced):
    assert by_words(head) == (kept, forced)


@pytest.mark.parametrize(("name", "lines", "held"), [("qwen", 12, 12), ("codestral", 64, 64), ("qwen", None, 100)])
def test_suffix_has_as_many_lines_as_engine_reads(name, lines, held):
    after = "".join(f"line{i}\n" for i in range(100))
    assert prompt(name, gap(f"$0\n{after}"), budget=4000, suffix_lines=lines).text.count("line") == held


def test_lines_behind_gap_are_near_it_or_far_as_in_rows_of_ours():
    after = "".join(f"line{i}\n" for i in range(100))
    text = prompt("quicksilver", gap(f"a\nb = $0 + 1\n{after}"), budget=1000).text
    far, _, rest = text.partition("<suf>")[2].partition("<pre>")
    assert rest.startswith("a\n<near> + 1\nline0\n")
    near, _, end = rest.removeprefix("a\n<near>").partition("<line><cur>")
    assert (end, count(near) <= 64) == ("b = ", True)
    assert far.startswith(f"line{near.count('line')}\n")
    assert prompt("quicksilver", gap("def f():\n$0", block=True)).text.endswith("<block><cur>")


def test_suffix_has_a_quarter_of_budget():
    after = "".join(f"line{i}\n" for i in range(100))
    text = prompt("qwen", gap(f"$0\n{after}"), budget=400).text
    assert 80 < count(text.partition("<|fim_suffix|>")[2].removesuffix("<|fim_middle|>")) <= 100


def test_best_snippets_that_fit_are_chosen():
    snippets = [("best.py", "a " * 50), ("long.py", "b " * 500), ("good.py", "c " * 50)]
    text = prompt("qwen", gap("$0", snippets=snippets), budget=500).text
    assert "long.py" not in text
    assert text.index("good.py") < text.index("best.py")


def test_lines_before_gap_are_cut_at_multiples_of_sixteen():
    before = "".join(f"line {i}\n" for i in range(100))
    text = prompt("qwen", gap(f"{before}$0"), budget=200).text
    first = int(text.split("<|fim_prefix|>line ")[1].split("\n")[0])
    assert first % 16 == 0
    assert first > 0


def test_edit_being_typed_is_left_out():
    edits = [("src/cart.py", 1, "b\n", "b = 1\n"), ("src/cart.py", 0, "x = \n", "x = y\n")]
    text = prompt("qwen", gap("a\nb = 1\nx = y$0\n", edits=edits)).text
    assert "+b = 1" in text
    assert "+x = y" not in text


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("a\nb\nc\n", "a\nB\nc\n", " a\n-b\n+B\n c"),
        ("", "new\n", "+new"),
        ("old\n", "", "-old"),
        ("x\n" * 30, "", ""),
    ],
)
def test_edit_is_shown_as_changed_lines(before, after, lines):
    asked = gap("$0", edits=[("a.py", 3, before, after)])
    assert edit_lines(asked.edits[0]) == lines


LINES = st.lists(st.text("ab(){}=+ \t\nß字", max_size=80), max_size=60).map("\n".join)


@settings(max_examples=60, deadline=None)
@given(
    dialect=st.sampled_from(DIALECTS),
    before=LINES,
    after=LINES,
    snippet=LINES,
    edits=st.lists(st.tuples(st.sampled_from(["src/cart.py", "b.py"]), st.just(0), LINES, LINES), max_size=4),
    budget=st.integers(40, 900),
)
@example(dialect=DIALECTS[0], before="x " * 2000, after="y " * 2000, snippet="", edits=[], budget=200)
def test_never_over_the_budget(dialect, before, after, snippet, edits, budget):
    asked = gap(f"{before}$0{after}", snippets=[("a.py", snippet), ("b.py", after)], edits=edits)
    built = prompt(dialect.name, asked, budget=budget, split=by_words)
    used = sum(1 if isinstance(piece, Special) else count(piece) for piece in built.pieces)
    assert used <= budget
    assert joined(built.pieces) == built.pieces
    assert f"{before}".endswith(built.forced)


TYPED = "    for item in items:\n        total += item.price * (1 + rate)\n    return round(total, 2)\n\n\n" * 4


def until_the_gap(built, dialect):
    """The prompt to the end of the lines before the cursor."""
    token = next(token for token in dialect.tokens if "prefix" in token.lower())
    at = built.pieces.index(Special(token))
    return "".join(built.pieces[: at + 2])


@pytest.mark.parametrize("name", ["qwen", "codestral", "mellum", "starcoder"])
def test_typing_adds_to_the_prompt_and_changes_nothing_before(name):
    dialect = dialect_named(name)
    before = "".join(f"value_{i} = compute({i})\n" for i in range(150))
    after = "\n" + "".join(f"print(value_{i})\n" for i in range(80))
    snippets = [(f"m{i}.py", f"def helper_{i}():\n    return {i}\n" * 10) for i in range(12)]
    heads = []
    for end in range(len(TYPED)):
        edits = [("m1.py", 3, "a\n", "b\n"), ("src/cart.py", 150, "\n", TYPED[:end].rpartition("\n")[2] + "\n")]
        asked = gap(f"{before}{TYPED[:end]}$0{after}", snippets=snippets, edits=edits)
        heads.append(until_the_gap(prompt(name, asked, budget=1200, split=by_words), dialect))
    moved = sum(not new.startswith(old) for old, new in pairwise(heads))
    assert moved <= 3, f"read again as a whole {moved} times in {len(TYPED)} keys"
