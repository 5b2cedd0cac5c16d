"""How long one answer takes that renames five places in two files, the second file parsed already or not.

python -m bench.rename_latency [--rounds 100] [--lines 400] [--engine fake|none|shipped|FOLDER]
python -m bench.rename_latency --files 500 [--users 24] [--rounds 20] [--lines 400]

By the rules alone; with an engine also as a server asks it, where its word can change what is shown, and with each of
the places checked by it in any case. Every round is of other files, so that a model has read neither of them. Of each
the middle, and what a tenth of the times is below and above. With --files of a project of so many of which so many
use the name and none but the first is open, once they have been indexed.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Literal

from bench.harness.measures import machine
from bench.next_edit.measure import engine_of, last_of
from bench.renames import NoEngine
from mercury_engine.api import RescoringWeights
from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.code.edits import difference
from mercury_ls.code.history import History
from mercury_ls.completion.context import Budget, Related
from mercury_ls.completion.offers import Answer
from mercury_ls.completion.suggest import Infill
from mercury_ls.completion.target import Silence
from mercury_ls.next_edit.pipeline import admissible, answers, next_edits
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.next_edit.search import candidates_after
from mercury_ls.next_edit.situation import Situation
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.workspace import Workspace
from mercury_ls.session import next_edits as proposals
from mercury_ls.session.record import NoRecorder
from mercury_ls.session.session import Session
from mercury_ls.settings.schema import Settings, SuggestSettings

__all__ = ["PLACES", "renaming", "spread", "timed"]

PLACES = 5
WAYS = ("rules", "asked", "checked")
OLD, NEW = "load_rows", "read_rows"
DEFINITION = f"def {OLD}(path, limit):\n    return open(path).readlines()[:limit]\n"
HERE = f"\n\ndef first(path):\n    return {OLD}(path, 1)\n\n\ndef some(path):\n    return {OLD}(path, 9)\n"
THERE = f"from rows import {OLD}\n\n\ndef report(path):\n    return {OLD}(path, 5) or {OLD}(path, 6)\n"
FILLER = "\n\ndef filler_{0}(value, other):\n    total = value * {0} + other\n    return [total, other, {0}]\n"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=100)
    arguments.add_argument("--lines", type=int, default=400, help="of each file")
    arguments.add_argument("--engine", default="none")
    arguments.add_argument("--files", type=int, default=0, help="of a project")
    arguments.add_argument("--users", type=int, default=24, help="files of the project that use the name")
    given = arguments.parse_args()
    if given.files:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(over_a_project(Path(folder), given))
        return
    engine = engine_of(given.engine)
    rescoring = (engine and engine.engine.info().rescoring) or RescoringWeights()
    figures = {}
    for way in WAYS if engine else WAYS[:1]:
        asked = None if way == "rules" else engine
        for name, is_warm in (("warm", True), ("cold", False)):
            rounds = (renaming(given.lines, asks_of(way), f"{way} {name} {n}", rescoring) for n in range(given.rounds))
            times = [asyncio.run(timed(question, asked, is_warm)) for question in rounds]
            figures |= {f"{way}_{name}_{key}": value for key, value in spread(times).items()}
            print(f"{way:8} the second file {name}: " + ", ".join(f"{k} {v}" for k, v in spread(times).items()))
    print(json.dumps({**figures, "places": PLACES, "lines": given.lines, "engine": given.engine, "machine": machine()}))


async def over_a_project(folder: Path, given: argparse.Namespace) -> None:
    """Every round renames the same function, back or forth."""
    filler = "".join(FILLER.format(number) for number in range(given.lines // 5))
    for number in range(given.files - 1):
        head = THERE if number < given.users else ""
        (folder / f"file_{number}.py").write_text(head + filler)
    home, text = folder / "rows.py", DEFINITION + HERE + filler
    home.write_text(text)
    proposals.SETTLING_SECONDS = 0.0
    settings = Settings()
    privacy = Privacy(settings.privacy, [folder])
    workspace = Workspace([folder], privacy, settings.context)
    began = time.process_time()
    while workspace.step(0.0):
        pass
    seconds = time.process_time() - began
    times = []
    for _ in range(given.rounds):
        session = Session(settings, NoEngine(), privacy, workspace, NoRecorder())
        session.open(home.as_uri(), str(home), "python", 1, text)
        session.change(home.as_uri(), 2, [((0, 4, 0, 4 + len(OLD)), NEW)], "utf-16")
        began = time.perf_counter()
        offer = (await session.next_edits.ask(home.as_uri(), 4 + len(NEW))).offer
        times.append((time.perf_counter() - began) * 1000)
        places = len(offer.edits) if offer else 0
        if places != 2 + 3 * given.users:
            raise ValueError(f"{places} edits instead of {2 + 3 * given.users}")
        await session.end()
    figures = {**spread(times), "places": places, "files": given.files, "users": given.users, "lines": given.lines}
    print(json.dumps({**figures, "index_seconds": round(seconds, 2), "names_kb": workspace.names_bytes // 1024}))


def spread(times: Sequence[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {f"p{share}_ms": round(ordered[len(ordered) * share // 100], 2) for share in (10, 50, 90)}


def asks_of(way: str) -> Literal["deciding", "always"]:
    return "always" if way == "checked" else "deciding"


async def timed(question: NextQuestion, engine: Infill | None, is_warm: bool) -> float:
    """Milliseconds of one answer; it has to have all the places."""
    warm = (question.snapshot, *question.others) if is_warm else (question.snapshot,)
    # Trees are made on demand; the file that was typed in has its own.
    _ = [each.tree for each in warm]
    began = time.perf_counter()
    way = checked if question.asks == "always" else next_edits
    answer = await last_of(way(question, engine))
    elapsed = (time.perf_counter() - began) * 1000
    if len(answer.edits) != PLACES:
        raise ValueError(f"{len(answer.edits)} edits instead of {PLACES}: {answer.silence}")
    return elapsed


def checked(question: NextQuestion, engine: Infill | None) -> AsyncGenerator[Answer]:
    """What the rules say, put to a model; nothing else is asked."""
    found = candidates_after(Situation(question.snapshot, question.offset, question.edits, question.others))
    assert not isinstance(found, Silence), "a rename is due"
    return answers(question, [each for each in admissible(question, found) if each.text is not None], engine)


def renaming(
    lines: int,
    asks: Literal["deciding", "always"] = "deciding",
    title: str = "",
    rescoring: RescoringWeights = RescoringWeights(),  # noqa: B008  frozen
) -> NextQuestion:
    """The definition in the first file has just got a new name."""
    head = f'"""{title}"""\n' if title else ""
    filler = "".join(FILLER.format(number) for number in range(lines // 5))
    before = head + DEFINITION + HERE + filler
    now = before.replace(OLD, NEW, 1)
    history = History()
    history.record("rows.py", before, difference(before, now), 0.0)
    snapshot = snapshot_of("rows.py", now)
    return NextQuestion(
        snapshot=snapshot,
        offset=now.index(NEW) + len(NEW),
        history=history,
        related=Related(snapshot.uri, 0, 0.0),
        settings=SuggestSettings(),
        budget=Budget(),
        session="bench",
        bar=SuggestSettings().minimum_probability,
        invoked=True,
        asks=asks,
        rescoring=rescoring,
        others=(snapshot_of("report.py", head + THERE + filler),),
    )


def snapshot_of(path: str, text: str) -> Snapshot:
    return Document(f"file:///{path}", path, "python", 1, text).snapshot()


if __name__ == "__main__":
    main()
