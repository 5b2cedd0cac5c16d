"""Ends a server that hangs, in a thread that needs no lock of the interpreter."""

import asyncio
import faulthandler
import time
from collections.abc import Callable
from typing import Any, cast

LONGEST_SECONDS = 30.0
"""Nothing that goes well keeps the event loop for so long."""
RENEWED_SECONDS = 1.0
STANDARD_ERROR = 2


def watch(
    loop: asyncio.AbstractEventLoop,
    seconds: float = LONGEST_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """From now on the process ends, and logs where it was, if the loop does not come round for so long. Standard input
    is read by a thread of Python, which does not see the editor go while a regular expression runs.

    While the loop waits for longer than a moment nothing is watched: a computer that sleeps is no server that hangs.
    """
    selector = cast(Any, loop)._selector  # of every loop of asyncio; the proactor on Windows
    wait = selector.select
    renewed = float("-inf")

    def select(timeout: float | None = None) -> object:
        nonlocal renewed
        if timeout is None or timeout > RENEWED_SECONDS:
            faulthandler.cancel_dump_traceback_later()
            renewed = float("-inf")
        events = wait(timeout)
        if clock() - renewed > RENEWED_SECONDS:
            renewed = clock()
            faulthandler.dump_traceback_later(seconds, exit=True, file=STANDARD_ERROR)
        return events

    selector.select = select
