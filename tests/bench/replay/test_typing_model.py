import random

import pytest

from bench.replay.session import Changed, Cursor, Header, Opened, ended
from bench.replay.typing_model import Pauses, Stroke, draw, fit, kind_of, load

OPENED = Opened(t=0, d=0, text="\n\n", path="a.py", lang="python")


def key(text: str, at: int = 5, before: str = "a", removed: int = 0) -> Stroke:
    return Stroke(at, removed, text, before, at + len(text))


@pytest.mark.parametrize(
    ("stroke", "last", "kind"),
    [
        (key("b"), key("a", at=4), "in_word"),
        (key("(", before="a"), key("a", at=4), "boundary"),
        (key("b", before="("), key("(", at=4), "boundary"),
        (key("\n    "), key("a", at=4), "newline"),
        (key("b", before=" "), key("\n    ", at=0), "line_start"),
        (key("b", at=90), key("a", at=4), "after_jump"),
        (key("b"), None, "after_jump"),
        (key("", at=4, removed=1), key("a", at=4), "delete_first"),
        (key("", at=3, removed=1), key("", at=4, removed=1), "backspace"),
        (key("bcd"), key("a", at=4), "multi_char"),
        (Stroke(5, 0, "bcd", "a", 8, "accept"), key("a", at=4), "accept"),
    ],
)
def test_keystroke_kinds_are_told_apart(stroke, last, kind):
    assert kind_of(stroke, last) == kind


def typed(*keys: tuple[int, int, str]) -> list:
    return [Changed(t=t, d=0, ver=n + 2, c=[[0, at, 0, at, text]]) for n, (t, at, text) in enumerate(keys)]


def test_pauses_are_those_before_each_kind_of_key():
    session = ended(Header(v=1), [OPENED, *typed((100, 0, "a"), (190, 1, "b"), (400, 2, "("), (470, 3, "c"))])
    fitted = fit([session])
    assert {kind: (found.n, found.ms[4]) for kind, found in fitted.items()} == {
        "boundary": (2, 210),
        "in_word": (1, 90),
    }


def test_bracket_that_editor_closes_leaves_cursor_inside():
    first, second = typed((100, 0, "()"), (200, 1, "x"))
    session = ended(Header(v=1), [OPENED, first, Cursor(t=101, d=0, sel=[(0, 1, 0, 1)]), second])
    assert list(fit([session])) == ["boundary"]


def test_lines_that_a_tool_writes_are_no_typing():
    session = ended(Header(v=1), [OPENED, *typed((0, 0, "a"), (16, 1, "\nfor x in y:"), (32, 1, "b"))])
    assert fit([session]) == {}


def test_drawn_pauses_have_the_quantiles_that_were_fitted():
    model, chance = {"in_word": Pauses(9, (1, 50, 99), (10, 90, 500))}, random.Random(1)
    drawn = sorted(draw(model, "in_word", chance) for _ in range(2001))
    assert drawn[1000] == pytest.approx(90, rel=0.1)
    assert 10 <= drawn[0] <= drawn[-1] <= 500


def test_fitted_model_knows_every_kind_that_typist_needs():
    model = load()
    assert {"in_word", "boundary", "newline", "after_jump", "backspace", "delete_first"} <= set(model)
    assert all(found.ms == tuple(sorted(found.ms)) for found in model.values())
