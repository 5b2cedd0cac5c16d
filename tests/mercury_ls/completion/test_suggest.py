"""What of an engine's answer reaches the user."""

import pytest
from msgspec.structs import replace

from mercury_engine.api import Draft, Members
from mercury_ls.code.history import History
from mercury_ls.completion.context import ContextBudget, Related
from mercury_ls.completion.judge import Judge
from mercury_ls.completion.offers import Answer
from mercury_ls.completion.suggest import Question, gap_at, suggest, where
from mercury_ls.completion.target import Silence, Target
from mercury_ls.settings.schema import SuggestSettings
from tests.marked import marked
from tests.private_keys import BODY, KEY, LAST, SHOWN, is_told


class Says:
    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    async def fill(self, gap):
        yield self._draft


def question_of(drawn: str, **known) -> Question:
    snapshot, offset = marked(drawn)
    given = {"budget": ContextBudget(), "bar": 0.25, "settings": SuggestSettings(), "session": "s", **known}
    given |= {"target": Target(offset, offset), "related": Related(snapshot.uri, 1, 0.0)}
    return Question(snapshot=snapshot, offset=offset, history=History(), **given)


async def last(question: Question, engine: "Says | SaysInTurn") -> Answer:
    aimed = where(question)
    if isinstance(aimed, Silence):
        return Answer(silence=aimed.reason)
    return [answer async for answer in suggest(aimed, engine)][-1]


async def check(
    text: str, expected: str, p: float = 0.5, *, complete: bool = False, step: int = 1, unread: int = 0, **known
) -> None:
    """`expected` is what is shown, or "-" and the beginning of the reason for silence."""
    question = question_of("def f(x):\n    $0\n", **known)
    answer = await last(question, Says(Draft(step, text, (p,), p, complete, final=True, unread=unread)))
    shown = [offer.edit.text for offer in answer.offers]
    if expected.startswith("- "):
        assert not shown, shown
        assert answer.silence.startswith(expected[2:])
    else:
        assert shown == [expected]


async def test_answer_is_shown_if_it_is_likely():
    await check("return x", "return x", 0.3, complete=True)
    await check("return x", "- unsure: 20% likely to be kept, under the bar of 25%", 0.2, complete=True)


async def test_model_that_is_too_slow_is_asked_by_hand_alone():
    await check("return x", "- the model is too slow here to follow your typing", slow=True)
    await check("return x", "return x", slow=True, invoked=True)


async def test_beginning_is_shown_if_it_saves_enough():
    await check("with open(x) as", "with open(x) as", 0.5)
    await check("with open(x) as", "- unsure how it goes on: its first 15 characters, 26% likely", 0.26)
    await check("with open(x) as", "with open(x) as", 0.8, bar=0.78)
    await check("raise", "- unsure how it goes on", 0.7)
    await check("raise", "raise", 0.7, bar=0.2)
    await check("raise", "raise", 0.01, bar=0.0)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("with open(x) as", "with open(x)"),
        ("return first(x, y,", "return first(x, y"),
        ("for key in [", "for key"),
        ("value =", "value ="),
        ("return x and not", "return x"),
        ("assert_in", "assert_in"),
        ("with open(x):\n", "with open(x):"),
    ],
)
async def test_beginning_ends_before_what_only_promises_more(text, shown):
    await check(text, shown, 0.9, grows=True, starts=True)


async def test_short_answer_is_shown_and_so_is_a_requested_one():
    await check("x = 1", "x = 1", 0.4, complete=True)
    await check("return", "return", 0.8, invoked=True)


async def test_silence_tells_a_model_that_gives_up_from_one_that_adds_nothing():
    await check("", "- unsure: no answer is likely")
    await check("", "- empty: the model adds nothing here", complete=True)
    await check("", "- empty: the model adds nothing here", invoked=True)


async def test_model_is_asked_only_for_what_it_can_answer():
    await check("return x", "- the model only proposes next edits; ", fills=False, rewrites=True)
    await check("return x", "return x", complete=True)


async def test_judge_decides_before_bar():
    strict = Judge(corrections=(-9.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    await check("return x", "return x", 0.5, complete=True)
    await check("return x", "- unsure: 0% likely", 0.5, complete=True, judge=strict)


async def test_lack_of_any_forward_in_time_is_reported_as_late():
    await check("", "- late: the deadline passed before there was a draft", 0.0, step=0)
    await check("", "- late: the deadline passed before there was a draft", 0.0, step=0, invoked=True)
    await check(
        "", "- late: the model is still reading the code around the cursor, 540 tokens to go", 0.0, step=0, unread=540
    )
    await check(
        "", "- late: the model is still reading the code around the cursor, 1 token to go", 0.0, step=0, unread=1
    )


def test_gap_is_within_its_window():
    lines = [f"value_{n} = {n}\n" for n in range(2000)]
    question = question_of("".join([*lines[:1500], "x = $0\n", *lines[1500:]]), budget=ContextBudget(tokens=1000))
    gap = gap_at(question)
    assert gap.before.endswith("x = ")
    assert gap.after.startswith("\nvalue_1500")


def test_blanks_behind_the_cursor_are_not_asked_about():
    question = question_of("x = $0  \ny = 1\n")
    gap = gap_at(replace(question, target=Target(question.offset, question.offset + 2)))
    assert (gap.before, gap.after) == ("x = ", "\ny = 1\n")


def test_gap_says_the_bar_while_typing():
    assert gap_at(question_of("$0\n", bar=0.7)).bar == 0.7
    assert gap_at(question_of("$0\n", bar=0.7, invoked=True)).bar == 0.0


class SaysInTurn:
    """One answer for each seed; counts how many were asked for."""

    def __init__(self, *texts: str, p: float = 0.5, step: int = 1) -> None:
        self.asked = 0
        self._texts = texts
        self._p = p
        self._step = step
        self.deadlines = []

    async def fill(self, gap):
        assert gap.seed == self.asked
        self.asked += 1
        self.deadlines.append(gap.deadline_ms)
        yield Draft(self._step, self._texts[gap.seed], (self._p,), self._p, True, final=True)


async def check_search(engine: SaysInTurn, expected: str, asked: int, **known) -> None:
    """`expected` is what is shown, or "" for nothing, after so many requests."""
    question = question_of("def f(x):\n    $0\n", **known)
    answer = await last(question, engine)
    assert ([offer.edit.text for offer in answer.offers] or [""]) == [expected]
    assert engine.asked == asked


async def test_at_effort_high_answers_are_searched_for_one_that_can_be_shown():
    broken = "return x return", "if x x", "return x", "pass"
    await check_search(SaysInTurn(*broken), "return x", 3, effort="high")
    await check_search(SaysInTurn(*broken), "", 1, effort="medium")
    await check_search(SaysInTurn(*broken), "return x", 3, persistent=True)
    await check_search(SaysInTurn("return x", "pass"), "return x", 1, effort="high")
    await check_search(SaysInTurn(*["return x return"] * 9), "", 5, effort="high")
    await check_search(SaysInTurn(")", "return x"), "return x", 2, effort="high")


class AddsBelow:
    """Nothing to a line, and another line to what ends with a line feed."""

    async def fill(self, gap):
        yield Draft(1, "    return x" * gap.before.endswith("\n"), (0.9,), 0.9, True, final=True)


async def test_next_line_is_asked_for_by_hand_where_a_line_is_complete():
    async def shown(drawn, **known):
        return [offer.edit.text for offer in (await last(question_of(drawn, **known), AddsBelow())).offers]

    drawn = "def f(x):\n    x = 1$0\n"
    assert await shown(drawn, persistent=True) == ["\n    return x"]
    assert await shown(drawn.replace("\n", "\r\n"), persistent=True) == ["\r\n    return x"]
    assert await shown(drawn) == await shown("def f(x):\n    x = $01\n", persistent=True) == []
    assert await shown("def f(x):\n    $0\n", persistent=True) == []


class ShowsThenSpoils(SaysInTurn):
    async def fill(self, gap):
        async for last in super().fill(gap):
            yield Draft(1, "return x", (0.9,), 0.9, True)
            yield last


async def test_shown_answer_is_not_replaced_by_another():
    await check_search(ShowsThenSpoils("return x return", "pass"), "", 1, effort="high")
    await check_search(ShowsThenSpoils("return x return", "pass"), "", 1, persistent=True)


async def test_after_an_answer_that_came_too_late_no_other_is_asked_for():
    await check_search(SaysInTurn("", "return x", step=0), "", 1, effort="high")


async def test_all_answers_that_are_asked_for_share_one_deadline():
    engine = SaysInTurn(*["return x return"] * 9)
    await check_search(engine, "", 5, effort="high", deadline_ms=60_000.0)
    assert 60_000 >= engine.deadlines[0] > engine.deadlines[1] > engine.deadlines[4] > 0
    await check_search(SaysInTurn("return x return", "return x"), "", 1, effort="high", deadline_ms=1e-9)
    await check_search(SaysInTurn("return x", "pass"), "return x", 1, alternatives=2, deadline_ms=1e-9)


async def test_unlikely_answer_is_not_searched_for_others():
    await check_search(SaysInTurn("return x return", "pass", p=0.1), "", 1, effort="high")


MEMBERS = Members("", ("load", BODY[0][:8]))


async def test_private_key_is_not_in_request_and_not_completed():
    question = question_of(f'"""{KEY}"""\ndef f(x):\n    $0\n', members=(MEMBERS,))
    asked = gap_at(question)
    assert asked.before + asked.after == f'"""{SHOWN}"""\ndef f(x):\n    \n'
    assert not is_told(asked)
    assert asked.members == (replace(MEMBERS, names=("load",)),)
    copied = await last(question, Says(Draft(1, "x = '********'", (0.9,), 0.9, complete=True, final=True)))
    assert (copied.offers, copied.silence) == ((), "it repeats a private key, which the model was not shown")
    assert (await last(question, Says(Draft(1, "return x", (0.9,), 0.9, complete=True, final=True)))).offers
    within = await last(question_of(KEY.replace(LAST, LAST[:2] + "$0")), Says(Draft(1, "x", final=True)))
    assert within.silence == "the cursor is in a private key, which no model is shown"
