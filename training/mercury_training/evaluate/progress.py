"""A line on stderr that shows the progress of a step and the time left."""

import sys
import time

__all__ = ["ProgressLine"]

PAUSE_TERMINAL, PAUSE_FILE = 0.2, 20.0
"""Seconds between two updates of the line."""


class ProgressLine:
    """Owns the line of one step."""

    def __init__(self, step: str, total: int) -> None:
        self._step, self._total, self._done = step, total, 0
        self._started = self._shown = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def __enter__(self) -> "ProgressLine":
        return self

    def __exit__(self, *error: object) -> None:
        self._show("\n")

    def advance(self) -> None:
        self._done += 1
        pause = PAUSE_TERMINAL if self._terminal else PAUSE_FILE
        if self._done < self._total and time.monotonic() - self._shown >= pause:
            self._show("" if self._terminal else "\n")

    def _show(self, end: str) -> None:
        self._shown = time.monotonic()
        spent = self._shown - self._started
        left = spent / max(1, self._done) * (self._total - self._done)
        start = "\r\x1b[K" if self._terminal else ""
        text = f"{start}{self._step} {self._done}/{self._total}  {spent:.0f} s, {left:.0f} s left{end}"
        print(text, end="", file=sys.stderr, flush=True)
