"""The replay client, measured itself: by a server of known delays, and once by the real one with its fake engine."""

import asyncio
import json
import math
import statistics
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from bench.harness.client import running
from bench.harness.measures import reason
from bench.harness.usage import Usage
from bench.replay.command import everything
from bench.replay.fate import ShownOffer, TypedEdit
from bench.replay.figures import Played, figures, spread
from bench.replay.habits import CLIENTS
from bench.replay.pace import ReplayPace
from bench.replay.play import engine_server
from bench.replay.player import INLINE, Left, Player, is_stale, script
from bench.replay.session import Changed, Cursor, Header, Opened, RecordedSession, Saved, ended

STAND_IN = str(Path(__file__).parents[1] / "stand_in.py")
WIRE = Path(__file__).parents[3] / "bench/wire"
TEXT = "def total(items):\n    return 0\n"


def typed(text: str, gap: int, before: str = TEXT, t: int = 1000) -> RecordedSession:
    """`text` goes in at the end of the second line, a key each `gap` milliseconds."""
    events = [Opened(t=0, d=0, text=before, path="a.py", lang="python")]
    for number, character in enumerate(text):
        place = [1, 12 + number] * 2
        events.append(Changed(t=t + gap * number, d=0, ver=number + 2, c=[[*place, character]], why="type"))
    return ended(Header(v=1), events, "typed")


async def play(
    folder: Path, session: RecordedSession, client: str, delays: list[float], text: str = "1", speed: float = math.inf
) -> tuple:
    """The player after the session, and what the server has noted."""
    journal = folder / "journal.jsonl"
    command = [sys.executable, STAND_IN, str(journal), json.dumps(delays), text]
    async with running(folder, command=command) as server:
        player = Player(server, CLIENTS[client], session, folder, ReplayPace(speed))
        await player.play(None)
    return player, [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]


def answers(notes: list[dict]) -> list[dict]:
    return [note for note in notes if note["method"] == INLINE]


async def test_known_delays_are_measured_within_two_milliseconds(tmp_path):
    player, notes = await play(tmp_path, typed("x" * 32, gap=1000), "neovim-0.12", [3, 9, 17])
    own = [note["ms"] for note in answers(notes)]
    beyond = sorted(asked.final_ms - ms for asked, ms in zip(player.asked, own, strict=False))
    assert len(own) == 32
    # What is measured holds the server's own time and both ways through a pipe; a busy machine adds to most of them, an
    # error of the client's to all.
    assert beyond[0] >= 0
    assert beyond[len(beyond) // 8] < 2
    assert all(asked.draft_ms <= asked.final_ms for asked in player.asked if asked.source)


async def test_pause_lets_answer_through_at_any_speed(tmp_path):
    player, _ = await play(tmp_path, typed("abc", gap=60_000), "neovim-plugin", [5])
    inline = [asked for asked in player.asked if asked.source]
    assert [(asked.is_shown, asked.steps, asked.tokens) for asked in inline] == [(True, 1, 2)] * 3


@pytest.mark.parametrize(("client", "gap"), [("neovim-plugin", 40), ("vscode", 60)])
async def test_older_request_is_cancelled_where_client_would_cancel_it(tmp_path, client, gap):
    player, notes = await play(tmp_path, typed("abc", gap=gap), client, [-1, -1, 0])
    inline = [asked.silence for asked in player.asked if asked.method == INLINE]
    assert inline == ["cancelled", "cancelled", ""]
    assert len(answers(notes)) == 1


async def test_neovim_asks_when_the_keys_have_rested_and_sends_them_together(tmp_path):
    player, notes = await play(tmp_path, typed("abc", gap=60), "neovim-0.12", [0])
    assert [note["params"]["position"]["character"] for note in answers(notes)] == [15]
    changes = [note["params"]["contentChanges"] for note in notes if note["method"].endswith("didChange")]
    assert ["".join(change["text"] for change in sent) for sent in changes] == ["a", "bc"]
    assert len(player.shown) == 1


async def test_vs_code_sends_each_key_and_asks_between_them(tmp_path):
    _, notes = await play(tmp_path, typed("abc", gap=60), "vscode", [0])
    assert [note["params"]["position"]["character"] for note in answers(notes)] == [13, 14, 15]
    assert sum(note["method"].endswith("didChange") for note in notes) == 3


@pytest.mark.parametrize(
    ("edits", "late"),
    [
        ([], False),
        ([TypedEdit(0, 4, 4, "x"), TypedEdit(1, 5, 5, "y")], False),
        ([TypedEdit(0, 4, 4, "xyz")], True),
        ([TypedEdit(0, 4, 4, "n")], True),
        ([TypedEdit(0, 4, 4, "x"), TypedEdit(1, 4, 5, "")], True),
        ([TypedEdit(0, 0, 1, "")], False),
    ],
    ids=["nothing", "a beginning", "all of it", "else", "taken back", "elsewhere"],
)
def test_answer_is_late_where_more_or_something_else_was_typed(edits, late):
    assert is_stale(ShownOffer(0, 4, 4, "xyz"), edits) == late


async def test_typed_suggestion_is_found_and_counted(tmp_path):
    player, _ = await play(tmp_path, typed("123", gap=1000), "neovim-0.12", [0], text="23")
    found = figures([played(player)], Usage())
    # The first of three offers comes true; the two others say "23" where "3" and nothing came.
    assert (found["shown"], found["typed_as_shown_share"]) == (3, round(1 / 3, 4))
    assert (found["characters_typed"], found["characters_saved"]) == (3, 1)


async def test_answer_that_grows_is_asked_for_again_and_counts_as_it_stands_then(tmp_path):
    player, notes = await play(tmp_path, typed("123", gap=800), "vscode", [0], text="2…23", speed=1)
    assert [note["params"]["position"]["character"] for note in answers(notes)][:2] == [13, 13]
    assert [shown.offer.text for shown in player.shown] == ["23"]
    assert sum(asked.method == INLINE for asked in player.asked) == 3
    assert figures([played(player)], Usage())["characters_saved"] == 1


async def test_unanswered_request_is_lost_and_does_not_end_replay(tmp_path, monkeypatch):
    monkeypatch.setattr("bench.replay.player.LAST_SECONDS", 0.0)
    player, _ = await play(tmp_path, typed("a", gap=0), "vscode", [-1])
    assert math.isnan(player.asked[0].final_ms)
    assert figures([played(player)], Usage())["lost"] >= 1


async def play_to_a_server_that_ends(folder: Path) -> None:
    command = [sys.executable, STAND_IN, str(folder / "notes"), "[0]", "x"]
    async with running(folder, command=command) as server:
        player = Player(server, CLIENTS["vscode"], typed("abc", gap=1000), folder, ReplayPace(math.inf))
        server.notify("exit", None)
        await server.process.wait()
        await player.play(None)


async def test_replay_ends_with_the_error_of_a_dead_server(tmp_path):
    with pytest.raises(ConnectionError, match="the server is gone"):
        await play_to_a_server_that_ends(tmp_path)


def played(player: Player) -> Played:
    return Played("typed", player.asked, player.shown, player.logs, Usage())


async def test_time_passes_as_fast_as_wanted_while_nothing_is_awaited():
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    pace = ReplayPace(4, sleep=sleep)
    await pace.until(2000)
    assert (pace.now, slept) == (2000, [0.5])


async def test_time_passes_as_it_does_while_an_answer_is_awaited():
    now, never = 0.0, asyncio.create_task(asyncio.Event().wait())

    async def wait(waiting: set, seconds: float) -> None:
        nonlocal now
        now += seconds
        waited.append(seconds)

    waited: list[float] = []
    pace = ReplayPace(math.inf, clock=lambda: now, wait=wait)
    pace.awaits(never)
    await pace.until(1500)
    assert (pace.now, waited) == (1500, [1.5])
    never.cancel()


@pytest.mark.parametrize(
    ("after", "left"),
    [
        (Cursor(t=101, d=0, sel=[(1, 13, 1, 13)]), None),
        (Cursor(t=500, d=0, sel=[(0, 0, 0, 0)]), 300),
        (Saved(t=2000, d=0), 400),
    ],
)
def test_modal_editor_leaves_insert_mode_before_anything_else(after, left):
    events = list(typed("a", gap=0, t=100).events[:-1])
    later = Changed(t=9000, d=0, ver=9, c=[[1, 13, 1, 13, "b"]])
    found = script(RecordedSession(Header(v=1), (*events, after, later)), modal=True, cap_ms=None)
    moments = [moment for moment, event in found if isinstance(event, Left) and moment < 9000]
    assert moments == ([] if left is None else [left])


def test_cap_shortens_pauses_and_nothing_else():
    found = script(typed("abc", gap=900), modal=False, cap_ms=500)
    assert [moment for moment, _ in found] == [0, 500, 1000, 1500, 1500]


def test_spreads_are_of_values_that_were_measured():
    assert spread([4.0, math.nan, 1.0, 3.0, 2.0]) == spread([1.0, 2.0, 3.0, 4.0])
    found = spread([1.0, 2.0, 3.0, 4.0])
    assert (found.n, found.p50, found.p90, found.most) == (4, 2.0, 4.0, 4.0)
    assert math.isnan(spread([]).p50)


def test_reasons_are_counted_by_kind():
    assert reason("unsure: 12% likely to be accepted, under the bar of 25%") == "unsure"
    assert reason("off for markdown (suggest.languages)") == "off for markdown"


def wire(name: str) -> list[tuple[float, str]]:
    """When the client said what, in a recorded conversation."""
    said = [json.loads(line) for line in (WIRE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    return [(entry["ms"], entry["message"].get("method", "")) for entry in said if entry["from"] == "client"]


def test_neovim_cancels_for_no_key_as_in_its_recording():
    before = [first for (_, first), (_, second) in pairwise(wire("neovim-0.12")) if second == INLINE]
    assert ("$/cancelRequest" in before, CLIENTS["neovim-0.12"].cancels) == (False, "never")


def test_neovim_sends_changes_as_often_as_its_recording_does():
    moments = pairwise(wire("neovim-0.12"))
    gaps = [later - earlier for (earlier, a), (later, b) in moments if a == b == "textDocument/didChange"]
    assert statistics.median(gaps) == pytest.approx(CLIENTS["neovim-0.12"].changes_ms, abs=10)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "named"), [("fake", "fake"), ("shipped", None), ("config", None)])
def test_user_settings_are_read_only_where_set_up_here(model, named):
    with engine_server(model) as (runtime, environment):
        assert environment.get("MERCURY_ENGINE_MODEL") == named
        assert ("XDG_CONFIG_HOME" in environment) == (model != "config")
        assert environment["MERCURY_LS_RUNTIME_DIR"] == str(runtime)


@pytest.mark.slow
async def test_real_server_answers_and_holds_the_same_text():
    before = "total = compute(1)\nother = 2345678\n"
    session = typed("; total = c", gap=400, before=before, t=2000)
    with engine_server("fake") as (runtime, environment):
        found, engine = await everything([session], CLIENTS["vscode"], math.inf, 2000, runtime, environment)
    result = figures(found, engine)
    assert result["requests"] == result["inline_requests"] + result["next_edit_requests"]
    assert result["inline_requests"] == 11
    assert (result["texts_compared"], result["texts_wrong"]) == (1, 0)
    assert all(not math.isnan(asked.final_ms) for asked in found[0].asked)
    assert sum(result["reasons"].values()) + result["cancelled"] + result["superseded"] == sum(
        not asked.is_shown for asked in found[0].asked
    )
    assert json.loads(json.dumps(result)) == result
