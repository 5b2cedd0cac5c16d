"""The cost of suggestions and next edits for the language server in files of 500, 5,000 and 20,000 lines.

python -m bench.long_files [--lines 500,5000,20000] [--rounds 20] [--session 300]

The files consist of this repository's code. Each kind of edit is made as an editor reports it, then the session is
asked, without a model. All times are CPU time in milliseconds: p10, p50 and p90 of an answer, the first answer after
opening the file, and the longest time for which the event loop was blocked. A session of many edits in 5,000 lines
shows whether answers become slower, and two files of unusual shape what depth costs.
"""

import argparse
import asyncio
import gc
import json
import re
import time
from asyncio import events
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from random import Random

from msgspec import Struct

from bench.harness.measures import machine, percentile
from mercury_engine.api import Draft, Filled, InfillRequest
from mercury_ls.code.edits import TextEdit
from mercury_ls.link.wire import Status
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.workspace import Workspace
from mercury_ls.session import next_edits as proposals
from mercury_ls.session.record import NoRecorder
from mercury_ls.session.session import InlineRequest, Session
from mercury_ls.settings.schema import Settings

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("mercury_ls", "engine", "kernels", "training", "bench", "tests")
URI, NEIGHBOUR = "file:///project/long.py", "file:///project/beside.py"
DEFINED = re.compile(r"^ *(?:async )?def (?P<name>\w+)\((?P<inside>)\w", re.MULTILINE)
CALLED = re.compile(r"[=(] ?(?P<name>[a-z]\w{3,})\((?P<inside>)\w")
LOCAL = re.compile(r"^ +(?P<name>[a-z_]{4,}) = ", re.MULTILINE)
REPEATED = re.compile(r"(?P<name>\.append|\.items|\.strip|len|sorted)\(")
STATEMENT = re.compile(r"^ +(?P<name>return|yield|raise|assert)\b", re.MULTILINE)
SESSION_LINES = 5000
SHORT_FILE = 100


class Cost(Struct, frozen=True):
    """Milliseconds of one answer, and of the longest stretch within it; whether there was something to show."""

    total: float
    stretch: float
    shown: bool


class Terse:
    """An engine that is ready, always gives the same answer and costs nothing."""

    status = Status("ready")

    async def infill(self, request: InfillRequest) -> AsyncGenerator[Draft]:
        spans = tuple(Filled("sum(found)", p_accept=0.9, complete=True) for _ in request.spans)
        yield Draft(1, spans, final=True)

    async def close(self) -> None:
        pass


class Absent(Terse):
    """No engine for next edits, so that only the cost of the rules is measured."""

    status = Status("unavailable")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--lines", default="500,5000,20000")
    arguments.add_argument("--rounds", type=int, default=20, help="of each kind of edit")
    arguments.add_argument("--session", type=int, default=300, help="edits in one session")
    given = arguments.parse_args()
    lines = [int(each) for each in given.lines.split(",")]
    proposals.SETTLING_SECONDS = 0.0
    gc.freeze()  # as the server does once it has started
    figures = asyncio.run(measured(lines, given.rounds, given.session, SHAPES))
    print(json.dumps({**figures, "rounds": given.rounds, "machine": machine()}))


async def measured(lines: Sequence[int], rounds: int, edits: int, shapes: Mapping[str, str]) -> dict[str, float]:
    figures: dict[str, float] = {}
    print(f"{'ms of processor time':24}{'p10':>8}{'p50':>8}{'p90':>8}{'first':>8}{'stretch':>9}  shown")
    for count in lines:
        every: list[Cost] = []
        for kind in KINDS:
            costs = await next_edits(kind, count, rounds)
            figures |= told(f"{kind} {count}", costs)
            every += costs[1:]
        figures |= told(f"next edits {count}", every)
        for name, costs in (await inline(count, rounds)).items():
            figures |= told(f"{name} {count}", costs)
    if edits:
        costs = await long_session(edits)
        third = len(costs) // 3
        figures |= told("session, first third", costs[:third])
        figures |= told("session, last third", costs[-third:])
    for name, text in shapes.items():
        figures |= told(name, await first_answers(text))
    return figures


def told(name: str, costs: Sequence[Cost]) -> dict[str, float]:
    totals = sorted(each.total for each in costs)
    times = {f"p{share}_ms": round(percentile(totals, share), 2) for share in (10, 50, 90)}
    first, stretch = costs[0].total, max(each.stretch for each in costs)
    shown = sum(each.shown for each in costs)
    print(f"{name:24}" + "".join(f"{time:8.1f}" for time in times.values()), end="")
    print(f"{first:8.1f}{stretch:9.1f}  {shown} of {len(costs)}", flush=True)
    key = re.sub(r"\W+", "_", name)
    return {f"{key}_p50_ms": times["p50_ms"], f"{key}_p90_ms": times["p90_ms"], f"{key}_stretch_ms": round(stretch, 1)}


def sample(lines: int) -> str:
    """Real code, in an order that is the same everywhere; short files hold little but imports."""
    files = (path.read_text() for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    joined = "\n\n".join(text for text in files if text.count("\n") > SHORT_FILE)
    return "".join(joined.splitlines(keepends=True)[:lines])


# Edits


def renamed(pattern: re.Pattern[str]) -> Callable[[str, Random], Iterator[TextEdit]]:
    """Names that occur more than once, where the pattern has them first."""

    def edits(text: str, chance: Random) -> Iterator[TextEdit]:
        for match in shuffled(pattern, text, chance):
            if len(re.findall(rf"\b{match['name']}\b", text)) > 1:
                yield TextEdit(match.start("name"), match.end("name"), match["name"] + "_anew")

    return edits


def argument(text: str, chance: Random) -> Iterator[TextEdit]:
    for match in shuffled(CALLED, text, chance):
        yield TextEdit(match.start("inside"), match.start("inside"), "here, ")


def repeated(text: str, chance: Random) -> Iterator[TextEdit]:
    for match in shuffled(REPEATED, text, chance):
        yield TextEdit(match.start("name"), match.end("name"), match["name"] + "_all")


def nowhere(text: str, chance: Random) -> Iterator[TextEdit]:
    for number, match in enumerate(shuffled(STATEMENT, text, chance)):
        yield TextEdit(match.start("name"), match.start("name"), f"pass  # {number}{chance.random()}\n")


def shuffled(pattern: re.Pattern[str], text: str, chance: Random) -> list[re.Match[str]]:
    found = list(pattern.finditer(text))
    chance.shuffle(found)
    return found


KINDS: dict[str, Callable[[str, Random], Iterator[TextEdit]]] = {
    "local": renamed(LOCAL),
    "function": renamed(DEFINED),
    "argument": argument,
    "replace": repeated,
    "nowhere": nowhere,
}

SHAPES = {
    "4,000 nested functions": "".join(f"function f{n}() {{\n" for n in range(4000)) + "$0\n" + "}\n" * 4000,
    "20,000 else if": "function f(x) {\n  if (x == 0) { return 0; }\n"
    + "".join(f"  else if (x == {n}) {{ return {n}; }}\n" for n in range(20000))
    + "  else {\n    $0\n  }\n}\n",
}


# What is measured


async def next_edits(kind: str, lines: int, rounds: int) -> list[Cost]:
    """Costs of next edits; the first is in a newly opened file."""
    session, chance = opened(sample(lines), Absent()), Random(0)
    costs = [await edited(session, kind, chance) for _ in range(rounds + 1)]
    await session.end()
    return costs


async def long_session(edits: int) -> list[Cost]:
    session, chance = opened(sample(SESSION_LINES), Absent()), Random(0)
    costs = [await edited(session, chance.choice(list(KINDS)), chance) for _ in range(edits)]
    await session.end()
    return costs


async def edited(session: Session, kind: str, chance: Random) -> Cost:
    """One edit of the document and the answer that follows."""
    text = session.files.documents[URI].text
    edit = next(KINDS[kind](text, chance))
    offset = edit.start + len(edit.text)

    async def answer() -> bool:
        changed(session, edit)
        return (await session.next_edits.ask(URI, offset)).offer is not None

    return await cost(answer())


async def inline(lines: int, rounds: int) -> dict[str, list[Cost]]:
    """Costs at the end of a new line, at a different place each time, and one letter later."""
    session, chance = opened(sample(lines), Terse()), Random(0)
    costs: dict[str, list[Cost]] = {"inline, elsewhere": [], "inline, next letter": []}
    for _ in range(rounds + 1):
        text = session.files.documents[URI].text
        match = shuffled(STATEMENT, text, chance)[0]
        margin, at = text[match.start() : match.start("name")], match.start()
        for name, edit in zip(costs, (TextEdit(at, at, f"{margin}value = \n"), TextEdit(at, at, "")), strict=True):
            if not edit.text:
                end = session.files.documents[URI].text.index("\n", at)
                edit = TextEdit(end, end, "q")
            offset = edit.start + len(edit.text.rstrip("\n"))
            costs[name].append(await cost(suggested(session, edit, offset)))
    await session.end()
    return costs


async def first_answers(text: str) -> list[Cost]:
    """Costs in a newly opened file: a suggestion, and what follows from an edit."""
    at = text.index("$0")
    session = opened("", Terse())

    async def answered() -> bool:
        session.open(URI, "/project/long.js", "javascript", 1, text.replace("$0", "", 1))
        return await suggested(session, TextEdit(at, at, "value = "), at + len("value = "))

    async def followed() -> bool:
        changed(session, TextEdit(at, at + len("value = "), "return 1;"))
        return (await session.next_edits.ask(URI, at + len("return 1;"))).offer is not None

    costs = [await cost(answered()), await cost(followed())]
    await session.end()
    return costs


async def suggested(session: Session, edit: TextEdit, offset: int) -> bool:
    changed(session, edit)
    async with aclosing(session.inline(InlineRequest(uri=URI, offset=offset))) as replies:
        shown = [reply async for reply in replies]
    return bool(shown[-1].offers)


def opened(text: str, engine: Terse) -> Session:
    settings = Settings()
    privacy = Privacy(settings.privacy, [])
    session = Session(settings, engine, privacy, Workspace([], privacy, settings.context), NoRecorder())
    session.open(NEIGHBOUR, "/project/beside.py", "python", 1, sample(500))
    session.open(URI, "/project/long.py", "python", 1, text)
    return session


def changed(session: Session, edit: TextEdit) -> None:
    document = session.files.documents[URI]
    snapshot = document.snapshot()
    ends = (*snapshot.position(edit.start, "utf-16"), *snapshot.position(edit.end, "utf-16"))
    session.change(URI, document.version + 1, [(ends, edit.text)], "utf-16")


async def cost(work: Awaitable[bool]) -> Cost:
    with stretches() as found:
        began = time.process_time()
        shown = await asyncio.ensure_future(work)
        total = time.process_time() - began
    return Cost(1000 * total, 1000 * max(found), shown)


@contextmanager
def stretches() -> Iterator[list[float]]:
    """Processor seconds of everything that the event loop runs."""
    found, run = [], events.Handle._run

    def timed(handle: events.Handle) -> None:
        began = time.thread_time()
        run(handle)
        found.append(time.thread_time() - began)

    events.Handle._run = timed
    try:
        yield found
    finally:
        events.Handle._run = run


if __name__ == "__main__":
    main()
