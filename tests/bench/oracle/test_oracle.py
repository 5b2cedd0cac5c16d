"""A perfect model behind the real language server, on a few rows of each language: most of it reaches the screen."""

import pytest

from bench.oracle.asked import by_wisdom
from bench.oracle.command import shares
from bench.oracle.rows import SINGLE, rows, sources
from bench.oracle.server import Options
from bench.oracle.typist import tasks, typed_by

pytestmark = pytest.mark.slow

FILES = sources()
SEVERAL = ("statement", "empty body")
KEYS = 10


@pytest.fixture(scope="module")
def cut():
    """One row of each file and of some kinds."""
    return [row for file in FILES for kind in (*sorted(SINGLE), *SEVERAL) for row in rows([file], kinds=[kind])[:1]]


async def test_what_is_shown_is_right_and_most_lines_are_shown(cut):
    quiet, running_on = await by_wisdom(cut, [file.text for file in FILES], ["absent"])
    for outcome in (quiet, running_on):
        lines = [judged for judged in outcome.rows if judged.row.kind in SINGLE]
        blocks = [judged for judged in outcome.rows if judged.row.kind not in SINGLE]
        for judged in outcome.rows:
            assert "wrong" not in (judged.typing, judged.request), judged
            assert "over" not in (judged.typing, judged.request), judged
        for verdicts in ([judged.typing for judged in lines], [judged.request for judged in lines]):
            assert shares(verdicts)["whole"] >= 0.95
        for verdicts in ([judged.typing for judged in blocks], [judged.request for judged in blocks]):
            assert shares(verdicts)["begun"] >= 0.95
            assert shares(verdicts)["whole"] >= 0.8


@pytest.mark.parametrize("editor", ["VS Code", "Neovim"])
async def test_somebody_who_types_saves_keys(editor):
    typed = await typed_by(editor, Options(tokens_per_second=1000.0), tasks(KEYS), editor)
    assert typed.wrong == 0
    assert typed.counts.requests > 0
    assert typed.saved >= typed.ideal * 0.8
