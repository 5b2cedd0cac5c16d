"""Files whose reading ended the server: each server notes which it is reading, where the next ones find it."""

import logging
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from mercury_ls.code.files import stamp_of

log = logging.getLogger(__name__)

FOLDER = "reading"
"""Beside the statistics."""
HANGING_SECONDS = 10.0
"""No step takes so long: a note that is older is of a server that hangs, or has ended meanwhile."""
KEPT_SECONDS = 7 * 24 * 3600.0
SOME = 2
"""A server may have been ended for another reason once."""
LONGEST_PATH = 1 << 15


class Unended:
    """The notes of this user's servers, in one folder; none without a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._note = folder and folder / f"{os.getpid()}-{time.time_ns()}"
        notes = sorted(self._notes()) if folder is not None else []
        counts = Counter(path for path, _ in notes)
        self._times = {path: written for path, written in notes if counts[path] >= SOME}

    @property
    def paths(self) -> list[str]:
        """The files that ended several servers, and have not changed since."""
        return sorted(path for path in self._times if (stamp := stamp_of(path)) and self.has(path, stamp[0]))

    def has(self, path: str, changed: int) -> bool:
        """Whether the file, changed at that time in nanoseconds, ended several servers."""
        return changed <= self._times.get(path, -1)

    def begin(self, path: str) -> None:
        """A step of this server reads the file."""
        if self._note is not None:
            try:
                self._note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._note.write_bytes(os.fsencode(path))
            except OSError as error:
                log.debug("cannot note which file is read: %s", error)
                self._note = None

    def end(self) -> None:
        """The step is over."""
        if self._note is not None:
            with suppress(OSError):
                self._note.unlink()

    def _notes(self) -> Iterator[tuple[str, int]]:
        """The paths in the notes of servers that ended or hang, and when they were written."""
        now = time.time()
        for note in _listed(self._folder):
            with suppress(OSError):
                written = note.stat().st_mtime_ns
                seconds = now - written / 1e9
                if seconds > KEPT_SECONDS:
                    os.remove(note.path)
                elif seconds > HANGING_SECONDS and (path := Path(note.path).read_bytes()[:LONGEST_PATH]):
                    yield os.fsdecode(path), written


def _listed(folder: Path | None) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            return [*listing]
    except OSError:
        return []
