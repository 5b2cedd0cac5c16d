"""What the index of a large project costs, and how quickly a question over it is answered.

    python -m bench.index PROJECT [--files N] [--renames N] [--seed S]

Definitions drawn from the project are renamed one after the other, and the next edit is asked for. Milliseconds of the
processor until the answer; the last line is JSON.
"""

import argparse
import asyncio
import json
import os
import random
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.harness.in_process import InProcessClient
from bench.harness.measures import machine
from bench.harness.usage import resident_mb
from bench.quality.editor import NO_FILE
from mercury_engine.fake import FakeEngine
from mercury_ls.code.languages import find
from mercury_ls.session.session import Session
from mercury_ls.session.wiring import Wiring

DEFINITION = re.compile(
    r"^[ \t]*(?:export )?(?:class|def|fn|fun|func|function|interface) (?P<name>\w{3,})", re.MULTILINE
)
PREFIX = "fresh_"
PERCENTILES = (50, 90, 99)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=Path, metavar="PROJECT")
    parser.add_argument("--files", type=int, default=5000, help="the most that are indexed")
    parser.add_argument("--renames", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    asyncio.run(_measured(given.project.resolve(), given.files, given.renames, random.Random(given.seed)))


async def _measured(project: Path, files: int, renames: int, draw: random.Random) -> None:
    client = InProcessClient(FakeEngine())
    await client.start()
    wiring = Wiring(user_file=NO_FILE, environ={}, make_engine=lambda settings, on_status: client)
    options = {"context": {"max_files": files}}
    session = wiring.session([str(project)], options, lambda status: None)
    before, began = _memory(), time.process_time()
    while session.files.workspace.step(session.clock()):
        pass
    seconds, memory = time.process_time() - began, _memory() - before
    print(f"{len(session.files.workspace.index.files)} files read in {seconds:.1f} s of the processor, {memory:.0f} MB")
    asked: list[tuple[float, bool]] = []
    for path, at in _definitions(project, draw):
        if len(asked) == renames:
            break
        if (answer := await _asked(session, path, at)) is not None:
            asked.append(answer)
    taken = [milliseconds for milliseconds, _ in asked]
    print("questions: " + ", ".join(f"p{share} {_percentile(taken, share):.0f} ms" for share in PERCENTILES))
    offered = sum(is_offer for _, is_offer in asked)
    print(f"{offered} of {len(asked)} renames offered something; {_memory() - before:.0f} MB after them")
    figures = {"files": len(session.files.workspace.index.files), "seconds": seconds, "memory_mb": memory, "ms": taken}
    print(json.dumps({"machine": machine(), **figures}))
    await session.end()


def _memory() -> float:
    return resident_mb(os.getpid()) or 0.0


def _definitions(project: Path, draw: random.Random) -> Iterator[tuple[Path, int]]:
    """Where names begin; of no file more than one."""
    paths = [path for path in sorted(project.rglob("*.*")) if path.is_file() and find("", path.name)]
    draw.shuffle(paths)
    for path in paths:
        try:
            names = [match.start("name") for match in DEFINITION.finditer(path.read_text(encoding="utf-8"))]
        except UnicodeDecodeError:
            continue
        if names:
            yield path, draw.choice(names)


async def _asked(session: Session, path: Path, at: int) -> tuple[float, bool] | None:
    """None where nothing may be asked."""
    text, uri, language = path.read_text(encoding="utf-8"), path.as_uri(), find("", path.name)
    session.open(uri, str(path), language.id if language else "", 1, text)
    if session.questions.unavailable(uri, invoked=False):
        return None
    line = text.count("\n", 0, at)
    column = at - text.rfind("\n", 0, at) - 1
    for number, letter in enumerate(PREFIX):
        place = (line, column + number, line, column + number)
        session.change(uri, number + 2, [(place, letter)], "utf-32")
    began = time.process_time()
    answer = await session.next_edits.ask(uri, at + len(PREFIX))
    taken = (time.process_time() - began) * 1000
    session.close(uri)
    return taken, answer.offer is not None


def _percentile(values: Sequence[float], share: int) -> float:
    return sorted(values)[min(len(values) * share // 100, len(values) - 1)]


if __name__ == "__main__":
    main()
