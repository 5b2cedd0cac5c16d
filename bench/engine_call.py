"""The cost of a call to the engine server beyond the engine: client, socket, worker and back.

python -m bench.engine_call [--calls 2000]
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.harness.measures import machine, percentile
from mercury_engine.api import Edit, InfillRequest, Snippet, Span, Window
from mercury_engine.fake import FakeEngine
from mercury_ls.link.client import EngineClient
from mercury_ls.link.wire import encode
from mercury_ls.serve import daemon
from mercury_ls.settings.schema import EngineSettings

WARM_UP = 50
SERVER = "from bench.engine_call import serve; serve()"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--calls", type=int, default=2000)
    calls = arguments.parse_args().calls
    request = sample()
    with tempfile.TemporaryDirectory() as directory, server(directory):
        local = asyncio.run(measure(directory, request, calls))
    inside = sorted(_engine_alone(request) for _ in range(calls))
    report(local, inside, len(encode(request)))


def serve() -> None:
    """Runs the server in the child process."""
    sys.exit(daemon.run(daemon.Options(directory=sys.argv[1]), lambda report: FakeEngine(answers=answer)))


def answer(before: str) -> str:
    return "return self.width * self.height"


@contextmanager
def server(directory: str) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", SERVER, directory], env={**os.environ})
    try:
        while daemon.status(directory) is None:
            time.sleep(0.02)
        yield
    finally:
        daemon.stop(directory)
        process.wait()


async def measure(directory: str, request: InfillRequest, calls: int) -> list[float]:
    ready = asyncio.Event()
    client = EngineClient(EngineSettings(), directory=directory, on_status=lambda status: ready.set())
    await client.start()
    while client.status.state != "ready":
        ready.clear()
        await ready.wait()
    times = [await _one_call(client, request) for _ in range(WARM_UP + calls)]
    await client.close()
    return sorted(times[WARM_UP:])


async def _one_call(client: EngineClient, request: InfillRequest) -> float:
    start = time.perf_counter()
    async for draft in client.infill(request):
        assert draft.final, "one pass gives one draft"
    return (time.perf_counter() - start) * 1000


def _engine_alone(request: InfillRequest) -> float:
    start = time.perf_counter()
    list(FakeEngine(answers=answer).infill(request))
    return (time.perf_counter() - start) * 1000


def sample() -> InfillRequest:
    """A request of about 6 kB: this file around the cursor, two snippets and three edits."""
    text = Path(__file__).read_text()[:4000]
    snippets = tuple(Snippet(f"shapes/{name}.py", text[start : start + 600]) for name, start in (("a", 0), ("b", 900)))
    edits = tuple(Edit("shapes/area.py", line, "    width = 1\n", "    width = 12\n") for line in range(3))
    window = Window("shapes/area.py", "python", text)
    return InfillRequest(
        session="bench",
        windows=(window,),
        spans=(Span(0, 2000, 2000, "line"),),
        snippets=snippets,
        edits=edits,
        effort="instant",
        deadline_ms=1000.0,
    )


def report(local: list[float], inside: list[float], size: int) -> None:
    print(f"{len(local)} calls one after the other, request of {size} bytes, one draft; {machine()}")
    print(f"{'':24}{'p50':>8}{'p90':>8}{'p99':>8}  ms")
    for name, times in (("local call", local), ("the fake engine alone", inside)):
        print(f"{name:24}" + "".join(f"{percentile(times, share):8.3f}" for share in (50, 90, 99)))
    numbers = {f"engine_call_p{share}_ms": round(percentile(local, share), 3) for share in (50, 90, 99)}
    print(json.dumps({**numbers, "calls": len(local), "request_bytes": size, "machine": machine()}))


if __name__ == "__main__":
    main()
