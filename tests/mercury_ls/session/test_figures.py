"""Figures that compare: how long something was on the screen, and whether it is still there later."""

import pytest

from mercury_ls.code.documents import Document
from mercury_ls.code.edits import TextEdit
from mercury_ls.completion.offers import Offer
from mercury_ls.session.figures import RetentionWatch, comparable
from mercury_ls.session.stats import Stats, Tally, table
from tests.mercury_ls.clock import Clock

URI = "file:///a.py"


def counted(stats: Stats) -> dict[str, int]:
    (row,) = stats.rows() or [None]
    checked = ("checked_half_minute", "checked_five_minutes")
    names = ("lingered", "kept_half_minute", "kept_five_minutes", *checked, "accepted")
    return {name: value for name in names if (value := getattr(row, name, 0))}


def check_lingering(seconds: float, lingered: int) -> None:
    clock = Clock()
    stats = Stats(clock=clock)
    tally = Tally(stats)
    tally.offered("a", "python", "inline")
    tally.shown("a")
    clock.now += seconds
    tally.passed_over("a")
    tally.rejected("a")
    assert counted(stats).get("lingered", 0) == lingered


def test_suggestion_gone_within_750_ms_was_hardly_seen():
    check_lingering(0.7, 0)
    check_lingering(0.8, 1)


@pytest.mark.parametrize("seconds", [0.2, 2])
def test_accepted_suggestion_was_seen_however_quickly(seconds):
    clock = Clock()
    stats = Stats(clock=clock)
    tally = Tally(stats)
    for id in ("a", "b"):
        tally.offered(id, "python", "inline")
        tally.shown(id)
        clock.now += seconds
        if id == "b":
            tally.typed_through(id)
        tally.accepted(id, 5)
    assert counted(stats) == {"lingered": 2, "accepted": 2}


def check_kept(text: str, **expected: int) -> None:
    clock = Clock()
    stats = Stats(clock=clock)
    kept = RetentionWatch(stats, clock)
    kept.accepted(URI, "python", "return w * h")
    for _ in range(12):
        clock.now += 29
        kept.look({URI: Document(URI, "a.py", "python", 1, text)})
    assert counted(stats) == {"checked_half_minute": 1, "checked_five_minutes": 1, **expected}


def test_accepted_text_is_looked_for_after_half_a_minute_and_after_five():
    check_kept("def f():\n    return w * h\n", kept_half_minute=1, kept_five_minutes=1)
    check_kept("def f():\n    return  w*h\n", kept_half_minute=1, kept_five_minutes=1)
    check_kept("def f():\n    return w + h\n")


def test_file_closed_meanwhile_says_nothing():
    clock = Clock()
    stats = Stats(clock=clock)
    kept = RetentionWatch(stats, clock)
    kept.accepted(URI, "python", "return w * h")
    clock.now += 31
    kept.look({URI: Document(URI, "a.py", "python", 1, "return w * h\n")})
    clock.now += 300
    kept.look({})
    assert counted(stats) == {"checked_half_minute": 1, "kept_half_minute": 1}


@pytest.mark.parametrize(
    ("text", "kept"), [("def g(height):\n    return height\n", 1), ("def g(height):\n    pass\n", 0)]
)
def test_next_edit_is_looked_for_by_the_lines_that_it_leaves(text, kept):
    clock = Clock()
    stats = Stats(clock=clock)
    watch = RetentionWatch(stats, clock)
    base = Document(URI, "a.py", "python", 1, "def g(height):\n    return width\n").snapshot()
    at = base.text.index("width")
    watch.made(Offer((TextEdit(at, at + 5, "height", URI),), 0.9, {URI: base}))
    clock.now += 31
    watch.look({URI: Document(URI, "a.py", "python", 1, text)})
    (row,) = stats.rows()
    assert (row.kind, row.checked_half_minute, row.kept_half_minute) == ("nextEdit", 1, kept)


def test_figures_are_told_by_model_and_beside_those_of_others():
    stats = Stats(clock=Clock())
    stats.model = lambda: "qwen"
    for name, number in {"typed": 300, "opportunities": 100, "lingered": 20, "accepted": 5, "characters": 100}.items():
        stats.add("python", "inline", name, number)
    for language in ("python", "lua"):
        stats.add(language, "inline", "kept_half_minute", 2)
        stats.add(language, "inline", "checked_half_minute", 2)
    stats.add("lua", "inline", "checked_half_minute")
    stats.add("python", "inline", "checked_five_minutes", 3)
    for name, number in {"lingered": 4, "accepted": 3, "checked_half_minute": 2, "kept_half_minute": 1}.items():
        stats.add("python", "nextEdit", name, number)
    mine, edits, others = comparable(stats.rows())
    assert mine == (
        "qwen: 300 characters typed, 100 opportunities; 20 on the screen for 750 ms or accepted before, 25% of them "
        "accepted; of these 80% still there after 30 s, 0% after 5 min; 25% of the code, 1.00 characters an opportunity"
    )
    assert edits == (
        "qwen, next edits: 4 on the screen for 750 ms or accepted before, 75% of them accepted; of these 50% still "
        "there after 30 s, - after 5 min"
    )
    assert "Codeium: 1.27 characters for each opportunity" in others
    assert "lua" not in table(stats.rows())
    assert not [*comparable([])]
