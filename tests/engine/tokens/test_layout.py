"""The token contract: golden rows, what typing and moving re-encode, budgets, holes, and who sees whom."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mercury_engine.api import Edit, Gap, Snippet
from mercury_engine.tokens import vocabulary
from mercury_engine.tokens.layout import (
    Budget,
    LayoutRow,
    budget_for,
    filled_text,
    freeze,
    is_stale,
    lay_out,
    pieces,
    until_end,
)
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import (
    CUR,
    EDITS,
    HOLES,
    LINE,
    NEAR,
    OLD_END,
    PART,
    PATH,
    PRE,
    SNIP,
    SPECIALS,
    SUF,
)
from mercury_training.rows.holes import AnchoredRow, answer_ids
from mercury_training.rows.streams import without_modes
from tests.engine.tiny import gap

GOLDEN = Path(__file__).parents[1] / "golden"
TOKENIZER = Tokenizer.load(GOLDEN / "tokenizer.json")
BUDGET = Budget()

SHAPES = """\
class Shape:
    def __init__(self, width: float) -> None:
        self.width = width

    def area(self) -> float:
        $0

    def scaled(self, factor: float) -> "Shape":
        return Shape(self.width * factor)
"""


def row_of(now, before=None, budget=BUDGET):
    """The row of a request, under what was frozen at an earlier one."""
    return lay_out(TOKENIZER, now, freeze(TOKENIZER, before or now, budget), budget)


def common_prefix(first, second):
    length = min(len(first.ids), len(second.ids))
    differs = np.flatnonzero(first.ids[:length] != second.ids[:length])
    return int(differs[0]) if differs.size else length


def shown(row):
    """The row as readable text, one line per marker."""
    breaks = {SUF, PRE, NEAR, CUR, SNIP, PATH, EDITS}
    words = [("\n" if token in breaks else " ") + TOKENIZER.symbol(token) for token in row.ids.tolist()]
    anchor = len(row.ids) - 1
    return "".join([*words, f"\n▸ row {anchor} position {anchor} part {row.part!r}"]).strip()


def check_golden(name, rows):
    """Compare with golden/NAME.txt; `REWRITE_GOLDEN=1` writes it, for a deliberate new layout version."""
    text = "".join(f"# {title}\n{shown(row)}\n\n" for title, row in rows.items())
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("REWRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def test_golden_rows_around_a_cursor():
    empty, first = gap(SHAPES), gap(SHAPES.replace("$0", "return 0$0"))
    typed = ["return ", "return self", "return self."]
    rows = {f"after {text!r}": row_of(gap(SHAPES.replace("$0", text + "$0")), empty) for text in typed}
    check_golden("typing", {"after the indentation": row_of(empty), **rows})
    second = gap(SHAPES.replace("$0", "return 0\n        $0"))
    check_golden("moving", {"before": row_of(first), "after": row_of(second, first)})
    check_golden(
        "mid-word",
        {
            "inside a word": row_of(gap("total = sha$0 + 1\n")),
            "a word of two-byte letters": row_of(gap("größ$0\n")),
            "at the beginning of a line": row_of(gap("x = 1\n$0")),
            "after blanks": row_of(gap("def f():\n    $0")),
            "a block": row_of(gap("def main() -> None:$0\n", block=True)),
        },
    )


def test_golden_edits_and_snippets():
    edits = (
        Edit("base.py", 3, "def size(self):\n", "def area(self):\n"),
        Edit("shapes.py", 9, "", "import math\n"),
        Edit("shapes.py", 12, "x.size()\n", "x.area()\n"),
    )
    snippets = (Snippet("base.py", "class Base:\n    name: str\n" * 4), Snippet("main.py", "print(total)\n"))
    now = gap("import math\n$0\nx.area()\n", edits=edits, snippets=snippets)
    bare = without_modes(AnchoredRow.of(row_of(now)))
    check_golden("edits", {"snippets and edits": row_of(now), "without a mode": LayoutRow(bare.ids)})


def test_specials_are_sixty_four_and_distinct():
    assert len(SPECIALS) == len(set(SPECIALS)) == 64
    named = {name: getattr(vocabulary, name.strip("</>").upper()) for name in SPECIALS[:15]}
    assert [SPECIALS[value] for value in named.values()] == list(named)
    assert [SPECIALS[hole] for hole in HOLES] == [f"<hole{i}>" for i in range(8)]


def test_languages_are_known_by_their_editor_names():
    def language(name):
        now = Gap(session="test", path="p", language=name, before="")
        return SPECIALS[row_of(now).ids[1]]

    names = ("python", "typescriptreact", "shellscript", "brainfuck")
    assert [language(name) for name in names] == ["<lang:python>", "<lang:tsx>", "<lang:bash>", "<lang:text>"]


code = st.lists(
    st.sampled_from(["foo", "self", ".", "(", ")", " ", "  ", "1", "é", "日", "'s", "\t", "="]), max_size=12
)
lines = st.lists(code.map("".join), max_size=8).map("\n".join)


@settings(max_examples=150)
@given(lines, code, code, lines)
@example("", [], ["  ", "  ", "  ", " "], "")
def test_typing_changes_only_what_follows_the_stable_head(before, head, typed, after):
    head = "".join(head)
    marked = f"{before}\n{head}$0\n{after}\n"
    first = gap(marked)
    frozen = freeze(TOKENIZER, first, BUDGET)
    previous = lay_out(TOKENIZER, first, frozen, BUDGET)
    for end in range(1, len(typed) + 1):
        now = gap(marked.replace("$0", "".join(typed[:end]) + "$0"))
        assert not is_stale(frozen, now)
        row = lay_out(TOKENIZER, now, frozen, BUDGET)
        stable, _ = TOKENIZER.split_part((head + "".join(typed[: end - 1])).rstrip(" \t"))
        unchanged = int(np.flatnonzero(previous.ids == CUR)[-1]) + 1 + len(stable)
        # A run of blanks that grows is spelled in other tokens; a long word gives up its beginning.
        assert common_prefix(previous, row) >= unchanged - 1
        previous = row


def test_letter_typed_in_word_appends_one_byte():
    first = gap("total = s$0\n")
    for typed in ("sh", "sha", "shap", "shape"):
        row, longer = row_of(first), row_of(gap(f"total = {typed}$0\n"), first)
        assert longer.ids.tolist() == [*row.ids.tolist(), TOKENIZER.byte_ids[ord(typed[-1])]]
        first = gap(f"total = {typed}$0\n")


@given(lines, code, lines)
def test_line_move_keeps_everything_before_near(before, line, after):
    first = gap(f"{before}\n{''.join(line)}$0\n{after}\n")
    second = gap(f"{before}\n{''.join(line)}\n$0\n{after}\n")
    one, two = row_of(first), row_of(second, first)
    near = int(np.flatnonzero(one.ids == NEAR)[-1])
    assert common_prefix(one, two) == near
    finished = TOKENIZER.encode("".join(line) + "\n")
    assert len(two.ids) - near <= len(finished) + BUDGET.near + BUDGET.rest + 5


@settings(max_examples=150)
@given(lines, code, code, lines)
def test_row_that_fits_spells_text(before, head, rest, after):
    text = f"{before}\n{''.join(head)}$0{''.join(rest)}\n{after}"
    row = row_of(gap(text))
    sections = dict.fromkeys((SUF, PRE, NEAR, LINE, CUR), b"")
    section = None
    for token in row.ids.tolist():
        section = token if token in (*sections, PART) else section
        if section in sections:
            sections[section] += TOKENIZER.token_bytes[token]
    cursor = text.index("$0")
    spelled = sections[PRE] + sections[CUR] + row.part.encode()
    assert spelled.decode() == text[:cursor]
    assert (sections[NEAR] + sections[SUF]).decode() == text[cursor + 2 :]


def long_gap():
    before = "".join(f"x{i} = {i}\n" for i in range(600))
    return gap(f"{before}y = $0\n" + "z = 1\n" * 400)


def test_head_of_lines_before_is_dropped_in_quanta():
    frozen = freeze(TOKENIZER, long_gap(), BUDGET)
    starts = {}
    for count in range(0, 400, 20):
        now = gap(long_gap().before.replace("y = ", "w = 1\n" * count + "y = $0") + long_gap().after)
        row = lay_out(TOKENIZER, now, frozen, BUDGET)
        assert len(row.ids) + BUDGET.answer <= BUDGET.context
        pre, near = (int(np.flatnonzero(row.ids == token)[-1]) for token in (PRE, NEAR))
        everything = TOKENIZER.encode(now.before.removesuffix("y = "))
        dropped = len(everything) - (near - pre - 1)
        assert dropped % BUDGET.quantum == 0
        starts.setdefault(dropped, count)
    assert list(starts) == list(range(min(starts), max(starts) + 1, BUDGET.quantum))
    assert len(starts) > 5


@pytest.mark.parametrize("context", [256, 512, 1024, 2048, 4096])
def test_budgets_leave_room_for_the_answer(context):
    budget = budget_for(context)
    words = "".join(f"word{i} " for i in range(2000))
    full = replace(
        long_gap(),
        snippets=(Snippet("s.py", words),),
        edits=tuple(Edit("t.py", i, words, words) for i in range(9)),
    )
    row = row_of(full, budget=budget)
    assert len(row.ids) + budget.answer <= context
    assert np.isin([SNIP, OLD_END], row.ids).all()


def test_default_budget_is_that_of_default_context():
    assert budget_for(2048) == Budget()


def test_snippets_go_by_rank_and_edits_by_age():
    budget = Budget(snippets=40, edits=20)
    snippets = tuple(Snippet(f"{name}.py", "x = 1\n" * 4) for name in "abc")
    edits = tuple(Edit("shapes.py", 1, f"{name} = 1", f"{name} = 2") for name in "abcd")
    text = shown(row_of(gap("$0", snippets=snippets, edits=edits), budget=budget))
    assert "<snip> a .p y" in text
    assert "<snip> c" not in text
    assert "</old> d Ġ= Ġ 2" in text
    assert "</old> a" not in text


def test_far_suffix_takes_no_room_that_lines_before_leave():
    frozen = freeze(TOKENIZER, gap("$0" + "z = 1\n" * 1000), BUDGET)
    assert len(frozen.suffix) == BUDGET.suffix


def test_jump_makes_snapshot_stale_and_typing_does_not():
    text = "a = 1\n" * 40
    frozen = freeze(TOKENIZER, gap("$0" + text), BUDGET)
    assert not is_stale(frozen, gap("b = 2\n" * 30 + "$0" + text))
    assert not is_stale(frozen, gap("a = 1\n" * 8 + "$0" + "a = 1\n" * 32))
    assert is_stale(frozen, gap("a = 1\n" * 9 + "$0" + "a = 1\n" * 31))
    assert is_stale(frozen, gap("$0" + text, path="other.py"))


def test_suffix_is_stale_where_it_no_longer_follows_the_cursor():
    lines = [f"a{number} = {number}\n" for number in range(60)]
    text = "".join(lines)
    frozen = freeze(TOKENIZER, gap("$0" + text), BUDGET)
    assert is_stale(frozen, gap(text + "$0" + text.replace("a", "b")))
    assert not is_stale(frozen, gap("".join(lines[:2]) + "$0" + "".join(lines[2:])))


def test_answer_spells_begun_word_again():
    row = row_of(gap("total = sha$0\n"))
    ids = answer_ids(TOKENIZER, row.part, "pe.area()")
    assert TOKENIZER.decode(ids) == " shape.area()"
    assert filled_text(TOKENIZER, row.part, until_end(ids)[0]) == "pe.area()"


def test_tokens_are_counted_by_piece():
    asked = gap(SHAPES)
    row = lay_out(TOKENIZER, asked, freeze(TOKENIZER, asked, BUDGET), BUDGET)
    counts = pieces(row.ids, 0, len(row.ids))
    assert list(counts) == ["preamble", "far suffix", "lines before", "near suffix", "head"]
    assert counts.total() == len(row.ids)
    anchor = row.ids.tolist().index(NEAR)
    assert pieces(row.ids, anchor, anchor + 3) == {"near suffix": 3}
    assert not pieces(row.ids, 5, 5)
