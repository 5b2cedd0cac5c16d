"""Where a campaign happens: a home with real processes, a prober of its server, and what must hold after every case."""

import asyncio
import hashlib
import http.client
import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx2
from msgspec import Struct, field

from bench.abuse.client import ServerProcess, start
from bench.abuse.sandbox import Playground
from bench.harness.client import own_home
from bench.harness.usage import peak_mb

COMMAND_SECONDS, ANSWER_SECONDS, READY_SECONDS = 90.0, 60.0, 30.0
PEAK_MB = 1500.0
LONGEST_OUTPUT = 1 << 16
PROBE_SECONDS, WORST_HEALTH_SECONDS = 0.2, 1.0
LISTENING = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
FAULT = '"code":"server_error"'
"""Of the server itself; what it refuses, and what its engine cannot do, have codes of their own."""


class Campaigned(Struct):
    """What came of one campaign: how often each outcome, what did not hold, and how slow /health was at worst."""

    name: str
    seed: str
    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    health_s: float = 0.0
    probes: int = 0
    peak_mb: float = 0.0
    seconds: float = 0.0


class Finished(Struct, frozen=True):
    """A command that has ended: its code, None if it had to be killed, and all that it printed."""

    code: int | None
    printed: str


class Ground:
    """One campaign's home, in a folder in which nothing else may change. `only` is the number of a single case."""

    def __init__(self, place: Playground, name: str, seed: str, seconds: float, only: int | None = None) -> None:
        self.result = Campaigned(name, seed)
        self.home = place.root / "home"
        self.made = place.root / "made"
        """What cases prepare, as a user would have downloaded it."""
        self._place = place
        self._seconds = seconds
        self._only = only
        self._case = 0
        for folder in (self.home / "tmp", self.made, place.root / "others"):
            folder.mkdir(parents=True)
        for name in ("settings.json", ".bashrc", "model.json"):
            (place.root / "others" / name).write_text("as it was\n", encoding="utf-8")
        self.environment()
        self._before = self._outside()

    def environment(self, **more: str) -> dict[str, str]:
        return self._place.environment(**{**own_home(self.home), "TMPDIR": str(self.home / "tmp"), **more})

    def cases(self) -> Iterator[random.Random]:
        """The randomness of each case, by which it can be made again, until the time is over."""
        began = time.monotonic()
        numbers = iter(range(1 << 30)) if self._only is None else iter([self._only])
        for self._case in numbers:
            if time.monotonic() - began > self._seconds:
                break
            yield random.Random(f"{self.result.name} {self.result.seed} {self._case}")
            self.result.cases += 1
            self._check_outside()
        self.result.seconds = time.monotonic() - began

    def complain(self, problem: str) -> None:
        self.result.wrong.append(f"case {self._case}: {problem}")

    # Commands

    async def command(self, *arguments: str, seconds: float = COMMAND_SECONDS, **more: str) -> Finished:
        """A command of ours, which says what is wrong in words, in time and within its memory."""
        process = await start(self._place, *arguments, environment=self.environment(**more))
        printing = asyncio.create_task(_everything(process))
        measuring = asyncio.create_task(self._measure(process.pid))
        code = await process.ended(seconds)
        measuring.cancel()
        finished = Finished(code, (await printing) + process.said)
        self._judge_command(" ".join(arguments[:2]), finished, process)
        process.errors.unlink()
        return finished

    def _judge_command(self, name: str, finished: Finished, process: ServerProcess) -> None:
        self.result.outcomes[f"{name}: {'killed' if finished.code is None else finished.code}"] += 1
        if finished.code not in (0, 1, 2, 3):
            self.complain(f"`{name}` ended with {finished.code}: {finished.printed[-300:]!r}")
        if found := UNPRINTABLE.search(finished.printed):
            self.complain(f"`{name}` printed {found[0]!r}: {finished.printed[max(found.start() - 60, 0) :][:120]!r}")
        if len(finished.printed) > LONGEST_OUTPUT:
            self.complain(f"`{name}` printed {len(finished.printed):,} characters")
        for trace in process.complaints()[:1]:
            self.complain(f"`{name}`: {trace}")

    async def _measure(self, pid: int) -> None:
        told = False
        while (peak := peak_mb(pid)) is not None:
            self.result.peak_mb = max(self.result.peak_mb, peak)
            if peak > PEAK_MB and not told:
                told = True
                self.complain(f"a process took {peak:.0f} MB")
            await asyncio.sleep(0.05)

    # The server

    @asynccontextmanager
    async def served(self, model: str) -> AsyncIterator["Served"]:
        """`serve --http` with this model; it is the same process at the end, and was healthy all the time."""
        environment = self.environment(MERCURY_ENGINE_MODEL=model)
        process = await start(self._place, "serve", "--http", "127.0.0.1:0", environment=environment)
        measuring = asyncio.create_task(self._measure(process.pid))
        try:
            served = Served(await self._port(process), self._token(), self)
            async with served.client:
                await self._ready(served)
                with self._probed(served.port):
                    yield served
            if process.process.returncode is not None:
                self.complain(f"the server was lost: it ended with {process.process.returncode}")
        finally:
            measuring.cancel()
            await process.kill()
        for trace in process.complaints()[:2]:
            self.complain(f"the server's log: {trace}")
        process.errors.unlink()

    async def _port(self, process: ServerProcess) -> int:
        stdout = process.process.stdout
        assert stdout is not None, "it is a pipe"
        with suppress(TimeoutError):
            async with asyncio.timeout(READY_SECONDS):
                while line := await stdout.readline():
                    if found := LISTENING.search(line.decode()):
                        return int(found[1])
        raise TimeoutError(f"the server does not listen: {process.said[-500:]}")

    def _token(self) -> str:
        return (self.home / "state/mercury-ls/http-token").read_text(encoding="utf-8").strip()

    async def _ready(self, served: "Served") -> None:
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            state = (await served.client.get("/health")).json()["state"]
            if state == "ready":
                return
            if state == "unavailable":
                break
            await asyncio.sleep(0.05)
        raise TimeoutError("the engine does not get ready")

    @contextmanager
    def _probed(self, port: int) -> Iterator[None]:
        """Asked by a thread of its own, which nothing of the campaign delays."""
        stop = Event()
        thread = Thread(target=self._probe, args=[port, stop], daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _probe(self, port: int, stop: Event) -> None:
        while not stop.wait(PROBE_SECONDS):
            began = time.monotonic()
            state = health(port)
            seconds = time.monotonic() - began
            self.result.probes += 1
            self.result.health_s = max(self.result.health_s, seconds)
            if seconds > WORST_HEALTH_SECONDS or state != "ready":
                self.complain(f"/health said {state!r} after {seconds:.2f} s")
                if state == "gone":
                    return

    # What must stay as it was

    def _check_outside(self) -> None:
        after = self._outside()
        for path in sorted(after.keys() ^ self._before.keys()):
            self.complain(f"outside of the home there is another file, or one is missing: {path}")
        for path in sorted(after.keys() & self._before.keys()):
            if after[path] != self._before[path]:
                self.complain(f"outside of the home a file was changed: {path}")
        self._before = after

    def _outside(self) -> dict[str, str]:
        """All files that are neither the home's nor what a case has made."""
        found = {}
        for folder, names, files in os.walk(self._place.root):
            if Path(folder) == self._place.root:
                names[:] = sorted(set(names) - {"home", "made"})
                files = [name for name in files if not name.startswith("stderr-")]
            for name in (*names, *files):
                path = Path(folder) / name
                content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                found[str(path.relative_to(self._place.root))] = hashlib.sha256(content).hexdigest()
        return found


class Served:
    """The server over HTTP, by somebody who has its token."""

    def __init__(self, port: int, token: str, ground: Ground) -> None:
        self.port = port
        self._ground = ground
        self.client = httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{port}",
            headers={"authorization": f"Bearer {token}"},
            timeout=ANSWER_SECONDS,
            trust_env=False,
        )

    async def post(self, path: str, body: Any, seconds: float = ANSWER_SECONDS, **headers: str) -> tuple[int, str]:
        """Status and text: within this time, and never a fault of the server itself."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        name, began = path.removeprefix("/v1"), time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                answer = await self.client.post(path, content=content, headers=headers)
        except (TimeoutError, httpx2.HTTPError) as error:
            self._ground.complain(f"{path}: no answer within {seconds:.0f} s ({error!r}): {content[:200]!r}")
            self._ground.result.outcomes[f"{name}: none"] += 1
            return 0, ""
        self._ground.result.outcomes[f"{name}: {answer.status_code}"] += 1
        if FAULT in answer.text:
            spent = time.monotonic() - began
            self._ground.complain(f"{path}: {answer.status_code} after {spent:.1f} s, {answer.text[:300]}")
        return answer.status_code, answer.text

    async def completes(self, seconds: float) -> None:
        """Somebody else, who types, is answered in this time."""
        body = {"prompt": "def area(width, height):\n    return ", "path": "area.py", "invoked": True}
        status, text = await self.post("/v1/completions", body, seconds)
        if status not in (0, 200):
            self._ground.complain(f"a completion of somebody else: {status}, {text[:200]}")


def health(port: int) -> str:
    """The state of the engine; "gone" where nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/health")
        return json.loads(connection.getresponse().read())["state"]
    except (OSError, ValueError, http.client.HTTPException):
        return "gone"
    finally:
        connection.close()


async def _everything(process: ServerProcess) -> str:
    """What it prints on standard output; its input is at its end."""
    stdin, stdout = process.process.stdin, process.process.stdout
    assert stdin is not None, "it is a pipe"
    assert stdout is not None, "it is a pipe"
    with suppress(OSError):
        stdin.close()
    return (await stdout.read()).decode("utf-8", "replace")
