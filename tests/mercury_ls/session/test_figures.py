"""Figures that compare: how long something was on the screen, and whether it is still there later."""

from mercury_ls.code.documents import Document
from mercury_ls.session.figures import RetentionWatch, comparable
from mercury_ls.session.stats import Stats, Tally, table
from tests.mercury_ls.clock import Clock

URI = "file:///a.py"


def counted(stats: Stats) -> dict[str, int]:
    (row,) = stats.rows() or [None]
    names = ("lingered", "kept_half_minute", "kept_five_minutes", "accepted")
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


def test_what_is_gone_within_750_ms_was_hardly_seen():
    check_lingering(0.7, 0)
    check_lingering(0.8, 1)


def check_kept(text: str, **expected: int) -> None:
    clock = Clock()
    stats = Stats(clock=clock)
    kept = RetentionWatch(stats, clock)
    kept.accepted(URI, "python", "return w * h")
    for _ in range(12):
        clock.now += 29
        kept.look({URI: Document(URI, "a.py", "python", 1, text)})
    assert counted(stats) == expected


def test_accepted_text_is_looked_for_after_half_a_minute_and_after_five():
    check_kept("def f():\n    return w * h\n", kept_half_minute=1, kept_five_minutes=1)
    check_kept("def f():\n    return  w*h\n", kept_half_minute=1, kept_five_minutes=1)
    check_kept("def f():\n    return w + h\n")


def test_figures_are_told_by_model_and_beside_those_of_others():
    stats = Stats(clock=Clock())
    stats.model = lambda: "qwen"
    for name, number in {"typed": 300, "opportunities": 100, "lingered": 20, "accepted": 5, "characters": 100}.items():
        stats.add("python", "inline", name, number)
    for language in ("python", "lua"):
        stats.add(language, "inline", "kept_half_minute", 2)
    mine, others = comparable(stats.rows())
    assert mine == (
        "qwen: 300 characters typed, 100 opportunities; 20 on the screen for 750 ms, 25% as many accepted; of these "
        "80% still there after 30 s, 0% after 5 min; 25% of the code, 1.00 characters an opportunity"
    )
    assert "Codeium 1.27" in others
    assert "lua" not in table(stats.rows())
    assert not [*comparable([])]
