import pytest

from mercury_engine.api import Edit, Snippet
from mercury_engine.prompts.dialects import DIALECTS
from mercury_engine.prompts.edits import FORMATS
from mercury_engine.prompts.edits.inception import INCEPTION_EDIT
from mercury_engine.prompts.edits.sweep import SWEEP_1, SWEEP_2
from mercury_engine.prompts.fim import fim_prompt, whole_head
from mercury_engine.prompts.received import ReceivedGap, ReceivedRegion, edit_in, received
from mercury_engine.prompts.received.parts import edits_in
from tests.engine.prompts.examples import count, gap, window

WRITTEN = [*FORMATS, INCEPTION_EDIT]
TEXTS = [
    "import os\n\n\ndef total(items):\n    s = 0\n    for i in items:\n        s$0 += i\n    return s\n",
    "total$0",
    "\n\ntotal = $01\n\n\nprint(total)\n",
    "x\n" * 60 + "total = $0\n" + "z\n\n" * 60,
    "    # total\n" * 40 + "$0",
]
EDIT = Edit("src/cart.py", 3, "def total(xs):\n", "def total(items):\n")
OTHERS = [dialect for dialect in DIALECTS if not dialect.is_ours]
TOKENLESS = {"granite", "starcoder1", "deepseek", "seed", "glm", "falcon-tiny", "codellama"}
"""Dialects that write other files as comments, which stay a part of the text."""


def named(value):
    return getattr(value, "name", None)


@pytest.mark.parametrize("form", WRITTEN, ids=named)
@pytest.mark.parametrize("text", TEXTS)
def test_region_is_read_as_written_and_answered_as_its_model_would(form, text):
    asked = form.ask(window(text, edits=[("b.py", 7, "x\n", "")]), budget=4000, count=count)
    found = (edit_in if form is INCEPTION_EDIT else received)(asked.prompt.text)
    assert isinstance(found, ReceivedRegion)
    assert found.path == "src/cart.py"
    assert found.edits == (Edit("b.py", 0 if form is SWEEP_1 else 7, "x\n", ""),)
    old, now = asked.window[asked.start : asked.end], found.text[found.start : found.end]
    above = old[: old.rindex("\n", 0, text.index("$0") - asked.start) + 1] if form is SWEEP_2 and "\n" in old else ""
    assert (above + now).rstrip("\n") == old.rstrip("\n")
    if form is not SWEEP_1:  # it tells neither where the cursor is nor the lines of an edit
        assert found.text[: found.cursor].endswith(text.partition("$0")[0][-20:])
    assert asked.read(found.answer(now), True) is None
    new = old.removeprefix(above).replace("total", "sum_of", 3)
    whole = asked.window[: asked.start] + above + new + asked.window[asked.end :]
    assert asked.read(found.answer(now.replace("total", "sum_of", 3)), True) == (whole if "total" in now else None)


@pytest.mark.parametrize("form", [each for each in WRITTEN if each.name != "zeta"], ids=named)
def test_related_files_are_read(form):
    wanted = Snippet("util.py", "def a():\n    pass")
    asked = form.ask(window("x = $0\n", snippets=[("util.py", wanted.text)]), budget=4000, count=count)
    assert (edit_in if form is INCEPTION_EDIT else received)(asked.prompt.text).snippets == (wanted,)


@pytest.mark.parametrize(("new", "old"), [("\nx = 1\n", "x = 1\n"), ("x = 1\n\n", "x = 1\n"), ("", "x = 1\n")])
def test_leading_and_trailing_blank_lines_are_kept(new, old):
    asked = FORMATS[0].ask(window(old + "$0y\n"), budget=4000, count=count)
    assert asked.read(received(asked.prompt.text).answer(new + "y\n"), True) == new + "y\n"


@pytest.mark.parametrize("dialect", OTHERS, ids=named)
@pytest.mark.parametrize("text", TEXTS)
def test_gap_is_read_as_written(dialect, text):
    asked = gap(text, path="")
    prompt = fim_prompt(dialect, asked, budget=4000, count=count, split=whole_head)
    prefix, _, suffix = text.partition("$0")
    found = received(prompt.text)
    assert prefix.endswith(found.prefix)
    assert len(found.prefix) >= min(len(prefix), 100)
    assert suffix.startswith(found.suffix)


@pytest.mark.parametrize("dialect", [each for each in OTHERS if each.name not in TOKENLESS], ids=named)
def test_files_beside_a_gap_are_read(dialect):
    snippets = [("util.py", "def a():\n    pass"), ("other.py", "def b():\n    pass")]
    asked = gap("x = $0\n", snippets=snippets)
    prompt = fim_prompt(dialect, asked, budget=4000, count=count, split=whole_head)
    found = received(prompt.text)
    assert (found.path, found.prefix, found.suffix) == ("src/cart.py", "x = ", "\n")
    assert [(each.path, each.text.strip()) for each in found.snippets] == snippets[::-1]


@pytest.mark.parametrize(
    ("prompt", "prefix", "suffix"),
    [
        ("<PRE> a <SUF>b <MID>", "a", "b"),
        ("[SUFFIX]b[PREFIX]a", "a", "b"),
        ("<|code_prefix|>a<|code_suffix|>b<|code_middle|>", "a", "b"),
        ("<｜fim▁begin｜>a<｜fim▁hole｜>b<｜fim▁end｜>", "a", "b"),
        ("<｜fim▁end｜>b<｜fim▁begin｜>a<｜fim▁hole｜>", "a", "b"),
        ("<｜fim▁end｜><｜fim▁begin｜>a<｜fim▁hole｜>", "a", ""),
    ],
)
def test_prompts_of_one_file(prompt, prefix, suffix):
    assert received(prompt) == ReceivedGap(prefix, suffix)


def window_after(change, *, below="y = 2\n" * 9 + "y = 2"):
    """A prompt of Sweep's first generation, about a window with this change."""
    before, after = change
    versions = [("original", before + below), ("current", after + below), ("updated", "")]
    return "".join(f"<|file_sep|>{version}/shop.py\n{text and text + chr(10)}" for version, text in versions)


@pytest.mark.parametrize(
    ("prompt", "lines", "cursor", "edits"),
    [
        (window_after(("x = 1\n", "xs = 1\n")), "xs = 1\n" + "y = 2\n" * 9 + "y = 2", 2, [("x = 1\n", "xs = 1\n")]),
        (window_after(("x = 1\n", "xs = 1\n"), below="z"), "xs = 1\nz\n", 2, [("x = 1\n", "xs = 1\n")]),
        (window_after(("", "xs = 1\n"), below="z\n"), "xs = 1\nz\n", 7, [("", "xs = 1\n")]),
        (window_after(("x = 1\n", "x = 1\n"), below="z\n"), "x = 1\nz\n", 0, []),
        (
            "<|file_sep|>shop.py.diff\noriginal:\na\nx = 1\nb\nupdated:\na\nxs = 1\nb\n"
            + window_after(("a\nx = 1\n", "a\nxs = 1\n"), below="b"),
            "a\nxs = 1\nb\n",
            4,
            [("x = 1\n", "xs = 1\n")],
        ),
    ],
)
def test_last_edit_and_end_of_the_window_are_inferred(prompt, lines, cursor, edits):
    found = received(prompt)
    assert (found.text[found.start : found.end], found.cursor) == (lines, cursor)
    assert [(each.before, each.after) for each in found.edits] == edits
    assert found.answer(lines) == lines


def test_rest_of_the_file_surrounds_the_window():
    found = received(
        "<|file_sep|>shop.py\nimport os\n\nx = 1\nb\nend\n" + window_after(("x\n", "x = 1\n"), below="b\n")
    )
    assert found.text == "import os\n\nx = 1\nb\nend"
    assert found.text[found.start : found.end] == "x = 1\nb\n"


@pytest.mark.parametrize(
    "prompt",
    ["", "<|file_sep|>updated/a.py\n", "def f():\n    ", "<|fim_prefix|> is a token", "<|editable_region_start|>"],
)
def test_plain_text_asks_for_nothing_else(prompt):
    assert received(prompt) is None
    assert edit_in(prompt) is None


@pytest.mark.parametrize(
    ("diff", "edits"),
    [
        (
            "--- a/src/a.py\n+++ b/src/a.py\n@@ -3,3 +3,4 @@\n x\n-old\n+new\n+more\n y\n",
            [Edit("src/a.py", 3, "old\n", "new\nmore\n", "x\n", "y\n")],
        ),
        ("@@ -1,1 +1,1 @@\n-a\n+b\n@@ -9,1 +9,0 @@\n-c\n", [Edit("p", 0, "a\n", "b\n"), Edit("p", 8, "c\n", "")]),
        ("--- x\n+++ x\n@@ -1 +1 @@\n a\n", []),
        ("--- a.lua\n+++ a.lua\n@@ -1 +1 @@\n--- b\n+c\n", [Edit("a.lua", 0, "-- b\n", "c\n")]),
        ("--- a.c\n+++ a.c\n@@ -1 +1 @@\n-b\n+++ c\n", [Edit("a.c", 0, "b\n", "++ c\n")]),
        ("nothing of a diff\n-x\n", []),
        ("@@ -99999999999999999999 +1 @@\n-a\n", [Edit("p", 0, "a\n", "")]),
    ],
)
def test_edits_of_diffs(diff, edits):
    assert list(edits_in(diff, "p")) == edits


@pytest.mark.parametrize("dialect", OTHERS, ids=named)
def test_prompt_of_nothing_but_tokens_is_read_at_once(dialect):
    """Where reading it were quadratic, this would not come to an end."""
    for tokens in (*dialect.tokens, "".join(dialect.tokens), "### User Excerpt:\n", 'User edited "a":\n```diff\n'):
        prompt = tokens * (200_000 // len(tokens))
        assert not isinstance(received(prompt), ReceivedRegion)
        assert isinstance(received(f"<|editable_region_start|><|editable_region_end|>{prompt}"), ReceivedRegion)
    region = edit_in("<|recently_viewed_code_snippet|>\n" * 6_000 + "<|code_to_edit|><|/code_to_edit|>")
    assert (region.text, len(region.snippets)) == ("", 6_000)
