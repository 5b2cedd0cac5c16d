"""The session with a fake engine in the same process: what is remembered, superseded, stopped and forgotten."""

import asyncio
import gc
import threading
import tracemalloc
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import pytest
from msgspec.structs import replace

from bench.harness.in_process import InProcessClient
from mercury_engine.api import TooLongError
from mercury_engine.fake import FakeEngine
from mercury_ls.code import documents
from mercury_ls.code.documents import Document
from mercury_ls.completion.offers import Answer
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.workspace import Workspace
from mercury_ls.session import idle as idle_module
from mercury_ls.session import next_edits
from mercury_ls.session.generations import CHANGED
from mercury_ls.session.open_files import LARGEST_DOCUMENT
from mercury_ls.session.record import NoRecorder
from mercury_ls.session.session import Session
from mercury_ls.session.stats import REMEMBERED_OFFERS
from mercury_ls.settings.schema import EngineSettings, Settings, SuggestSettings
from tests.mercury_ls.clock import Clock

URI = "file:///project/file.py"
ANSWER = {"x = ": "compute(y)", "z = ": "other(y)"}


@pytest.fixture
def engine():
    return FakeEngine(ANSWER)


@pytest.fixture
async def session(engine):
    made = await started(engine)
    yield made
    await made.end()


async def started(engine: FakeEngine, settings: Settings | None = None, roots: Sequence[Path] = ()) -> Session:
    settings = settings or Settings()
    privacy = Privacy(settings.privacy, roots)
    client = InProcessClient(engine)
    await client.start()
    return Session(settings, client, privacy, Workspace(roots, privacy, settings.context), NoRecorder(), Clock())


def drawn(text: str) -> tuple[str, int]:
    return text.replace("$0", "", 1), text.index("$0")


async def ask(session: Session, text: str, invoked: bool = False) -> Answer:
    """Open or change the one document to `text`, and ask at its `$0`."""
    plain, offset = drawn(text)
    if URI in session.files.documents:
        document = session.files.documents[URI]
        session.change(URI, document.version + 1, [(None, plain)], "utf-16")
    else:
        session.open(URI, "/project/file.py", "python", 1, plain)
    answer = Answer()
    async with aclosing(session.inline(URI, offset, invoked=invoked)) as answers:
        async for latest in answers:
            answer = latest
    return answer


async def check(session: Session, text: str, expected: str, source: str = "model") -> None:
    """`expected` is the text of the only item, or "-" and a part of the reason for silence."""
    answer = await ask(session, text)
    if expected.startswith("- "):
        assert answer.offers == ()
        assert expected[2:] in answer.silence
    else:
        assert [offer.edit.text for offer in answer.offers] == [expected]
        assert answer.source == source


async def test_model_is_asked_once_and_typing_along_needs_it_no_more(session, engine):
    await check(session, "x = $0\n", "compute(y)")
    await check(session, "x = com$0\n", "pute(y)", "type-through")
    await check(session, "x = c$0\n", "ompute(y)", "type-through")
    assert engine.fills == 1


async def test_going_another_way_asks_again(session, engine):
    await check(session, "x = $0\n", "compute(y)")
    await check(session, "z = $0\n", "other(y)")
    assert engine.fills == 2


async def test_complete_line_is_continued_where_it_is_edited(session, engine):
    await check(session, "w = 1\nx = $0 + 2\n", "- code follows the cursor on its line, which you have not edited")
    await check(session, "w = 3\nx = $0 + 2\n", "- which you have not edited")
    assert engine.fills == 0
    await check(session, "w = 3\nx = $0 + 4\n", "compute(y)")


@pytest.mark.parametrize(
    ("deadline_ms", "expected"), [(0, "- too slow here to follow your typing"), (9000, "compute(y)")]
)
async def test_slow_model_follows_typing_where_user_says_how_long_to_wait(deadline_ms, expected):
    slow = FakeEngine(ANSWER, info=replace(FakeEngine().info(), first_line_ms=8000.0))
    session = await started(slow, Settings(engine=EngineSettings(deadline_ms=deadline_ms)))
    await check(session, "x = $0\n", expected)
    await session.end()


async def test_failure_of_the_engine_is_the_reason_and_the_log_has_its_traceback(caplog):
    broken = [True]

    def answer(before):
        if broken:
            raise IndexError("tuple index out of range")
        return ""

    session = await started(FakeEngine(answer))
    failure = "the engine could not answer: IndexError: tuple index out of range"
    assert (await ask(session, "x = $0\n", invoked=True)).silence == failure
    (traceback,) = [record for record in caplog.records if record.exc_info]
    assert "the engine failed on a request of session" in traceback.message
    broken.clear()
    assert await session.completions.why(URI, len("x = ")) == failure, (
        "as it was at the last request, even if it would not be now"
    )
    assert "the model adds nothing here" in (await ask(session, "x = $0\n", invoked=True)).silence
    assert "the model adds nothing here" in await session.completions.why(URI, len("x = "))
    await session.end()


@pytest.mark.parametrize(("context", "window"), [(1024, 1024), (32_768, 2048), (0, 2048)])
async def test_larger_context_follows_setting_and_so_does_unknown_one(context, window):
    session = await started(FakeEngine(info=replace(FakeEngine().info(), context_tokens=context)))
    assert session.questions.budgets.context.tokens == window
    await session.end()


async def test_accepted_suggestion_counts_once(session):
    (offer,) = (await ask(session, "x = $0\n")).offers
    session.accepted(offer.id)
    session.accepted(offer.id)
    session.rejected(offer.id)
    assert (session.tally.counts["accepted"], session.tally.counts["rejected"]) == (1, 0)


async def test_crlf_file_is_read_with_line_feeds_and_keeps_its_own():
    seen = []
    session = await started(FakeEngine(lambda before: seen.append(before) or "y = 1\n    return y"))
    await check(session, "import a\r\n\r\n\r\ndef f(x):\r\n    $0\r\n", "y = 1\r\n    return y")
    assert seen
    assert "\r" not in "".join(seen)
    await session.end()


@pytest.mark.parametrize(
    ("minutes", "silence"), [(float("inf"), "- snoozed"), (float("nan"), "compute(y)"), (-1, "compute(y)")]
)
async def test_snoozing_for_no_number_of_minutes(session, minutes, silence):
    session.questions.snooze(minutes)
    await check(session, "x = $0\n", silence)


async def test_snoozing_ends_by_itself_and_asking_by_hand_goes_through(session):
    session.questions.snooze(5)
    await check(session, "x = $0\n", "- snoozed")
    assert (await ask(session, "x = $0\n", invoked=True)).offers
    session.clock.now = 301.0
    await check(session, "x = $0\n", "compute(y)", "type-through")


async def test_switched_off_for_a_language_or_altogether(engine):
    off = await started(engine, Settings(suggest=SuggestSettings(languages={"python": False})))
    await check(off, "x = $0\n", "- off for python")
    silent = await started(engine, Settings(suggest=SuggestSettings(enabled=False)))
    await check(silent, "x = $0\n", "- suggestions are off")
    for session in (off, silent):
        await session.end()
    assert engine.fills == 0


async def test_text_without_memory_for_it_is_a_reason_and_a_plain_log_line(caplog):
    def refuse(before):
        raise TooLongError("900 tokens take 80 MiB, and 40 MiB are free: end what else uses it")

    session = await started(FakeEngine(refuse))
    await check(
        session, "x = $0\n", "- the engine could not answer: 900 tokens take 80 MiB, and 40 MiB are free: end what"
    )
    (line,) = caplog.records
    assert (line.levelname, line.exc_info) == ("WARNING", None)
    await session.end()


async def test_cancelled_request_stops_engine_within_one_pass():
    reached, go_on = threading.Event(), threading.Event()

    def pause(step: int) -> None:
        if step == 2:
            reached.set()
            go_on.wait(10)

    engine = FakeEngine(ANSWER, passes=50, pause=pause)
    session = await started(engine)
    asking = asyncio.create_task(ask(session, "x = $0\n"))
    await asyncio.to_thread(reached.wait, 10)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    go_on.set()
    await session.end()
    assert engine.forwards <= 3
    assert engine.open == 0


async def test_text_typed_meanwhile_is_taken_off_the_answer():
    reached, go_on = threading.Event(), threading.Event()

    def pause(step: int) -> None:
        reached.set()
        go_on.wait(10)

    session = await started(FakeEngine(ANSWER, passes=1, pause=pause))
    for typed, expected in (("comp", ["ute(y)"]), ("compute(y", []), ("total", [])):
        reached.clear()
        go_on.clear()
        session.close(URI)
        asking = asyncio.create_task(ask(session, "x = $0\n"))
        await asyncio.to_thread(reached.wait, 10)
        session.change(URI, 2, [((0, 4, 0, 4), typed)], "utf-16")
        go_on.set()
        assert [offer.edit.text for offer in (await asking).offers] == expected
    await session.end()


@pytest.mark.parametrize("typed", ["comp", "total"])
async def test_engine_is_not_asked_about_text_that_changes_in_the_pause_before(engine, typed):
    session = await started(engine, Settings(suggest=SuggestSettings(delay_ms=20)))
    asking = asyncio.create_task(ask(session, "x = $0\n"))
    await asyncio.sleep(0)
    session.change(URI, 2, [((0, 4, 0, 4), typed)], "utf-16")
    assert (await asking).silence == CHANGED
    assert engine.fills == 0
    await session.end()


async def test_thousand_suggestions_leave_bounded_memory(session, engine):
    for number in range(1000):
        await ask(session, f"n = {number}\nx = $0\n")
    assert len(session.tally._offers) == REMEMBERED_OFFERS
    assert len(session.decisions) <= 64
    assert engine.open == 0


@pytest.mark.slow
async def test_suggestions_long_gone_do_not_hold_the_texts_they_were_made_for(session):
    text = f"# {'y' * 97}\n" * 120
    tracemalloc.start()
    sizes = []
    for number in range(9):
        await ask(session, f"n = {number}\n" + text + "x = $0\n")
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert sizes[-1] - sizes[3] < 2 * len(text)


async def test_text_of_a_closed_document_that_was_too_large_is_not_kept(session):
    text = f"# {'y' * 97}\n" * (LARGEST_DOCUMENT // 99)
    tracemalloc.start()
    for number in range(3):
        uri = f"file:///project/large{number}.py"
        session.open(uri, f"/project/large{number}.py", "python", 1, text + str(number))
        session.change(uri, 2, [(None, f"{text}x = {number}")], "utf-16")
        assert "larger than 1 MiB" in await session.completions.why(uri, len(text))
        session.close(uri)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < len(text)


class Hiding:
    """Rules that hide every file of these names."""

    def __init__(self, *names: str):
        self.names = names

    def why_hidden(self, path):
        return "by a new rule" if path.endswith(self.names) else None


async def test_file_that_becomes_private_is_forgotten(session):
    await check(session, "x = $0\n", "compute(y)")
    session.change(URI, 9, [((0, 0, 0, 0), "a")], "utf-16")
    session.adopt(session.settings, Hiding("file.py"))
    assert session.files.documents == {}
    assert session.questions.unavailable(URI, invoked=True) == "the file is private: by a new rule"
    assert session.files.history.edits() == ()
    assert session.files.neighbours("file:///project/other.py") == []


@pytest.mark.parametrize("is_open", [True, False])
async def test_file_that_becomes_private_is_no_context_either(session, is_open):
    session.open("file:///project/a.py", "/project/a.py", "python", 1, "def helper(): ...\n")
    if not is_open:
        session.close("file:///project/a.py")
    session.files.privacy = Hiding("a.py")
    assert session.files.neighbours(URI) == []


async def test_rules_count_as_they_are_when_suggestion_is_asked_for(session):
    await check(session, "x = $0\n", "compute(y)")
    session.files.privacy = Hiding("file.py")
    (answer,) = [answer async for answer in session.inline(URI, 4)]
    assert answer.silence == "the file is private: by a new rule"


async def test_renamed_file_is_no_context_under_its_old_name(session):
    session.open("file:///project/a.py", "/project/a.py", "python", 1, "def helper(): ...\n")
    session.close("file:///project/a.py")
    session.files.renamed("/project/a.py", "/project/b.py")
    assert session.files.neighbours(URI) == []
    session.files.privacy = Hiding("a.py")
    session.files.hide_again()


async def test_edits_of_a_file_that_is_renamed_to_a_hidden_name_stay_here(session):
    other = "file:///project/plain.py"
    session.open(other, "/project/plain.py", "python", 1, "")
    session.change(other, 2, [((0, 0, 0, 0), "canary = 1\n")], "utf-16")
    session.files.privacy = Hiding(".env")
    session.files.renamed("/project/plain.py", "/project/.env")
    assert session.files.history.edits() == ()
    assert session.files.why_missing(other) == "the file is private: by a new rule"
    assert session.files.neighbours(URI) == []


async def test_files_that_nobody_has_opened_stand_in_for_neighbours(session, tmp_path):
    texts = {"near.py": "x = compute(near)\n", "deep/far.py": "x = compute(far)\n", ".env.py": "x = compute(token)\n"}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    session.files.workspace = Workspace([tmp_path], session.files.privacy, session.settings.context)
    while session.files.workspace.step(0.0):
        pass
    session.open(URI, str(tmp_path / "file.py"), "python", 1, "x = compute(y)\n")
    opened = str(tmp_path / "deep/far.py")
    session.open(f"file://{opened}", opened, "python", 1, "x = compute(changed)\n")
    told = session.questions.related(session.files.documents[URI].snapshot(), 4).snippets
    assert {snippet.text for snippet in told} == {"x = compute(near)", "x = compute(changed)"}


async def test_file_is_not_told_of_itself_by_another_path(session, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/file.py").write_text("x = compute(as_it_is_on_disk)\n")
    session.files.workspace = Workspace([tmp_path], session.files.privacy, session.settings.context)
    while session.files.workspace.step(0.0):
        pass
    (tmp_path / "link").symlink_to("src")
    session.open(URI, str(tmp_path / "link/file.py"), "python", 1, "x = compute(y)\n")
    assert session.questions.related(session.files.documents[URI].snapshot(), 4).snippets == ()


async def test_position_in_older_text_is_not_looked_up_in_newer_one(session, engine):
    session.open(URI, "/project/file.py", "python", 2, "x = \n")
    (answer,) = [answer async for answer in session.inline(URI, 4, version=1)]
    assert answer.silence == "the text changed before the request had its turn"
    assert engine.fills == 0


async def test_beside_a_menu_the_suggestion_on_the_screen_is_not_trimmed(session):
    await check(session, "x = $0\n", "compute(y)")
    answers = [answer async for answer in session.inline(URI, 4, selected=(4, 4, "com"))]
    assert [(edit.start, edit.text) for edit in answers[-1].edits] == [(4, "compute(y)")]


async def test_documents_too_large_or_binary_are_declined(session):
    await check(session, "x = $0\n" + "y\n" * LARGEST_DOCUMENT, "- larger than 1 MiB")
    await check(session, "\0x = $0\n", "- binary")


async def test_closed_file_still_helps_next_one(session):
    session.open("file:///project/a.py", "/project/a.py", "python", 1, "def helper(): ...\n")
    session.close("file:///project/a.py")
    session.open(URI, "/project/file.py", "python", 1, "x = 1\n")
    assert [snapshot.path for snapshot in session.files.neighbours(URI)] == ["/project/a.py"]


async def test_file_closed_while_its_edit_settles_has_no_next_edit(session, monkeypatch):
    monkeypatch.setattr(next_edits, "SETTLING_SECONDS", 0.0)
    session.open(URI, "/project/file.py", "python", 1, "x = 1\n")
    asked = asyncio.create_task(session.next_edits.ask(URI, 0))
    await asyncio.sleep(0)
    session.close(URI)
    assert (await asked).silence == "the document is not open"


async def test_after_a_branch_switch_nothing_of_before_is_told(session):
    await ask(session, "x = $0\n")
    session.change(URI, 9, [((0, 0, 0, 0), "a")], "utf-16")
    assert session.files.history.edits()
    session.branch_switched()
    assert session.files.history.edits() == ()
    assert session.generations.fitting(session.files.documents[URI].snapshot(), 5, invoked=False) is None


async def test_background_work_that_failed_is_taken_up_again(session, engine, monkeypatch):
    """And what failed does not keep the rest from being done."""
    monkeypatch.setattr(idle_module, "IDLE_SECONDS", 0.0)
    steps, idle = [], []

    def step(now: float) -> bool:
        steps.append(now)
        if len(steps) == 1:
            raise RuntimeError("a bug of ours")
        return False

    monkeypatch.setattr(session.files.workspace, "step", step)
    session.idle.add("the rest", lambda: idle.append(session.clock()))
    tending = asyncio.create_task(session.idle.tend())
    async with asyncio.timeout(10):
        for moment in (0.0, 0.5, 2.0):
            session.clock.now = moment
            await ask(session, "x = $0\n")
            while idle[-1:] != [moment]:
                await asyncio.sleep(0)
    tending.cancel()
    assert steps == [0.0, 2.0]


@pytest.mark.parametrize("failing", [0, 1])
async def test_project_is_read_to_its_end_without_any_activity(session, monkeypatch, failing):
    monkeypatch.setattr(idle_module, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(idle_module, "READING_PAUSE_SECONDS", 0.0)
    steps, workspace = [], session.files.workspace

    def step(now: float) -> bool:
        steps.append(now)
        if len(steps) <= failing:
            raise RuntimeError("a bug of ours")
        return len(steps) < 5

    monkeypatch.setattr(workspace, "step", step)
    monkeypatch.setattr(type(workspace), "is_read", property(lambda self: len(steps) >= 5))
    tending = asyncio.create_task(session.idle.tend())
    async with asyncio.timeout(10):
        while len(steps) < 5:
            session.clock.now += 1.0
            await asyncio.sleep(0)
    tending.cancel()


async def test_asking_for_a_next_edit_is_activity(session):
    await ask(session, "x = $0\n")
    session.idle.active.clear()
    await session.next_edits.ask(URI, 0)
    assert session.idle.active.is_set()


async def test_idle_session_warms_engine(session, engine):
    await ask(session, "x = $0\n")
    await session.idle.warm()
    async with asyncio.timeout(10):
        while not engine.warms:
            await asyncio.sleep(0)


async def test_requests_of_others_have_their_turn_while_a_long_file_is_parsed(session, monkeypatch):
    monkeypatch.setattr(documents, "SLICE_SECONDS", -1.0)
    await ask(session, "a = $0\n")
    long = "def f(a):\n    return [a, (a, 1)]\n\n\n" * 1000
    document = Document(URI, "/project/file.py", "python", 1, long)
    session.files.documents[URI] = document
    asked = asyncio.ensure_future(ask(session, long + "x = $0\n"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert document.is_slow
    assert [offer.edit.text for offer in (await asked).offers] == ["compute(y)"]
    assert not document.is_slow


async def test_file_that_comes_back_changed_has_no_edits(session):
    lines = "".join(f"line {number}\n" for number in range(40))
    session.open(URI, "/project/file.py", "python", 1, lines)
    session.change(URI, 2, [((30, 0, 30, 0), "typed ")], "utf-16")
    session.close(URI)
    session.open(URI, "/project/file.py", "python", 3, "x\n")
    session.change(URI, 4, [((0, 0, 0, 0), "y")], "utf-16")
    assert [(edit.line, edit.after) for edit in session.files.history.edits()] == [(0, "yx\n")]


SAVED = "def area(width):\n    return width\n\n\nprint(area(1))\n"


@pytest.mark.parametrize(
    ("text", "edits"),
    [
        (SAVED.replace("area", "surface", 1), [("def area(width):\n", "def surface(width):\n")]),
        (SAVED, []),
        (SAVED.rstrip(), []),
        (SAVED.replace("\n", "\r\n"), []),
        ("".join(f"a{number} = {number}\n" for number in range(20)), []),
    ],
    ids=["renamed", "as it was saved", "without its last line end", "other line ends", "all of it"],
)
async def test_change_before_the_server_was_there_is_an_edit(tmp_path, text, edits):
    session = await started(FakeEngine(), roots=[tmp_path])
    (path := tmp_path / "a.py").write_text(SAVED, newline="\r\n" if "\r\n" in text else "\n")
    session.open(path.as_uri(), str(path), "python", 1, text)
    assert [(edit.before, edit.after) for edit in session.files.history.edits(own=True)] == edits
    await session.end()


async def test_hidden_file_is_not_compared_with_what_was_saved(tmp_path):
    session = await started(FakeEngine(), roots=[tmp_path])
    (path := tmp_path / ".env").write_text("KEY=1\n")
    session.open(path.as_uri(), str(path), "python", 1, "KEY=2\n")
    assert session.files.history.edits() == ()
    await session.end()
