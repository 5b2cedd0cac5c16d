"""The fuzzer: malformed sessions with real processes, and whether each was survived as it has to be."""

import asyncio
import json
import os
import random
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from bench.abuse import hostile
from bench.abuse.client import ANSWER_SECONDS, Conversation, Pipe, ServerProcess, start
from bench.abuse.messages import ScriptedSession, plan
from bench.abuse.sandbox import PYTHON, REPOSITORY, Playground, sandbox
from bench.abuse.steps import Accept, Check, End, Flood, Plan, Raw, Say, Step, Touch, Wait, store
from bench.abuse.witness import audit
from bench.harness.wire import frame

END_SECONDS = 15.0
REST_MB, PEAK_MB = 400.0, 1000.0
"""Resident at the end of a session and at most during it. A message may have 64 MiB, which is read as one."""
PIECE, END_OF_FLOOD = 1 << 16, 4096
SANDBOX_TEXT = re.compile(re.escape(tempfile.gettempdir()) + r"/mla-\w{8}")
SANDBOX = re.compile(SANDBOX_TEXT.pattern.encode())


class FuzzResult(Struct):
    """What came of one session."""

    plan: Plan
    steps: list[Step] = field(default_factory=list)
    sent: Counter[str] = field(default_factory=Counter)
    answers: int = 0
    texts: int = 0
    rest_mb: float = 0.0
    peak_mb: float = 0.0
    wrong: list[str] = field(default_factory=list)

    @property
    def messages(self) -> int:
        return self.sent.total() - self.sent["files made odd"]


class Fuzzed(Struct):
    """All sessions of one run."""

    outcomes: list[FuzzResult] = field(default_factory=list)
    seconds: float = 0.0
    files: dict[str, str] = field(default_factory=dict)

    @property
    def messages(self) -> int:
        return sum(outcome.messages for outcome in self.outcomes)


async def fuzz(
    seed: str,
    messages: int,
    until: float,
    each: int,
    workers: int,
    failures: Path,
    only: str = "",
    tell: Callable[[FuzzResult], None] = lambda outcome: None,
) -> Fuzzed:
    """So many messages in sessions of `each`, or until the time is over; `only` is the seed of a single session."""
    found, began = Fuzzed(), time.monotonic()
    numbers = iter([only] if only else (f"{seed}-{number}" for number in range(1 << 30)))
    left = messages

    async def work() -> None:
        nonlocal left
        with sandbox() as place:
            engine = await _witness(place)
            while left > 0 and time.monotonic() < until and (name := next(numbers, "")):
                size = random.Random(name).choice((each // 8, each, each * 2)) or 1
                left -= size
                outcome = await _session(place, plan(name), size)
                tell(outcome)
                if outcome.wrong:
                    found.files[name] = _keep(failures, outcome)
                outcome.steps.clear()
                found.outcomes.append(outcome)
            await engine.kill()

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(work())
    found.seconds = time.monotonic() - began
    return found


async def replay(chosen: Plan, steps: list[Step], failures: Path) -> Fuzzed:
    """A session that was kept, with other folders of the same length."""
    began = time.monotonic()
    with sandbox() as place:
        engine = await _witness(place)
        root = _make_project(place, strict=chosen.strict)
        outcome = await _converse(place, root, chosen, moved(steps, place.root))
        await engine.kill()
    files = {chosen.seed: _keep(failures, outcome)} if outcome.wrong else {}
    return Fuzzed([outcome], time.monotonic() - began, files)


def moved(steps: list[Step], root: Path) -> Iterator[Step]:
    """To where the project is now."""
    for step in steps:
        match step:
            case Say(body, header):
                yield Say(SANDBOX.sub(str(root).encode(), body), header)
            case Check(digests, hidden):
                here = {SANDBOX_TEXT.sub(str(root), uri): digest for uri, digest in digests.items()}
                yield Check(here, tuple(SANDBOX_TEXT.sub(str(root), uri) for uri in hidden))
            case _:
                yield step


def _keep(failures: Path, outcome: FuzzResult) -> str:
    path = failures / f"abuse-fuzz-{outcome.plan.seed}.jsonl"
    store(path, outcome.plan, outcome.steps)
    return str(path)


async def _witness(place: Playground) -> ServerProcess:
    """The engine server, which editors would start otherwise: this one knows the canary."""
    command = (PYTHON[0], "-m", "bench.abuse.witness")
    return await start(place, "serve", str(place.root / "seen"), command=command, cwd=REPOSITORY)


async def _session(place: Playground, chosen: Plan, messages: int) -> FuzzResult:
    root = _make_project(place, strict=chosen.strict)
    try:
        return await _converse(place, root, chosen, ScriptedSession(chosen, root).steps(messages))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _make_project(place: Playground, *, strict: bool = True) -> Path:
    """Always at the same path, which is part of every message."""
    root = place.root / "project"
    shutil.rmtree(root, ignore_errors=True)
    for name, text in hostile.project(strict=strict).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


async def _converse(place: Playground, root: Path, chosen: Plan, steps: Iterable[Step]) -> FuzzResult:
    """One server, from its start to its end."""
    outcome = FuzzResult(chosen)
    seen, site = place.root / "seen", place.root / "site"
    hidden = hostile.HIDDEN if chosen.strict else hostile.SECRET
    shutil.rmtree(site, ignore_errors=True)
    environment = place.environment(**audit(site, seen, hidden))
    server = await start(place, "--stdio", environment=environment)
    try:
        talk = Conversation(Pipe(server), _answering(chosen))
        try:
            await play(Driver(server, talk, root, outcome, chosen), steps)
        except (TimeoutError, ConnectionError, OSError) as problem:
            outcome.wrong.append(f"{problem}; unanswered: {', '.join(talk.unanswered()[:5])}")
        outcome.wrong += talk.wrong
        outcome.wrong += [f"answered too often, or never asked: {id}" for id in talk.unasked()[:5]]
        outcome.answers = talk.got.total()
        await talk.end()
    except (TimeoutError, OSError) as problem:
        outcome.wrong.append(f"no conversation: {problem}")
    finally:
        await server.kill()
    outcome.wrong += [f"standard error:\n{said}" for said in server.complaints()[:2]]
    outcome.wrong += _witnessed(seen)
    server.errors.unlink(missing_ok=True)
    return outcome


def _answering(chosen: Plan) -> Any:
    """How this editor answers what the server asks it: with nothing, an error, rubbish or not at all."""
    manner = random.Random(chosen.seed + " answers").choice(("null", "null", "error", "rubbish", "silent"))

    def answer(message: dict[str, Any]) -> bytes | None:
        if manner == "silent":
            return None
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        given = {"null": {"result": None}, "error": {"error": {"code": -1, "message": "no"}}, "rubbish": {"result": 5}}
        return json.dumps({**reply, **given[manner]}).encode()

    return answer


def _witnessed(seen: Path) -> list[str]:
    if not seen.exists():
        return []
    lines = seen.read_text(encoding="utf-8").splitlines()
    seen.unlink()
    return lines[:5]


class Driver:
    """Plays steps; what is sent is merged and cut anywhere."""

    def __init__(
        self, server: ServerProcess, talk: Conversation, root: Path, outcome: FuzzResult, chosen: Plan
    ) -> None:
        self.server = server
        self.talk = talk
        self.root = root
        self.outcome = outcome
        self._rng = random.Random(chosen.seed + " cuts")
        self._held = bytearray()
        self._checks = 0

    async def take(self, step: Step) -> None:
        match step:
            case Say(body, header):
                self.outcome.sent["messages"] += 1
                self.talk.expect(body)
                await self.put(frame(body, header))
            case Raw(data):
                self.outcome.sent["bad headers"] += 1
                self.talk.may["null"] += 1
                await self.put(data)
            case Flood(length):
                self.outcome.sent["bodies over 64 MiB"] += 1
                await self.flood(length)
            case Touch():
                self.outcome.sent["files made odd"] += 1
                await self.flush()
                with suppress(OSError):
                    touch(self.root, step)
            case Accept() if self.talk.offers:
                self.outcome.sent["messages"] += 1
                await self.flush()
                params = {"id": self.talk.offers[-1]}
                await self.talk.send({"method": "mercury/didAccept", "params": params})
            case Wait():
                await self.flush()
                await self.talk.settled(ANSWER_SECONDS)
                reply = await self.talk.reply("initialize", ANSWER_SECONDS)
                if "error" in reply:
                    raise ConnectionError(f"initialize was refused: {reply['error']['message']}")
            case Check():
                await self.check(step)
            case End(how):
                await self.end(how)

    async def put(self, data: bytes) -> None:
        self._held += data
        while len(self._held) > PIECE or (self._held and self._rng.random() < 0.2):
            cut = self._rng.randint(1, len(self._held))
            await self.talk.wire.write(bytes(self._held[:cut]))
            del self._held[:cut]

    async def flush(self) -> None:
        held, self._held = bytes(self._held), bytearray()
        if held:
            await self.talk.wire.write(held)

    async def flood(self, length: int) -> None:
        """Streamed, as by a client that opens a file of 70 MB; its end comes together with what follows."""
        await self.flush()
        self.talk.may["null"] += 1
        head = (
            b'{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///huge","text":"'
        )
        await self.talk.wire.write(b"Content-Length: %d\r\n\r\n" % length + head)
        left, piece = length - len(head) - END_OF_FLOOD, b"x" * (1 << 20)
        while left > 0:
            await self.talk.wire.write(piece[:left])
            left -= len(piece)
        self._held += b"x" * END_OF_FLOOD

    async def check(self, step: Check) -> None:
        await self.flush()
        self._checks += 1
        reply = await self.talk.request("mercury/status", {"digests": True}, ANSWER_SECONDS, f"check {self._checks}")
        await self.talk.settled(ANSWER_SECONDS)
        if "error" in reply:
            return self.outcome.wrong.append(f"mercury/status: {reply['error']}")
        found = reply["result"]["digests"]
        self.outcome.texts += len(step.digests)
        self.outcome.wrong += compare(step, found, self.outcome.plan.strict)
        self.weigh()
        return None

    def weigh(self) -> None:
        rest, peak = self.server.memory_mb()
        self.outcome.rest_mb, self.outcome.peak_mb = rest, max(peak, self.outcome.peak_mb)

    async def end(self, how: str) -> None:
        await self.flush()
        self.weigh()
        memory = self.outcome.rest_mb, self.outcome.peak_mb
        if memory[0] > REST_MB or memory[1] > PEAK_MB:
            self.outcome.wrong.append(f"memory: {memory[0]:.0f} MB at the end, {memory[1]:.0f} MB at most")
        if how == "exit":
            await self.talk.request("shutdown", None, ANSWER_SECONDS, "shutdown")
        if how.startswith("exit"):
            await self.talk.send({"method": "exit"})
        if how == "end within a message":
            await self.talk.wire.write(b"Content-Length: 100\r\n\r\n{")
        await self.over({"exit": 0, "exit at once": 1}.get(how, 0))

    async def over(self, code: int) -> None:
        """The process ends with the conversation."""
        if code == 0:
            await self.talk.wire.close()
        ended = await self.server.ended(END_SECONDS)
        if ended != code:
            said = "did not end" if ended is None else f"ended with {ended}, not {code}"
            self.outcome.wrong.append(f"the server {said} within {END_SECONDS:g} s of the end")


async def play(driver: Driver, steps: Iterable[Step]) -> None:
    for step in steps:
        driver.outcome.steps.append(step)
        await driver.take(step)


def compare(step: Check, found: dict[str, str], strict: bool) -> list[str]:
    """Where files may become hidden on the way, a text may be missing, but never be another one."""
    wrong = [f"another text than the editor's: {uri!r}" for uri, d in step.digests.items() if found.get(uri, d) != d]
    if strict:
        wrong += [f"a text is missing: {uri!r}" for uri in step.digests if uri not in found]
    wrong += [
        f"a text that was never opened: {uri!r}" for uri in found if uri not in step.digests and uri not in step.hidden
    ]
    hidden = step.hidden if strict else [uri for uri in step.hidden if uri.endswith(hostile.SECRET)]
    wrong += [f"a hidden document is kept: {uri!r}" for uri in hidden if uri in found]
    return wrong[:5]


def touch(root: Path, step: Touch) -> None:
    path = root / step.path
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if step.kind == "file":
        path.write_bytes(step.content)
    elif step.kind == "folder":
        path.mkdir()
    elif step.kind == "pipe":
        os.mkfifo(path)
    elif step.kind == "link":
        path.symlink_to(root / "server.pem")
    elif step.kind == "loop":
        path.symlink_to(path)
