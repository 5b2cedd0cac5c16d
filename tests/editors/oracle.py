"""A server that knows what belongs into a file, beside a real editor, and the model as a user adds it."""

import asyncio
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.e2e.environment import COMMAND, home, stop_engine

__all__ = ["BEGUN", "FIRST_MS", "NAME", "WHOLE", "added", "running", "switched"]

FIRST_MS = 400.0
"""To the first token."""
NAME = "oracle"

BEGUN = """\
class Basket:
    def __init__(self):
        self.items = []

    def add(self, item, price):
        self.items.append((item, price))

"""
WHOLE = f"""\
{BEGUN}    def total(self):
        amount = 0
        for _, price in self.items:
            amount += price
        return amount

    def cheapest(self):
        best = None
        for item, price in self.items:
            if best is None or price < best[1]:
                best = item, price
        return best
"""

Oracle = TypeVar("Oracle")


@contextmanager
def running(serving: AbstractAsyncContextManager[Oracle]) -> Iterator[Oracle]:
    """On a loop of its own, while a test drives its editor."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def done(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    try:
        yield done(serving.__aenter__())
        done(serving.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def added(folder: Path, address: str, *options: str) -> Iterator[tuple[dict[str, str], float]]:
    """The environment of a user who has added the model and chosen it, and how many seconds that took."""
    variables = home(folder, PYTHONPATH=os.getcwd())
    del variables["MERCURY_ENGINE_MODEL"]
    began = time.monotonic()
    try:
        command(variables, "model", "add", address, "--name", NAME, "--yes", *options)
        command(variables, "model", "use", NAME)
        yield variables, time.monotonic() - began
    finally:
        stop_engine(variables)


def switched(variables: dict[str, str], name: str, address: str, *options: str) -> None:
    """To another model."""
    command(variables, "model", "add", address, "--name", name, "--yes", *options)
    command(variables, "model", "use", name)


def command(variables: dict[str, str], *arguments: str) -> None:
    finished = subprocess.run([*COMMAND, *arguments], env=variables, capture_output=True, text=True)
    assert finished.returncode == 0, f"{' '.join(arguments)}: {finished.stdout}{finished.stderr}"


def contradicts(screens: Sequence[str]) -> str:
    """What of these screens, one after the other, was wrong: one that shows what does not belong there, or less of it
    than the one before; empty if nothing was. What is typed and what is suggested look the same here."""
    longest = ""
    for screen in screens:
        if not WHOLE.startswith(screen):
            return f"stale or wrong:\n{screen}"
        if len(screen) < len(longest):
            return f"gone after it had been shown:\n{longest}\n---\n{screen}"
        longest = screen
    return ""
