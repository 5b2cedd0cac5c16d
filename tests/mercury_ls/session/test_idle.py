"""Chores that fail, and come back."""

import asyncio

from mercury_ls.session.idle import Chore


async def check(outcomes: list[bool], moments: list[float], ran: list[float]) -> None:
    """Run at these moments, each run having the next outcome, a chore works at those moments alone."""
    worked, left, now = [], iter(outcomes), [0.0]

    async def work() -> None:
        worked.append(now[0])
        if not next(left):
            raise RuntimeError("a bug of ours")

    chore = Chore("the chore", work, lambda: now[0])
    for now[0] in moments:
        await chore.run()
    assert worked == ran


async def test_successful_chore_runs_whenever_there_is_time():
    await check([True] * 3, [0, 0, 0.1], [0, 0, 0.1])


async def test_failed_chore_rests_longer_each_time():
    await check([False] * 4, [0, 0.5, 1, 2, 3, 6.9, 7, 8], [0, 1, 3, 7])


async def test_recovered_chore_starts_anew():
    await check([False, False, True, False, True], [0, 1, 3, 3, 3.5, 4], [0, 1, 3, 3, 4])


async def test_pauses_are_at_most_five_minutes():
    await check([False] * 12, list(range(1200)), [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811, 1111])


async def test_failure_is_reported(caplog):
    await check([False], [0], [0])
    assert "the chore failed; retrying in 1 s" in caplog.text


async def test_chore_that_is_being_done_is_not_begun_again():
    begun, end = [], asyncio.Event()

    async def work() -> None:
        begun.append(1)
        await end.wait()

    chore = Chore("the chore", work, lambda: 0.0)
    first = asyncio.create_task(chore.run())
    await asyncio.sleep(0)
    await chore.run()
    end.set()
    await first
    assert begun == [1]
