"""What a keystroke costs a team's server, and what a team of some size needs.

    python -m bench.team [--typing N] [--engines N] [--seconds S] [--team DEVELOPERS] [--kill]

Developers type functions into the project's own files, key by key, and ask at each key, one request after the other;
the processor time of the gateway, the engines and what is left of Ray is read from /proc. With --kill, each engine is
killed in turn meanwhile, which is about lost requests and not about cost. Nobody waits between keys, so that latencies
are those of a full machine.
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import msgspec
from msgspec import Struct

from bench.harness.measures import machine
from bench.harness.usage import processor_seconds, resident_mb
from bench.replay.figures import spread
from mercury_ls.team.config import new_token

__all__ = ["Cost", "needed"]

ROOT = Path(__file__).parents[1]
FILES = ("mercury_ls", "engine/mercury_engine")
ENGINE = "ray::ServeReplica:mercury-ls:engine"
START_SECONDS, WARM_SECONDS = 120.0, 3.0
CONTEXT = 1024
"""Tokens that the shipped model reads at most, of the text that is sent."""
KEYS = 0.6
"""Changes a second of somebody at work, with all pauses: 3,247 in the 92 minutes of a session recorded in VS Code."""
AT_WORK = 0.6
"""The share of a team that is at work in the busiest minute of a day: assumed, not measured."""
CORE_HOUR = 0.04
"""Dollars for a core for an hour: assumed, about what clouds ask."""
MERCURY = (0.25, 0.75)
"""Dollars for a million tokens that are read, and that are written: Mercury's list price."""
ROOM = 0.6
"""How much of the processors may be in use in that minute, so that nobody waits for long."""


class Cost(Struct, frozen=True):
    """Milliseconds of one core for a request, by who spends them."""

    gateway_ms: float
    engine_ms: float
    ray_ms: float

    @property
    def all_ms(self) -> float:
        return self.gateway_ms + self.engine_ms + self.ray_ms


class Answer(Struct, frozen=True):
    status: int
    ms: float
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--typing", type=int, default=4, help="developers who type at once")
    parser.add_argument("--engines", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--team", type=int, default=1000, help="developers to plan for")
    parser.add_argument("--model", default="auto")
    parser.add_argument("--kill", action="store_true", help="kill each engine in turn")
    options = parser.parse_args()
    print(json.dumps(msgspec.to_builtins(asyncio.run(measured(options))), indent=1))


async def measured(options: argparse.Namespace) -> dict:
    with tempfile.TemporaryDirectory() as name, team(Path(name), options) as (address, token, process):
        async with httpx2.AsyncClient(
            base_url=address, timeout=60, headers={"authorization": f"Bearer {token}"}
        ) as client:
            await until_ready(client, process, Path(name) / "log")
            await asyncio.gather(
                *(typed(client, n, time.monotonic() + WARM_SECONDS, []) for n in range(options.typing))
            )
            before, began, answers = spent(process.pid), time.monotonic(), []
            killing = asyncio.create_task(kill_in_turn(process.pid, options.seconds)) if options.kill else None
            ends = began + options.seconds
            await asyncio.gather(*(typed(client, number, ends, answers) for number in range(options.typing)))
            after, seconds = spent(process.pid), time.monotonic() - began
            killed = await killing if killing else []
            memory = {kind: round(mb) for kind, mb in resident(process.pid).items()}
    count = len(answers)
    cost = Cost(**{f"{kind}_ms": round((after[kind] - before[kind]) * 1000 / count, 2) for kind in KINDS})
    statuses = Counter(answer.status for answer in answers)
    context = statistics.mean(min(answer.prompt_tokens, CONTEXT) for answer in answers)
    written = statistics.mean(answer.completion_tokens for answer in answers)
    latency = spread(answer.ms for answer in answers if answer.status == 200)
    found = {
        "machine": machine(),
        "requests": count,
        "statuses": dict(statuses),
        "killed": len(killed),
        "per_second": round(count / seconds, 1),
        "latency_ms": {"p50": latency.p50, "p90": latency.p90, "p99": latency.p99},
        "memory_mb": memory,
    }
    if options.kill:
        return found
    return found | {"processor_ms_a_request": cost, "team": needed(options.team, cost, context, written)}


def needed(developers: int, cost: Cost, context: float, written: float) -> dict[str, float]:
    """The arithmetic: requests a second in the busiest minute, the cores that they take, and what a request costs here
    and where tokens are paid for."""
    requests = developers * AT_WORK * KEYS
    cores = requests * cost.all_ms / 1000 / ROOM
    here = 1e6 * cost.all_ms / 1000 / ROOM * CORE_HOUR / 3600
    return {
        "developers": developers,
        "requests_a_second": round(requests, 1),
        "gateways": -(-requests * cost.gateway_ms // (1000 * ROOM)),
        "cores": round(cores, 1),
        "developers_a_core": round(developers / cores, 1),
        "context_tokens_a_request": round(context),
        "tokens_a_request": round(written, 1),
        "dollars_a_million_requests": round(here, 2),
        "dollars_a_million_tokens_of_context": round(here / context, 5),
        "mercury_dollars_a_million_requests": round(context * MERCURY[0] + written * MERCURY[1], 2),
    }


@contextmanager
def team(folder: Path, options: argparse.Namespace) -> Iterator[tuple[str, str, subprocess.Popen]]:
    token, digest = new_token()
    config = folder / "team.yaml"
    port = 8411
    replicas = f"{{least: {options.engines}, most: {options.engines}, cpus: 0.1}}"
    config.write_text(
        f"users: {{typist: {digest}}}\nlisten: 127.0.0.1:{port}\nmodel: {options.model}\n"
        f"requests_per_user: {options.typing}\nreplicas: {replicas}\n"
    )
    variables = {name: str(folder / name) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    with subprocess.Popen(
        [sys.executable, "-m", "mercury_ls", "serve", "--team", str(config)],
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=(folder / "log").open("w"),
    ) as process:
        try:
            yield f"http://127.0.0.1:{port}", token, process
        finally:
            process.terminate()


async def until_ready(client: httpx2.AsyncClient, process: subprocess.Popen, log: Path) -> None:
    async with asyncio.timeout(START_SECONDS):
        while process.poll() is None:
            try:
                if (await client.get("/health")).json()["status"] == "ok":
                    return
            except httpx2.HTTPError:
                pass
            await asyncio.sleep(0.2)
    raise SystemExit(f"bench.team: the server ended before it answered:\n{log.read_text()}")


async def typed(client: httpx2.AsyncClient, number: int, ends: float, answers: list[Answer]) -> None:
    """One developer, who types the second half of a file from where its middle is."""
    files = sorted(path for folder in FILES for path in (ROOT / folder).rglob("*.py") if path.stat().st_size > 4000)
    path = files[number * 37 % len(files)]
    text = path.read_text(encoding="utf-8")
    at = text.index("\n", len(text) // 2) + 1
    while time.monotonic() < ends and at < len(text):
        body = {"path": path.name, "prompt": text[:at], "suffix": text[text.index("\n", at) :]}
        began = time.perf_counter()
        answer = await client.post("/v1/completions", json=body, headers={"user-agent": f"developer {number}"})
        usage = answer.json().get("usage") or {}
        answers.append(Answer(answer.status_code, (time.perf_counter() - began) * 1000, **usage))
        at += 1


async def kill_in_turn(pid: int, seconds: float) -> list[int]:
    killed = []
    for engine in by_kind(pid)["engine"]:
        await asyncio.sleep(seconds / 4)
        os.kill(engine, signal.SIGKILL)
        killed.append(engine)
    return killed


KINDS = ("gateway", "engine", "ray")


def by_kind(pid: int) -> dict[str, list[int]]:
    """The processes of the server: itself, the engines, and the rest that it started."""
    parents = {}
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                parents[int(each.name)] = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    kinds: dict[str, list[int]] = {"gateway": [pid], "engine": [], "ray": []}
    for each in sorted(found - {pid}):
        try:
            name = Path(f"/proc/{each}/cmdline").read_text()
        except OSError:
            continue
        kinds["engine" if name.startswith(ENGINE) else "ray"].append(each)
    return kinds


def spent(pid: int) -> dict[str, float]:
    return {kind: sum(processor_seconds(each) or 0.0 for each in found) for kind, found in by_kind(pid).items()}


def resident(pid: int) -> dict[str, float]:
    return {kind: sum(resident_mb(each) or 0.0 for each in found) for kind, found in by_kind(pid).items()}


if __name__ == "__main__":
    main()
