"""Lines of mercury-ls's own files, hidden from a model that is being added: so that its answers are judged soberly from
the first key on."""

import asyncio
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from mercury_engine.api import Engine
from mercury_ls.completion.budgets import ENOUGH_OUTCOMES
from mercury_ls.serve.in_process import InProcessClient
from mercury_ls.serve.models import Report
from mercury_ls.session.hidden_lines import HiddenLines
from mercury_ls.session.session import Session
from mercury_ls.session.wiring import Wiring
from mercury_ls.wording import counted

SECONDS = 60.0
SHORTEST, LONGEST = 800, 2_000
"""Characters of a file: long enough to be understood, and read within seconds."""
MOST_FILES = 12


class Begun(Struct, frozen=True):
    """Of the `asked` places at which the model wrote something, it began `right` as the file goes on."""

    right: int
    asked: int

    def __str__(self) -> str:
        hidden = counted(self.asked, "hidden line")
        return f"of {hidden} it began {self.right} right: its first suggestions are judged by that"


def hidden_from(engine: Engine, report: Report, **wiring: Any) -> Begun:
    """What the model made of them, for its judge and in numbers."""
    return asyncio.run(_hidden_from(Wiring(make_engine=lambda *_: InProcessClient(engine), **wiring), report))


async def _hidden_from(wiring: Wiring, report: Report) -> Begun:
    session = wiring.session([], {}, lambda status: None)
    try:
        await session.engine.start()
        return await taught(session, report)
    finally:
        await session.end()


async def taught(session: Session, report: Report = lambda share, what: None) -> Begun:
    """Teaches the judge of a session without files, whose engine is ready."""
    for path, text in _own_files():
        session.open(path, path, "python", 1, text)
    lines, ends = HiddenLines(session.questions, random.Random(0)), time.monotonic() + SECONDS
    answers: list[bool] = []
    while lines.are_due and len(answers) < ENOUGH_OUTCOMES and time.monotonic() < ends:
        if (is_right := await lines.ask(lambda: time.monotonic() > ends)) is not None:
            answers.append(is_right)
        report(len(answers) / ENOUGH_OUTCOMES, f"hiding lines from {session.questions.model}")
    return Begun(sum(answers), len(answers))


def _own_files() -> Iterator[tuple[str, str]]:
    """Names and texts."""
    home = Path(__file__).parent
    fitting = [path for path in sorted(home.rglob("*.py")) if SHORTEST <= path.stat().st_size <= LONGEST]
    for path in random.Random(0).sample(fitting, min(MOST_FILES, len(fitting))):
        yield path.relative_to(home.parent).as_posix(), path.read_text(encoding="utf-8")
