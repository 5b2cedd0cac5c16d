"""A user who keeps a share of what is suggested, and what the language server makes of that."""

import asyncio
import random
from collections.abc import Sequence
from itertools import cycle, islice

from msgspec import Struct

from bench.oracle.asked import AT_ONCE
from bench.oracle.desk import AUTOMATIC, INVOKED, Answer, Buffer, Desk, Setup, real
from bench.oracle.rows import Row
from bench.oracle.server import Options, OracleServer
from bench.oracle.truth import Wisdom
from mercury_ls.completion.budgets import USUAL_BAR
from mercury_training.progress import shown as progress

IGNORED, BY_HAND, AFTERWARDS = 10, 3, 10
READING_SECONDS = 0.05


class Adapted(Struct):
    """Of the last suggestions that there could have been: how many were shown, and of which the user keeps how many.
    `likely` are those that are over the bar to somebody who knows the model and the user."""

    asked: int = 0
    shown: int = 0
    kept: int = 0
    right: int = 0
    likely: int = 0
    likely_shown: int = 0

    def add(self, row: Row, answer: Answer | None, *, right: bool, likely: bool) -> None:
        self.asked += 1
        self.right += right
        self.likely += likely
        self.shown += answer is not None
        self.kept += answer is not None and _fits(row, answer)
        self.likely_shown += likely and answer is not None


def _fits(row: Row, answer: Answer) -> bool:
    """Whether the user keeps it: nothing in it is wrong."""
    inserted = answer.inserted(row.before, row.behind)
    return bool(inserted) and row.middle.startswith(inserted.rstrip())


async def adapted(
    rows: Sequence[Row],
    texts: Sequence[str],
    wisdom: Wisdom,
    share: float,
    count: int,
    last: int,
    setup: Setup = real,
) -> Adapted:
    """After `count` suggestions to somebody who keeps that share of them, the last ones."""
    options = Options(tokens_per_second=AT_ONCE, wisdom=wisdom)
    async with setup(texts, options, MERCURY_RECORD_COUNTS="true") as (oracle, at):
        found, chance = Adapted(), random.Random(0)
        for number, row in enumerate(progress(f"{wisdom}, {share:.0%}", [*islice(cycle(rows), count)])):
            right = chance.random() < share
            answer = await _met(at, oracle, row, AUTOMATIC, right=right)
            if number >= count - last:
                likely = oracle.is_likely(row.before, row.behind, share, USUAL_BAR)
                found.add(row, answer, right=right, likely=likely)
        return found


async def comes_back(rows: Sequence[Row], texts: Sequence[str], wisdom: Wisdom, setup: Setup = real) -> int:
    """After ten ignored in a row and three accepted by hand: how many of ten right ones are shown."""
    options = Options(tokens_per_second=AT_ONCE, wisdom=wisdom)
    async with setup(texts, options, MERCURY_RECORD_COUNTS="true") as (oracle, at):
        moments = [(AUTOMATIC, False)] * IGNORED + [(INVOKED, True)] * BY_HAND + [(AUTOMATIC, True)] * AFTERWARDS
        met_rows = zip(moments, cycle(rows), strict=False)
        answers = [await _met(at, oracle, row, kind, right=right) for (kind, right), row in met_rows]
        return sum(answer is not None for answer in answers[-AFTERWARDS:])


async def _met(at: Desk, oracle: OracleServer, row: Row, kind: int, *, right: bool) -> Answer | None:
    """What is shown at a row. The user accepts what is right, and types the true text over what is not, or where there
    is nothing."""
    oracle.options.right, oracle.options.seed = float(right), len(at.opened)
    buffer = at.open_row(row)
    answers = await buffer.asked(len(row.before), kind)
    await asyncio.sleep(READING_SECONDS)
    if answers and _fits(row, answers[0]):
        buffer.accept(answers[0], len(row.before))
    else:
        await _typed(buffer, row)
    buffer.close()
    return answers[0] if answers else None


async def _typed(buffer: Buffer, row: Row) -> None:
    """All of it, and the request that follows."""
    cursor = len(row.before)
    for character in row.middle:
        buffer.replace(cursor, cursor, character)
        cursor += 1
    await buffer.asked(cursor, AUTOMATIC)
