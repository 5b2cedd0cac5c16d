"""The answers of Zed's models: markers, the mark at the cursor, and the ends that they write or leave out."""

import pytest

from mercury_engine.api import Edit
from mercury_engine.prompts.edits import edit_format
from mercury_engine.prompts.edits.asked import Refused
from mercury_engine.prompts.edits.excerpt import around, nearby
from mercury_engine.prompts.edits.history import unified
from mercury_engine.prompts.edits.markers import offsets, rewritten
from tests.engine.prompts.examples import count, window

TEXT = "a = 1\nb = $0\nc = 3\n"
NEW = "a = 1\nb = 2\nc = 3\n"


def read(name, answer, text=TEXT, *, finished=True):
    return edit_format(name).ask(window(text), budget=2000, count=count).read(answer, finished)


@pytest.mark.parametrize(
    ("answer", "finished"),
    [
        (f"<|editable_region_start|>\n{NEW}", True),
        (f"<|editable_region_start|>\n{NEW}\n<|editable_region_end|>\n```", True),
        (f"<|editable_region_start|>\n{NEW}\n<|editable_region_end|>\n```", False),
        (f"```src/cart.py\n<|start_of_file|>\n<|editable_region_start|>\n{NEW}\n<|editable_region_end|>", True),
        (f"{NEW}\n<|editable_region_end|>", True),
        ("<|editable_region_start|>\na = 1\nb = 2<|user_cursor_is_here|>\nc = 3\n\n<|editable_region_end|>", True),
    ],
)
def test_zeta_1_answers_within_marks(answer, finished):
    assert read("zeta", answer, finished=finished) == NEW


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("<|editable_region_start|>\n", "it is empty"),
        (f"{'<|editable_region_start|>' * 2}x", "it has several regions"),
    ],
)
def test_zeta_1_answers_of_no_use(answer, reason):
    assert read("zeta", answer) == Refused(reason)


@pytest.mark.parametrize(
    ("answer", "finished"),
    [
        (NEW, True),
        (f"{NEW}\n", True),
        (f"{NEW}\n>>>>>>> UPDATED\n", True),
        (f"{NEW}\n>>>>>>> UPDATED\nand more", False),
        ("a = 1\nb = 2<|user_cursor|>\nc = 3\n\n", True),
        (f"{NEW}\n<[end▁of▁sentence]>", True),
    ],
)
def test_zeta_2_answers_with_the_whole_region(answer, finished):
    assert read("zeta-2", answer, finished=finished) == NEW


def test_zeta_2_without_an_edit():
    assert read("zeta-2", "NO_EDITS\n>>>>>>> UPDATED\n") is None


@pytest.mark.parametrize(
    ("edit", "hunk"),
    [
        (("", "x\n", "}\n\n", "\n\n\n"), "@@ -5,5 +5,6 @@\n }\n \n+x\n \n \n \n"),
        (("a\n", "b\n"), "@@ -7,1 +7,1 @@\n-a\n+b\n"),
        (("", "b\n"), "@@ -7,0 +7,1 @@\n+b\n"),
        (("a\n", ""), "@@ -7,1 +7,0 @@\n-a\n"),
        (("a", "a\nb", "1\n2\n3\n"), "@@ -5,3 +5,4 @@\n 2\n 3\n a\n+b\n"),
        (("a\n\x0bb\n", "a\n\x0bc\n"), "@@ -7,2 +7,2 @@\n a\n-\x0bb\n+\x0bc\n"),
    ],
)
def test_hunk_has_three_lines_of_context_and_both_numbers(edit, hunk):
    assert unified(Edit("a.py", 6, *edit)) == hunk


UNNAMED = Refused("it does not name the blocks that it changes")
DISORDERED = Refused("its marks are out of order")
BLOCKS = "a1\na2\na3\na4\na5\n\nb1\nb2\nb3\nb4\nb5\nb6\n"


def test_markers_stand_where_blocks_begin():
    assert offsets(BLOCKS) == [0, BLOCKS.index("b1"), len(BLOCKS)]
    assert offsets("") == [0, 0]
    assert offsets("a\nb") == [0, 3]
    short = "a1\na2\n\nb1\nb2\nb3\nb4\nb5\nb6\n"
    assert offsets(short) == [0, len(short)]


def test_block_has_at_most_sixteen_lines_and_starts_with_no_closing_line():
    lines = [*(f"x{i}" for i in range(16)), "}", "", "return;", "y", *(f"z{i}" for i in range(3))]
    text = "\n".join(lines) + "\n"
    assert offsets(text) == [0, text.index("y\n"), len(text)]
    closers = "\n".join([*(f"x{i}" for i in range(16)), *["}"] * 8]) + "\n"
    assert offsets(closers)[1] == closers.index("}")


@pytest.mark.parametrize(
    ("answer", "new"),
    [
        ("<|marker_1|>A\n\n<|marker_2|>", BLOCKS.replace("a1\na2\na3\na4\na5\n", "A\n")),
        ("<|marker_2|>B\n<|marker_3|>", BLOCKS[: BLOCKS.index("b1")] + "B\n"),
        ("<|marker_1|>A\n<|marker_2|>B\n<|marker_3|>", "A\nB\n"),
        ("<|marker_1|>\nA\n<|marker_2|>\nB\n<|marker_3|>\n", "A\nB\n"),
        ("<|marker_1|>A<|marker_2|>", "A\n" + BLOCKS[BLOCKS.index("b1") :]),
        ("<|marker_2|><|marker_3|>", BLOCKS[: BLOCKS.index("b1")]),
        ("\n<|marker_2|>B\n<|marker_3|>\n", BLOCKS[: BLOCKS.index("b1")] + "B\n"),
        ("<|marker_2|><|marker_2|>", None),
        ("<|marker_2|>x<|marker_2|>", None),
        ("<|marker_2|>B\n", UNNAMED),
        ("<|marker_2|>B\n<|marker_4|>", UNNAMED),
        ("<|marker_0|>B\n<|marker_2|>", UNNAMED),
        ("<|marker_2|>B\n<|marker_1|>", DISORDERED),
        ("words <|marker_1|>B\n<|marker_2|>", DISORDERED),
        ("B\n", UNNAMED),
    ],
)
def test_zeta_2_1_names_the_blocks_that_it_rewrites(answer, new):
    assert rewritten(BLOCKS, offsets(BLOCKS), answer) == new


def test_blank_line_at_start_of_block_is_not_the_other_form():
    assert rewritten("\na\nb", [0, 4], "<|marker_1|>\na\nB\n<|marker_2|>") == "\na\nB"


@pytest.mark.parametrize("answer", ["NO_EDITS\n", "<|marker_1|><|marker_1|><[end▁of▁sentence]>"])
def test_zeta_2_1_without_an_edit(answer):
    assert read("zeta-2.1", answer) is None


def test_zeta_2_1_ends_with_its_token():
    answer = "<|marker_1|>a = 1\nb = 2<|user_cursor|>\nc = 3\n<|marker_2|><[end▁of▁sentence]>"
    assert read("zeta-2.1", answer, finished=False) == NEW


def test_zed_region_grows_by_one_token_per_three_bytes():
    text = "\n".join("abcdefghi" for _ in range(100))
    region = nearby(text, text.index("\n") * 50 + 50, 30, 6)
    rewrites = text[region.start : region.end].count("\n") + 1
    reads = text[region.first : region.last].count("\n") + 1
    assert (rewrites, reads) == (10, 12)
    assert nearby("", 0, 350, 150) == around("", 0, 10, 20)


def test_long_line_ends_region():
    text = f"{'x' * 3000}\na\nb\nc\n{'y' * 3000}"
    region = nearby(text, text.index("b"), 30, 30)
    assert text[region.first : region.last] == "a\nb\nc"
