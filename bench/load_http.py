"""Several programs on the HTTP port at once: how latency grows, whether one starves, whether an answer is lost.

    python -m bench.load_http [--clients N…] [--seconds S] [--model NAME] [--address URL [--token TOKEN]]

Each client has a connection of its own and asks again as soon as it is answered, in three dialects in turn, at places
of this project's own files. It fails if an answer was lost or a client starved. `--address` asks a server that runs.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import cycle
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from bench.harness.client import COMMAND, free_port
from bench.harness.measures import machine, percentile
from bench.replay.play import CONFIGURED, MODELS, engine_server
from mercury_ls.link.connection import Address, connect

__all__ = ["Asked", "Crowd", "requests", "server", "together", "wrong"]

FILES = sorted((Path(__file__).parents[1] / "mercury_ls/code").glob("*.py"))
STARVED = 0.5
STARTING_SECONDS = 120.0
BEFORE, AFTER = 6000, 2000


class Asked(Struct, frozen=True):
    """One request: how long it took, with which status it was answered, 0 for a broken connection, and whether a
    suggestion was shown."""

    milliseconds: float
    status: int
    shown: bool


class Crowd(Struct):
    """What each of several clients asked."""

    clients: list[list[Asked]]
    seconds: float

    @property
    def all_asked(self) -> list[Asked]:
        return [each for client in self.clients for each in client]

    @property
    def lost(self) -> int:
        return sum(each.status != 200 for each in self.all_asked)

    @property
    def fairness(self) -> float:
        """Answers of the least answered client relative to the most answered one."""
        answered = [len(client) for client in self.clients]
        return min(answered) / max(answered) if max(answered) else 0.0

    def p(self, share: float) -> float:
        return percentile(sorted(each.milliseconds for each in self.all_asked), share)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--model", default=CONFIGURED, help=MODELS)
    parser.add_argument("--address", default="", help="of a server that runs: http://127.0.0.1:8391")
    parser.add_argument("--token", default="")
    given = parser.parse_args()
    with server(given.model) if not given.address else nullcontext((given.address, 0)) as (site, _):
        parts = urlsplit(site)
        address = Address(host=parts.hostname or "", port=parts.port or 80, token=given.token)
        crowds = [asyncio.run(together(address, number, given.seconds)) for number in given.clients]
    for crowd in crowds:
        print(table(crowd))
    found = {str(len(crowd.clients)): summary(crowd, crowds[0]) for crowd in crowds}
    print(json.dumps({"model": Path(given.model).name, "machine": machine(), "crowds": found}))
    sys.exit("\n".join(each for crowd in crowds for each in wrong(crowd)) or 0)


@contextmanager
def server(model: str, *options: str) -> Iterator[tuple[str, int]]:
    """Its address and process."""
    port = free_port()
    with engine_server(model) as (_, environment):
        command = [*COMMAND[:3], "serve", "--http", f"127.0.0.1:{port}", "--without-token", *options]
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
        try:
            asyncio.run(ready(port))
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            process.terminate()
            process.wait()


async def ready(port: int) -> None:
    async with asyncio.timeout(STARTING_SECONDS):
        while True:
            try:
                connection = await connect(Address(host="127.0.0.1", port=port))
                health = json.loads(await connection.read(await connection.send("GET", "/health", {})))
                connection.close()
                if health["status"] == "ok":
                    return
                if health["status"] == "error":
                    raise SystemExit("the engine could not be loaded: its log says why")
            except OSError:
                pass
            await asyncio.sleep(0.05)


async def together(address: Address, number: int, seconds: float) -> Crowd:
    until = time.monotonic() + seconds
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(client(address, requests(n), until)) for n in range(number)]
    return Crowd([task.result() for task in tasks], seconds)


async def client(address: Address, sent: Iterator[tuple[str, bytes]], until: float) -> list[Asked]:
    """One after the other; a connection that breaks counts as a lost answer, and another is opened."""
    asked: list[Asked] = []
    connection = await connect(address)
    for path, body in sent:
        if time.monotonic() >= until:
            break
        began = time.monotonic()
        try:
            response = await connection.send("POST", path, {"content-type": "application/json"}, body)
            said, status = await connection.read(response), response.status
        except OSError:
            said, status = b"", 0
            connection = await connect(address)
        asked.append(Asked((time.monotonic() - began) * 1000, status, is_shown(said)))
    connection.close()
    return asked


def is_shown(said: bytes) -> bool:
    return b'"silence"' not in said and b'"content":""' not in said and b'"content":"None"' not in said


def requests(client: int) -> Iterator[tuple[str, bytes]]:
    """Paths and bodies: places in code, as three programs would ask about them. Every client asks about the same ones,
    so that their answers can be counted against each other, but in files of its own."""
    chosen = random.Random(0)
    texts = {file: file.read_text(encoding="utf-8") for file in FILES}
    for dialect in cycle(("fim", "infill", "edit")):
        file = chosen.choice(FILES)
        text = texts[file]
        at = chosen.randrange(len(text))
        end = text.find("\n", at) % (len(text) + 1)  # the rest of the line is not typed yet
        before, after = text[max(at - BEFORE, 0) : at], text[end : end + AFTER]
        yield written(dialect, f"{client}/{file.name}", before, after)


def written(dialect: str, path: str, before: str, after: str) -> tuple[str, bytes]:
    if dialect == "fim":
        return "/v1/fim/completions", json.dumps({"prompt": before, "suffix": after, "path": path}).encode()
    if dialect == "infill":
        return "/infill", json.dumps({"input_prefix": before, "input_suffix": after, "path": path}).encode()
    head, line = before.rpartition("\n")[::2]
    rest, tail = after.partition("\n")[::2]
    region = f"<|code_to_edit|>\n{line}<|cursor|>{rest}\n<|/code_to_edit|>"
    file = f"<|current_file_content|>\ncurrent_file_path: {path}\n{head}\n{region}\n{tail}\n<|/current_file_content|>"
    return "/v1/edit/completions", json.dumps({"messages": [{"role": "user", "content": file}]}).encode()


def wrong(crowd: Crowd) -> Iterator[str]:
    """What must not happen on any machine, however slow."""
    number = len(crowd.clients)
    if crowd.lost:
        statuses = sorted({each.status for each in crowd.all_asked} - {200})
        yield f"{number} clients: {crowd.lost} answers were lost ({statuses})"
    if crowd.fairness < STARVED:
        yield f"{number} clients: one was answered {crowd.fairness:.2f} times as often as another"


def table(crowd: Crowd) -> str:
    n = len(crowd.all_asked)
    return (
        f"{len(crowd.clients):3} clients: {n:6} answers, {n / crowd.seconds:6.1f} a second,"
        f" p50 {crowd.p(50):7.1f} ms, p90 {crowd.p(90):7.1f} ms, p99 {crowd.p(99):7.1f} ms,"
        f" lost {crowd.lost}, fairness {crowd.fairness:.2f}"
    )


def summary(crowd: Crowd, alone: Crowd) -> dict[str, object]:
    n = len(crowd.all_asked)
    return {
        "answers": n,
        "a_second": round(n / crowd.seconds, 1),
        "p50_ms": round(crowd.p(50), 2),
        "p90_ms": round(crowd.p(90), 2),
        "p99_ms": round(crowd.p(99), 2),
        "throughput_ratio": round(n / max(len(alone.all_asked), 1), 2),
        "shown": sum(each.shown for each in crowd.all_asked),
        "lost": crowd.lost,
        "fairness": round(crowd.fairness, 2),
    }


if __name__ == "__main__":
    main()
