"""Our prompts, character by character, beside those that are put together from the authors' own descriptions."""

from random import Random

import pytest

from mercury_engine.api import Diagnostic, Edit, Gap, Region, Regions, Snippet
from mercury_engine.prompts.dialects import dialect_named
from mercury_engine.prompts.edits import FORMATS
from mercury_engine.prompts.edits.inception import INCEPTION_EDIT
from mercury_engine.prompts.fim import fim_prompt, whole_head
from tests.engine.prompts.examples import count
from tests.engine.prompts.published import ALONE, FILLED, REWRITTEN, Case, Change, Complaint

CASES = 1_000
WORDS = (
    "a = 1",
    "def f(x):",
    "return",
    "}",
    "end;",
    "\tb()",
    "    pass",
    "",
    "",
    "",
    "x  ",
    "ß = '字'",
    "\x0b",
    ")",
    "[",
)
SEVERITIES = ("error", "warning", "info", "hint")


def drawn_lines(draw: Random, most: int) -> list[str]:
    return [
        draw.choice(WORDS) + draw.choice(("", "", f"  # {draw.randrange(99)}")) for _ in range(draw.randrange(most))
    ]


def drawn_change(draw: Random, path: str, number: int, most: int = 12) -> Change:
    """Up to four lines become up to four others that stand nowhere else, so that there is one diff of them only."""
    above, below = drawn_lines(draw, most), drawn_lines(draw, most)
    before, after = ([f"{side}{number}_{n}" for n in range(draw.randrange(4))] for side in "uv")
    before, after = (before, after) if before or after else ([], [f"w{number}"])
    if before and draw.random() < 0.3:
        after = [*after, before[-1], f"x{number}"]
    texts = ("".join(f"{line}\n" for line in (*above, *middle, *below)) for middle in (before, after))
    return Change(path, *texts, accepted=draw.random() < 0.2)


def drawn_case(draw: Random) -> Case:
    path = draw.choice(("src/cart.py", "a.ts"))
    changes = [drawn_change(draw, draw.choice((path, "lib/other.go")), n, 5) for n in range(draw.randrange(5))]
    if draw.random() < 0.6:
        changes.append(drawn_change(draw, path, 9, 30))
        whole = changes[-1].new
    else:
        whole = "\n".join(drawn_lines(draw, 60)) + draw.choice(("", "\n", "\n\n"))
    first = draw.choice((0, 0, min(3, whole.count("\n"))))
    text = "\n".join(whole.split("\n")[first:])
    while changes and changes[-1].path == path and changes[-1].new != whole:
        changes.pop()
    texts = [
        "\n".join(["import x", *drawn_lines(draw, 30)]) + draw.choice(("", "\n")) for _ in range(draw.randrange(3))
    ]
    files = [(f"m{n}.py", text) for n, text in enumerate(texts)]
    said = sorted({(draw.randrange(70), draw.randrange(9)) for _ in range(draw.randrange(4))})
    complaints = [Complaint(*place, draw.choice(SEVERITIES), f"unknown name: {draw.choice(WORDS)}") for place in said]
    return Case(path, text, draw.randint(0, len(text)), first, changes, files, complaints)


def edit_of(change: Change) -> Edit:
    """As the language server records it: whole lines, without those at the ends that stay."""
    old, new = (text.split("\n")[:-1] for text in (change.old, change.new))
    shared = min(len(old), len(new))
    top = next((n for n in range(shared) if old[n] != new[n]), shared)
    tail = next((n for n in range(shared - top) if old[-n - 1] != new[-n - 1]), shared - top)
    parts = (
        old[max(top - 3, 0) : top],
        old[len(old) - tail :][:3],
        old[top : len(old) - tail],
        new[top : len(new) - tail],
    )
    above, below, before, after = ("".join(f"{line}\n" for line in lines) for lines in parts)
    return Edit(change.path, top, before, after, above, below, change.accepted)


def regions_of(case: Case) -> Regions:
    return Regions(
        session="s",
        regions=(Region(case.path, "python", case.text, first_line=case.first),),
        snippets=tuple(Snippet(*file) for file in case.files),
        edits=tuple(map(edit_of, case.changes)),
        diagnostics=tuple(Diagnostic(case.path, c.row, c.column, c.message, c.severity) for c in case.complaints),
        cursor=case.cursor,
    )


@pytest.mark.parametrize("form", [*FORMATS, INCEPTION_EDIT], ids=lambda form: form.name)
def test_next_edit_prompt_is_the_published_one(form):
    for number in range(CASES):
        case = drawn_case(Random(number))
        asked = form.ask(regions_of(case), budget=100_000, count=count)
        assert asked.prompt.text == REWRITTEN[form.name](case), f"case {number}"


def gap_prompt(name: str, prefix: str, suffix: str, path: str, files: list[tuple[str, str]]) -> str:
    snippets = tuple(Snippet(*file) for file in reversed(files))
    gap = Gap(session="s", path=path, language="python", before=prefix, after=suffix, block=True, snippets=snippets)
    return fim_prompt(dialect_named(name), gap, budget=100_000, count=count, split=whole_head).text


@pytest.mark.parametrize("name", FILLED)
def test_prompt_with_gap_is_the_published_one(name):
    for number in range(CASES):
        draw = Random(number)
        prefix, suffix = ("\n".join(drawn_lines(draw, 12)) for _ in range(2))
        files = [(f"m{n}.py", "\n".join(drawn_lines(draw, 30))) for n in range(draw.randrange(3))]
        prompt = gap_prompt(name, prefix, suffix, "src/cart.py", files)
        assert prompt == FILLED[name](prefix, suffix, "src/cart.py", files), f"case {number}"


@pytest.mark.parametrize("name", ALONE)
def test_prompt_with_gap_in_lone_text_is_the_published_one(name):
    for number in range(CASES):
        draw = Random(number)
        prefix, suffix = ("\n".join(drawn_lines(draw, 12)) for _ in range(2))
        assert gap_prompt(name, prefix, suffix, "", []) == ALONE[name].format(prefix=prefix, suffix=suffix)
