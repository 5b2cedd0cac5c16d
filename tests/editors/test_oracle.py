"""Screens in which something flickers, or does not belong there, are told from those in which text only comes."""

import pytest

from tests.editors.oracle import BEGUN, WHOLE, contradicts

LINE = f"{BEGUN}    def total(self):"
LINES = f"{LINE}\n        amount = 0"


@pytest.mark.parametrize(
    ("screens", "wrong"),
    [
        ([BEGUN.rstrip(), LINE, LINES, WHOLE.rstrip()], ""),
        ([LINES, LINES], ""),
        ([LINES, LINE, LINES], "gone after it had been shown"),
        ([LINE, f"{LINE}\n        amount = 1"], "stale or wrong"),
        ([LINES, f"{BEGUN}    def cheapest"], "stale or wrong"),
    ],
)
def test_wrong_answer_is_named(screens, wrong):
    assert contradicts(screens).partition(":")[0] == wrong
