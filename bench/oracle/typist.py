"""Somebody types what is new in recorded sessions, with an editor's habits, and accepts what is right."""

import asyncio
import os
import random
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from msgspec import Struct, field

from bench.harness.client import RequestError
from bench.oracle.desk import AUTOMATIC, Answer, Buffer, Setup, real
from bench.oracle.server import Counts, Options
from bench.replay.habits import CLIENTS, Habits
from bench.replay.session import Opened, RecordedSession, Texts, read
from bench.replay.typing_model import draw, load
from mercury_ls.code.edits import is_word
from mercury_training.progress import shown as progress

SESSIONS = Path(__file__).parents[1] / "sessions"
CHOSEN = ("neovim-python", "neovim-lua", "mercury-ls-5bf445e9")
EDITORS = {"VS Code": CLIENTS["vscode"], "Neovim": CLIENTS["neovim-plugin"]}
KEY = re.compile(r"(?:\n[ \t]*)+|.", re.DOTALL)
"""One key: the editor indents a new line, and blank lines are left by holding Enter."""

PROSE = re.compile(r"\s*(?:#|--|//|\*|/\*|\"{3})")
LONGEST_PAUSE_MS = 2000
LAST_SECONDS = 0.1


class Hunk(Struct, frozen=True):
    """`text` is to be typed at `start`, where everything above it is typed already."""

    start: int
    text: str


class Task(Struct, frozen=True):
    """A document of a session: as it is without the new lines, and what is to be typed."""

    name: str
    language: str
    text: str
    hunks: tuple[Hunk, ...]

    @property
    def final(self) -> str:
        text = self.text
        for hunk in self.hunks:
            text = text[: hunk.start] + hunk.text + text[hunk.start :]
        return text


class Typed(Struct):
    """`saved` of `ideal` keys, or of those that whole answers save. `wrong` suggestions were shown; `asked` are the
    requests of the editor."""

    keys: int = 0
    saved: int = 0
    ideal: int = 0
    whole: int = 0
    accepted: int = 0
    wrong: int = 0
    asked: int = 0
    counts: Counts = field(default_factory=Counts)

    @property
    def share(self) -> float:
        return self.saved / self.ideal if self.ideal else 0.0

    @property
    def share_of_whole(self) -> float:
        return self.saved / self.whole if self.whole else 0.0


def keys(text: str) -> list[str]:
    return KEY.findall(text)


def ideal(text: str) -> int:
    """The keys that a perfect model without any delay saves somebody who presses Enter for each line and accepts the
    rest of that line by one more key. Comments are not suggested unless that is asked for, and do not count; who takes
    several lines at once may save more."""
    return sum(max(len(line.strip()) - 1, 0) for line in text.split("\n") if not PROSE.match(line))


def whole(text: str) -> int:
    """Those that it saves somebody who types the first one and accepts the rest by another: nobody can save more."""
    return max(len(keys(text)) - 2, 0)


def hunks(first: str, last: str) -> tuple[str, tuple[Hunk, ...]]:
    """The last text without its new lines, and these."""
    old, new = first.splitlines(keepends=True), last.splitlines(keepends=True)
    found, kept, at = [], [], 0
    for kind, _, _, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        text = "".join(new[start:end])
        if kind == "equal":
            kept.append(text)
        elif text.strip():
            below = at > 0 and text.endswith("\n")  # Enter comes first, at the end of the line above
            found.append(Hunk(at - below, "\n" + text[:-1] if below else text))
        else:
            kept.append(text)
        at += len(text)
    return "".join(kept), tuple(found)


def tasks(most_keys: int, names: Sequence[str] = CHOSEN) -> list[Task]:
    """The documents of the sessions in which something is new; of each session the first `most_keys` keys."""
    found = []
    for name in names:
        left = most_keys
        for task in _documents(read(SESSIONS / f"{name}.jsonl")):
            some = []
            for hunk in task.hunks:
                if left > 0:
                    cut = Hunk(hunk.start, "".join(keys(hunk.text)[:left]).rstrip())
                    some.append(cut)
                    left -= len(keys(cut.text))
            if some:
                found.append(Task(task.name, task.language, task.text, tuple(some)))
    return found


def _documents(session: RecordedSession) -> Iterator[Task]:
    texts, first = Texts(session), {}
    for event in session.events:
        texts.apply(event)
        if isinstance(event, Opened):
            first.setdefault(event.d, event.text)
    for d, text in first.items():
        document = texts.documents[d]
        start, found = hunks(text, document.text)
        if found:
            yield Task(document.path, document.language, start, found)


class _Typist:
    """Types into one buffer. `shown` is the suggestion on the screen."""

    def __init__(self, buffer: Buffer, habits: Habits, typed: Typed, chance: random.Random) -> None:
        self.buffer = buffer
        self.habits = habits
        self.typed = typed
        self.shown: Answer | None = None
        self._pauses = load()
        self._chance = chance
        self._clock = asyncio.get_running_loop().time
        self._cursor = 0
        self._last = ""
        self._timer: asyncio.TimerHandle | None = None
        self._pending: int | None = None
        self._following: set[asyncio.Task] = set()
        self._hunk = Hunk(0, "")
        self._wrong: set[str] = set()

    async def type(self, hunk: Hunk) -> None:
        self._hunk, self._cursor, self._last = hunk, hunk.start, ""
        due = self._clock()
        while left := hunk.text[self._cursor - hunk.start :]:
            key = keys(left)[0]
            due = max(due + self._pause(key) / 1000, self._clock())
            await asyncio.sleep(due - self._clock())
            if (answer := self._visible()) and (gain := self._gain(answer, left)) > 1:
                self.typed.accepted += 1
                self.typed.saved += gain - 1
                self._accept(answer)
            else:
                self._press(key)
            self.typed.keys += 1
        self._stop()
        await asyncio.sleep(LAST_SECONDS)

    def _pause(self, key: str) -> float:
        before = self._last[-1:] or "\n"
        in_word = is_word(key) and is_word(before)
        kind = "newline" if key[0] == "\n" else "line_start" if self._last[:1] == "\n" else "boundary"
        return min(draw(self._pauses, "in_word" if in_word else kind, self._chance), LONGEST_PAUSE_MS)

    def _press(self, key: str) -> None:
        self.buffer.replace(self._cursor, self._cursor, key)
        self._cursor, self._last = self._cursor + len(key), key
        self._changed()

    def _accept(self, answer: Answer) -> None:
        self._cursor = self.buffer.accept(answer, self._cursor)
        self._last, self.shown = self.buffer.text[: self._cursor][-1:], None
        self._changed()

    def _changed(self) -> None:
        if self.habits.cancels == "key":
            self._cancel()
        if self._timer:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self.habits.inline_ms / 1000, self._ask)

    def _ask(self) -> None:
        self._cancel()
        self.typed.asked += 1
        id, answer = self.buffer.ask(self._cursor, AUTOMATIC)
        self._pending = id
        task = asyncio.create_task(self._follow(id, answer))
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def _follow(self, id: int, answer: asyncio.Future) -> None:
        here = self.buffer.snapshot()
        try:
            result = await answer
        except RequestError:
            return
        if self._pending != id:
            return  # a newer request took its place, as the editor sees it
        self._pending = None
        # An answer to an older text moves along in the server: its ranges count in the text that was sent last.
        found = [*self.buffer.answers(result, self.buffer.snapshot()), *self.buffer.answers(result, here)]
        self.shown = next(filter(self._fits, found), None)
        if self.shown and not self._gain(self.shown, self._left) and self.shown.text not in self._wrong:
            self._wrong.add(self.shown.text)
            self.typed.wrong += 1

    @property
    def _left(self) -> str:
        return self._hunk.text[self._cursor - self._hunk.start :]

    def _fits(self, answer: Answer) -> bool:
        """Whether it goes on as was typed: an editor drops it otherwise."""
        text = self.buffer.text
        tail = text[len(text) - answer.tail :] if answer.tail else ""
        ahead = answer.text.startswith(text[: self._cursor]) and answer.text.endswith(tail)
        return ahead and answer.text != text and answer.tail <= len(text) - self._cursor

    def _visible(self) -> Answer | None:
        if self.shown and not self._fits(self.shown):
            self.shown = None
        return self.shown

    def _gain(self, answer: Answer, left: str) -> int:
        """The keys of it that would have been typed: none if anything in it is wrong."""
        text = self.buffer.text
        inserted = answer.inserted(text[: self._cursor], text[self._cursor :])
        return len(keys(inserted)) if inserted and left.startswith(inserted) else 0

    def _cancel(self) -> None:
        if self._pending is not None:
            self.buffer.client.cancel(self._pending)
            self._pending = None

    def _stop(self) -> None:
        self._cancel()
        if self._timer:
            self._timer.cancel()


async def typed_by(editor: str, options: Options, chosen: Sequence[Task], name: str, setup: Setup = real) -> Typed:
    """All tasks in one editor; the pauses are the same in every run."""
    typed = Typed()
    async with setup([task.final for task in chosen], options) as (oracle, at):
        oracle.counts = typed.counts = Counts()
        for number, task in enumerate(progress(name, chosen)):
            buffer = at.open(os.path.basename(task.name), task.language, task.text)
            typist = _Typist(buffer, EDITORS[editor], typed, random.Random(number))
            for hunk in task.hunks:
                await typist.type(hunk)
                typed.ideal += ideal(hunk.text)
                typed.whole += whole(hunk.text)
            buffer.close()
    return typed
