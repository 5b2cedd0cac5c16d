import asyncio
import re
from itertools import pairwise

import pytest

from mercury_engine.api import EngineError, Opinions
from mercury_engine.fake import FakeEngine
from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.code.edits import difference
from mercury_ls.code.history import History
from mercury_ls.completion.context import ContextBudget, Related
from mercury_ls.completion.offers import Answer
from mercury_ls.completion.target import Target
from mercury_ls.link.client import EngineUnavailable
from mercury_ls.next_edit import cost, search
from mercury_ls.next_edit import pipeline as next_edit
from mercury_ls.next_edit.candidates import Candidate
from mercury_ls.next_edit.kinds.rename.rule import Rename
from mercury_ls.next_edit.kinds.replace import Replace
from mercury_ls.next_edit.pipeline import next_edits
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.settings.schema import SuggestSettings
from tests.marked import SUFFIX
from tests.mercury_ls.next_edit.next_edit_scenarios import ASKED, SCENARIOS, Scenario

EDIT = re.compile(r"⟦(.*?)→(.*?)⟧", re.DOTALL)
DUE = re.compile(r"«(.*?)→(.*?)»", re.DOTALL)


class Engine:
    """An engine of this process, as the straight path wants it; it keeps what it was asked."""

    def __init__(self, engine) -> None:
        self.engine = engine
        self.questions = []

    def rewrite(self, regions):
        return self._answers(regions, self.engine.rewrite)

    def judge(self, proposals):
        return self._answers(proposals, self.engine.judge)

    async def _answers(self, question, ask):
        self.questions.append(question)
        for answer in ask(question):
            yield answer


class Judge:
    """Finds proposals with one of these texts likely, and no others."""

    def __init__(self, *likely) -> None:
        self.likely = likely

    def judge(self, proposals):
        texts = [proposal.text for proposal in proposals.proposals]
        likely = [any(text in proposed for text in self.likely) for proposed in texts]
        yield Opinions(1, tuple(-0.04 if is_likely else -28.0 for is_likely in likely), final=True)


def states_of(drawn: str | tuple[str, ...]) -> list[str]:
    """The document before anything was done, and after each edit; the last holds the cursor."""
    if not isinstance(drawn, str):
        return [DUE.sub(r"\1", text) for text in drawn]
    count = len(EDIT.findall(drawn))
    return [stage(DUE.sub(r"\1", drawn), done) for done in range(count + 1)]


def stage(drawn: str, done: int) -> str:
    number = iter(range(len(EDIT.findall(drawn))))
    text = EDIT.sub(lambda match: match[2] if next(number) < done else match[1], drawn)
    return text if done == len(EDIT.findall(drawn)) else text.replace("$0", "")


def question_of(drawn: str | tuple[str, ...], language: str, **known) -> NextQuestion:
    path = f"/project/file.{SUFFIX[language]}"
    *before, last = states_of(drawn)
    offset = last.index("$0")
    states = [*before, last.replace("$0", "")]
    history = History()
    for number, (old, new) in enumerate(pairwise(states)):
        history.record(path, old, difference(old, new), 60.0 * number)
    snapshot = Document(f"file://{path}", path, language, 7, states[-1]).snapshot()
    return asked_at(snapshot, offset, history, **known)


def asked_at(snapshot: Snapshot, offset: int, history: History, **known) -> NextQuestion:
    given = {
        "target": Target(offset, offset),
        "related": Related(snapshot.uri, 0, 0.0),
        "settings": SuggestSettings(),
        "budget": ContextBudget(),
        "session": "test",
        "bar": 0.25,
    }
    return NextQuestion(snapshot=snapshot, offset=offset, history=history, **{**given, **known})


async def last_of(question: NextQuestion, engine=None) -> Answer:
    answers = [answer async for answer in next_edits(question, engine)]
    assert [answer.final for answer in answers] == [False] * (len(answers) - 1) + [True]
    return answers[-1]


def drawn_after(snapshot: Snapshot, answer: Answer) -> str:
    text = snapshot.text
    for edit in sorted(answer.edits, key=lambda each: each.start, reverse=True):
        if edit.uri == snapshot.uri:
            text = f"{text[: edit.start]}«{edit.text}»{text[edit.end :]}"
    return text


def due_after(drawn: str | tuple[str, ...]) -> str:
    """The document after the edits that were made, with what those that are due write in «»."""
    last = drawn if isinstance(drawn, str) else drawn[-1]
    return EDIT.sub(r"\2", DUE.sub(r"«\2»", last)).replace("$0", "")


async def check(scenario: Scenario, **known) -> None:
    question = question_of(scenario.drawn, scenario.language, **known)
    answer = await last_of(question)
    if scenario.is_silent:
        assert not answer.edits, drawn_after(question.snapshot, answer)
        assert answer.silence.startswith(scenario.reason)
    else:
        assert drawn_after(question.snapshot, answer) == due_after(scenario.drawn), answer.silence
        assert scenario.note in (None, answer.offer.note)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.title)
async def test_scenario_gives_the_edit_that_follows(scenario):
    await check(scenario)


EARLIER = (
    f"{next_edit.NOTHING_FOLLOWS}; of an edit before the last: ",
    "a block has nothing in it yet: line ",
)


@pytest.mark.parametrize(
    "scenario", [each for each in SCENARIOS if each.is_silent], ids=lambda scenario: scenario.title
)
async def test_reason_is_about_the_last_edit_or_says_which_it_is_about(scenario):
    """After another edit, of a comment."""
    mark = "#" if scenario.language == "python" else "//"
    states = [text.replace("$0", "") + f"\n\n{mark} Reads fast.\n" for text in states_of(scenario.drawn)]
    last = states[-1].replace(" fast.", " slowly$0.")
    answer = await last_of(question_of((*states, last), scenario.language))
    assert answer.offer or answer.silence == next_edit.NOTHING_FOLLOWS or answer.silence.startswith(EARLIER)


@pytest.mark.parametrize("scenario", ASKED, ids=lambda scenario: scenario.title)
async def test_explicit_request_gets_less_likely_edits(scenario):
    assert (await last_of(question_of(scenario.drawn, scenario.language))).silence
    await check(scenario, bar=0.05, invoked=True)


def test_third_of_scenarios_stay_silent_in_six_languages():
    silent = sum(scenario.is_silent for scenario in SCENARIOS)
    assert len(SCENARIOS) >= 60
    assert silent * 3 >= len(SCENARIOS)
    assert len({scenario.language for scenario in SCENARIOS}) >= 6


RENAME = """\
def area(⟦w→width⟧$0, height):
    if w < 0:
        raise ValueError(w)
    return w * height
"""
THIRD = """\
first = ⟦fetch→load⟧("a")
second = ⟦fetch→load⟧$0("b")
third = fetch("c")
"""


def other_file(text: str) -> Snapshot:
    return Document("file:///project/other.py", "/project/other.py", "python", 3, text).snapshot()


async def test_answer_names_what_it_does_and_versions_that_it_is_for():
    answer = await last_of(question_of(RENAME, "python"))
    assert answer.offer.label == "rename `w` → `width`"
    assert {uri: each.version for uri, each in answer.offer.base.items()} == {"file:///project/file.py": 7}
    assert 0.25 <= answer.offer.p_accept <= 1.0


async def test_note_names_no_line_that_the_offer_changes():
    drawn = "def run(options):\n    ⟦options→settings⟧$0 = dict(options)\n    options = more(options)\n"
    answer = await last_of(question_of(drawn, "python", bar=0.05, invoked=True))
    assert answer.edits
    assert answer.offer.note == "`options` keeps its name where it is assigned: file.py:1"


async def test_other_files_are_part_of_the_same_answer():
    drawn = "def ⟦fetch→load⟧$0(name):\n    return name\n\n\nvalue = fetch(1)\n"
    others = (other_file("from file import fetch\n\nresult = fetch(2)\n"),)
    answer = await last_of(question_of(drawn, "python", neighbours=others, bar=0.05, invoked=True))
    assert {edit.uri for edit in answer.edits} == {"file:///project/file.py", "file:///project/other.py"}
    versions = {uri: each.version for uri, each in answer.offer.base.items()}
    assert versions == {"file:///project/file.py": 7, "file:///project/other.py": 3}
    assert answer.offer.label == "rename `fetch` → `load`"


async def test_local_of_this_file_is_unknown_in_another():
    answer = await last_of(question_of(RENAME, "python", neighbours=(other_file("w = 1\nprint(w)\n"),)))
    assert {edit.uri for edit in answer.edits} == {"file:///project/file.py"}


@pytest.mark.parametrize(
    ("steps", "is_typing", "is_done"),
    [
        (["int6", "int"], True, False),
        (["int6", "int"], False, True),
        (["", "i", "in", "int"], True, True),
    ],
    ids=["backspaces", "in normal mode", "another word in its place"],
)
async def test_shorter_word_is_done_unless_it_is_being_deleted(steps, is_typing, is_done):
    text, history, path = "def f() -> int64: ...\ndef g() -> int64: ...\n", History(), "/project/file.py"
    for number, word in enumerate(steps):
        new = f"def f() -> {word}: ...\ndef g() -> int64: ...\n"
        history.record(path, text, difference(text, new), number / 10)
        text = new
    snapshot = Document(f"file://{path}", path, "python", 7, text).snapshot()
    answer = await last_of(asked_at(snapshot, 14, history, is_typing=is_typing))
    assert answer.silence.startswith("a word is being deleted") != is_done


async def test_bar_decides_what_is_shown():
    assert (await last_of(question_of(THIRD, "python", bar=0.25))).edits
    answer = await last_of(question_of(THIRD, "python", bar=0.99))
    assert re.fullmatch(r"unsure: rename .* is \d+% likely, under the bar of \d+%", answer.silence)
    answer = await last_of(question_of("x = 1$0\n", "python"))
    assert answer.silence == "nothing has been edited yet"


@pytest.mark.parametrize(("kind", "expected"), [("rename", 2), ("replace", 1)])
def test_shown_rename_is_shown_where_it_is_little_less_likely_too(kind, expected):
    question = question_of("⟦a→b⟧ = 1$0\nprint(a, a)\n", "python")
    rule = Rename(before="a", after="b") if kind == "rename" else Replace(before="a", after="b")
    likely, less, hardly = (
        Candidate(question.snapshot.uri, at, at + 1, "b", kind, rule, {}, chance)
        for at, chance in ((12, 0.5), (15, 0.4), (16, 0.1))
    )
    assert len(next_edit.group(question, [likely, less, hardly], 0.45)) == expected
    assert next_edit.group(question, [less, hardly], 0.45) == []


async def test_rule_based_edits_come_before_the_model_answers():
    engine = Engine(FakeEngine())
    answers = [answer async for answer in next_edits(question_of(RENAME, "python"), engine)]
    assert answers[0].edits
    assert not answers[0].final
    assert answers[-1].edits == answers[0].edits
    assert answers[-1].final
    assert not engine.questions


async def test_unlikely_edit_of_a_rule_is_not_shown():
    question = question_of(THIRD, "python", judges=True)
    assert (await last_of(question)).edits
    answer = await last_of(question, Engine(Judge()))
    assert not answer.edits
    assert answer.silence.startswith("unsure: ")


@pytest.mark.parametrize("scenario", ASKED, ids=lambda scenario: scenario.title)
async def test_likely_edit_of_a_rule_is_shown_unasked(scenario):
    question = question_of(scenario.drawn, scenario.language, judges=True)
    answer = await last_of(question, Engine(Judge(" or 0")))
    assert drawn_after(question.snapshot, answer) == due_after(scenario.drawn), answer.silence


async def test_model_without_time_changes_nothing():
    class Late:
        def judge(self, proposals):
            yield Opinions(1, (None,) * len(proposals.proposals), final=True)

    question = question_of(THIRD, "python", judges=True)
    assert (await last_of(question, Engine(Late()))).edits == (await last_of(question)).edits


async def test_edit_that_is_likely_enough_waits_for_no_other_opinion():
    class InTurn:
        def judge(self, proposals):
            yield Opinions(1, (None, None))
            yield Opinions(2, (-0.04, None))
            raise AssertionError("the second one is not waited for")

    question = question_of(THIRD + 'fourth = fetch("d")\n', "python", judges=True)
    assert (await last_of(question, Engine(InTurn()))).edits


@pytest.mark.parametrize("error", [EngineError("broken"), EngineUnavailable("gone")])
async def test_rules_answer_without_an_engine_that_fails(error):
    class Broken:
        def judge(self, proposals):
            raise error
            yield

    question = question_of(THIRD, "python", judges=True)
    assert (await last_of(question, Engine(Broken()))).edits == (await last_of(question)).edits


async def test_by_hand_nothing_waits_for_an_opinion():
    engine = Engine(Judge())
    assert (await last_of(question_of(THIRD, "python", judges=True, invoked=True), engine)).edits
    assert not engine.questions


async def test_certain_edit_needs_no_opinion():
    engine = Engine(Judge())
    assert (await last_of(question_of(RENAME, "python", judges=True), engine)).edits
    assert not engine.questions


async def test_proposals_stand_between_the_lines_around_them():
    engine = Engine(Judge())
    await last_of(question_of(THIRD, "python", judges=True), engine)
    (asked,) = engine.questions
    (proposal,) = asked.proposals
    region = proposal.region
    assert (region.above, region.below) == ('first = load("a")\nsecond = load("b")\n', "")
    assert (region.old, proposal.text) == ('third = fetch("c")\n', 'third = load("c")\n')


async def test_engine_without_draft_leaves_what_rules_know():
    class Mute:
        def judge(self, proposals):
            yield from ()

    answer = await last_of(question_of(RENAME, "python"), Engine(Mute()))
    assert len(answer.edits) == 3


def counted(monkeypatch) -> list[int]:
    """What has been looked for, with nothing found."""
    steps = []

    def batches(*given):
        for number in range(100):
            steps.append(number)
            yield []

    monkeypatch.setattr(search, "batches", batches)
    monkeypatch.setattr(cost, "TURN_SECONDS", -1.0)
    return steps


async def test_requests_of_others_have_their_turn_during_a_next_edit_search(monkeypatch):
    steps = counted(monkeypatch)
    task = asyncio.ensure_future(last_of(question_of("⟦total→whole⟧ = 1$0\nprint(total)\n", "python")))
    turns = 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    assert len(steps) == 100
    assert turns > 100


async def test_superseded_request_stops_looking(monkeypatch):
    steps = counted(monkeypatch)
    task = asyncio.ensure_future(last_of(question_of("⟦total→whole⟧ = 1$0\nprint(total)\n", "python")))
    for _ in range(10):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert 0 < len(steps) < 20
