"""A team's server with two engines: both are killed while it is under load, and no request fails."""

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import httpx2
import pytest

from mercury_engine.api import ChatRequest, Gap, Message
from mercury_ls.link.client import EngineUnavailable
from mercury_ls.team.config import TeamConfig, TeamError, new_token
from tests.e2e.environment import COMMAND, home
from tests.editors.patience import rest, until

pytest.importorskip("ray", reason="a team's server needs the extra `serve`")

pytestmark = pytest.mark.slow

TEXT = "def area(width, height):\n    return width * height\n\ndef area(width, height):\n    "
ASKED = {"path": "shapes.py", "prompt": TEXT, "suffix": "\n", "invoked": True}
REPLICA = b"ray::ServeReplica:mercury-ls:engine"
MOST_KILLED = 10
"""Ray itself passes on requests that had not quite reached an engine."""
AFTER = 25
"""Requests of each client after the last engine was killed."""
SECONDS = 90.0
IN_VAIN = 0.5
"""Seconds. A stopped engine that is at work holds a request up; one that is idle holds up none."""
PAUSE = 0.1
"""Seconds between the requests of a client while engines start, which need the processor as well."""


class Team:
    """The process, its configuration, and the tokens of its users."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "team.yaml"
        self.log = folder / "log"
        self.tokens: dict[str, str] = {}
        self.write("ada", "grace")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*COMMAND, "serve", "--team", str(self.path)], env=home(folder), stdout=log, stderr=log
            )

    def write(self, *users: str) -> None:
        digests = {}
        for user in users:
            self.tokens[user], digests[user] = new_token()
        lines = "".join(f"  {user}: {digest}\n" for user, digest in digests.items())
        replicas = "{minimum: 2, maximum: 2, cpus: 0.1}"
        self.path.write_text(f"users:\n{lines}listen: 127.0.0.1:0\nrequests_per_user: 2\nreplicas: {replicas}\n")

    @property
    def site(self) -> str:
        """Empty until it listens."""
        found = re.search(r"^listening on (http://127\.0\.0\.1:\d+); ", self.log.read_text(), re.MULTILINE)
        return found[1] if found else ""

    def client(self, user: str, program: str = "tests") -> httpx2.AsyncClient:
        """Each program has a session of its own, and with it one of the engines."""
        headers = {"authorization": f"Bearer {self.tokens[user]}", "user-agent": program}
        return httpx2.AsyncClient(base_url=self.site, headers=headers, timeout=60)

    def health(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return httpx2.get(f"{self.site}/health", timeout=5).json()["status"] == "ok"
        except httpx2.HTTPError:
            return False

    def processes(self) -> set[int]:
        """Of this server, and of what it started."""
        parents = {}
        for each in Path("/proc").iterdir():
            if each.name.isdecimal() and (stat := content(each / "stat")):
                parents[int(each.name)] = int(stat.rpartition(b")")[2].split()[1])
        found = {self.process.pid}
        while more := {child for child, parent in parents.items() if parent in found} - found:
            found |= more
        return found

    def engines(self) -> set[int]:
        return {pid for pid in self.processes() if content(Path(f"/proc/{pid}/cmdline")).startswith(REPLICA)}


def content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.fixture(scope="module")
def team(tmp_path_factory) -> Iterator[Team]:
    if not Path("/proc/self/stat").exists():
        pytest.skip("processes are found by /proc")
    running = Team(tmp_path_factory.mktemp("team"))
    try:
        until(running.health, "the engines", running.log.read_text, seconds=SECONDS, pause=lambda: rest(0.2))
        yield running
    finally:
        running.process.terminate()
        running.process.wait(SECONDS)


class Load:
    """Clients that ask one request after the other, each about a new text, until they have asked so many more."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.left: int | None = None
        self.statuses: list[int] = []
        self.waiting: dict[int, float] = {}
        """When each client that waits for an answer asked."""
        self.pause = 0.0

    async def until_engines(self, before: set[int]) -> None:
        """Until there are two that are none of these."""
        self.pause = PAUSE
        async with asyncio.timeout(SECONDS):
            while len(self.team.engines() - before) < 2:
                await asyncio.sleep(0.2)
        self.pause = 0.0

    async def more(self, number: int) -> None:
        """Until so many more have been answered."""
        wanted = len(self.statuses) + number
        async with asyncio.timeout(SECONDS):
            while len(self.statuses) < wanted:
                await asyncio.sleep(0.01)

    async def stopped(self, lost: set[int]) -> int:
        """An engine that was stopped while it answered. Each is tried in turn: one that turns out to have been idle
        goes on, and may be nobody's."""
        clock = asyncio.get_running_loop().time
        async with asyncio.timeout(SECONDS):
            for engine in cycle(sorted(self.team.engines() - lost)):
                await self.more(5)
                since = clock()
                os.kill(engine, signal.SIGSTOP)
                await asyncio.sleep(IN_VAIN)
                if any(asked < since for asked in self.waiting.values()):
                    return engine
                os.kill(engine, signal.SIGCONT)
        raise AssertionError("there is no engine")

    async def ask(self, number: int) -> None:
        asked_after = 0
        async with self.team.client("ada" if number % 2 else "grace", f"program {number}") as client:
            while self.left is None or asked_after < self.left:
                asked_after += self.left is not None
                text = f"# {number}, {len(self.statuses)}\n{TEXT}"
                self.waiting[number] = asyncio.get_running_loop().time()
                answer = await client.post("/v1/completions", json=ASKED | {"prompt": text})
                del self.waiting[number]
                self.statuses.append(answer.status_code)
                if answer.status_code == 200:
                    assert answer.json()["choices"][0]["text"] == "return width * height"
                await asyncio.sleep(self.pause)


async def test_engines_that_are_killed_in_turn_cost_no_request(team):
    """Both at work, and more until one had a request that Ray does not pass on by itself."""
    load, lost = Load(team), set()
    await load.until_engines(lost)
    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(load.ask(number))
        while len(lost) < 2 or "another is asked" not in team.log.read_text():
            assert len(lost) < MOST_KILLED
            engine = await load.stopped(lost)
            os.kill(engine, signal.SIGKILL)
            lost.add(engine)
            await load.until_engines(lost)
        load.left = AFTER
    assert len(load.statuses) >= 4 * AFTER
    assert set(load.statuses) == {200}


async def test_user_has_limit_of_concurrent_requests(team):
    async with team.client("ada") as ada, team.client("grace") as grace:
        many = [ada.post("/v1/completions", json=ASKED) for _ in range(16)]
        answers = await asyncio.gather(*many, grace.post("/v1/completions", json=ASKED))
    *statuses, of_another = [answer.status_code for answer in answers]
    refused = [status for status in statuses if status != 200]
    assert 0 < len(refused) < len(statuses)
    assert set(refused) <= {429, 408}, "408: it gave its place up before its body had arrived"
    assert of_another == 200


async def test_strangers_are_not_let_in(team):
    async with team.client("ada") as client:
        for token in ("", "Bearer wrong", f"Bearer {team.tokens['ada']}x"):
            answer = await client.post("/v1/completions", json=ASKED, headers={"authorization": token})
            assert answer.status_code == 401


def test_team_server_listens_to_this_machine_only(team):
    inodes = set()
    for pid in team.processes():
        for each in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                inodes |= set(re.findall(r"socket:\[(\d+)\]", os.readlink(each)))
            except OSError:
                continue
    listening = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                listening.append(fields[1].rpartition(":")[0])
    assert listening
    assert set(listening) <= {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}


def test_team_processes_write_files_for_their_user_only(team):
    masks = [Path(f"/proc/{pid}/status").read_text(encoding="utf-8") for pid in team.processes()]
    assert {re.search(r"Umask:\s*(\d+)", mask)[1] for mask in masks} == {"0077"}


async def test_users_and_engines_are_replaced_without_a_failed_request(team):
    load, before = Load(team), team.engines()
    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(load.ask(number))
        kept = dict(team.tokens)
        text = team.path.read_text()
        team.write("joan")
        joan = re.search(r"  joan: .*\n", team.path.read_text())[0]
        team.path.write_text(text.replace("users:\n", "users:\n" + joan))
        team.tokens |= kept
        os.kill(team.process.pid, signal.SIGHUP)
        await load.until_engines(before)
        load.left = AFTER
    assert set(load.statuses) == {200}
    async with team.client("joan") as client:
        assert (await client.post("/v1/completions", json=ASKED)).status_code == 200


async def test_engines_that_find_no_room_keep_nobody_who_was_removed(team):
    text, before = team.path.read_text(), team.engines()
    without_ada = re.sub(r"  ada: .*\n", "", text)
    team.path.write_text(without_ada.replace("minimum: 2, maximum: 2", "minimum: 900, maximum: 900"))
    os.kill(team.process.pid, signal.SIGHUP)
    until(
        lambda: "; the engines stay as they are: " in team.log.read_text(),
        "them to be refused",
        team.log.read_text,
        seconds=SECONDS,
        pause=lambda: rest(0.2),
    )
    assert re.search(r"are: replicas: 900 engines that reserve 0\.1 CPUs each do not fit", team.log.read_text())
    for user, status in (("ada", 401), ("grace", 200)):
        async with team.client(user) as client:
            assert (await client.post("/v1/completions", json=ASKED)).status_code == status
    assert team.engines() == before
    team.path.write_text(text)


class NoReplicas:
    """A handle of a deployment without engines: each request, and its cancellation, say so."""

    def __init__(self, error):
        self.error = error
        self.answer = self
        self.asked = 0

    def options(self, **_):
        return self

    def remote(self, *_):
        self.asked += 1
        return self

    def __aiter__(self):
        return self

    async def __anext__(self):
        raise self.error

    def cancel(self):
        raise self.error


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("method", "is_lost", "tries"), [("fill", False, 5), ("fill", True, 2), ("chat", False, 5), ("chat", True, 1)]
)
async def test_request_that_lost_its_engine_is_hardly_tried_on_others(monkeypatch, method, is_lost, tries):
    from ray.exceptions import ActorDiedError
    from ray.serve.exceptions import DeploymentUnavailableError

    from mercury_ls.team import engines

    monkeypatch.setattr(engines, "BETWEEN_TRIES_SECONDS", 0)
    replicas = NoReplicas(ActorDiedError() if is_lost else DeploymentUnavailableError("engine"))
    engine = engines.ReplicatedEngine(engines.EngineSeat(replicas))
    asked = {
        "fill": Gap(session="", path="a.py", language="python", before="x = "),
        "chat": ChatRequest(session="", messages=(Message("user", "x"),)),
    }
    with pytest.raises(EngineUnavailable, match="the engine was lost while it answered"):
        async for _ in getattr(engine, method)(asked[method]):
            pass
    assert replicas.asked == tries


@pytest.mark.parametrize(("cluster", "said"), [("", "started"), ("10.0.0.1:6379", "reached")])
def test_ray_failure_is_reported_with_its_reason(cluster, said, monkeypatch):
    from mercury_ls.team import engines

    def fail(*_, **__):
        raise Exception("The current node timed out\nduring startup")

    monkeypatch.setattr(engines.ray, "init", fail)
    with pytest.raises(TeamError, match=f"Ray cannot be {said}: The current node timed out$"):
        engines.joined(TeamConfig({}, cluster=cluster))
