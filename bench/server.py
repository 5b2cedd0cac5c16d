"""Start-up, keystrokes and memory of the language server process, as seen by an editor.

python -m bench.server [--keystrokes 1000]
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import time
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.harness.client import COMMAND, Client, initialize, isolated, running, until_ready
from bench.harness.usage import Usage, children_cpu
from bench.harness.wire import frame

STARTS = 7
LINES = 5000
TYPED = "    total = function_1(argument)\n"
AUTOMATIC = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keystrokes", type=int, default=1000)
    count = parser.parse_args().keystrokes
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        environment = isolated(root)
        starts = [start(root, environment) for _ in range(STARTS)]
        typed = asyncio.run(typing(root, environment, count))
        subprocess.run(
            [*COMMAND[:3], "serve", "--stop"],
            env={**os.environ, **environment},
            check=False,
            stdout=subprocess.DEVNULL,
        )
    rows = {
        "initialize_cpu_s": spread([cpu for cpu, _ in starts]),
        "initialize_wall_s": spread([wall for _, wall in starts]),
        **typed,
    }
    print(f"{'':32}{'median':>10}{'least':>10}{'most':>10}")
    for name, (median, least, most) in rows.items():
        print(f"{name:32}{median:10.3f}{least:10.3f}{most:10.3f}")
    medians = {name: round(median, 4) for name, (median, _, _) in rows.items()}
    print(json.dumps({**medians, "keystrokes": count}))


def start(root: Path, environment: dict[str, str]) -> tuple[float, float]:
    """CPU and wall seconds from spawning a server to its answer to `initialize`; it is then ended."""
    used = children_cpu()
    began = time.perf_counter()
    process = subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **environment}
    )
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize(root)}
    process.stdin.write(frame(json.dumps(message).encode()))
    process.stdin.flush()
    process.stdout.readline()
    wall = time.perf_counter() - began
    process.kill()
    process.communicate()
    return children_cpu() - used, wall


async def typing(root: Path, environment: dict[str, str], count: int) -> dict[str, tuple[float, float, float]]:
    """What `count` keystrokes with a request each cost in a 5,000-line file, with the engine that has no model."""
    text = "".join(f"def function_{n}(argument):\n    return argument + {n}\n\n\n\n" for n in range(LINES // 5))
    async with running(root, **environment) as client:
        await until_ready(client)
        uri = (root / "large.py").as_uri()
        client.open(uri, "python", text)
        await client.request("mercury/status", {})
        usage, pid = Usage(), client.process.pid
        usage.look(pid)
        answered = await keystrokes(client, uri, count)
        usage.look(pid)
        status = await client.request("mercury/status", {})
    return {
        "inline_answer_ms": spread(answered),
        "keystroke_cpu_ms": (usage.processor_s / count * 1000,) * 3,
        "server_rss_mb": (usage.last_mb, usage.first_mb, usage.last_mb),
        "pending_work_after": (status["pendingWork"],) * 3,
    }


async def keystrokes(client: Client, uri: str, count: int) -> list[float]:
    """Milliseconds from each key, typed below a function in the middle, until its request is answered."""
    answered, line, column = [], LINES // 2 + 2, 0
    for key in islice(cycle(TYPED), count):
        began = time.perf_counter()
        client.insert(uri, line, column, key)
        line, column = (line + 1, 0) if key == "\n" else (line, column + 1)
        place = {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}}
        await client.request("textDocument/inlineCompletion", {**place, "context": {"triggerKind": AUTOMATIC}})
        answered.append((time.perf_counter() - began) * 1000)
    return answered


def spread(values: list[float]) -> tuple[float, float, float]:
    return statistics.median(values), min(values), max(values)


if __name__ == "__main__":
    main()
