"""What an unknown model writes where lines of open files were hidden teaches the judge before the user has."""

import random

import pytest
from msgspec.structs import replace

from mercury_engine.fake import FakeEngine
from mercury_ls.session.hidden_lines import ENOUGH, MOST_ASKED, HiddenLines
from mercury_ls.settings.schema import RecordSettings, Settings, SuggestSettings
from tests.mercury_ls.session.test_judged import PLAIN, learned
from tests.mercury_ls.session.test_session import URI, started

CODE = "".join(f"value_{number} = compute(value_{number - 1})\n" for number in range(1, 60))
COMMENTS = "# nothing is suggested in comments\n" * 20
CODE_ALONE = Settings(suggest=SuggestSettings(in_comments=False))


def knowing(text: str, before: str) -> str:
    """The rest of the line that was hidden."""
    return text.removeprefix(before).split("\n")[0]


async def asked(text: str, engine: FakeEngine, settings: Settings | None = None, times: int = 8):
    """The session of a user who has this file open, after so many questions."""
    session = await started(engine, settings)
    session.open(URI, "/project/file.py", "python", 1, text)
    hidden = HiddenLines(session.questions, random.Random(1))
    for _ in range(times):
        if hidden.are_due:
            await hidden.ask()
    await session.end()
    return session


async def check(
    text: str, answer: str | None, expected: set[tuple[bool, bool]], settings: Settings | None = None
) -> None:
    """What is learned of a model that always writes `answer`, or knows the file if that is None."""
    engine = FakeEngine(lambda before: knowing(text, before) if answer is None else answer, info=PLAIN)
    assert {*learned(await asked(text, engine, settings))} == expected


async def test_right_and_wrong_answers_are_learned():
    await check(CODE, None, {(True, True)})
    await check(CODE, "nothing_like_it()", {(False, True)})


async def test_hidden_comment_teaches_nothing_where_none_is_wanted():
    await check(COMMENTS, None, set(), CODE_ALONE)
    await check("", None, set())


async def test_empty_file_does_not_use_questions_up():
    session = await started(FakeEngine(info=replace(PLAIN, model="/models/some.gguf")), CODE_ALONE)
    session.open(URI, "/project/file.py", "python", 1, "")
    hidden = HiddenLines(session.questions, random.Random(1))
    for _ in range(MOST_ASKED):
        assert await hidden.ask() is None
    assert not hidden.are_due
    session.open("file:///project/other.py", "/project/other.py", "python", 1, COMMENTS)
    for _ in range(MOST_ASKED):
        assert hidden.are_due
        await hidden.ask()
    assert not hidden.are_due
    await session.end()


async def test_answer_to_hidden_line_is_not_the_users():
    session = await asked(CODE, FakeEngine(lambda before: knowing(CODE, before), info=PLAIN))
    assert session.files.documents[URI].text == CODE
    assert not session.files.history.edits(8)
    assert not session.generations.are_running


async def test_known_model_is_asked_nothing_more():
    engine = FakeEngine(lambda before: knowing(CODE, before), info=PLAIN)
    session = await asked(CODE, engine, times=2 * MOST_ASKED)
    assert session.questions.outcomes.count(PLAIN.model, "inline") == ENOUGH
    engine = FakeEngine(info=PLAIN)
    await asked(COMMENTS, engine, CODE_ALONE, times=2 * MOST_ASKED)
    assert engine.infills <= MOST_ASKED


@pytest.mark.parametrize(
    ("info", "settings"),
    [
        (replace(PLAIN, calibrated=True), Settings()),
        (replace(PLAIN, metered=True), Settings()),
        (replace(PLAIN, address="https://models.example"), Settings()),
        (PLAIN, Settings(suggest=SuggestSettings(adapt=False))),
        (PLAIN, Settings(record=RecordSettings(counts=False))),
        (PLAIN, Settings(suggest=SuggestSettings(enabled=False))),
    ],
)
async def test_calibrated_or_costly_model_is_not_asked(info, settings):
    engine = FakeEngine(info=info)
    await asked(CODE, engine, settings)
    assert engine.infills == 0


async def test_server_on_this_machine_is_asked():
    engine = FakeEngine(info=replace(PLAIN, address="http://127.0.0.1:8080"))
    await asked(CODE, engine)
    assert engine.infills


async def test_user_who_comes_back_is_not_kept_waiting():
    engine = FakeEngine(lambda before: knowing(CODE, before), info=PLAIN, passes=8)
    session = await started(engine)
    session.open(URI, "/project/file.py", "python", 1, CODE)
    await HiddenLines(session.questions, random.Random(1)).ask(lambda: engine.forwards > 1)
    assert learned(session) == []
    await session.end()
    assert engine.open == 0


async def test_idle_session_hides_lines_until_the_model_is_known():
    engine = FakeEngine(lambda before: knowing(CODE, before), info=PLAIN)
    session = await started(engine)
    session.open(URI, "/project/file.py", "python", 1, CODE)
    session.idle.active.clear()
    await session.idle.chores["hiding lines from an unknown model"].run()
    assert session.questions.outcomes.count(PLAIN.model, "inline") == ENOUGH
    await session.end()
