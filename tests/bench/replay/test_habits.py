"""Clients' habits against what real editors were recorded to do: what they ask and cancel, and how long they wait."""

import asyncio
import json
import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.harness.client import RequestError
from bench.replay.habits import CLIENTS
from bench.replay.pace import ReplayPace
from bench.replay.player import CANCELLED, INLINE, Left, Player
from bench.replay.session import Changed, Ended, Event, Header, NamedDocument, Opened, RecordedSession

WIRE = Path(__file__).parents[3] / "bench/wire"
REQUESTS = (INLINE, "mercury/nextEdit", "textDocument/copilotInlineEdit")
NEAR_MS = 30
REST_MS = 3000
NORMAL_MODE_KEYS = "xudp"

Said = list[tuple[float, str]]
Events = list[tuple[float, Event | Left]]
Delays = dict[str, list[tuple[float, float]]]


class Recording:
    """A conversation: who said what, and when in milliseconds."""

    def __init__(self, name: str) -> None:
        lines = (WIRE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        self.entries = [json.loads(line) for line in lines]
        self.answered = {
            entry["message"]["id"]: entry["ms"]
            for entry in self.entries
            if entry["from"] == "server" and "method" not in entry["message"]
        }

    def client(self) -> Iterator[tuple[float, str, dict[str, Any]]]:
        for entry in self.entries:
            if entry["from"] == "client" and "method" in entry["message"]:
                yield entry["ms"], entry["message"]["method"], entry["message"]

    def said(self) -> Said:
        """Requests, and the cancels of those."""
        methods: dict[int, str] = {}
        found = []
        for ms, method, message in self.client():
            if method in REQUESTS:
                methods[message["id"]] = method
                found.append((ms, method))
            elif method == "$/cancelRequest" and message["params"]["id"] in methods:
                found.append((ms, f"cancel {methods[message['params']['id']]}"))
        return found

    def delays(self) -> Delays:
        """Of each kind of request, when it was sent and how long its answer took; for ever where it was cancelled."""
        cancelled = {m["params"]["id"] for _, method, m in self.client() if method == "$/cancelRequest"}
        found: Delays = {method: [] for method in REQUESTS}
        for ms, method, message in self.client():
            if method in REQUESTS:
                id = message["id"]
                found[method].append((ms, math.inf if id in cancelled else self.answered[id] - ms))
        return found

    def typed(self) -> Events:
        """By somebody whose editor writes each key into the conversation; what a key does to the text is all one."""
        events: Events = [(0.0, Opened(t=0, d=0, text="", path="shop.py", lang="python"))]
        for ms, method, message in self.client():
            if method == "$/key":
                events += [(ms, event) for event in key(len(events), **message["params"])]
        return [*events, (events[-1][0] + REST_MS, Ended(t=0, sha256={}))]

    def changes(self) -> list[tuple[float, str]]:
        """When what was typed was told, where every change is told at once."""
        return [
            (ms, "".join(change["text"] for change in message["params"]["contentChanges"]))
            for ms, method, message in self.client()
            if method == "textDocument/didChange"
        ]

    def waits(self, method: str) -> list[tuple[float, str]]:
        """From the latest change to each such request, and what that change was."""
        changes = self.changes()
        latest = [(ms, [change for change in changes if change[0] <= ms]) for ms, what in self.said() if what == method]
        return [(ms - before[-1][0], before[-1][1]) for ms, before in latest if before]


def key(number: int, key: str, mode: str) -> Iterator[Event | Left]:
    change = Changed(t=0, d=0, ver=number + 1, c=[[0, 0, 0, 0, "x"]], why="type")
    if mode.startswith("i"):
        yield Left() if key == "<Esc>" else change
    elif key == "o":
        yield change
    elif key in NORMAL_MODE_KEYS and (key != "d" or mode == "no"):
        yield Changed(t=0, d=0, ver=number + 1, c=[[0, 0, 0, 0, "x"]], why="undo")


class Recorded:
    """The server of a recording and its clock: each answer comes as late as it did then, and no time really passes."""

    def __init__(self, delays: Delays) -> None:
        self.seconds = 0.0
        self.said: Said = []
        self.offers: dict[str, Any] = {}
        self.versions: defaultdict[str, int] = defaultdict(int)
        self.received: dict[int, float] = {}
        self.notifications: asyncio.Queue = asyncio.Queue()
        self._delays = delays
        self._running: dict[int, tuple[str, float, asyncio.Future]] = {}

    def open(self, *document: str) -> None: ...

    def change(self, *changes: Any) -> None: ...

    def notify(self, *message: Any) -> None: ...

    def ask(self, method: str, params: dict[str, Any]) -> tuple[int, asyncio.Future]:
        self.said.append((self.seconds * 1000, method))
        id, answer = len(self.said), asyncio.get_running_loop().create_future()
        now = self.seconds * 1000
        delay = min(self._delays[method], key=lambda each: abs(each[0] - now), default=(0.0, math.inf))[1]
        due = self.seconds + delay / 1000
        self._running[id] = (method, due, answer)
        return id, answer

    def cancel(self, id: int) -> None:
        method, _, answer = self._running.pop(id)
        self.said.append((self.seconds * 1000, f"cancel {method}"))
        self.received[id] = 0.0
        answer.set_exception(RequestError({"code": CANCELLED, "message": "cancelled"}))

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        await asyncio.sleep(0)

    async def wait(self, waiting: set[asyncio.Task], seconds: float) -> None:
        due = min((due for _, due, _ in self._running.values()), default=math.inf)
        self.seconds = min(self.seconds + seconds, max(due, self.seconds))
        for id, (_, due, answer) in list(self._running.items()):
            if due <= self.seconds:
                del self._running[id]
                self.received[id] = 0.0
                answer.set_result(None)
        for _ in range(3):
            await asyncio.sleep(0)


async def played(name: str, events: Events, delays: Delays, folder: Path) -> Said:
    server = Recorded(delays)
    pace = ReplayPace(clock=lambda: server.seconds, sleep=server.sleep, wait=server.wait)
    session = RecordedSession(Header(v=1, docs=[NamedDocument(0, "shop.py")]), ())
    await Player(server, CLIENTS[name], session, folder, pace).perform(events)
    return server.said


async def test_sidekick_asks_and_cancels_as_in_its_recording(tmp_path):
    recording = Recording("sidekick")
    found, wanted = await played("sidekick", recording.typed(), recording.delays(), tmp_path), recording.said()
    assert [what for _, what in found] == [what for _, what in wanted]
    assert [ms for ms, _ in found] == pytest.approx([ms for ms, _ in wanted], abs=NEAR_MS)


def test_vs_code_waits_as_long_as_in_its_recording():
    """Half of them, that is: its window asks and its extension host tells of changes, each in its own time."""
    recording, habits = Recording("vscode"), CLIENTS["vscode"]
    edits = recording.waits("mercury/nextEdit")
    in_word = [ms for ms, text in edits if re.search(r"\w\Z", text)]
    others = [ms for ms, text in edits if not re.search(r"\w\Z", text)]
    waits = [*map(statistics.median, ([ms for ms, _ in recording.waits(INLINE)], in_word, others))]
    assert waits == pytest.approx([habits.inline_ms, habits.next_edit_word_ms, habits.next_edit_ms], abs=15)


def test_vs_code_cancels_at_the_key_as_in_its_recording():
    recording = Recording("vscode")
    changes = [ms for ms, _ in recording.changes()]
    cancels = [ms for ms, what in recording.said() if what.startswith("cancel")]
    assert len(cancels) > 10
    behind = [min((change - ms for change in changes if change >= ms - 1), default=math.inf) for ms in cancels]
    assert statistics.median(behind) < 5
    assert CLIENTS["vscode"].cancels == "key"
