"""What became of opening the model: after a failure that took long, or killed the server, the next one waits."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Engine, EngineError
from mercury_ls.link import local

if TYPE_CHECKING:
    from mercury_ls.serve.worker import LoadEngine

FILE = "opening.json"
KILLED = "the last server was killed while it opened the model: if memory is short, end other programs"
LONG_SECONDS = 5.0
"""What fails sooner may be tried as often as the user changes something."""
FIRST_WAIT, LONGEST_WAIT = 60.0, 24 * 3600.0
LONGER = 4
"""A server may have been killed for another reason, so the first wait is short."""
MORE = 1.1
"""With so much more free memory it may work."""

log = logging.getLogger(__name__)


class Opening(Struct, frozen=True):
    """An attempt that has not succeeded, after so many failures in a row: when, and with how much memory, 0 if
    unknown."""

    model: str
    at: float
    free: int
    failures: int = 0
    reason: str = KILLED

    @property
    def until(self) -> float:
        return self.at + min(FIRST_WAIT * LONGER**self.failures, LONGEST_WAIT)


class Openings:
    """The note of the one server that holds the lock in this folder; `model` says what it opens, and how."""

    def __init__(
        self,
        folder: Path,
        model: str,
        *,
        free: Callable[[], int] = local.free_memory,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = folder / FILE
        self._model = model
        self._free = free
        self._clock = clock
        self._running = False

    def noted(self, load_engine: "LoadEngine") -> "LoadEngine":
        """The same, unless a server before this one tried in vain and nothing has changed."""

        def load(report: Callable[[float, str], None]) -> Engine:
            opening = self._begun()
            self._running = True
            try:
                engine = load_engine(report)
            except Exception as error:
                self._failed(replace(opening, reason=str(error)))
                raise
            self.close()
            return engine

        return load

    def close(self) -> None:
        """The opening has succeeded, or this server is told to stop meanwhile."""
        if self._running:
            self._running = False
            with suppress(OSError):
                self._file.unlink()

    def _begun(self) -> Opening:
        last, at, free = self._last(), self._clock(), self._free()
        if last is not None and last.at <= at < last.until and free <= last.free * MORE:
            next_try = time.strftime("%H:%M", time.localtime(last.until))
            raise EngineError(f"{last.reason} (tried again at {next_try}, or when more memory is free)")
        opening = Opening(self._model, at, free, 0 if last is None else last.failures + 1)
        self._write(opening)
        return opening

    def _failed(self, opening: Opening) -> None:
        if self._clock() - opening.at < LONG_SECONDS:
            self.close()
        else:
            self._running = False
            self._write(opening)

    def _last(self) -> Opening | None:
        try:
            last = msgspec.json.decode(self._file.read_bytes(), type=Opening)
        except (OSError, msgspec.DecodeError):
            return None
        return last if last.model == self._model else None

    def _write(self, opening: Opening) -> None:
        try:
            self._file.write_bytes(msgspec.json.encode(opening))
        except OSError as error:
            log.debug("cannot note that the model is being opened: %s", error)
