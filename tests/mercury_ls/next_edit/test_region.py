"""What of a next-edit model's rewriting of a window is offered."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mercury_engine.api import Draft, EngineError, EngineInfo, Filled, RescoringWeights
from mercury_engine.fake import FakeEngine
from mercury_ls.code.documents import Document
from mercury_ls.code.edits import applied
from mercury_ls.completion.context import Budget
from mercury_ls.completion.suggest import EVERYTHING, asked_modes
from mercury_ls.next_edit.pipeline import next_edits
from mercury_ls.next_edit.region import MOST_LINES, MOST_REMOVED, edits_of
from tests.mercury_ls.next_edit.test_pipeline import Engine, drawn_after, last_of, question_of

SHAPES = """\
def area(width, ⟦→height⟧$0):
    return width


def room():
    return area(3)
"""


class Rewrites:
    """Answers every window with what a function makes of it."""

    def __init__(self, *pieces: tuple[str, str], p: float = 0.5, complete: bool = True) -> None:
        self.pieces, self.p, self.complete = pieces, p, complete

    def infill(self, request):
        text = request.windows[0].text
        for before, after in self.pieces:
            assert before in text
            text = text.replace(before, after)
        yield Draft(1, (Filled(text, p_accept=self.p, complete=self.complete),), final=True)


async def check(drawn: str, *pieces: tuple[str, str], expected: str, p: float = 0.5, complete: bool = True, **known):
    """`expected` is the text with the offered edits in it, or "-" and the beginning of the reason for silence."""
    question = question_of(drawn, "python", modes=("region",), **known)
    answer = await last_of(question, Engine(Rewrites(*pieces, p=p, complete=complete)))
    if expected.startswith("- "):
        assert not answer.edits, drawn_after(question.snapshot, answer)
        assert answer.silence.startswith(expected[2:])
    else:
        assert drawn_after(question.snapshot, answer) == expected, answer.silence


async def test_what_the_model_rewrites_is_offered_together_as_the_words_that_differ():
    await check(
        SHAPES,
        ("return width", "return width * height"),
        ("area(3)", "area(3, 4)"),
        expected="def area(width, height):\n    return width« * height»\n\n\ndef room():\n    return area(3«, 4»)\n",
    )


async def test_the_bar_is_that_of_other_suggestions():
    piece = ("return width", "return width * height")
    await check(SHAPES, piece, p=0.24, expected="- unsure: edit is 24% likely, under the bar of 25%")
    await check(
        SHAPES, piece, p=0.26, expected=SHAPES.replace("⟦→height⟧$0", "height").replace("th\n", "th« * height»\n")
    )
    await check(SHAPES, piece, p=0.3, bar=0.4, expected="- unsure")


@pytest.mark.parametrize(
    "pieces",
    [
        [("width, height", "width, ")],
        [("return width", "return width *")],
        [("return width", "return width<|file_sep|>")],
        [("", "x = 1\n")],
    ],
    ids=["an undo", "a syntax error", "a sentinel", "nearly everything"],
)
async def test_nothing_comes_of(pieces):
    await check(SHAPES, *pieces, expected="- ")


async def test_a_text_that_was_cut_is_not_used():
    await check(SHAPES, ("return width\n\n\ndef room():\n    return area(3)\n", ""), complete=False, expected="- ")


async def test_nothing_is_asked_while_an_edit_is_being_typed():
    engine = Engine(Rewrites())
    answer = await last_of(question_of("x = 1⟦→ + f(a, ⟧$0\ny = 2\n", "python", modes=("region",)), engine)
    assert answer.silence == "the statement at the cursor is not complete"
    assert not engine.requests


async def test_the_window_around_the_cursor_is_asked_about_with_the_edits_as_they_were_made():
    engine = Engine(Rewrites())
    far = "x = 1\n" * 3000
    question = question_of(f"{far}def area(width, ⟦→height⟧$0):\n    return width\n{far}", "python", modes=("region",))
    await last_of(question, engine)
    (request,) = engine.requests
    (span,), (window,) = request.spans, request.windows
    assert (span.start, span.end, span.mode) == (0, len(window.text), "region")
    assert window.text[: request.cursor].endswith("def area(width, height")
    assert len(window.text) < 1.2 * Budget().characters
    assert request.edits[-1].after == "def area(width, height):\n"


RENAME = """\
def area(⟦w→width⟧$0, height):
    if w < 0:
        raise ValueError(w)
    return w * height
"""


async def test_what_is_certain_does_not_wait_for_a_model():
    engine = Engine(Rewrites())
    answer = await last_of(question_of(RENAME, "python", modes=("region",)), engine)
    assert answer.offer.label == "rename `w` → `width`"
    assert not engine.requests


async def test_a_model_renames_nothing_else():
    drawn = 'def ⟦fetch→load⟧$0(name):\n    return name\n\n\nclient = {"fetch": 1}\n'
    await check(drawn, ('"fetch"', '"load"'), expected="- ")


LOGGED = 'log.⟦info→debug⟧$0("a", x)\nif x:\n    log.info("b", y)\n'


async def test_where_model_and_rule_agree_it_is_likelier_than_either_says():
    drawn = "value = ⟦compute(1)→compute(1) or 0⟧$0\nother = compute(2)\nthird = run(compute(3))\n"
    alone = await last_of(question_of(drawn, "python"))
    engine = Engine(Rewrites(("compute(2)", "compute(2) or 0"), p=0.3))
    both = await last_of(question_of(drawn, "python", modes=("region",)), engine)
    assert both.edits == alone.edits
    assert both.offer.label == alone.offer.label
    assert both.offer.p_accept > max(alone.offer.p_accept, 0.3)


async def test_an_edit_of_the_model_that_does_a_rules_and_more_is_likelier_too():
    drawn = "print(⟦a→total(a)⟧$0)\nx = a\nshow(a, 3)\n"
    engine = Engine(Rewrites(("show(a, 3)", "show(total(a), 4)"), p=0.3))
    answer = await last_of(question_of(drawn, "python", modes=("region",)), engine)
    assert [edit.text for edit in answer.edits] == ["total(a), 4"]
    assert answer.offer.p_accept > 0.5


async def test_a_rule_that_leaves_the_text_to_a_model_leads_elsewhere():
    far = "x = 1\n" * 1500
    drawn = f"def area(width⟦→, height⟧$0):\n    return width * height\n\n\n{far}\n\ndef room():\n    return area(3)\n"
    engine = Engine(FakeEngine({"area(3)": "area(3, 4)"}))
    question = question_of(drawn, "python", modes=("region",))
    answer = await last_of(question, engine)
    assert [(edit.text, question.snapshot.text[edit.end :][:2]) for edit in answer.edits] == [(", 4", ")\n")]
    assert len(engine.requests) == 2


async def test_the_rules_answer_is_there_before_the_model_is_asked():
    class Fails:
        def infill(self, request):
            raise EngineError("gone")

    drawn = "value = ⟦compute(1)→compute(1) or 0⟧$0\nother = 5\nthird = compute(3)\n"
    answers = next_edits(question_of(drawn, "python", modes=("region",)), Engine(Fails()))
    assert (await anext(answers)).edits
    with pytest.raises(EngineError):
        await anext(answers)


FEW = st.lists(st.sampled_from(["a = 1", "b = 2", "", "    c", "}"]), min_size=1, max_size=9)


@given(FEW, FEW, st.sampled_from(["\n", "\r\n"]), st.data())
def test_the_edits_make_of_the_lines_what_the_model_wrote(old, new, end_of_line, data):
    text = end_of_line.join(old)
    snapshot = Document("file:///a.py", "/a.py", "python", 1, text).snapshot()
    cursor = data.draw(st.integers(0, len(text)))
    edits = edits_of(snapshot, (0, len(text)), "\n".join(new), cursor)
    assert visible(applied(text, edits)) == visible("\n".join(new))
    assert all(one.end <= other.start for one, other in pairwise(edits))


def visible(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("answer", "edits"),
    [
        ("b = 1\n" * MOST_LINES, 0),
        ("", 0),
        ("a = 1\n" * (MOST_LINES - MOST_REMOVED - 1), 0),
        ("a = 1\n" * (MOST_LINES - MOST_REMOVED), 1),
        ("a = 1\n" * (MOST_LINES * 2), 1),
    ],
)
def test_a_model_that_rewrites_or_removes_nearly_everything_has_lost_its_way(answer, edits):
    snapshot = Document("file:///a.py", "/a.py", "python", 1, "a = 1\n" * MOST_LINES).snapshot()
    assert len(edits_of(snapshot, (0, len(snapshot.text)), answer, 0)) == edits


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, EVERYTHING),
        ({"calibrated": False}, ("line", "block")),
        ({"calibrated": False, "rescoring": RescoringWeights()}, EVERYTHING),
        ({"calibrated": False, "answers": ("region",)}, ("region",)),
    ],
)
def test_an_engine_is_asked_what_it_answers_and_about_edits_only_where_its_word_counts(known, expected):
    assert asked_modes(replace(EngineInfo("e", "m", "cpu", 2048), **known)) == expected


async def test_a_model_that_only_fills_in_has_no_part_in_next_edits():
    engine = Engine(FakeEngine())
    alone = await last_of(question_of(LOGGED, "python"))
    answer = await last_of(question_of(LOGGED, "python", modes=("line", "block"), asks="always"), engine)
    assert (answer.edits, answer.silence) == (alone.edits, alone.silence)
    assert not engine.requests


def test_a_long_answer_of_nonsense_is_not_compared_for_long():
    text = "".join(f"v{number} = {number % 7}\n" for number in range(4000))
    snapshot = Document("file:///a.py", "/a.py", "python", 1, text).snapshot()
    assert edits_of(snapshot, (0, len(text)), text.replace(" = 3", " = 4"), 0) == []
    (edit,) = edits_of(snapshot, (0, len(text)), text.replace("v3000 = 4", "v3000 = 5"), 0)
    assert applied(text, [edit]) == text.replace("v3000 = 4", "v3000 = 5")
