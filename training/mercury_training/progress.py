"""A line on stderr that shows the progress of a step and the time left."""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

PAUSE_TERMINAL, PAUSE_FILE = 0.2, 20.0
"""Seconds between two updates of the line."""


def shown(step: str, things: Sequence[T]) -> Iterator[T]:
    """Iterate over the items while the line counts those done."""
    total, count, is_terminal = len(things), 0, sys.stderr.isatty()
    began = last_report = time.monotonic()

    def tell(end: str) -> None:
        spent = time.monotonic() - began
        remaining = spent / max(1, count) * (total - count)
        start = "\r\x1b[K" if is_terminal else ""
        text = f"{start}{step} {count}/{total}  {spent:.0f} s, {remaining:.0f} s left{end}"
        print(text, end="", file=sys.stderr, flush=True)

    try:
        for thing in things:
            yield thing
            count += 1
            if count < total and time.monotonic() - last_report >= (PAUSE_TERMINAL if is_terminal else PAUSE_FILE):
                tell("" if is_terminal else "\n")
                last_report = time.monotonic()
    finally:
        tell("\n")
