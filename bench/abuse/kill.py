"""The killer: editors share an engine server that is killed, stopped and robbed of its files; nobody waits for ever."""

import asyncio
import random
import shutil
import signal
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from bench.abuse.client import ANSWER_SECONDS, Conversation, Pipe, ServerProcess, start
from bench.abuse.sandbox import Playground, sandbox

__all__ = ["FAULTS", "Killed", "kill"]

EDITORS = 3
PATIENCE_SECONDS = 30.0
SETTLE_SECONDS = 20.0
IDLE_SECONDS = 100.0
"""A server leaves after one idle minute, which is the least that can be set."""
BEAT_SECONDS = 0.05
START, SOON = "start", ", soon after another"
SOON_SHARE, CALM_SECONDS = 0.15, (10.5, 13.0)
"""A server that was of use for ten seconds is started again at once."""


class Killed(Struct):
    """All groups of one run: how often what was done, and how long it took until suggestions came again."""

    faults: Counter[str] = field(default_factory=Counter)
    recovered: dict[str, list[float]] = field(default_factory=dict)
    asked: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def times(self) -> list[float]:
        """Of faults that came out of the blue."""
        calm = (each for fault, each in self.recovered.items() if fault != START and not fault.endswith(SOON))
        return sorted(seconds for each in calm for seconds in each)


class Editor:
    """One language server and the hands that type into it: each beat a change and a request."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.talk = Conversation(Pipe.stdio(server))
        self.asked = 0
        self.began = time.monotonic()
        self.suggestions: deque[tuple[float, float]] = deque(maxlen=4096)
        """When the request was sent, and when the suggestion was there."""
        self.silent: list[str] = []
        self._version = 1
        self._typing: asyncio.Task[None] | None = None

    @classmethod
    async def begin(cls, place: Playground, root: Path) -> "Editor":
        editor = cls(await start(place, "--stdio"))
        await editor.talk.begin(root)
        editor._typing = asyncio.create_task(editor._type())
        return editor

    async def _type(self) -> None:
        while True:
            self._version += 1
            await self.talk.change(self._version)
            await self._ask()
            await asyncio.sleep(BEAT_SECONDS)

    async def _ask(self) -> None:
        self.asked += 1
        sent = time.monotonic()
        reply = await self.talk.ask()
        if "error" in reply:
            self.silent.append(f"an error for an answer: {reply['error']}")
        elif reply["result"]["items"]:
            self.suggestions.append((sent, time.monotonic()))

    async def suggested(self, after: float, seconds: float) -> float:
        """How long until a suggestion was there whose request was sent after this time, or after its own start."""
        after = max(after, self.began)
        until = max(after, time.monotonic() - seconds) + seconds
        while not (found := next((came for sent, came in self.suggestions if sent >= after), 0.0)):
            if self._typing is not None and self._typing.done():
                self._typing.result()
            if time.monotonic() > until:
                raise TimeoutError(f"no suggestion within {seconds:g} s: {await self.state()}")
            await asyncio.sleep(0.01)
        return found - after

    async def state(self) -> str:
        try:
            status = (await self.talk.request("mercury/status", {}, 5.0))["result"]
        except (TimeoutError, ConnectionError, OSError) as error:
            return str(error)
        return f"{status['state']} {status['detail']}".strip()

    async def end(self) -> list[str]:
        """As an editor ends; what was wrong until then."""
        if self._typing is not None:
            self._typing.cancel()
            with suppress(asyncio.CancelledError, TimeoutError, OSError):
                await self._typing
        wrong = self.silent[:2]
        try:
            await self.talk.settled(ANSWER_SECONDS)
            await self.talk.request("shutdown", None, ANSWER_SECONDS)
            await self.talk.send({"method": "exit"})
        except (TimeoutError, OSError) as error:
            wrong.append(f"a request was lost: {self.talk.unanswered()[:2]}, {error}")
        if (code := await self.server.ended(ANSWER_SECONDS)) != 0:
            wrong.append(f"the editor's server ended with {code}")
        await self.talk.end()
        return wrong + [f"standard error: {said}" for said in self.server.complaints()[:2]]

    async def kill(self) -> None:
        if self._typing is not None:
            self._typing.cancel()
            with suppress(asyncio.CancelledError, TimeoutError, OSError):
                await self._typing
        await self.server.kill()
        await self.talk.end()


class Group:
    """Editors with one runtime folder. After each fault all of them, and one that is new, get suggestions again."""

    def __init__(self, place: Playground, seed: str, found: Killed, size: int = EDITORS) -> None:
        self.size = size
        self.place = place
        self.seed = seed
        self.rng = random.Random(seed)
        self.found = found
        self.editors: list[Editor] = []
        self.hits = 0
        self.root = place.project()

    async def begin(self) -> None:
        for _ in range(self.size):
            self.editors.append(await Editor.begin(self.place, self.root))
        await self.all_suggest(time.monotonic(), START)

    async def strike(self, fault: str) -> None:
        """Mostly after a calm while; whoever is hit again at once is started again more and more slowly."""
        soon = self.hits > 0 and self.rng.random() < SOON_SHARE
        await asyncio.sleep(self.rng.uniform(*(CALM_SECONDS if self.hits and not soon else (0.0, 0.5))))
        self.hits += 1
        began = time.monotonic()
        await FAULTS[fault](self)
        self.found.faults[fault] += 1
        struck = time.monotonic() if fault == "stopped for a while" else began
        if fault.startswith("an editor") or self.rng.random() < 0.3:
            self.editors.append(await Editor.begin(self.place, self.root))
            await self.retire()
        await self.all_suggest(struck, fault + SOON if soon else fault)

    async def retire(self) -> None:
        while len(self.editors) > self.size:
            editor = self.editors.pop(0)
            self.found.asked += editor.asked
            self.report(await editor.end())

    async def all_suggest(self, after: float, fault: str) -> None:
        waits = [editor.suggested(after, PATIENCE_SECONDS) for editor in self.editors]
        times = await asyncio.gather(*waits, return_exceptions=True)
        for each in times:
            if isinstance(each, BaseException):
                self.report([f"after {fault!r}: {each}"])
                self.found.recovered.setdefault(fault, []).append(PATIENCE_SECONDS)
            else:
                self.found.recovered.setdefault(fault, []).append(each)
        if any(isinstance(each, BaseException) for each in times):
            await self.start_over()

    async def start_over(self) -> None:
        """What does not recover must not count again and again."""
        for editor in self.editors:
            self.found.asked += editor.asked
            await editor.kill()
        for pid in self.place.processes():
            self.place.signal(pid, signal.SIGKILL)
        shutil.rmtree(self.place.runtime, ignore_errors=True)
        self.place.runtime.mkdir(mode=0o700)
        self.editors = [await Editor.begin(self.place, self.root) for _ in range(self.size)]
        for editor in self.editors:
            await editor.suggested(0.0, PATIENCE_SECONDS)

    def report(self, wrong: list[str]) -> None:
        self.found.wrong += [f"group {self.seed}: {each}" for each in wrong]

    async def end(self, *, idle: bool) -> None:
        """One server serves; with the last editor gone it leaves, by itself or when it is told to."""
        await self.one_engine()
        for editor in self.editors:
            self.found.asked += editor.asked
            self.report(await editor.end())
        if not idle:
            await self.tell_engine("--stop")
        if not await becomes(lambda: not self.place.processes(), IDLE_SECONDS if idle else SETTLE_SECONDS):
            self.report([f"{len(self.place.processes())} processes are left after the last editor"])

    async def one_engine(self) -> None:
        for pid in self.place.engines():
            self.place.signal(pid, signal.SIGCONT)
        if not await becomes(lambda: len(self.place.engines()) == 1, SETTLE_SECONDS):
            self.report([f"{len(self.place.engines())} engine servers run, and one should"])
        if (code := await self.tell_engine("--status")) != 0:
            self.report([f"`serve --status` ends with {code} though editors get suggestions"])

    async def tell_engine(self, word: str) -> int | None:
        server = await start(self.place, "serve", word)
        return await server.ended(SETTLE_SECONDS)

    # What is done to them

    async def killed(self) -> None:
        self.signal(signal.SIGKILL)

    async def terminated(self) -> None:
        self.signal(signal.SIGTERM)

    async def stopped_for_a_while(self) -> None:
        stopped = self.signal(signal.SIGSTOP)
        await asyncio.sleep(self.rng.uniform(0.2, 3.0))
        for pid in stopped:
            self.place.signal(pid, signal.SIGCONT)

    async def stopped_for_good(self) -> None:
        self.signal(signal.SIGSTOP)

    async def socket_deleted(self) -> None:
        """Nobody notices who has a connection: somebody new does, and the server that goes next."""
        self.delete("*.sock")
        self.editors.append(await Editor.begin(self.place, self.root))
        await self.retire()

    async def lock_deleted(self) -> None:
        self.delete("*.lock")
        self.signal(signal.SIGKILL)

    async def all_deleted(self) -> None:
        self.delete("*")
        self.editors.append(await Editor.begin(self.place, self.root))
        await self.retire()

    async def folder_deleted(self) -> None:
        shutil.rmtree(self.place.runtime, ignore_errors=True)
        self.editors.append(await Editor.begin(self.place, self.root))
        await self.retire()

    async def replaced(self) -> None:
        """Socket and lock go, a second server comes, the first is ended."""
        first = self.place.engines()
        self.delete("*")
        self.editors.append(await Editor.begin(self.place, self.root))
        await becomes(lambda: len(self.place.engines()) > len(first), 3.0)
        for pid in first:
            self.place.signal(pid, signal.SIGTERM)
        await self.retire()

    async def editor_killed(self) -> None:
        editor = self.editors.pop(self.rng.randrange(len(self.editors)))
        self.found.asked += editor.asked
        await editor.kill()

    def signal(self, number: int) -> list[int]:
        return [pid for pid in self.place.engines() if self.place.signal(pid, number)]

    def delete(self, pattern: str) -> None:
        for path in self.place.runtime.glob(pattern):
            path.unlink(missing_ok=True)


FAULTS: dict[str, Callable[[Group], Awaitable[None]]] = {
    "killed": Group.killed,
    "terminated": Group.terminated,
    "stopped for a while": Group.stopped_for_a_while,
    "stopped for good": Group.stopped_for_good,
    "socket deleted": Group.socket_deleted,
    "lock deleted, then killed": Group.lock_deleted,
    "socket and lock deleted": Group.all_deleted,
    "runtime folder deleted": Group.folder_deleted,
    "files deleted, first of two servers ended": Group.replaced,
    "an editor killed": Group.editor_killed,
}
OFTEN = (8, 3, 2, 2, 2, 1, 2, 1, 1, 2)


async def kill(
    seed: str,
    kills: int,
    until: float,
    groups: int,
    *,
    editors: int = EDITORS,
    idle: bool = True,
    faults: tuple[str, ...] = (),
) -> Killed:
    """So many faults, or until the time is over, dealt out to groups that are all hit at once; or these, one by one."""
    found, began = Killed(), time.monotonic()
    rng = random.Random(f"{seed} faults")
    dealt = iter(faults or rng.choices(list(FAULTS), OFTEN, k=kills))

    async def work(name: str) -> None:
        with sandbox() as place:
            group = Group(place, name, found, editors)
            try:
                await group.begin()
                while time.monotonic() < until and (fault := next(dealt, "")):
                    await group.strike(fault)
                await group.end(idle=idle)
            except (TimeoutError, OSError) as error:
                group.report([str(error)])

    async with asyncio.TaskGroup() as tasks:
        for number in range(groups):
            tasks.create_task(work(f"{seed}-{number}"))
    found.seconds = time.monotonic() - began
    return found


async def becomes(condition: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.1)
    return True
