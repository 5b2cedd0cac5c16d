"""The next edit of a session: sought ahead, over files that are not open, and as the editor's servers complain."""

import asyncio
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from lsprotocol import types as lsp
from msgspec.structs import replace

from bench.harness.in_process import InProcessClient
from mercury_engine.api import EngineError
from mercury_engine.fake import FakeEngine
from mercury_ls.code import documents
from mercury_ls.code.diagnostics import FileDiagnostic
from mercury_ls.completion.judge import Evidence
from mercury_ls.completion.offers import Answer
from mercury_ls.lsp import next_edit as handlers
from mercury_ls.lsp.protocol import InlineContext, Position, SuggestParams
from mercury_ls.lsp.protocol import SyncedDocument as TextDocument
from mercury_ls.lsp.server import Server
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.workspace import Workspace
from mercury_ls.session import next_edits
from mercury_ls.session.record import NoRecorder
from mercury_ls.session.requests import Asker, NextEditRequest
from mercury_ls.session.session import Session
from mercury_ls.settings.schema import Settings, SuggestSettings
from tests.mercury_ls.clock import Clock
from tests.mercury_ls.session.test_session import started

NOWHERE = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
DEFINED = "def fetch_rows(name):\n    return name\n\n\nfirst = fetch_rows(1)\nsecond = fetch_rows(2)\n"
USED = "from here import fetch_rows\n\nresult = fetch_rows(3)\n"


@pytest.fixture
async def session(tmp_path, monkeypatch):
    monkeypatch.setattr(next_edits, "SETTLING_SECONDS", 0.0)
    made = await started(FakeEngine(), roots=[tmp_path])
    yield made
    await made.end()


REWRITES = replace(FakeEngine().info(), fills=False, rewrites=True, calibrated=False)


@pytest.fixture
async def rewriting(tmp_path, monkeypatch):
    """With a next-edit model, which fills nothing in."""
    monkeypatch.setattr(next_edits, "SETTLING_SECONDS", 0.0)
    engine = FakeEngine({"return width\n": "return width * height\n"}, info=REWRITES)
    made = await started(engine, roots=[tmp_path])
    yield made
    await made.end()


@pytest.fixture
async def starting(tmp_path, monkeypatch):
    """With a next-edit model that is ready once its engine is told to start."""
    monkeypatch.setattr(next_edits, "SETTLING_SECONDS", 0.0)
    engine = InProcessClient(FakeEngine({"return width\n": "return width * height\n"}, info=REWRITES))
    settings, roots = Settings(), [tmp_path]
    privacy = Privacy(settings.privacy, roots)
    workspace = Workspace(roots, privacy, settings.context)
    made = Session(settings, engine, privacy, workspace, NoRecorder(), Clock())
    yield made
    await made.end()


REWRITES_LINES = replace(FakeEngine().info(), rewrites=True, rewrites_lines=True)
RESTED = "def area(width):\n    return 1\n\n\n\ndef longer(width):\n    return width\n"


@pytest.fixture
async def line_rewriting(tmp_path, monkeypatch):
    """With a model that rewrites the cursor's line, after an edit in the first line of a document."""
    monkeypatch.setattr(next_edits, "SETTLING_SECONDS", 0.0)
    made = await started(
        FakeEngine({"return width\n": "return width * height\n"}, info=REWRITES_LINES), roots=[tmp_path]
    )
    uri = opened(made, tmp_path / "here.py", RESTED)
    made.change(uri, 2, [((0, 14, 0, 14), ", height")], "utf-16")
    yield made, uri
    await made.end()


async def test_line_where_the_user_rests_is_asked_about(line_rewriting):
    session, uri = line_rewriting
    line = RESTED.index("return width") + len(", height")
    assert (await session.next_edits.ask(uri, line)).offer is None
    assert "a next edit is ready" in await session.next_edits.why(uri, line)
    (edit,) = (await session.next_edits.ask(uri, line, rests=True)).edits
    assert edit.text == " * height"


async def test_rest_at_the_last_edit_is_none(line_rewriting):
    session, uri = line_rewriting
    assert (await session.next_edits.ask(uri, 22, rests=True)).offer is None


async def test_line_below_the_last_edit_is_asked_about(line_rewriting, tmp_path):
    session, _ = line_rewriting
    uri = opened(session, tmp_path / "there.py", "def deep(width):\n    return width\n")
    session.change(uri, 2, [((0, 14, 0, 14), ", height")], "utf-16")
    (edit,) = (await session.next_edits.ask(uri, 30, rests=True)).edits
    assert edit.text == " * height"


async def test_why_joins_what_rules_and_the_model_say_of_the_line(line_rewriting):
    session, uri = line_rewriting
    why = await session.next_edits.why(uri, RESTED.index("\n\n\n") + len("\n\n, height"))
    assert why.startswith("no rule knows what follows from the last edits; only the model was asked about this line; ")


async def test_offer_in_another_file_does_not_hold_up_what_the_line_needs(line_rewriting, tmp_path):
    session, uri = line_rewriting
    there = opened(session, tmp_path / "there.py", "x = get(1)\ny = get(2)\nz = get(3)\n")
    for version, line in enumerate((0, 1), 2):
        session.change(there, version, [((line, 4, line, 7), "load")], "utf-16")
    assert (await session.next_edits.ask(there, 4)).offer
    assert (await session.next_edits.ask(uri, 22, rests=True)).silence.startswith(next_edits.ELSEWHERE)
    line = RESTED.index("return width") + len(", height")
    offer = (await session.next_edits.ask(uri, line, rests=True)).offer
    assert [edit.text for edit in offer.edits] == [" * height"]
    assert (await session.next_edits.ask(there, 4)).silence.startswith(next_edits.ELSEWHERE)


async def test_place_to_go_to_does_not_hold_up_what_the_line_needs(line_rewriting, tmp_path):
    session, _ = line_rewriting
    text = "def deep(value):\n    return 1\n\n\n\ndef longer(width):\n    return width\n\n\nprint(deep(2))\n"
    uri = opened(session, tmp_path / "there.py", text)
    session.change(uri, 2, [((0, 14, 0, 14), ", other")], "utf-16")
    line, led = text.index("return width") + len(", other"), Asker(places=True)
    assert (await session.next_edits.ask(uri, 22, asker=led)).offer.is_place
    offer = (await session.next_edits.ask(uri, line, asker=led, rests=True)).offer
    assert [edit.text for edit in offer.edits] == [" * height"]


async def test_rejected_edit_of_the_line_comes_by_hand_alone(line_rewriting, monkeypatch):
    monkeypatch.setattr(next_edits, "QUIET_AFTER_REJECTION_SECONDS", 0.0)
    session, uri = line_rewriting
    line = RESTED.index("return width") + len(", height")
    session.rejected((await session.next_edits.ask(uri, line, rests=True)).offer.id)
    assert (await session.next_edits.ask(uri, line, rests=True)).offer is None
    assert (await session.next_edits.ask(uri, line, invoked=True)).offer


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
async def test_next_edit_model_rewrites_what_no_rule_knows(rewriting, tmp_path, line_end):
    text = "def area(width):\n    return width\n".replace("\n", line_end)
    uri = opened(rewriting, tmp_path / "here.py", text)
    rewriting.change(uri, 2, [((0, 14, 0, 14), ", height")], "utf-16")
    offer = (await rewriting.next_edits.ask(uri, 22)).offer
    (edit,) = offer.edits
    assert (edit.text, offer.base[uri].text[: edit.start].splitlines()[-1]) == (" * height", "    return width")
    assert (await rewriting.next_edits.why(uri, 22)).startswith("on offer: edit (1 here)")
    rewriting.change(uri, 3, [((1, 16, 1, 16), edit.text)], "utf-16")
    rewriting.accepted(offer.id)
    assert rewriting.tally.counts["accepted"] == 1
    assert (await rewriting.next_edits.ask(uri, 22)).offer is None


def learned(session: Session) -> list[tuple[bool, bool]]:
    fates = session.questions.outcomes._all.values()
    return [(fate.kept, fate.shown) for some in fates for fate in some]


async def test_rewrites_are_judged_by_their_fate(rewriting, tmp_path):
    uri = opened(rewriting, tmp_path / "here.py", "def area(width):\n    return width\n")
    rewriting.change(uri, 2, [((0, 14, 0, 14), ", height")], "utf-16")
    before = (await rewriting.next_edits.ask(uri, 22)).offer
    rewriting.tally.answered(before.id)
    rewriting.rejected(before.id)
    assert learned(rewriting) == [(False, True)]
    after = (await rewriting.next_edits.ask(uri, 22, invoked=True)).offer
    assert after.p_accept < before.p_accept


@pytest.mark.parametrize(("typed", "kept"), [(" * height", True), ("(height)", False)])
async def test_unseen_rewrites_are_judged_by_what_the_user_wrote(rewriting, tmp_path, typed, kept):
    certain = replace(rewriting.settings, suggest=SuggestSettings(minimum_probability=0.95))
    rewriting.adopt(certain, rewriting.files.privacy, rewriting.files.workspace)
    uri = opened(rewriting, tmp_path / "here.py", "def area(width):\n    return width\n")
    rewriting.change(uri, 2, [((0, 14, 0, 14), ", height")], "utf-16")
    assert (await rewriting.next_edits.ask(uri, 22)).offer is None
    assert learned(rewriting) == []
    rewriting.change(uri, 3, [((1, 16, 1, 16), typed)], "utf-16")
    assert learned(rewriting) == [(kept, False)]


async def test_refused_rewrite_comes_back_only_on_request(rewriting, tmp_path, monkeypatch):
    monkeypatch.setattr(next_edits, "QUIET_AFTER_REJECTION_SECONDS", 0.0)
    uri = opened(rewriting, tmp_path / "here.py", "def area(width):\n    return width\n")
    rewriting.change(uri, 2, [((0, 14, 0, 14), ", height")], "utf-16")
    rewriting.rejected((await rewriting.next_edits.ask(uri, 22)).offer.id)
    rewriting.change(uri, 3, [((0, 22, 0, 22), ", depth")], "utf-16")
    assert (await rewriting.next_edits.ask(uri, 29)).offer is None
    assert (await rewriting.next_edits.ask(uri, 29, invoked=True)).offer


AREA = "def area(width):\n    return width\n"


async def edited(session: Session, tmp_path: Path) -> str:
    uri = opened(session, tmp_path / "here.py", AREA)
    session.change(uri, 2, [((0, 14, 0, 14), ", height")], "utf-16")
    return uri


async def test_explicit_request_works_in_an_unedited_file(rewriting, tmp_path):
    uri = opened(rewriting, tmp_path / "here.py", AREA)
    assert (await rewriting.next_edits.ask(uri, 14)).silence == "nothing has been edited yet"
    offer = (await rewriting.next_edits.ask(uri, 14, invoked=True)).offer
    assert [edit.text for edit in offer.edits] == [" * height"]


async def test_explicit_request_waits_for_a_starting_engine(starting, tmp_path):
    uri = await edited(starting, tmp_path)
    asked = asyncio.ensure_future(starting.next_edits.ask(uri, 22, invoked=True))
    await asyncio.wait([asked], timeout=0.01)
    assert not asked.done()
    await starting.engine.start()
    answer = await asked
    assert ([edit.text for edit in answer.edits], answer.silence) == ([" * height"], "")


async def test_explicit_request_asks_an_engine_that_was_ready_before_the_search_ended(starting, tmp_path, monkeypatch):
    uri = await edited(starting, tmp_path)
    search = starting.next_edits._found

    async def slow(request):
        answer = await search(request)
        await starting.engine.start()
        return answer

    monkeypatch.setattr(starting.next_edits, "_found", slow)
    answer = await starting.next_edits.ask(uri, 22, invoked=True)
    assert [edit.text for edit in answer.edits] == [" * height"]


async def test_explicit_request_waits_longer_for_a_loading_engine(starting, tmp_path, monkeypatch):
    monkeypatch.setattr(next_edits, "STARTING_SECONDS", 0.0)
    uri = await edited(starting, tmp_path)
    status = starting.engine.status
    monkeypatch.setattr(type(starting.engine), "status", property(lambda gate: replace(status, state="loading")))
    asked = asyncio.ensure_future(starting.next_edits.ask(uri, 22, invoked=True))
    await asyncio.wait([asked], timeout=0.01)
    assert not asked.done()
    monkeypatch.undo()
    await starting.engine.start()
    assert [edit.text for edit in (await asked).offer.edits] == [" * height"]


async def test_explicit_request_says_that_the_engine_still_starts(starting, tmp_path, monkeypatch):
    monkeypatch.setattr(next_edits, "STARTING_SECONDS", 0.0)
    uri = await edited(starting, tmp_path)
    assert (await starting.next_edits.ask(uri, 22, invoked=True)).silence.endswith("; the engine is starting")


async def test_request_during_the_start_is_answered_once_ready(starting, tmp_path):
    uri = await edited(starting, tmp_path)
    assert (await starting.next_edits.ask(uri, 22)).offer is None
    await starting.engine.start()
    starting.next_edits.engine_changed()
    assert starting.next_edits._ahead is not None
    offer = (await starting.next_edits.ask(uri, 22)).offer
    assert [edit.text for edit in offer.edits] == [" * height"]


async def test_offer_from_before_the_start_is_looked_for_again(starting, tmp_path):
    uri = opened(starting, tmp_path / "here.py", DEFINED)
    starting.change(uri, 2, [((0, 4, 0, 14), "load_rows")], "utf-16")
    assert (await starting.next_edits.ask(uri, 13)).offer
    assert not starting.next_edits.is_outdated
    await starting.engine.start()
    assert starting.next_edits.is_outdated
    assert (await starting.next_edits.ask(uri, 13)).offer
    assert not starting.next_edits.is_outdated


@contextmanager
def noted_pauses(monkeypatch):
    """The pauses of the search for next edits, in seconds, none of which is waited for."""
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    with monkeypatch.context() as patch:
        patch.setattr(next_edits.asyncio, "sleep", noted)
        yield pauses


async def test_next_edit_model_is_asked_at_once_and_rules_wait(rewriting, tmp_path, monkeypatch):
    monkeypatch.setattr(next_edits, "SETTLING_SECONDS", 0.1)
    uri = await edited(rewriting, tmp_path)
    with noted_pauses(monkeypatch) as pauses:
        assert (await rewriting.next_edits.ask(uri, 22)).offer.kind == "region"
        assert not any(pauses)
        other = opened(rewriting, tmp_path / "renamed.py", DEFINED)
        rewriting.change(other, 2, [((0, 4, 0, 14), "load_rows")], "utf-16")
        assert (await rewriting.next_edits.ask(other, 13)).offer.kind == "rename"
        assert any(pauses)


@pytest.mark.parametrize(
    ("fates", "seconds"), [("", 0), ("-", 0.5), ("---", 1.5), ("-" * 9, 2), ("---+", 0), ("+--", 1)]
)
async def test_its_record_decides_how_often_a_next_edit_model_is_asked(tmp_path, monkeypatch, fates, seconds):
    monkeypatch.setattr(next_edits, "SETTLING_SECONDS", 0.0)
    engine = FakeEngine({"return width\n": "return width * height\n"}, info=replace(REWRITES, strong=True))
    session = await started(engine, roots=[tmp_path])
    for fate in fates:
        session.questions.lesson("nextEdit", Evidence(0.9))(fate == "+", shown=True)
    uri = await edited(session, tmp_path)
    with noted_pauses(monkeypatch) as pauses:
        await session.next_edits.ask(uri, 22)
        assert max(pauses) == seconds
        pauses.clear()
        await session.next_edits.ask(uri, 22, invoked=True)
        assert not any(pauses)
    await session.end()


class Gone:
    """An engine that cannot answer."""

    def info(self):
        return REWRITES

    def rewrite(self, regions):
        raise EngineError("the server has gone")


async def test_why_says_what_is_wrong_with_the_engine(tmp_path):
    made = await started(Gone(), roots=[tmp_path])
    uri = await edited(made, tmp_path)
    assert "; the server has gone" in await made.next_edits.why(uri, 22)
    await made.end()


async def test_why_tells_what_became_of_the_models_answer(rewriting, tmp_path):
    uri = opened(rewriting, tmp_path / "here.py", "def area(width):\n    return 1\n")
    rewriting.change(uri, 2, [((0, 14, 0, 14), ", height")], "utf-16")
    assert "the model changes nothing here" in await rewriting.next_edits.why(uri, 22)
    await rewriting.next_edits.ask(uri, 22)
    decision = rewriting.decisions[-1]
    assert "next edit: no rule knows what follows from the last edits; the model changes nothing here (" in decision
    assert "here.py:1: " in decision


async def test_next_edit_model_completes_nothing_and_why_says_so(rewriting, tmp_path):
    uri = opened(rewriting, tmp_path / "here.py", "value = \n")
    assert (await rewriting.completions.why(uri, 8)).startswith("the model only proposes next edits; ")
    await rewriting.idle.warm()


LONG = ", ".join(f"'item_{number}'" for number in range(8000))


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (f"x = 1\n[{LONG}]\n", 1, "the last edit is too large to follow: its lines have more than 32,768 characters"),
        (
            f"x = 1\n# {'é' * 530_000}\n",
            0,
            "the syntax of the edited file is unknown: it is larger than 1,048,576 bytes",
        ),
        (
            f"x = 1\n[{LONG}]\n",
            0,
            "the syntax of the edited file is unknown: the parser would need more than 0.1 s for it",
        ),
    ],
)
async def test_edit_that_is_too_large_is_named_with_its_limit(session, tmp_path, monkeypatch, text, line, reason):
    monkeypatch.setattr(documents, "PIECE_SECONDS", -1.0)
    uri = opened(session, tmp_path / "here.py", text)
    session.change(uri, 2, [((line, 0, line, 1), "(")], "utf-16")
    session.change(uri, 3, [((line, 0, line, 1), "y")], "utf-16")
    assert (await session.next_edits.ask(uri, 0)).silence == reason
    assert await session.next_edits.why(uri, 0) == reason


def opened(session: Session, path: Path, text: str) -> str:
    path.write_text(text)
    session.open(path.as_uri(), str(path), "python", 1, text)
    return path.as_uri()


def index(session: Session) -> None:
    while session.files.workspace.step(0.0):
        pass


async def renamed(session: Session, folder: Path) -> str:
    """`fetch_rows` has just got a new name where it is defined."""
    (folder / "other.py").write_text(USED)
    uri = opened(session, folder / "here.py", DEFINED)
    index(session)
    session.change(uri, 2, [((0, 4, 0, 14), "load_rows")], "utf-16")
    return uri


async def test_files_that_are_not_open_are_part_of_the_answer(session, tmp_path):
    uri = await renamed(session, tmp_path)
    offer = (await session.next_edits.ask(uri, 13, invoked=True)).offer
    other = (tmp_path / "other.py").as_uri()
    assert {edit.uri for edit in offer.edits} == {uri, other}
    assert {each: offer.version(each) for each in offer.base} == {uri: 2, other: None}
    assert [USED[e.start : e.end] for e in offer.edits if e.uri == other] == ["fetch_rows", "fetch_rows"]


async def test_rename_in_no_project_says_that_only_open_files_are_looked_at(session, tmp_path):
    note = "only open files are looked at: no project folder (.git, pyproject.toml …)"
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    uri = await renamed(session, outside)
    offer = (await session.next_edits.ask(uri, 13, invoked=True)).offer
    assert ({edit.uri for edit in offer.edits}, offer.note) == ({uri}, note)
    await why(session, uri, "on offer: rename `fetch_rows` → `load_rows` (2 here)", note)


async def test_rename_in_a_text_that_is_no_file_needs_no_project(session):
    session.open("untitled:1", "Untitled-1", "python", 1, DEFINED)
    session.change("untitled:1", 2, [((0, 4, 0, 14), "load_rows")], "utf-16")
    assert (await session.next_edits.ask("untitled:1", 13, invoked=True)).offer.note == ""


async def test_typing_on_in_the_edit_gets_another_answer(session, tmp_path):
    uri = opened(session, tmp_path / "here.py", DEFINED)
    session.change(uri, 2, [((0, 4, 0, 14), "l")], "utf-16")
    offer = (await session.next_edits.ask(uri, 5, invoked=True)).offer
    assert {edit.text for edit in offer.edits} == {"l"}
    session.change(uri, 3, [((0, 5, 0, 5), "oad")], "utf-16")
    offer = (await session.next_edits.ask(uri, 8, invoked=True)).offer
    assert {edit.text for edit in offer.edits} == {"load"}


async def test_change_elsewhere_gets_what_follows_from_it(session, tmp_path):
    uri = await renamed(session, tmp_path)
    await session.next_edits.ask(uri, 13, invoked=True)
    text = "def shape(side):\n    return side\n\n\nprint(shape(1))\nprint(shape(2))\n"
    shapes = opened(session, tmp_path / "shapes.py", text)
    session.change(shapes, 2, [((0, 4, 0, 9), "square")], "utf-16")
    offer = (await session.next_edits.ask(shapes, 10, invoked=True)).offer
    assert [(edit.uri, edit.text) for edit in offer.edits] == [(shapes, "square"), (shapes, "square")]


async def test_newer_edit_comes_before_a_surer_old_offer(session, tmp_path):
    uri = opened(session, tmp_path / "here.py", DEFINED + 'log.info("a", x)\nlog.info("b", y)\nlog.info("c", z)\n')
    session.change(uri, 2, [((0, 4, 0, 14), "load_rows")], "utf-16")
    old = (await session.next_edits.ask(uri, 13)).offer
    session.change(uri, 3, [((6, 4, 6, 8), "debug")], "utf-16")
    new = (await session.next_edits.ask(uri, session.files.documents[uri].text.index("debug") + 5)).offer
    assert (old.label, new.label) == ("rename `fetch_rows` → `load_rows`", "rename `info` → `debug`")
    assert old.p_accept > new.p_accept


async def test_old_offer_does_not_come_back_before_newer_text(session, tmp_path):
    uri = opened(session, tmp_path / "here.py", DEFINED + 'log.info("a", x)\nlog.info("b", y)\nlog.info("c", z)\n')
    session.change(uri, 2, [((0, 4, 0, 14), "load_rows")], "utf-16")
    assert (await session.next_edits.ask(uri, 13)).offer
    session.change(uri, 3, [((6, 4, 6, 8), "debug(")], "utf-16")
    at = session.files.documents[uri].text.index("debug") + 6
    assert (await session.next_edits.ask(uri, at)).silence == "the statement at the cursor is not complete"
    session.change(uri, 4, [((6, 9, 6, 10), "")], "utf-16")
    assert (await session.next_edits.ask(uri, at - 1)).offer.label == "rename `info` → `debug`"


async def test_edit_without_consequences_leaves_the_offer(session, tmp_path):
    uri = opened(session, tmp_path / "here.py", DEFINED)
    session.change(uri, 2, [((0, 4, 0, 14), "load_rows")], "utf-16")
    old = (await session.next_edits.ask(uri, 13)).offer
    session.change(uri, 3, [((2, 0, 2, 0), "count = 0")], "utf-16")
    assert (await session.next_edits.ask(uri, 40)).offer.id == old.id


async def test_code_action_shows_what_follows_from_the_latest_edit(session, tmp_path):
    client = Client(session)
    uri = opened(session, tmp_path / "here.py", DEFINED + "def shape(side):\n    return side\n\n\nprint(shape(1))\n")
    asked = lsp.CodeActionParams(lsp.TextDocumentIdentifier(uri), NOWHERE, lsp.CodeActionContext(diagnostics=[]))
    session.change(uri, 2, [((0, 4, 0, 14), "load_rows")], "utf-16")
    assert await handlers.code_action(client, asked) == []
    await session.next_edits.ask(uri, 13)
    (action,) = await handlers.code_action(client, asked)
    assert action.title == "mercury: rename `fetch_rows` → `load_rows` (2 here)"
    session.change(uri, 3, [((6, 4, 6, 9), "square")], "utf-16")
    (action,) = await handlers.code_action(client, asked)
    assert action.title == "mercury: rename `shape` → `square` (1 here)"


async def why(session, uri, *parts):
    said = await session.next_edits.why(uri, 13)
    assert all(part in said for part in parts), said


async def test_why_tells_of_next_edits_too(session, tmp_path):
    uri = opened(session, tmp_path / "here.py", DEFINED)
    await why(session, uri, "nothing has been edited yet")
    session.change(uri, 2, [((0, 4, 0, 14), "load_rows")], "utf-16")
    await why(session, uri, "a next edit is ready: rename `fetch_rows` → `load_rows` (2 here)")
    assert session.next_edits.standing.current() is None
    offer = (await session.next_edits.ask(uri, 13)).offer
    await why(session, uri, "on offer: rename `fetch_rows` → `load_rows` (2 here)")
    session.rejected(offer.id)
    await why(session, uri, "rejected a moment ago")
    await why(session, "file:///nowhere.py", "the document is not open")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (((0, 4, 0, 7), "two"), "the last one is `one` → `two` at here.py:1"),
        (((0, 7, 0, 7), " + 1"), "the last one added `+ 1` at here.py:1"),
        (((1, 0, 2, 0), ""), "the last one removed `rest = 3` at here.py:2"),
        (((1, 4, 1, 4), ", "), "the last one is at here.py:2"),
    ],
)
async def test_why_names_the_edit_from_which_nothing_follows(session, tmp_path, change, said):
    uri = opened(session, tmp_path / "here.py", "x = one\nrest = 3\n")
    session.change(uri, 2, [change], "utf-16")
    await why(session, uri, f"no rule knows what follows from the last edits; {said}")


async def test_why_names_places_that_nobody_can_judge(session, tmp_path):
    (tmp_path / "use.py").write_text("from here import Rows\n\n\ndef show(rows):\n    return rows.fetch()\n")
    uri = opened(session, tmp_path / "here.py", "class Rows:\n    def fetch(self):\n        return self.fetch()\n")
    index(session)
    session.change(uri, 2, [((1, 8, 1, 13), "load")], "utf-16")
    note = "1 more place cannot be judged: use.py:5"
    await why(session, uri, f"a next edit is ready: rename `fetch` → `load` (1 here); {note}")
    offer = (await session.next_edits.ask(uri, 26)).offer
    await why(session, uri, f"on offer: rename `fetch` → `load` (1 here); {note}")
    session.change(uri, 3, [((2, 20, 2, 25), "load")], "utf-16")
    assert session.next_edits.accepted(offer.id) is not None
    assert await session.next_edits.why(uri, 26) == f"{note.replace(' more', '')}, since `fetch` became `load`"


async def test_uses_in_a_file_that_calls_the_class_otherwise_are_changed(session, tmp_path):
    (tmp_path / "use.ts").write_text("import Q from './here';\n\nnew Q().fetch();\n")
    text = "export default class Rows {\n  fetch() { return this.fetch(); }\n}\n"
    (tmp_path / "here.ts").write_text(text)
    uri = (tmp_path / "here.ts").as_uri()
    session.open(uri, str(tmp_path / "here.ts"), "typescript", 1, text)
    index(session)
    session.change(uri, 2, [((1, 2, 1, 7), "load")], "utf-16")
    offer = (await session.next_edits.ask(uri, 34)).offer
    assert (len(offer.edits), offer.note) == (2, "")


async def test_why_names_the_bar_that_a_next_edit_is_under(session, tmp_path):
    session.adopt(
        Settings(suggest=SuggestSettings(minimum_probability=0.99)), session.files.privacy, session.files.workspace
    )
    uri = opened(session, tmp_path / "here.py", DEFINED)
    session.change(uri, 2, [((0, 4, 0, 14), "load_rows")], "utf-16")
    await why(session, uri, "rename `fetch_rows` → `load_rows` is 90% likely, under the bar of 99%")


async def test_why_names_a_setting_that_keeps_next_edits_away(session, tmp_path):
    session.adopt(Settings(suggest=SuggestSettings(enabled=False)))
    uri = opened(session, tmp_path / "here.py", DEFINED)
    await why(session, uri, "suggest.enabled")


async def test_change_during_the_answer_is_not_taken_for_known(session, tmp_path):
    uri = await renamed(session, tmp_path)
    text = "def shape(side):\n    return side\n\n\nprint(shape(1))\nprint(shape(2))\n"
    shapes = opened(session, tmp_path / "shapes.py", text)
    answer = next_edits.next_edits

    async def interrupted(question, engine):
        session.change(shapes, 2, [((0, 4, 0, 9), "square")], "utf-16")
        async for latest in answer(question, engine):
            yield latest

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(next_edits, "next_edits", interrupted)
        await session.next_edits.ask(uri, 13)
    offer = (await session.next_edits.ask(shapes, 10, invoked=True)).offer
    assert [(edit.uri, edit.text) for edit in offer.edits] == [(shapes, "square"), (shapes, "square")]


async def test_offer_keeps_to_its_files_unless_requested(session, tmp_path):
    uri = await renamed(session, tmp_path)
    notes = opened(session, tmp_path / "notes.py", "x = 1\n")
    offer = (await session.next_edits.ask(uri, 13)).offer
    (other,) = {edit.uri for edit in offer.edits} - {uri}
    elsewhere = await session.next_edits.ask(notes, 0)
    assert (elsewhere.offer, elsewhere.silence) == (
        None,
        "the next edits are in other files: rename `fetch_rows` → `load_rows` (4 in 2 files)",
    )
    assert (await session.next_edits.ask(other, 0)).offer.id == offer.id
    assert (await session.next_edits.ask(notes, 0, invoked=True)).offer.id == offer.id
    assert (await session.next_edits.ask(uri, 13)).offer.id == offer.id


async def test_offer_is_shown_in_the_file_whose_edit_it_follows(session, tmp_path):
    (tmp_path / "other.py").write_text(USED)
    uri = opened(session, tmp_path / "here.py", DEFINED.partition("first")[0])
    index(session)
    session.change(uri, 2, [((0, 4, 0, 14), "load_rows")], "utf-16")
    offer = (await session.next_edits.ask(uri, 13)).offer
    assert {edit.uri for edit in offer.edits} == {(tmp_path / "other.py").as_uri()}


async def test_file_that_became_private_has_no_next_edit(session, tmp_path):
    (tmp_path / ".git").mkdir()
    uri = await renamed(session, tmp_path)
    (tmp_path / ".gitignore").write_text("here.py\n")
    found = await session.next_edits.ask(uri, 13, invoked=True)
    assert found.offer is None
    assert found.silence.startswith("the file is private")


async def test_new_bar_counts_from_then_on(session, tmp_path):
    uri = await renamed(session, tmp_path)
    certain = Settings(suggest=SuggestSettings(minimum_probability=1.0))
    session.adopt(certain)
    assert (await session.next_edits.ask(uri, 13)).offer is None


async def test_partly_made_offer_stays_the_same_offer(session, tmp_path):
    uri = await renamed(session, tmp_path)
    offer = (await session.next_edits.ask(uri, 13, invoked=True)).offer
    session.change(uri, 3, [((4, 8, 4, 18), "load_rows")], "utf-16")
    rest = (await session.next_edits.ask(uri, 70, invoked=True)).offer
    assert rest.id == offer.id
    assert len(rest.edits) == len(offer.edits) - 1


async def test_line_typed_elsewhere_leaves_the_offer(session, tmp_path):
    uri = await renamed(session, tmp_path)
    offer = (await session.next_edits.ask(uri, 13, invoked=True)).offer
    session.change(uri, 3, [((2, 0, 2, 0), "count = 0")], "utf-16")
    moved = (await session.next_edits.ask(uri, 40, invoked=True)).offer
    assert [edit.text for edit in moved.edits] == [edit.text for edit in offer.edits]


class Client:
    """As much of the language server as the handlers ask for; the client takes versioned edits."""

    def __init__(self, session: Session, *, knows_mercury: bool = False, document_changes: bool = True) -> None:
        edits = SimpleNamespace(document_changes=document_changes, change_annotation_support=None)
        self.knows_mercury = knows_mercury
        self.started, self.encoding, self.accept_command = session, "utf-16", "mercury.didAccept"
        self.range_of, self.offset = partial(Server.range_of, self), partial(Server.offset, self)
        self.protocol = SimpleNamespace(
            client_capabilities=SimpleNamespace(workspace=SimpleNamespace(workspace_edit=edits))
        )

    async def newest(self, kind: str, uri: str, work):
        return await work

    async def showing_work(self, work):
        return await work()


def asked(uri: str, **context) -> SuggestParams:
    return SuggestParams(TextDocument(uri, 2), Position(0, 13), InlineContext(trigger_kind=1, **context))


async def test_edits_of_closed_files_go_only_to_clients_that_can_make_them(session, tmp_path):
    client, uri = Client(session), await renamed(session, tmp_path)
    other = (tmp_path / "other.py").as_uri()
    told = await handlers.next_edit(client, asked(uri, closed_files=True))
    assert {e["textDocument"]["uri"]: e["textDocument"]["version"] for e in told["edits"]} == {uri: 2, other: None}
    told = await handlers.next_edit(client, asked(uri))
    assert {edit["textDocument"]["uri"] for edit in told["edits"]} == {uri}
    told = await handlers.copilot_inline_edit(client, asked(uri))
    assert {edit["textDocument"]["uri"] for edit in told["edits"]} == {uri}


async def test_edits_that_a_client_cannot_show_withhold_nothing(session, tmp_path):
    client, uri = Client(session), await renamed(session, tmp_path)
    told = await handlers.next_edit(client, asked(uri))
    for edit in sorted(told["edits"], key=lambda each: -each["range"].start.line):
        start, end = edit["range"].start, edit["range"].end
        where = start.line, start.character, end.line, end.character
        session.change(uri, session.files.documents[uri].version + 1, [(where, edit["newText"])], "utf-16")
    session.accepted(told["id"])
    assert session.next_edits.standing.current() is None
    session.next_edits.end()


async def test_offer_of_closed_files_alone_needs_a_client_that_shows_them(session, tmp_path):
    uri = await renamed(session, tmp_path)
    offer = (await session.next_edits.ask(uri, 13, invoked=True)).offer
    here = [edit for edit in offer.edits if edit.uri == uri]
    for edit in sorted(here, key=lambda each: -each.start):
        snapshot = session.files.documents[uri].snapshot()
        where = *snapshot.position(edit.start, "utf-16"), *snapshot.position(edit.end, "utf-16")
        session.change(uri, snapshot.version + 1, [(where, edit.text)], "utf-16")
    left = (await session.next_edits.ask(uri, 13, invoked=True)).offer
    assert {edit.uri for edit in left.edits} == {(tmp_path / "other.py").as_uri()}
    assert (await session.next_edits.ask(uri, 13, invoked=True, asker=Asker(closed=False))).offer is None


BY_HAND = lsp.CodeActionContext(diagnostics=[], trigger_kind=lsp.CodeActionTriggerKind.Invoked)


async def action_on_request(client: Client, uri: str) -> tuple[str, set[str]]:
    """The title of what a lamp offers to who asks for it, and the files that it would change."""
    (action,) = await handlers.code_action(
        client, lsp.CodeActionParams(lsp.TextDocumentIdentifier(uri), NOWHERE, BY_HAND)
    )
    changed = action.edit.changes or {change.text_document.uri for change in action.edit.document_changes}
    return action.title.removeprefix("mercury: rename `fetch_rows` → "), {*changed}


@pytest.mark.parametrize(
    ("client", "context", "files"),
    [
        ({}, None, "2 here, 2 in other.py"),
        ({"document_changes": False}, None, "2 here"),
        ({"knows_mercury": True}, None, "2 here"),
        ({"knows_mercury": True}, {"closed_files": True}, "2 here, 2 in other.py"),
        ({"knows_mercury": True}, {"closed_files": True, "rename_provider": "pyright"}, "2 here"),
        ({"knows_mercury": True}, {"closed_files": False}, "2 here"),
    ],
    ids=["any", "plain changes", "plugin", "plugin with closed files", "beside a server that renames", "open files"],
)
async def test_a_code_action_changes_closed_files_only_where_the_client_can(session, tmp_path, client, context, files):
    asking, uri = Client(session, **client), await renamed(session, tmp_path)
    if context is not None:
        await handlers.next_edit(asking, asked(uri, **context))
        session.change(uri, 3, [((0, 13, 0, 13), "s")], "utf-16")
    name = "load_rowss" if context is not None else "load_rows"
    title, changed = await action_on_request(asking, uri)
    assert title == f"`{name}` ({files})"
    assert changed == {uri, *([(tmp_path / "other.py").as_uri()] if "other" in files else [])}


async def test_a_plugin_gets_open_files_alone_where_it_has_not_said_what_it_can_show(session, tmp_path):
    uri = await renamed(session, tmp_path)
    used = opened(session, tmp_path / "used.py", USED)
    client = Client(session, knows_mercury=True)
    assert (await handlers.next_edit(client, asked(uri, closed_files=True)))["summary"] == "2 here, 4 in 2 other files"
    assert await action_on_request(client, used) == ("`load_rows` (2 here, 2 in here.py)", {used, uri})
    assert (await action_on_request(client, uri))[0] == "`load_rows` (2 here, 4 in 2 other files)"


async def test_a_request_under_way_keeps_to_what_its_client_can_show(session, tmp_path, monkeypatch):
    uri = await renamed(session, tmp_path)
    answer, files = next_edits.next_edits, []

    async def noted(question, engine):
        files.append(len(question.neighbours))
        async for latest in answer(question, engine):
            yield latest

    monkeypatch.setattr(next_edits, "next_edits", noted)
    first = asyncio.ensure_future(session.next_edits.ask(uri, 13, asker=Asker(closed=False)))
    second = asyncio.ensure_future(session.next_edits.ask(uri, 13, asker=Asker(closed=True)))
    offers = [(await request).offer for request in (first, second)]
    assert files == [0, 1]
    assert [len(offer.edits) for offer in offers] == [2, 4]


async def test_workspace_edit_of_a_closed_file_has_no_version(session, tmp_path):
    client, uri = Client(session), await renamed(session, tmp_path)
    await session.next_edits.ask(uri, 13, invoked=True)
    found = handlers.workspace_edit(client, session.next_edits.standing.current(), uri).document_changes
    versions = {each.text_document.uri: each.text_document.version for each in found}
    assert versions == {uri: 2, (tmp_path / "other.py").as_uri(): None}
    places = [edit.range.start.line for each in found for edit in each.edits if each.text_document.version is None]
    assert sorted(places) == [0, 2]


def spelled(text: str, place: lsp.Range) -> str:
    assert place.start.line == place.end.line
    return text.splitlines()[place.start.line][place.start.character : place.end.character]


async def test_offer_lists_its_edits_those_here_first_with_old_text(session, tmp_path):
    client, uri = Client(session), await renamed(session, tmp_path)
    told = await handlers.next_edit(client, asked(uri, closed_files=True))
    assert (told["label"], told["summary"]) == ("rename `fetch_rows` → `load_rows`", "2 here, 2 in other.py")
    assert [edit["textDocument"]["uri"] == uri for edit in told["edits"]] == [True, True, False, False]
    assert {edit["oldText"] for edit in told["edits"]} == {"fetch_rows"}
    assert {spelled(USED, e["range"]) for e in told["edits"] if e["textDocument"]["uri"] != uri} == {"fetch_rows"}
    told = await handlers.next_edit(client, asked(uri))
    assert told["summary"] == "2 here"


async def test_note_is_one_line_whatever_files_are_called(session, tmp_path):
    (tmp_path / "b\u202e\nc.py").write_text("from here import Rows\n\n\ndef show(rows):\n    return rows.fetch()\n")
    uri = opened(session, tmp_path / "here.py", "class Rows:\n    def fetch(self):\n        return self.fetch()\n")
    index(session)
    session.change(uri, 2, [((1, 8, 1, 13), "load")], "utf-16")
    told = await handlers.next_edit(Client(session), asked(uri))
    assert told["note"].endswith("1 more place cannot be judged: b\\u202e\\nc.py:5")


async def test_name_that_is_taken_is_neither_kept_nor_logged(session, tmp_path, caplog):
    caplog.set_level("INFO")
    uri = opened(session, tmp_path / "here.py", "def a(secret, size):\n    return secret + size\n")
    session.change(uri, 2, [((0, 6, 0, 12), "size")], "utf-16")
    assert "the name `size` is taken" in (await session.next_edits.ask(uri, 1, invoked=True)).silence
    assert "the name `…` is taken" in session.decisions[-1]
    assert "secret" not in caplog.text


async def test_edit_on_offer_elsewhere_is_neither_kept_nor_logged(session, tmp_path, caplog):
    caplog.set_level("INFO")
    uri = await renamed(session, tmp_path)
    other = opened(session, tmp_path / "unrelated.py", "x = 1\n")
    assert (await session.next_edits.ask(uri, 1, invoked=True)).offer
    assert "`load_rows`" in (await session.next_edits.ask(other, 1)).silence
    assert "rename `…` → `…`" in session.decisions[-1]
    assert "_rows" not in caplog.text


@pytest.mark.parametrize("encoding", ["latin-1", "cp1251", "shift-jis", "utf-16"])
async def test_file_that_is_not_utf8_is_named_beside_a_rename(session, tmp_path, encoding):
    (tmp_path / "old.py").write_bytes(f"# {'Я' if encoding != 'latin-1' else 'é'}\n{USED}".encode(encoding))
    (tmp_path / "older.py").write_bytes(b"# \xe9\nnothing = 1\n")
    client, uri = Client(session), await renamed(session, tmp_path)
    told = await handlers.next_edit(client, asked(uri, closed_files=True))
    assert told["summary"] == "2 here, 2 in other.py"
    assert told["note"] == "1 file that is not UTF-8 may use this name: old.py"


async def test_open_file_is_read_whatever_its_encoding(session, tmp_path):
    opened(session, tmp_path / "old.py", f"# é\n{USED}")
    (tmp_path / "old.py").write_bytes(f"# é\n{USED}".encode("latin-1"))
    client, uri = Client(session), await renamed(session, tmp_path)
    told = await handlers.next_edit(client, asked(uri, closed_files=True))
    assert (told["summary"], told["note"]) == ("2 here, 4 in 2 other files", "")


async def test_rest_of_a_rename_is_left_to_a_renaming_server(session, tmp_path):
    client, uri = Client(session), await renamed(session, tmp_path)
    told = await handlers.next_edit(client, asked(uri, closed_files=True, rename_provider="pyright"))
    assert told["summary"] == "2 here"
    assert told["note"] == "undo and use the rename of pyright, which reaches the whole project"


async def test_offer_is_withdrawn_once_a_renaming_server_is_named(session, tmp_path):
    client, uri = Client(session), await renamed(session, tmp_path)
    told = await handlers.next_edit(client, asked(uri, closed_files=True))
    assert told["summary"] == "2 here, 2 in other.py"
    for _ in range(2):
        told = await handlers.next_edit(client, asked(uri, closed_files=True, rename_provider="pyright"))
        assert told["summary"] == "2 here"
        assert told["note"] == "undo and use the rename of pyright, which reaches the whole project"


async def test_rename_that_is_all_elsewhere_is_left_to_a_renaming_server(session, tmp_path):
    (tmp_path / "other.py").write_text(USED)
    uri = opened(session, tmp_path / "here.py", "def fetch_rows(name):\n    return name\n")
    index(session)
    session.change(uri, 2, [((0, 4, 0, 14), "load_rows")], "utf-16")
    found = await session.next_edits.ask(uri, 13, invoked=True, asker=Asker(renamer="pyright"))
    assert found.offer is None
    assert found.silence == "undo and use the rename of pyright, which reaches the whole project"
    assert await session.next_edits.why(uri, 13) == found.silence


async def test_client_with_change_annotations_asks_about_other_files(session, tmp_path):
    client, uri = Client(session), await renamed(session, tmp_path)
    client.protocol.client_capabilities.workspace.workspace_edit.change_annotation_support = True
    await session.next_edits.ask(uri, 13, invoked=True)
    found = handlers.workspace_edit(client, session.next_edits.standing.current(), uri)
    other = (tmp_path / "other.py").as_uri()
    annotations = {id: (each.needs_confirmation, each.description) for id, each in found.change_annotations.items()}
    assert annotations == {uri: (False, "2 here"), other: (True, "2 in other.py")}
    assert {each.text_document.uri: {edit.annotation_id for edit in each.edits} for each in found.document_changes} == {
        uri: {uri},
        other: {other},
    }


async def test_offer_follows_a_file_on_the_disk(session, tmp_path):
    uri = await renamed(session, tmp_path)
    offer = (await session.next_edits.ask(uri, 13, invoked=True)).offer
    (tmp_path / "other.py").write_text("# a line more\n" + USED)
    moved = session.next_edits.standing.current()
    other = [edit for edit in moved.edits if edit.uri != uri]
    assert [edit.start - 14 for edit in other] == [edit.start for edit in offer.edits if edit.uri != uri]
    (tmp_path / "other.py").unlink()
    assert session.next_edits.standing.current() is None


async def test_hidden_file_is_never_read_for_an_offer(session, tmp_path):
    (tmp_path / ".gitignore").write_text("other.py\n")
    uri = await renamed(session, tmp_path)
    offer = (await session.next_edits.ask(uri, 13, invoked=True)).offer
    assert {edit.uri for edit in offer.edits} == {uri}


async def test_after_an_accept_the_next_answer_is_there_before_anybody_asks(session, tmp_path):
    text = "def old_name(x): ...\nb = old_name(2)\nc = old_name(3)\n"
    uri = opened(session, tmp_path / "here.py", text)
    session.change(uri, 2, [((0, 4, 0, 12), "new_name")], "utf-16")
    offer = (await session.next_edits.ask(uri, 12, invoked=True)).offer
    assert offer is not None
    session.change(uri, 3, [((1, 4, 1, 12), "new_name"), ((2, 4, 2, 12), "new_name")], "utf-16")
    session.accepted(offer.id)
    ahead = session.next_edits._ahead
    assert ahead is not None
    asked = await session.next_edits.ask(uri, 12)
    assert ahead.done()
    assert session.next_edits._ahead is None
    assert asked.offer is None


async def test_diagnostics_count_for_their_version_of_the_text(session, tmp_path):
    uri = opened(session, tmp_path / "here.py", "value = json.dumps(1)\n")
    complaint = FileDiagnostic(8, 12, "undefined name")
    session.next_edits.next_questions.diagnosed(uri, 1, (complaint,))
    assert session.next_edits.next_questions.about(NextEditRequest(uri, 8))[0].diagnostics == (complaint,)
    session.change(uri, 2, [((0, 0, 0, 0), "\n")], "utf-16")
    assert session.next_edits.next_questions.about(NextEditRequest(uri, 9))[0].diagnostics == ()


async def test_texts_that_change_while_the_answer_is_made_are_asked_about_again(session, tmp_path):
    """An editor tells of one document after the other, and asks in between."""
    uri = opened(session, tmp_path / "here.py", DEFINED)
    other = opened(session, tmp_path / "other.py", "x = 1\n")
    answer = next_edits.next_edits
    asks = []

    async def late(question, engine):
        asks.append(question)
        if len(asks) == 1:
            session.change(other, 2, [((0, 4, 0, 5), "2")], "utf-16")
            yield Answer(silence="the text changed", final=True)
            return
        async for latest in answer(question, engine):
            yield latest

    session.change(uri, 2, [((0, 4, 0, 14), "load_rows")], "utf-16")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(next_edits, "next_edits", late)
        assert (await session.next_edits.ask(uri, 13)).offer
    assert len(asks) == 2


CALLED = "def load(name, mode, size):\n    return name\n\n\nfirst = load(1, 2, 3)\n"
CALLING = "from here import load as get\n\nsecond = get(4, 5, 6)\nthird = get(*rows)\n"


async def test_offer_after_a_cut_gives_way_to_the_one_after_the_paste(session, tmp_path):
    (tmp_path / "other.py").write_text(CALLING)
    uri, other = opened(session, tmp_path / "here.py", CALLED), (tmp_path / "other.py").as_uri()
    index(session)
    session.change(uri, 2, [((0, 13, 0, 19), "")], "utf-16")
    cut = (await session.next_edits.ask(uri, 13)).offer
    assert [(edit.uri, edit.text) for edit in cut.edits] == [(uri, ""), (other, "")]
    session.change(uri, 3, [((0, 9, 0, 9), "mode, ")], "utf-16")
    pasted = (await session.next_edits.ask(uri, 15)).offer
    assert [(edit.uri, edit.text) for edit in pasted.edits] == [(uri, "2, 1"), (other, "5, 4")]
    assert pasted.note == "cannot be judged: other.py:4"
    assert session.next_edits.accepted(cut.id) is None


async def test_arguments_that_were_put_in_another_order_stay_so(session, tmp_path):
    (tmp_path / "other.py").write_text(CALLING)
    uri, other = opened(session, tmp_path / "here.py", CALLED), opened(session, tmp_path / "other.py", CALLING)
    index(session)
    session.change(uri, 2, [((0, 9, 0, 19), "mode, name")], "utf-16")
    offer = (await session.next_edits.ask(uri, 19)).offer
    for file, where, text in ((uri, (4, 13, 4, 17), "2, 1"), (other, (2, 13, 2, 17), "5, 4")):
        assert text in [edit.text for edit in offer.edits if edit.uri == file]
        session.change(file, session.files.documents[file].version + 1, [(where, text)], "utf-16")
    session.accepted(offer.id)
    answer = await session.next_edits.ask(uri, 19)
    assert answer.offer is None
    assert answer.silence.startswith("cannot be judged: other.py:4")
    session.next_edits.end()


async def test_why_names_the_calls_that_need_an_argument(session, tmp_path):
    (tmp_path / "other.py").write_text("from here import load\n\nload(4, 5, 6)\n")
    uri = opened(session, tmp_path / "here.py", CALLED)
    index(session)
    session.change(uri, 2, [((0, 25, 0, 25), ", limit")], "utf-16")
    said = await session.next_edits.why(uri, 25)
    assert said.startswith(
        "needs an argument for `limit`: here.py:5, other.py:3, since the parameters of `load` changed"
    )


async def test_user_is_led_to_calls_that_need_an_argument(session, tmp_path):
    asker = Asker(is_typing=False, places=True)
    text = f"{CALLED}second = load(4, 5, 6)\n"
    uri = opened(session, tmp_path / "here.py", text)
    session.change(uri, 2, [((0, 25, 0, 25), ", limit")], "utf-16")
    needing = (5, 6)
    for line in needing:
        offer = (await session.next_edits.ask(uri, 25, asker=asker)).offer
        assert (offer.kind, offer.label, offer.old_text(offer.edit)) == ("diagnostic", "look here", "load")
        assert offer.base[uri].line_of(offer.edit.start) + 1 == line
        assert offer.note == "needs an argument for `limit`: here.py:5, here.py:6"
        session.next_edits.accepted(offer.id)
    assert (await session.next_edits.ask(uri, 25, asker=asker)).silence.startswith("needs an argument for `limit`")


@pytest.mark.parametrize(("line", "is_led"), [("first = load(7, 2, 3)", True), ("other = 3", False)])
async def test_user_is_led_on_while_editing_calls(session, tmp_path, line, is_led):
    asker = Asker(is_typing=False, places=True)
    uri = opened(session, tmp_path / "here.py", f"{CALLED}second = load(4, 5, 6)\n")
    session.change(uri, 2, [((0, 25, 0, 25), ", limit")], "utf-16")
    session.change(uri, 3, [((4, 0, 4, 21), line)], "utf-16")
    offer = (await session.next_edits.ask(uri, 60, asker=asker)).offer
    assert (offer is not None and offer.kind == "diagnostic") == is_led


async def test_user_is_led_to_what_a_rename_cannot_judge(session, tmp_path):
    text = "class Rows:\n    def fetch(self): ...\n\n\ndef show(rows):\n    return rows.fetch()\n"
    uri = opened(session, tmp_path / "here.py", text)
    session.change(uri, 2, [((1, 8, 1, 13), "load")], "utf-16")
    assert (await session.next_edits.ask(uri, 27)).offer is None
    session.next_edits.end()
    offer = (await session.next_edits.ask(uri, 27, asker=Asker(is_typing=False, places=True))).offer
    assert (offer.old_text(offer.edit), offer.note) == ("fetch", "1 place cannot be judged: here.py:6")


async def test_user_is_led_to_the_use_of_a_parameter_that_went(session, tmp_path):
    uri = opened(session, tmp_path / "here.py", "def size(value, unit):\n    return f'{value} {unit}'\n")
    session.change(uri, 2, [((0, 14, 0, 20), "")], "utf-16")
    offer = (await session.next_edits.ask(uri, 14, asker=Asker(is_typing=False, places=True))).offer
    assert (offer.kind, offer.old_text(offer.edit), offer.note) == (
        "diagnostic",
        "unit",
        "`unit` is still used: here.py:2",
    )


MADE = "class B:\n    def run(self, a, b): ...\n\n\ndef make() -> B:\n    return B()\n"


@pytest.mark.parametrize(
    ("change", "offset", "changed"), [(((1, 8, 1, 11), "start"), 25, "run"), (((1, 18, 1, 21), ""), 29, "1, ")]
)
async def test_uses_of_a_method_are_found_in_files_that_do_not_name_its_type(
    session, tmp_path, change, offset, changed
):
    used = "from here import make\n\nmake().run(1, 2)\nrun()\n"
    (tmp_path / "other.py").write_text(used)
    uri = opened(session, tmp_path / "here.py", MADE)
    index(session)
    session.change(uri, 2, [change], "utf-16")
    offer = (await session.next_edits.ask(uri, offset, invoked=True)).offer
    assert [edit.uri for edit in offer.edits] == [(tmp_path / "other.py").as_uri()]
    assert [used[edit.start : edit.end] for edit in offer.edits] == [changed]
    assert offer.edits[0].start == used.index(changed)


async def test_edit_that_was_reverted_in_a_closed_file_teaches_nothing(session, tmp_path):
    uri = await renamed(session, tmp_path)
    written = session.files.documents[uri].text
    (tmp_path / "here.py").write_text(written)
    session.files.saved(uri)
    other = tmp_path / "other.py"
    session.open(other.as_uri(), str(other), "", 1, USED)
    session.close(uri)
    assert (await session.next_edits.ask(other.as_uri(), 0, invoked=True)).offer
    (tmp_path / "here.py").write_text(DEFINED)
    answer = await session.next_edits.ask(other.as_uri(), 0, invoked=True)
    assert answer.offer is None
    assert answer.silence == "nothing has been edited yet"
    assert session.files.history.edits() == ()


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_edit_of_a_file_that_is_closed_unsaved_or_deleted_teaches_nothing(session, tmp_path, is_deleted):
    uri, other = await renamed(session, tmp_path), tmp_path / "other.py"
    session.open(other.as_uri(), str(other), "", 1, USED)
    session.close(uri)
    if is_deleted:
        (tmp_path / "here.py").unlink()
    assert (await session.next_edits.ask(other.as_uri(), 0, invoked=True)).offer is None


async def test_reload_after_another_program_is_no_edit(session, tmp_path):
    here = tmp_path / "here.py"
    here.write_text(DEFINED)
    session.open(here.as_uri(), str(here), "", 1, DEFINED)
    here.write_text(DEFINED.replace("fetch_rows(name)", "load_rows(name)"))
    session.change(here.as_uri(), 2, [((0, 4, 0, 14), "load_rows")], "utf-16")
    answer = await session.next_edits.ask(here.as_uri(), 13, invoked=True)
    assert (answer.offer, answer.silence) == (None, "nothing has been edited yet")
    assert session.files.history.edits() == ()


async def test_edit_that_an_editor_tells_once_it_is_saved_is_one(session, tmp_path):
    here = tmp_path / "here.py"
    here.write_text(DEFINED)
    session.open(here.as_uri(), str(here), "", 1, DEFINED)
    here.write_text(DEFINED.replace("fetch_rows(name)", "load_rows(name)"))
    session.change(here.as_uri(), 2, [((0, 4, 0, 14), "load_rows")], "utf-16")
    session.files.saved(here.as_uri())
    assert len((await session.next_edits.ask(here.as_uri(), 13, invoked=True)).edits) == 2


async def broken_elsewhere(session, tmp_path, *errors, places=True):
    """A line is written anew while another server reports these lines of another file."""
    here, there = (
        opened(session, tmp_path / "here.py", CALLED),
        opened(session, tmp_path / "there.py", "a = 1\nb = 2\n"),
    )
    for uri in (here, there):
        said(session, uri)
    session.change(here, 2, [((1, 4, 1, 16), "return 1")], "utf-16")
    said(session, there, *errors)
    return here, there, await session.next_edits.ask(here, 22, asker=Asker(places=places))


def said(session, uri, *lines):
    snapshot = session.files.documents[uri].snapshot()
    errors = (FileDiagnostic(snapshot.line_start(line), snapshot.line_end(line), "an error") for line in lines)
    return session.next_edits.reported(snapshot, tuple(errors))


async def test_user_is_led_to_an_error_in_another_file(session, tmp_path):
    here, there, answer = await broken_elsewhere(session, tmp_path, 1)
    (edit,) = answer.edits
    assert (edit.uri, edit.start, edit.text) == (there, 6, "b = 2")
    assert (answer.offer.kind, answer.offer.label, answer.offer.old_text(edit)) == ("diagnostic", "new error", "b = 2")
    session.change(there, 2, [((0, 0, 0, 0), "\n")], "utf-16")
    assert session.next_edits.standing.current().edit.start == 7
    session.next_edits.accepted(answer.offer.id)
    assert not (await session.next_edits.ask(here, 22, asker=Asker(places=True))).offer


async def test_client_that_goes_nowhere_is_offered_no_place(session, tmp_path):
    *_, answer = await broken_elsewhere(session, tmp_path, 1, places=False)
    assert answer.offer is None


async def test_place_goes_once_the_error_is_mended(session, tmp_path):
    here, there, answer = await broken_elsewhere(session, tmp_path, 0, 1)
    session.next_edits.accepted(answer.offer.id)
    answer = await session.next_edits.ask(here, 22, asker=Asker(places=True))
    assert [edit.text for edit in answer.edits] == ["b = 2"]
    assert said(session, there)
    assert not (await session.next_edits.ask(here, 22, asker=Asker(places=True))).offer


async def test_place_waits_until_the_edited_line_has_no_error(session, tmp_path):
    here, *_ = await broken_elsewhere(session, tmp_path, 1)
    session.next_edits.standing.drop()
    assert said(session, here, 1)
    assert not (await session.next_edits.ask(here, 22, asker=Asker(places=True))).offer


async def test_message_changes_in_files_that_quote_it(session, tmp_path):
    quoted = 'def test_path():\n    with raises(ValueError, match="must have one element"):\n        path()\n'
    other = 'raise ValueError("path must have two elements")\n'
    (tmp_path / "test_here.py").write_text(quoted)
    (tmp_path / "other.py").write_text(other)
    (tmp_path / "guide.md").write_text("An empty path fails with `path must have one element`.\n")
    uri = opened(session, tmp_path / "here.py", 'def path():\n    raise ValueError("path must have one element")\n')
    index(session)
    session.change(uri, 2, [((1, 32, 1, 36), "hold")], "utf-16")
    offer = (await session.next_edits.ask(uri, 48)).offer
    assert {(edit.uri, offer.old_text(edit), edit.text) for edit in offer.edits} == {
        ((tmp_path / name).as_uri(), "have", "hold") for name in ("test_here.py", "guide.md")
    }


async def test_user_is_led_to_what_an_edit_leaves_in_a_closed_file(session, tmp_path):
    (tmp_path / "bill.py").write_text("import os\nfrom here import RATE\n\nprint(RATE)\n")
    uri = opened(session, tmp_path / "here.py", "RATE = 1.2\nLIMIT = 3\n")
    index(session)
    session.change(uri, 2, [((0, 0, 1, 0), "")], "utf-16")
    asker = Asker(is_typing=False, places=True)
    offer = (await session.next_edits.ask(uri, 0, asker=asker)).offer
    assert (offer.edit.uri, offer.old_text(offer.edit)) == ((tmp_path / "bill.py").as_uri(), "RATE")
    assert (offer.label, offer.note) == ("look here", "`RATE` is still used: bill.py:2")
    session.next_edits.accepted(offer.id)
    assert (await session.next_edits.ask(uri, 0, asker=asker)).silence == "`RATE` is still used: bill.py:2"
