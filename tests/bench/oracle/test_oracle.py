"""A model that knows the answer, on a few rows of each language: what reaches the screen must not become less.

In virtual time, so that nothing depends on the machine; once with the real processes.
"""

import pytest

from bench.oracle.adaptation import adapted, comes_back
from bench.oracle.asked import AT_ONCE, Judged, by_options
from bench.oracle.command import parts, separated, shares, some
from bench.oracle.rows import SINGLE, rows, sources
from bench.oracle.server import Options
from bench.oracle.truth import Wisdom
from bench.oracle.typist import tasks, typed_by
from bench.oracle.virtual import at_once, virtual

FILES = sources()
TEXTS = [file.text for file in FILES]
SEVERAL = ("statement", "empty body")
ROWS = [row for file in FILES for kind in (*sorted(SINGLE), *SEVERAL) for row in rows([file], kinds=[kind])[:1]]
LINES = [row for row in rows(FILES) if row.kind in SINGLE and len(row.middle) > 8]
KEYS = 40


def check_rows(judged: tuple[Judged, ...], way: str, *, lines: float, begun: float, whole: float) -> None:
    """The least shares of lines and of several lines that arrive; nothing wrong ever does."""
    verdicts = {name: [getattr(row, way) for row in held] for name, held in parts(judged).items()}
    for held in verdicts.values():
        assert not {"wrong", "over"} & {*held}
    assert shares(verdicts["single"])["whole"] >= lines
    assert shares(verdicts["several"])["begun"] >= begun
    assert shares(verdicts["several"])["whole"] >= whole


def answered(options: Options, chosen=ROWS) -> tuple[Judged, ...]:
    (outcome,) = at_once(by_options(chosen, TEXTS, {"": options}, virtual))
    return outcome.rows


@pytest.mark.parametrize(
    ("options", "lines", "begun", "whole"),
    [
        (Options(), 1.0, 1.0, 0.9),
        (Options(runs_on=True), 1.0, 1.0, 0.9),
        (Options(wisdom="constant"), 1.0, 1.0, 0.9),
        # of probabilities that tell little, long answers are shown line by line
        (Options(wisdom="sure"), 0.8, 0.7, 0.15),
        (Options(wisdom="overlapping"), 0.6, 0.6, 0.05),
    ],
    ids=["absent", "runs on", "constant", "sure", "overlapping"],
)
def test_nearly_all_of_a_perfect_model_is_shown(options, lines, begun, whole):
    options.tokens_per_second = AT_ONCE
    judged = answered(options)
    check_rows(judged, "typing", lines=lines, begun=begun, whole=whole)
    check_rows(judged, "request", lines=1.0, begun=1.0, whole=0.9)


def test_perfect_answer_is_given_on_request_however_late():
    for first_ms in (700, 2000):
        check_rows(answered(Options(first_ms=first_ms), ROWS[::2]), "request", lines=1.0, begun=1.0, whole=0.9)


def test_right_answers_are_told_from_wrong_ones_from_the_first_hour():
    told = separated(answered(Options(tokens_per_second=AT_ONCE, wisdom="sure", right=0.5), some(rows(FILES), 60)))
    assert told["right_of_shown"] >= 0.7
    assert told["shown_of_right"] >= 0.85


@pytest.mark.parametrize("editor", ["VS Code", "Neovim"])
def test_somebody_who_types_saves_what_a_model_of_400_ms_can_save(editor):
    typed = at_once(typed_by(editor, Options(first_ms=400), tasks(KEYS), editor, virtual))
    assert typed.wrong == 0
    assert typed.share_of_whole >= 0.85
    assert 6 * typed.counts.requests <= typed.ideal


@pytest.mark.parametrize("wisdom", ["absent", "overlapping"])
def test_user_who_keeps_little_sees_little(wisdom: Wisdom):
    assert at_once(adapted(some(LINES, 60), TEXTS, wisdom, 0.05, 60, 20, virtual)).shown <= 4


def test_user_can_bring_back_what_seldom_is_kept():
    assert at_once(comes_back(some(LINES, 23), TEXTS, "absent", virtual)) >= 8


@pytest.mark.slow
async def test_real_processes_agree_with_virtual_time():
    (outcome,) = await by_options(ROWS[::5], TEXTS, {"": Options(tokens_per_second=AT_ONCE)})
    check_rows(outcome.rows, "typing", lines=1.0, begun=1.0, whole=0.8)
    typed = await typed_by("Neovim", Options(tokens_per_second=AT_ONCE), tasks(10), "Neovim")
    assert typed.wrong == 0
    assert typed.saved >= typed.ideal * 0.8
