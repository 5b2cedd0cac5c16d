"""What of a next-edit model's rewriting of a window is offered."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mercury_engine.api import EngineError, EngineInfo, Rewrites, Rewritten
from mercury_engine.fake import FakeEngine
from mercury_engine.prompts.edits.asked import CUT
from mercury_ls.code.diagnostics import FileDiagnostic as Said
from mercury_ls.code.documents import Document
from mercury_ls.code.edits import TextEdit, applied, widened
from mercury_ls.completion.context import ContextBudget
from mercury_ls.completion.suggest import judges_in_time
from mercury_ls.next_edit import opinion, pipeline
from mercury_ls.next_edit.candidates import Candidate
from mercury_ls.next_edit.pipeline import next_edits
from mercury_ls.next_edit.region import MOST_LINES, MOST_REMOVED, SURE_ENOUGH, edits_of, regions_at
from tests.mercury_ls.next_edit.test_pipeline import Engine, drawn_after, last_of, question_of
from tests.private_keys import BODY, KEY, LAST, SHOWN, is_told

SHAPES = """\
def area(width, ⟦→height⟧$0):
    return width


def room():
    return area(3)
"""


class Rewriter:
    """Answers every window with what a function makes of it."""

    def __init__(self, *pieces: tuple[str, str], p: float = 0.5, complete: bool = True, refused: str = "") -> None:
        self.pieces, self.p, self.complete, self.refused = pieces, p, complete, refused

    def rewrite(self, regions):
        text = regions.regions[0].old
        for before, after in self.pieces:
            assert before in text
            text = text.replace(before, after)
        rewritten = Rewritten(text, p_accept=self.p, complete=self.complete, refused=self.refused)
        yield Rewrites(1, (rewritten,), final=True)


async def check(drawn: str, *pieces: tuple[str, str], expected: str, p: float = 0.5, complete: bool = True, **known):
    """`expected` is the text with the offered edits in it, or "-" and the beginning of the reason for silence."""
    question = question_of(drawn, "python", rewrites=True, **known)
    answer = await last_of(question, Engine(Rewriter(*pieces, p=p, complete=complete)))
    if expected.startswith("- "):
        assert not answer.edits, drawn_after(question.snapshot, answer)
        assert answer.silence.startswith(expected[2:])
    else:
        assert drawn_after(question.snapshot, answer) == expected, answer.silence


def test_model_is_told_diagnostics_in_its_window():
    question = question_of("a = 1\nb = $0c\n", "python", rewrites=True)
    said = [Said(10, 11, "c is unknown", severity="warning"), Said(900, 901, "out of sight")]
    (diagnostic,) = regions_at(question, question.snapshot, question.offset, said).diagnostics
    assert (diagnostic.line, diagnostic.column) == (1, 4)
    assert (diagnostic.message, diagnostic.severity) == ("c is unknown", "warning")
    assert diagnostic.path == question.snapshot.path


async def test_model_is_not_told_diagnostics_of_other_files():
    said = (Said(0, 1, "wrong"),)
    question = question_of("a = 1\nb = $0c\n", "python", rewrites=True, diagnostics=said)
    assert question.diagnostics_of(question.snapshot) == said
    assert question.diagnostics_of(Document("file:///x.py", "x.py", "python", 1, "").snapshot()) == ()


async def test_model_rewrite_is_offered_together_as_the_words_that_differ():
    await check(
        SHAPES,
        ("return width", "return width * height"),
        ("area(3)", "area(3, 4)"),
        expected="def area(width, height):\n    return width« * height»\n\n\ndef room():\n    return area(3«, 4»)\n",
    )


async def test_bar_is_that_of_other_suggestions():
    piece = ("return width", "return width * height")
    await check(
        SHAPES,
        piece,
        p=0.24,
        expected="- needs an argument for `height`: file.py:6, since the parameters of `area` changed; unsure",
    )
    await check(
        SHAPES, piece, p=0.26, expected=SHAPES.replace("⟦→height⟧$0", "height").replace("th\n", "th« * height»\n")
    )
    await check(
        SHAPES,
        piece,
        p=0.3,
        bar=0.4,
        expected="- needs an argument for `height`: file.py:6, since the parameters of `area` changed; unsure",
    )


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
async def test_unusable_rewrites_give_no_edit(pieces):
    await check(SHAPES, *pieces, expected="- ")


async def test_truncated_text_is_not_used():
    await check(SHAPES, ("return width\n\n\ndef room():\n    return area(3)\n", ""), complete=False, expected="- ")


UNTOUCHED = "def add(a, b):\n    return a$0\n"
SUM = ("return a\n", "return a + b\n")
UNFINISHED = "def area(w, h):\n    return w * h\n\n\nsize = ⟦1→area(width, ⟧$0\nprint(size)\n"
CLOSED = ("area(width, \n", "area(width, height)\n")


async def test_explicit_request_gets_a_model_edit_before_anything_was_edited():
    await check(UNTOUCHED, SUM, expected="def add(a, b):\n    return a« + b»\n", invoked=True)


async def test_by_itself_a_model_is_not_asked_before_anything_was_edited():
    engine = Engine(Rewriter())
    answer = await last_of(question_of(UNTOUCHED, "python", rewrites=True), engine)
    assert (answer.silence, engine.questions) == ("nothing has been edited yet", [])


@pytest.mark.parametrize("invoked", [False, True])
async def test_model_finishes_statement_from_which_rules_learn_nothing_yet(invoked):
    expected = UNFINISHED.replace("⟦1→area(width, ⟧$0", "area(width, «height)»")
    await check(UNFINISHED, CLOSED, expected=expected, invoked=invoked)
    await check(UNFINISHED, expected="- the statement at the cursor is not complete; the model changes nothing here")


async def test_fill_in_model_is_not_asked_for_next_edits_without_any_edit():
    engine = Engine(FakeEngine())
    answer = await last_of(question_of(UNTOUCHED, "python", invoked=True), engine)
    assert (answer.silence, engine.questions) == ("nothing has been edited yet", [])


WRAPPED = """\
def show(items):
    print(⟦items.name→str(items.name)⟧)
    log(⟦items.name→str(items.name)⟧$0)
    send(items.name)
    done()
"""


async def test_fuller_answer_of_model_comes_before_the_rule_edit_it_contains():
    assert (await last_of(question_of(WRAPPED, "python"))).offer.p_accept >= SURE_ENOUGH
    for rest in (("send(items.name)", "send(str(items.name), 1)"), ("done()", "done(items)")):
        pieces = [("send(items.name)", "send(str(items.name))")] if rest[0] == "done()" else []
        question = question_of(WRAPPED, "python", rewrites=True)
        answer = await last_of(question, Engine(Rewriter(*pieces, rest, p=0.3)))
        assert applied(question.snapshot.text, answer.edits).count(rest[1]) == 1
        assert "send(str(items.name)" in applied(question.snapshot.text, answer.edits)


async def test_likely_edit_by_rule_does_not_wait_for_long(monkeypatch):
    class Never:
        async def rewrite(self, regions):
            await asyncio.Event().wait()
            yield

    monkeypatch.setattr(pipeline, "SHORT_WAIT_SECONDS", 0.0)
    alone = await last_of(question_of(WRAPPED, "python"))
    answer = await last_of(question_of(WRAPPED, "python", rewrites=True), Never())
    assert answer.edits == alone.edits


BROKEN = "def f(:\n    pass\n\n\ndef area(width, ⟦→height⟧$0):\n    return width\n\n\nclass (\n"


async def test_file_broken_elsewhere_may_have_other_errors_there_as_well():
    made = "    return width« * height»\n"
    expected = BROKEN.replace("⟦→height⟧$0", "height").replace("    return width\n", made)
    await check(BROKEN, ("return width\n", "return width * height\n"), expected=expected)
    await check(BROKEN, ("return width\n", "return width * (\n"), expected="- the file would have more syntax errors")


@pytest.mark.parametrize(
    ("drawn", "piece", "expected"),
    [
        ("x = 1\n⟦→imfrom⟧$0 os import path\n", ("imfrom", "from"), "x = 1\n«from» os import path\n"),
        ("x = 1\n⟦from→imfrom⟧$0 os import path\n", ("imfrom", "from"), "x = 1\n«from» os import path\n"),
        ("width = ⟦height→depth⟧$0\n", ("depth", "height"), "- "),
        ("def f():\n    return ⟦→(width⟧$0\n", ("(width", ""), "- "),
    ],
)
async def test_fresh_typo_may_be_mended(drawn, piece, expected):
    await check(drawn, piece, expected=expected)


@pytest.mark.parametrize(
    ("piece", "known", "reason"),
    [
        (("", ""), {}, "the model changes nothing here"),
        (("return width", "return  width"), {"complete": False}, "the model's answer came too late"),
        (("", ""), {"refused": "it leaves lines out"}, "the model's answer was refused: it leaves lines out"),
        (("", ""), {"complete": False, "refused": CUT.reason}, "refused: it was cut off before its end"),
        (("return width", "return width<|file_sep|>"), {}, "discarded: it contains special tokens"),
        (("", "x = 1\n"), {}, "discarded: it rewrites or removes too much"),
        (("width, height", "width, "), {}, "discarded: it would undo what was done a moment ago"),
        (("return width", "return width * height"), {"p": 0.1}, "unsure: edit is 10% likely, under the bar of 25%"),
        (("return width", "return width *"), {}, "the file would have more syntax errors than before"),
    ],
)
async def test_silence_says_what_became_of_the_model_answer(piece, known, reason):
    question = question_of(SHAPES, "python", rewrites=True)
    answer = await last_of(question, Engine(Rewriter(piece, **known)))
    assert answer.silence.endswith(reason)


async def test_model_that_gives_no_draft_in_time_is_called_late():
    class Late:
        def rewrite(self, regions):
            yield Rewrites(0, (Rewritten(regions.regions[0].old),), final=True)

    answer = await last_of(question_of(SHAPES, "python", rewrites=True), Engine(Late()))
    assert answer.silence.endswith("; the model's answer came too late")


async def test_rejected_edit_is_reported_as_reason():
    question = question_of(SHAPES, "python", rewrites=True)
    text = question.snapshot.text
    at = text.index("return width") + len("return width")
    refused = frozenset({(question.snapshot.uri, *widened(text, TextEdit(at, at, " * height")))})
    answer = await last_of(
        replace(question, refused=refused), Engine(Rewriter(("return width", "return width * height")))
    )
    assert answer.silence.endswith("the model's edit was discarded: it was rejected before")


async def test_window_around_cursor_is_asked_about_with_edits_as_made():
    engine = Engine(Rewriter())
    far = "x = 1\n" * 3000
    question = question_of(f"{far}def area(width, ⟦→height⟧$0):\n    return width\n{far}", "python", rewrites=True)
    await last_of(question, engine)
    (asked,) = engine.questions
    (region,) = asked.regions
    assert (region.above, region.below) == ("", "")
    assert region.old[: asked.cursor].endswith("def area(width, height")
    assert len(region.old) < 1.2 * ContextBudget().characters
    assert asked.edits[-1].after == "def area(width, height):\n"


RENAME = """\
def area(⟦w→width⟧$0, height):
    if w < 0:
        raise ValueError(w)
    return w * height
"""


async def test_certain_edit_does_not_wait_for_a_model():
    engine = Engine(Rewriter())
    answer = await last_of(question_of(RENAME, "python", rewrites=True), engine)
    assert answer.offer.label == "rename `w` → `width`"
    assert not engine.questions


async def test_model_renames_nothing_else():
    drawn = 'def ⟦fetch→load⟧$0(name):\n    return name\n\n\nclient = {"fetch": 1}\n'
    await check(drawn, ('"fetch"', '"load"'), expected="- ")


LOGGED = 'log.⟦info→debug⟧$0("a", x)\nif x:\n    log.info("b", y)\n'


async def test_edit_of_both_model_and_rule_is_likelier_than_either_says():
    drawn = "value = ⟦compute(1)→compute(1) or 0⟧$0\nother = compute(2)\nthird = run(compute(3))\n"
    alone = await last_of(question_of(drawn, "python"))
    engine = Engine(Rewriter(("compute(2)", "compute(2) or 0"), p=0.3))
    both = await last_of(question_of(drawn, "python", rewrites=True), engine)
    assert both.edits == alone.edits
    assert both.offer.label == alone.offer.label
    assert both.offer.p_accept > max(alone.offer.p_accept, 0.3)


async def test_model_edit_that_does_more_than_the_rule_is_likelier_too():
    drawn = "print(⟦a→total(a)⟧$0)\nx = a\nshow(a, 3)\n"
    engine = Engine(Rewriter(("show(a, 3)", "show(total(a), 4)"), p=0.3))
    answer = await last_of(question_of(drawn, "python", rewrites=True), engine)
    assert [edit.text for edit in answer.edits] == ["total(a), 4"]
    assert answer.offer.p_accept > 0.5


async def test_rule_that_leaves_text_to_model_leads_elsewhere():
    far = "x = 1\n" * 1500
    drawn = f"def area(width⟦→, height⟧$0):\n    return width * height\n\n\n{far}\n\ndef room():\n    return area(3)\n"
    engine = Engine(FakeEngine({"area(3)": "area(3, 4)"}))
    question = question_of(drawn, "python", rewrites=True)
    answer = await last_of(question, engine)
    assert [(edit.text, question.snapshot.text[edit.end :][:2]) for edit in answer.edits] == [(", 4", ")\n")]
    assert len(engine.questions) == 2


async def test_rule_answer_is_there_before_model_is_asked():
    class Fails:
        def rewrite(self, regions):
            raise EngineError("gone")

    drawn = "x = ⟦a + 1→a + 2⟧$0\ny = a + 1\n"
    answers = next_edits(question_of(drawn, "python", rewrites=True), Engine(Fails()))
    assert (await anext(answers)).edits
    with pytest.raises(EngineError):
        await anext(answers)


FEW = st.lists(st.sampled_from(["a = 1", "b = 2", "", "    c", "}"]), min_size=1, max_size=9)


@given(FEW, FEW, st.sampled_from(["\n", "\r\n"]), st.data())
def test_edits_turn_lines_into_what_model_wrote(old, new, end_of_line, data):
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
def test_model_that_rewrites_nearly_everything_has_lost_its_way(answer, edits):
    snapshot = Document("file:///a.py", "/a.py", "python", 1, "a = 1\n" * MOST_LINES).snapshot()
    assert len(edits_of(snapshot, (0, len(snapshot.text)), answer, 0)) == edits


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, False),
        ({"judges": True}, False),
        ({"judges": True, "reads_per_second": 1000.0}, True),
        ({"judges": True, "reads_per_second": 100.0}, False),
    ],
)
def test_engine_is_asked_for_its_opinion_only_where_that_comes_in_time(known, expected):
    assert judges_in_time(replace(EngineInfo("e", "m", "cpu", 2048), **known)) is expected


async def test_fill_in_model_has_no_part_in_next_edits():
    engine = Engine(FakeEngine())
    alone = await last_of(question_of(LOGGED, "python"))
    answer = await last_of(question_of(LOGGED, "python"), engine)
    assert (answer.edits, answer.silence) == (alone.edits, alone.silence)
    assert not engine.questions


def test_long_answer_of_nonsense_is_not_compared_for_long():
    text = "".join(f"v{number} = {number % 7}\n" for number in range(4000))
    snapshot = Document("file:///a.py", "/a.py", "python", 1, text).snapshot()
    assert edits_of(snapshot, (0, len(text)), text.replace(" = 3", " = 4"), 0) == []
    (edit,) = edits_of(snapshot, (0, len(text)), text.replace("v3000 = 4", "v3000 = 5"), 0)
    assert applied(text, [edit]) == text.replace("v3000 = 4", "v3000 = 5")


def test_model_is_not_told_private_key_in_window_or_diagnostics():
    question = question_of(f"a = 1\n{KEY}b = $0c\n", "python", rewrites=True)
    at = question.snapshot.text.index(LAST)
    said = [Said(at, at + 1, f"{LAST}?"), Said(question.offset, question.offset, f"not {BODY[0]}")]
    asked = regions_at(question, question.snapshot, question.offset, said)
    assert asked.regions[0].old == f"a = 1\n{SHOWN}b = c\n"
    assert [diagnostic.message for diagnostic in asked.diagnostics] == ["not " + "*" * 64]
    assert not is_told(asked)


KEYED = f"def area(width, ⟦→height⟧$0):\n    return width\n\n\nKEY = (\n{KEY})\n"
NOT_SHOWN = (
    "- no rule knows what follows from the last edits; "
    "the model's edit was discarded: it rewrites lines of a private key, which the model was not shown"
)


@pytest.mark.parametrize(
    ("piece", "expected"),
    [
        (
            ("return width", "return width * height"),
            KEYED.replace("⟦→height⟧$0", "height").replace("n width", "n width« * height»"),
        ),
        ((SHOWN, ""), NOT_SHOWN),
        (("****\n", ""), NOT_SHOWN),
        (("return width", "return '********'"), NOT_SHOWN),
    ],
)
async def test_rewrite_leaves_private_key_as_it_is(piece, expected):
    await check(KEYED, piece, expected=expected)


async def test_opinion_is_asked_without_private_key():
    question = question_of(f"{KEY}b = $0c\n", "python", judges=True)
    edit = Candidate(question.snapshot.uri, question.offset, question.offset + 1, "d", "replace", None, {})
    asked = opinion.proposals(question, [(edit,)])
    assert asked.proposals[0].text == "b = d\n"
    assert not is_told(asked)
