"""One editor of a replay: plays a session to a real server with a client's habits, and records the answers."""

import asyncio
import math
import re
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from bench.harness.client import Client, RequestError
from bench.replay.fate import EditRegion, ShownOffer, TypedEdit
from bench.replay.habits import Habits
from bench.replay.pace import ReplayPace
from bench.replay.session import (
    Changed,
    Closed,
    Cursor,
    Ended,
    Event,
    Focused,
    Marked,
    Opened,
    RecordedSession,
    Saved,
    Texts,
    capped,
)
from mercury_ls.code.documents import Snapshot

INLINE = "textDocument/inlineCompletion"
SAME_MOMENT_MS = 5
CANCELLED = -32800
AUTOMATIC = 2
LEAVE_MS = 300
"""How long after the last key insert mode is left, at most half of the pause."""
WORD_END = re.compile(r"\w\Z")
FAR_LINES = 100
"""A move over more lines than that leaves what the engine has encoded around the cursor."""
AT_ONCE = 3
"""The number of keys in one change: editors send keys typed within a few hundredths of a second together."""
LAST_SECONDS = 30.0
"""Requests unanswered by then count as lost."""
SUPERSEDED = "a newer request took its place"


class Left(Struct, frozen=True):
    """The user leaves insert mode."""


class Exchange(Struct):
    """One request; times in milliseconds since it was sent. `is_repeated`: the previous offer still stands."""

    method: str
    sent: float
    cold: bool = False
    final_ms: float = math.nan
    draft_ms: float = math.nan
    source: str = ""
    silence: str = ""
    steps: int = 0
    tokens: int = 0
    is_shown: bool = False
    is_repeated: bool = False

    @property
    def by_model(self) -> bool:
        return self.steps > 0 and self.source == "model"


class Shown(Struct, frozen=True):
    """An offer displayed while it could still be accepted, of a document by the number of its log."""

    method: str
    log: int
    offer: ShownOffer


class Log(Struct):
    """A document since it was opened: its text then, and every edit since."""

    text: str
    edits: list[TypedEdit] = []


class Player:
    """Owns one client's side: buffers, what was sent of them, the timers, and pending requests."""

    def __init__(self, client: Client, habits: Habits, session: RecordedSession, root: Path, pace: ReplayPace) -> None:
        self.client = client
        self.habits = habits
        self.pace = pace
        self.asked: list[Exchange] = []
        self.shown: list[Shown] = []
        self.logs: list[Log] = []
        self._session = session
        self._root = root
        self._unit = client.offers.get("positionEncoding", "utf-16")
        self._texts = Texts(session)
        self._log: dict[int, int] = {}
        self._unsent: dict[int, list[dict[str, Any]]] = {}
        self._sent_at = -math.inf
        self._sent: dict[int, Snapshot] = {}
        self._sent_edits: dict[int, int] = {}
        self._timers: dict[str, float] = {}
        self._pending: dict[str, int] = {}
        self._drafts: dict[str, Exchange] = {}
        self._offers: dict[str, int] = {}
        """The first number of each among those shown, by its name."""
        self._cold: set[int] = set()
        self._asked_line: dict[int, int] = {}
        self._inserting = False
        self._d = 0
        self._cursor = 0

    async def play(self, cap_ms: float | None) -> None:
        """Play the session and wait for the last answers."""
        listening = asyncio.create_task(self._listen())
        try:
            await self.perform(script(self._session, self.habits.modal, cap_ms))
        finally:
            listening.cancel()

    async def perform(self, events: Iterable[tuple[float, Event | Left]]) -> None:
        for moment, event in events:
            await self._until(moment)
            self._happened(event)
        while self._timers:
            await self._until(min(self._timers.values()))
        if self.pace.waiting:
            answered, lost = await asyncio.wait(self.pace.waiting, timeout=LAST_SECONDS)
            for task in lost:
                task.cancel()
            await asyncio.gather(*answered)

    def close(self) -> None:
        """Close all documents, as when a project is left."""
        for d in sorted(self._texts.open):
            self._closed(Closed(t=0, d=d))

    def texts(self) -> dict[str, str]:
        """The texts of all open documents."""
        return {self._uri(d): self._texts.documents[d].text for d in self._texts.open}

    # Time

    async def _until(self, moment: float) -> None:
        while self._timers:
            name, due = min(self._timers.items(), key=lambda timer: timer[1])
            if due > moment:
                break
            await self.pace.until(due)
            del self._timers[name]
            self._due(name)
        await self.pace.until(moment)

    def _due(self, name: str) -> None:
        if name == "changes":
            self._send_all()
        elif name == INLINE:
            self._ask_inline()
        else:
            self._ask_next_edit()

    def _after(self, name: str, milliseconds: float) -> None:
        self._timers[name] = self.pace.now + milliseconds

    # What the user does

    def _happened(self, event: Event | Left) -> None:
        if isinstance(event, Left):
            return self._leave()
        if isinstance(event, Opened):
            self._opened(event)
        elif isinstance(event, Changed):
            self._changed(event)
        elif isinstance(event, Cursor):
            self._moved(event)
        elif isinstance(event, Focused):
            self._focused(event.d)
        elif isinstance(event, Saved):
            self._saved(event.d)
        elif isinstance(event, Closed):
            self._closed(event)
        return None

    def _opened(self, event: Opened) -> None:
        if event.d in self._texts.open:
            self._closed(Closed(t=event.t, d=event.d))
        self._texts.apply(event)
        document = self._texts.documents[event.d]
        self.client.open(self._uri(event.d), document.language or "plaintext", event.text)
        self._log[event.d] = len(self.logs)
        self.logs.append(Log(event.text))
        self._unsent[event.d], self._sent_edits[event.d] = [], 0
        self._sent[event.d] = document.snapshot()
        self._cold.add(event.d)

    def _changed(self, event: Changed) -> None:
        d = event.d
        normal = self.habits.modal and not self._inserting and _is_command(event)
        log, t = self.logs[self._log[d]], float(event.t)
        for entry in event.c:
            before = self._texts.documents[d].snapshot()
            start, end, text = self._texts.apply(Changed(t=event.t, d=d, ver=event.ver, c=[entry], pos=event.pos))[0]
            log.edits.append(TypedEdit(t, start, end, text, _keys_of(event, text)))
            self._unsent[d].append({"range": self._range(before, start, end), "text": text})
            self._d, self._cursor = d, start + len(text)
        self._after("changes", max(0.0, self._sent_at + self.habits.changes_ms - self.pace.now))
        self._inserting = self.habits.modal and not normal
        if not normal:
            self._typed()
        self._edited(event, typed=not normal)

    def _typed(self) -> None:
        if self.habits.cancels == "key":
            self._cancel(INLINE)
        self._after(INLINE, self.habits.inline_ms)

    def _edited(self, event: Changed, *, typed: bool) -> None:
        """Update the next edits."""
        habits = self.habits
        if not habits.insists:
            self._timers.pop(habits.next_edit, None)
        if typed or not habits.insists:
            self._cancel(habits.next_edit)
        if not (typed and habits.modal):
            in_word = any(WORD_END.search(str(entry[-1])) for entry in event.c)
            self._after(habits.next_edit, habits.next_edit_word_ms if in_word else habits.next_edit_ms)

    def _moved(self, event: Cursor) -> None:
        """Move the cursor. Directly after a change this is where the change left it; in insert mode the key count
        restarts."""
        if event.d not in self._texts.open:
            return
        self._d, self._cursor = event.d, self._texts.offset(event.d, *event.sel[0][2:])
        if INLINE in self._timers:
            self._after(INLINE, self.habits.inline_ms)

    def _leave(self) -> None:
        if not self._inserting:
            return
        self._inserting = False
        self._timers.pop(INLINE, None)
        self._cancel(INLINE)
        self._after(self.habits.next_edit, self.habits.next_edit_ms)

    def _focused(self, d: int) -> None:
        if d not in self._texts.open:
            return
        self._d, self._cursor = d, 0
        self._cold.add(d)
        if self.habits.next_edit == "textDocument/copilotInlineEdit":
            self.client.notify("textDocument/didFocus", {"textDocument": {"uri": self._uri(d)}})

    def _saved(self, d: int) -> None:
        self._send(d)
        document = self._texts.documents[d]
        (self._root / document.path).write_bytes(document.text.encode("utf-8", "replace"))
        self.client.notify("textDocument/didSave", {"textDocument": {"uri": self._uri(d)}})

    def _closed(self, event: Closed) -> None:
        self._send(event.d)
        self._texts.apply(event)
        if self._d == event.d:
            self._timers.pop(INLINE, None)
            self._timers.pop(self.habits.next_edit, None)
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": self._uri(event.d)}})

    # What is sent

    def _uri(self, d: int) -> str:
        return (self._root / self._texts.documents[d].path).as_uri()

    def _range(self, text: Snapshot, start: int, end: int) -> dict[str, Any]:
        ends = [text.position(offset, self._unit) for offset in (start, end)]
        first, last = ({"line": line, "character": character} for line, character in ends)
        return {"start": first, "end": last}

    def _send_all(self) -> None:
        for d in self._unsent:
            self._send(d)

    def _send(self, d: int) -> None:
        if self._unsent[d]:
            self.client.change(self._uri(d), self._unsent[d])
            self._unsent[d] = []
            self._sent_at = self.pace.now
            self._sent[d] = self._texts.documents[d].snapshot()
            self._sent_edits[d] = len(self.logs[self._log[d]].edits)

    def _ask_inline(self) -> None:
        if self.habits.cancels != "never":
            self._cancel(INLINE)
        self._ask(INLINE, {"context": {"triggerKind": AUTOMATIC}})

    def _ask_next_edit(self) -> None:
        self._cancel(self.habits.next_edit)
        self._ask(self.habits.next_edit, {"context": {"triggerKind": AUTOMATIC}})

    def _ask(self, method: str, params: dict[str, Any], *, again: bool = False) -> None:
        """Ask; who is told that an answer has grown asks `again`, which is no request of the user's."""
        d = self._d
        if d not in self._texts.open:
            return
        self._send_all()
        uri, snapshot = self._uri(d), self._texts.documents[d].snapshot()
        line, character = snapshot.position(self._cursor, self._unit)
        token = f"replay-{len(self._drafts)}"
        named = {"uri": uri} if method == INLINE else {"uri": uri, "version": self.client.versions[uri]}
        place = {"textDocument": named, "position": {"line": line, "character": character}}
        asked = Exchange(method, time.perf_counter(), self._is_cold(d, line))
        if not again:
            self.asked.append(asked)
        self._drafts[token] = asked
        id, answer = self.client.ask(method, {**place, **params, "partialResultToken": token})
        self._pending[method] = id
        self.pace.awaits(asyncio.create_task(self._follow(asked, id, answer, d, self._log[d])))

    def _is_cold(self, d: int, line: int) -> bool:
        """True if little of the text around the cursor can be encoded yet: just opened, entered, or moved far."""
        far = abs(line - self._asked_line.get(d, line)) > FAR_LINES
        self._asked_line[d] = line
        if far:
            self._cold.add(d)
        return d in self._cold

    def _cancel(self, method: str) -> None:
        if (id := self._pending.pop(method, None)) is not None:
            self.client.cancel(id)

    # What comes back

    async def _follow(self, asked: Exchange, id: int, answer: asyncio.Future, d: int, log: int) -> None:
        result, failure = None, ""
        try:
            result = await answer
        except RequestError as error:
            failure = "cancelled" if error.code == CANCELLED else f"error {error.code}"
        except ConnectionError:
            return  # whoever asks next hears of it
        self._read_drafts()
        asked.silence = failure or asked.silence
        asked.final_ms = (self.client.received.pop(id) - asked.sent) * 1000
        if self._pending.get(asked.method) == id:
            del self._pending[asked.method]
        if asked.by_model:
            self._cold.discard(d)
        if d in self._texts.open and self._log[d] == log:
            self._take(asked, result, d)
        if not asked.is_shown:
            asked.silence = asked.silence or SUPERSEDED

    async def _listen(self) -> None:
        while True:
            self._heard(await self.client.notifications.get())

    def _read_drafts(self) -> None:
        while not self.client.notifications.empty():
            self._heard(self.client.notifications.get_nowait())

    def _heard(self, message: dict[str, Any]) -> None:
        params = message["params"]
        if message["method"] == "$/progress" and (asked := self._drafts.get(params["token"])):
            _drafted(asked, params["value"], message["received"])
        elif message["method"] == "mercury/didGrow":
            self._grown(params["uri"])

    def _grown(self, uri: str) -> None:
        """Who has typed on asks anyway. The answer may have been read in the same moment, and not been taken yet."""
        is_here = self._d in self._texts.open and self._uri(self._d) == uri
        is_asking = INLINE in self._pending and self._pending[INLINE] not in self.client.received
        if is_here and not (is_asking or INLINE in self._timers):
            self._ask(INLINE, {"context": {"triggerKind": AUTOMATIC}}, again=True)

    def _take(self, asked: Exchange, result: Any, d: int) -> None:
        """Keep the part of the answer that is shown: nothing if the buffer has moved on."""
        offers = list(self._offered(asked.method, result, d))
        log = self.logs[self._log[d]]
        if not offers:
            return
        if any(is_stale(offer, log.edits) for offer in offers):
            asked.silence = "came too late for what was typed"
            return
        asked.is_shown, asked.silence = True, ""
        number = self._offers.get(name := _name_of(result))
        if number is None:
            self._offers[name] = len(self.shown)
            self.shown += [Shown(asked.method, self._log[d], offer) for offer in offers]
            return
        asked.is_repeated = True
        if asked.method == INLINE and self.shown[number].offer.after == offers[0].after:
            self.shown[number] = Shown(INLINE, self._log[d], offers[0])

    def _offered(self, method: str, result: Any, d: int) -> Iterator[ShownOffer]:
        """Ranges refer to the text as last sent; edits of other documents are not followed."""
        if not result:
            return
        found = result["items"][:1] if method == INLINE else result["edits"]
        for item in found:
            if method != INLINE and item["textDocument"]["uri"] != self._uri(d):
                continue
            text = item["insertText"] if method == INLINE else item.get("newText", item.get("text"))
            start, end = (self._offset(d, item["range"][name]) for name in ("start", "end"))
            yield ShownOffer(self._sent_edits[d], start, end, text, method != INLINE)

    def _offset(self, d: int, position: dict[str, int]) -> int:
        return self._sent[d].offset(position["line"], position["character"], self._unit)


def _drafted(asked: Exchange, value: dict[str, Any], received: float) -> None:
    asked.silence = value["silence"]
    if value["kind"] != "draft":
        return
    asked.source, asked.steps, asked.tokens = value["source"], value["step"], value["tokens"]
    if math.isnan(asked.draft_ms) and value["text"]:
        asked.draft_ms = (received - asked.sent) * 1000


def _name_of(result: dict[str, Any]) -> str:
    command = result.get("command") or (result.get("items") or result["edits"])[0]["command"]
    return str(command["arguments"][0])


def is_stale(offer: ShownOffer, edits: list[TypedEdit]) -> bool:
    """True unless the text typed since is a beginning of the offer."""
    region, text = EditRegion(offer.start, offer.end), ""
    for edit in edits[offer.after :]:
        if edit.start != region.start + len(text) or edit.end != edit.start:
            return region.follow(edit)
        text += edit.text
    return bool(text) and not (offer.text.startswith(text) and offer.text != text)


def _is_command(event: Changed) -> bool:
    """True if a modal editor does this in normal mode: it deletes more than a character, or was not typed."""
    return event.why in ("undo", "format", "paste", "tool") or all(
        not entry[-1] and (len(entry) == 1 or entry[0] != entry[2] or int(entry[3]) - int(entry[1]) > 1)
        for entry in event.c
    )


def _keys_of(event: Changed, text: str) -> int:
    """Characters that a person typed, without an editor's own indentation after a line break; a change of unknown
    origin that inserts many at once is a tool's."""
    if event.why not in ("type", "newline", "unknown") or len(event.c) > 1:
        return 0
    typed = re.sub(r"(\r?\n)[ \t]*$", r"\n", text)
    return len(typed) if event.why != "unknown" or len(typed) <= AT_ONCE else 0


def script(session: RecordedSession, modal: bool, cap_ms: float | None) -> list[tuple[float, Event | Left]]:
    """The events with their times; a modal editor leaves insert mode before anything other than typing on."""
    events: list[tuple[float, Event | Left]] = list(capped(session.events, cap_ms))
    if not modal:
        return events
    left = [
        (moment + min(LEAVE_MS, (then - moment) / 2), Left())
        for at, (moment, event) in enumerate(events)
        if isinstance(event, Changed) and (then := _leaves(event, islice(events, at + 1, None))) is not None
    ]
    return sorted([*events, *left], key=lambda pair: pair[0])


def _leaves(change: Changed, following: Iterable[tuple[float, Event | Left]]) -> float | None:
    """The time at which the user does something in normal mode; None if more is typed first."""
    for moment, event in following:
        if isinstance(event, Ended):
            break
        if isinstance(event, Changed) and event.d == change.d:
            return None
        if isinstance(event, Cursor) and event.t - change.t <= SAME_MOMENT_MS:
            continue
        if isinstance(event, Changed | Cursor | Focused | Saved | Closed | Marked):
            return moment
    return math.inf
