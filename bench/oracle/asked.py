"""Rows asked for while typing and on request: what of a right answer reaches the screen."""

import asyncio
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from bench.oracle.desk import AUTOMATIC, INVOKED, Answer, Desk, Setup, real
from bench.oracle.rows import Row
from bench.oracle.server import Options, OracleServer
from mercury_training.progress import shown as progress

Verdict = Literal["silent", "whole", "begun", "over", "wrong"]
"""Nothing, the whole answer, its beginning, the answer and more behind it, or something else."""

AT_ONCE = 1000.0
"""Tokens a second, so that time takes nothing away: what is lost is lost on purpose."""
ENTER = re.compile(r"(?:\n[ \t]*)+")
ENTER_SECONDS = 0.3
GROWING_SECONDS = 0.4
READING_SECONDS = 0.4
"""Before a suggestion is taken."""


class Judged(Struct, frozen=True):
    """What became of a row while typing and on request, and whether the model was right about it."""

    row: Row
    typing: Verdict
    request: Verdict
    is_right: bool = True


class Outcome(Struct, frozen=True):
    """What became of rows, for one setting of the oracle."""

    setting: str
    rows: tuple[Judged, ...]


def judged(row: Row, answers: Sequence[Answer]) -> Verdict:
    """Of the first answer; blanks at its ends do not count."""
    if not answers:
        return "silent"
    inserted = answers[0].inserted(row.before, row.behind)
    if inserted is None:
        return "wrong"
    said, true = inserted.strip(), row.middle.strip()
    if said == true:
        return "whole"
    return "begun" if true.startswith(said) else "over" if said.startswith(true) else "wrong"


async def asked(at: Desk, row: Row, kind: int) -> Verdict:
    """In a buffer of its own, so that nothing is known of it. The answer counts as it stands once it grows no more."""
    buffer = at.open_row(row)
    answers = await buffer.asked(len(row.before), kind)
    while answers and judged(row, answers) != "whole" and await buffer.grown(GROWING_SECONDS):
        answers = await buffer.asked(len(row.before), kind)
    verdict = judged(row, answers)
    buffer.close()
    return verdict


async def by_options(
    rows: Sequence[Row], texts: Sequence[str], settings: Mapping[str, Options], setup: Setup = real
) -> list[Outcome]:
    """All rows with each setting of the oracle, by its name, and a language server that learns nothing from them."""
    outcomes = []
    for name, options in settings.items():
        async with setup(texts, options, MERCURY_SUGGEST_ADAPT="false") as (oracle, at):
            found = tuple([await _both(at, oracle, row) for row in progress(name, rows)])
        outcomes.append(Outcome(name, found))
    return outcomes


async def _both(at: Desk, oracle: OracleServer, row: Row) -> Judged:
    verdicts = await asked(at, row, AUTOMATIC), await asked(at, row, INVOKED)
    return Judged(row, *verdicts, is_right=oracle.is_right(row.before, row.behind))


async def next_suggestions(rows: Sequence[Row], texts: Iterable[str], first_ms: int) -> list[float]:
    """Milliseconds from accepting a suggestion to the next right one. A user who sees none presses Enter after 300 ms,
    and waits on; infinite where none came even then."""
    async with real([*texts], Options(first_ms=first_ms)) as (_, at):
        return [taken for row in progress("next", rows) for taken in await _followed(at, row)]


async def _followed(at: Desk, row: Row) -> list[float]:
    clock = asyncio.get_running_loop().time
    buffer, cursor, accepted, times = at.open_row(row), len(row.before), 0.0, []
    while rest := row.middle[cursor - len(row.before) :].rstrip():
        answers = await buffer.asked(cursor, AUTOMATIC)
        inserted = answers[0].inserted(buffer.text[:cursor], row.behind) if answers else None
        enter = ENTER.match(rest)
        if inserted and rest.startswith(inserted.rstrip()):
            times += [(clock() - accepted) * 1000] if accepted else []
            await asyncio.sleep(READING_SECONDS)
            cursor, accepted = buffer.accept(answers[0], cursor), clock()
        elif accepted and enter:
            await asyncio.sleep(accepted + ENTER_SECONDS - clock())
            buffer.replace(cursor, cursor, enter[0])
            cursor += len(enter[0])
        else:
            times += [math.inf] if accepted else []
            break
    buffer.close()
    return times
