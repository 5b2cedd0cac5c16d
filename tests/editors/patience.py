"""Waiting until something holds; where it never does, the error says what a person would have looked at."""

import select
import time
from collections.abc import Callable
from typing import Any

__all__ = ["rest", "until"]


def until(
    holds: Callable[[], Any], what: str, told: Callable[[], str] = str, *, seconds: float, pause: Callable[[], object]
) -> Any:
    """What `holds` says once it is true."""
    deadline = time.monotonic() + seconds
    while not (value := holds()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s for {what}\n{told()}")
        pause()
    return value


def rest(seconds: float) -> None:
    select.select([], [], [], seconds)
