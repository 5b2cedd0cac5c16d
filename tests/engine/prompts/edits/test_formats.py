"""What every next-edit format has in common: its published prompt, its budget, and answers that are of no use."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.api import EngineError
from mercury_engine.prompts.edits import FORMATS, edit_format, edit_format_for
from mercury_engine.prompts.edits.asked import CUT, Refused
from mercury_engine.prompts.edits.sweep import FILE
from mercury_engine.prompts.pieces import Mark, tokens_of
from tests.engine.prompts.examples import GOLDEN, count, window

CART = Path(__file__).with_name("cart.txt").read_text("utf-8")
FILES = [("src/item.py", "class Item:\n    price = 0"), ("src/tax.py", "RATE = 0.2\n")]
EDITS = [
    ("src/tax.py", 1, "RATE = 0.1\n", "RATE = 0.2\n", "# in force\n", "\n", True),
    (
        *("src/cart.py", 10, "            amount += item.price\n", "            amount += item.cost\n"),
        "    def total(self):\n        amount = 0\n        for item in self.items:\n",
        "        return amount\n\n    def count(self):\n",
    ),
]

each_format = pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.name)


def ask(known, text, *, budget=4000, **options):
    return known.ask(window(text, **options), budget=budget, count=count)


def shown(prompt):
    """As text, with the name of what a server adds itself."""
    return "".join(prompt.pieces)


@each_format
def test_prompt_is_the_published_one(known):
    asked = ask(known, CART, snippets=FILES, edits=EDITS)
    assert shown(asked.prompt) == (GOLDEN / f"{known.name}.txt").read_text(encoding="utf-8")


@each_format
def test_prompt_of_lone_file_is_the_published_one(known):
    asked = ask(known, "a = 1\nb = $0\n")
    assert shown(asked.prompt) == (GOLDEN / f"{known.name}-alone.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("zed-industries/zeta", "zeta"),
        ("zeta:7b", "zeta"),
        ("zed-industries/zeta-2", "zeta-2"),
        ("zeta2", "zeta-2"),
        ("zeta-2.1-Q4_K_M.gguf", "zeta-2.1"),
        ("zeta2_1", "zeta-2.1"),
        ("sweepai/sweep-next-edit-1.5B", "sweep"),
        ("sweep-next-edit-1.5b.q8_0.v2.gguf", "sweep"),
        ("sweepai/sweep-next-edit-0.5B", "sweep-2"),
        ("sweepai/sweep-next-edit-v2-7B", "sweep-2"),
        ("next-edit-v2-7b", "sweep-2"),
    ],
)
def test_format_follows_name_of_its_model(model, name):
    assert edit_format_for(model) is edit_format(name)


def test_unknown_format_is_refused_with_known_ones():
    assert edit_format_for("Qwen/Qwen2.5-Coder-1.5B") is None
    with pytest.raises(EngineError, match=r"no such next-edit format as 'zed'; use one of zeta-2\.1, zeta-2, "):
        edit_format("zed")


def unchanged(asked):
    """What a model answers that repeats what it is to rewrite."""
    pieces = [piece for piece in asked.prompt.pieces if piece != "<|user_cursor|>"]
    markers = [number for number, piece in enumerate(pieces) if piece.startswith("<|marker_")]
    return "".join(pieces[markers[0] : markers[-1] + 1]) if markers else asked.prompt.copied


@each_format
def test_answer_cut_by_its_length_is_never_applied(known):
    asked = ask(known, "a = 1\nb = $0\nc = 3\n")
    answer = unchanged(asked).replace("c = 3", "c = 4")
    assert asked.read(answer, True) == "a = 1\nb = \nc = 4\n"
    assert asked.read(answer, False) == CUT


@each_format
@pytest.mark.parametrize("answer", ["", "\n", "<|file_sep|>a.py", "x\n<|fim_prefix|>", "x = 1\n" * 60])
def test_answers_of_no_use(known, answer):
    assert isinstance(ask(known, "a = 1\n$0\nb = 2\n").read(answer, True), Refused)


@each_format
def test_answer_that_stops_while_copying_is_no_edit(known):
    asked = ask(known, "$0a = 1\nb = 2\nc = 3\nd = 4\n")
    assert asked.read(unchanged(asked).replace("\nb = 2\nc = 3\nd = 4\n", "\n"), True) == Refused(
        "it stops in the middle of what it copies"
    )


@each_format
def test_format_marks_in_text_are_refused(known):
    mark = next((piece for piece in reversed(ask(known, "$0").prompt.pieces) if isinstance(piece, Mark)), FILE)
    with pytest.raises(EngineError, match=r"a mark of the .* format: no next edit here"):
        ask(known, f"print('{mark}')$0\n")


@each_format
def test_overlong_line_is_refused(known):
    with pytest.raises(EngineError, match="do not fit into the 900 tokens"):
        ask(known, f"{'word ' * 2000}$0\n", budget=900)


LINES = st.lists(st.text("ab(){}=+ \t\nß字", max_size=40), max_size=60).map("\n".join)
EDITED = st.lists(st.tuples(st.sampled_from(["src/cart.py", "b.py"]), st.just(0), LINES, LINES), max_size=4)


@settings(max_examples=25, deadline=None)
@given(before=LINES, after=LINES, snippet=LINES, edits=EDITED, budget=st.integers(1200, 2400))
@each_format
def test_never_over_the_budget_and_unchanged_is_no_edit(known, before, after, snippet, edits, budget):
    asked = ask(known, f"{before}$0{after}", snippets=[("a.py", snippet)], edits=edits, budget=budget)
    assert tokens_of(asked.prompt.pieces, count) <= budget
    assert asked.read(unchanged(asked), True) is None
    assert asked.window[asked.start : asked.end].endswith(asked.prompt.copied)


@each_format
def test_region_is_put_back_into_window(known):
    above = "".join(f"value_{i} = compute({i}, 'some text to fill the line')\n" for i in range(200))
    asked = ask(known, f"{above}price = $0\nrate = 2\n{above}")
    assert asked.start > 1000
    answer = unchanged(asked).replace("rate = 2", "rate = 3")
    assert asked.read(answer, True) == f"{above}price = \nrate = 3\n{above}"


@each_format
def test_edits_that_are_too_long_leave_nothing_behind(known):
    edits = [("src/cart.py", 0, "x = 1\n" * 40, "y = 1\n" * 40)]
    assert ask(known, "a = 1\n$0\n", edits=edits).prompt == ask(known, "a = 1\n$0\n").prompt


def test_beginning_of_file_is_announced_only_in_its_window():
    known = edit_format("zeta")
    assert [shown(ask(known, CART, first_line=line).prompt).count("<|start_of_file|>") for line in (0, 40)] == [1, 0]
