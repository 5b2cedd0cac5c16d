"""The one error of the training commands, and how a command reports it."""

from collections.abc import Iterator
from contextlib import contextmanager

from mercury_engine.api import EngineError


class TrainingError(Exception):
    """A problem that a user can fix. The message says what is wrong, where, and what to do about it."""


@contextmanager
def reported(command: str) -> Iterator[None]:
    """End the command with one line instead of a traceback."""
    try:
        yield
    except (TrainingError, EngineError, OSError) as error:
        raise SystemExit(f"{command}: {error}") from error
