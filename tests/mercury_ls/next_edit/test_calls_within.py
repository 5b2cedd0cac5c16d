"""Calls within arguments that move change along with them, and nothing that merely looks like them."""

import ast

from hypothesis import given
from hypothesis import strategies as st

from mercury_ls.code.documents import Document
from mercury_ls.code.edits import difference
from mercury_ls.code.history import History
from mercury_ls.code.modules import Project
from mercury_ls.next_edit.kinds.signatures import changed_signatures, find

PATH = "/project/file.py"
BEFORE, AFTER = "def g(a, b):\n    return a\n\n\n", "def g(b, a):\n    return a\n\n\n"
LEAVES = st.sampled_from(["1", "x", '"g(1, 2)"', "'g(1, x)'", "f'{x} g(1, 2)'", "lambda: 1", "-x"])
LAYOUTS = st.sampled_from(
    [
        ("", ", ", ""),
        ("", ",", ","),
        ("\n    ", ",\n    ", ",\n"),
    ]
)
COMMENTS = st.tuples(st.sampled_from(["", "  # one", "  # g(1, 2)"]), st.sampled_from(["", "  # two"]))
CALLED = st.sampled_from(["g", "g", "bigg", "s.g", "g_"])


def called(function, layout, first, second):
    opening, gap, end = layout
    return f"{function}({opening}{first}{gap}{second}{end})"


def calls(values):
    return st.builds(called, CALLED, LAYOUTS, values, values)


class Swapped(ast.NodeTransformer):
    """What Python itself reads, with the arguments of `g` in another order."""

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "g":
            node.args.reverse()
        return node


def changed(text):
    history = History()
    history.record(PATH, BEFORE + text, difference(BEFORE, AFTER), 0.0)
    home = Document(f"file://{PATH}", PATH, "python", 1, AFTER + text).snapshot()
    (rule,) = changed_signatures([home], history.edits(8, own=True))
    after = home.text
    for place in sorted(find(rule, home, home, Project([home])), key=lambda place: -place.start):
        after = after[: place.start] + (place.text or "") + after[place.end :]
    return after


@given(st.recursive(LEAVES, calls, max_leaves=8))
def test_calls_change_as_the_syntax_tree_of_python_says(text):
    expected = Swapped().visit(ast.parse(AFTER + text))
    assert ast.dump(ast.parse(changed(text + "\n"))) == ast.dump(expected)


@given(LEAVES, LEAVES, COMMENTS, st.sampled_from(["", ","]))
def test_arguments_with_comments_stay_where_they_are(first, second, comments, comma):
    text = f"g(\n    {first},{comments[0]}\n    {second}{comma}{comments[1]}\n)\n"
    swapped = f"g(\n    {second},\n    {first}{comma}\n)\n"
    assert changed(text) == AFTER + (text if any(comments) else swapped)
