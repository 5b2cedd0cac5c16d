"""A race: several things are awaited, and the first to end decides."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def first_of(*runners: Coroutine[Any, Any, object]) -> None:
    """Returns when one ends, or raises what that one raised; the others are cancelled."""
    tasks = [asyncio.create_task(runner) for runner in runners]
    try:
        finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    for task in finished:
        task.result()
