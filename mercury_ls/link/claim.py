"""Which process is a user's engine server: its lock, its socket, and how to end a server that hangs."""

import errno
import os
import signal
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from mercury_ls.link import local
from mercury_ls.link.local import AlreadyRunningError, Listener, PlacementError

LOCK = "engine.lock"
OWNER_POLLS, POLL_SECONDS = 10, 0.02
LOCK_TRIES = 5
"""`owner` takes a free lock for a moment, which must not keep a server from starting."""
GONE_SECONDS = 0.05
SIGNAL_POLLS = 20
SIGNALS = (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM))
"""A stopped process reacts only to the last one. On Windows, either ends a process at once."""


class Claim:
    """A server's claim to a runtime directory: its lock file and its socket.

    Other programs may delete these files, such as a cleaner of temporary files. Without its socket a server can no
    longer be found, and without its lock a second one can start, so the server calls `renew` from time to time.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = lock(directory)
        try:
            self.listener = local.bind(directory)
        except BaseException:
            self._lock.close()
            raise

    def renew(self) -> Listener | None:
        """Restore what was deleted, and return the listener if there is a new one. Raise `AlreadyRunningError` if
        another server has taken the lock."""
        local.runtime_directory(str(self._directory))
        if not self._is_locked():
            lost, self._lock = self._lock, lock(self._directory)
            lost.close()
        if self.listener.is_in_place():
            return None
        self.listener = local.bind(self._directory, self.listener.token)
        return self.listener

    def release(self) -> None:
        """Release the claim. Without the lock, the socket file may belong to the next server and stays."""
        if self._is_locked() and self.listener.is_in_place():
            self.listener.path.unlink(missing_ok=True)
        self.listener.socket.close()
        self._lock.close()

    def _is_locked(self) -> bool:
        return _is_at(self._lock, self._directory / LOCK)


@contextmanager
def claimed(directory: Path) -> Generator[Claim]:
    claim = Claim(directory)
    try:
        yield claim
    finally:
        claim.release()


def lock(directory: Path) -> IO[str]:
    """The lock file, one per user's server: closing it releases the lock, and so does the system when the process ends,
    for whatever reason."""
    path = directory / LOCK
    for _ in range(LOCK_TRIES):
        file = _open_lock(path)
        if _holds(file) and _is_at(file, path):
            with suppress(OSError):  # the disk may be full: the lock is still held, only its owner stays unknown
                os.ftruncate(file.fileno(), 0)
                os.write(file.fileno(), f"{os.getpid()}\n".encode())
            return file
        file.close()
        time.sleep(POLL_SECONDS)
    raise AlreadyRunningError(
        f"your engine server is already running (process {_owner_in_file(directory)}, in {directory}):"
        " stop it with `mercury-ls serve --stop`"
    )


def _open_lock(path: Path) -> IO[str]:
    try:
        return open(path, "r+", opener=_plain_file)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error


def _plain_file(path: str, flags: int) -> int:
    """Refuse pipes and devices, where reading may block for ever."""
    descriptor = os.open(path, flags | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return descriptor


def _unusable(path: Path, reason: str) -> PlacementError:
    if path.exists():
        return PlacementError(f"cannot use {path} as the lock ({reason}): remove it")
    return PlacementError(
        f"cannot create {path} ({reason}): make its folder writable, free disk space, or set"
        f" {local.DIRECTORY_VARIABLE} to another folder"
    )


def _holds(file: IO[str]) -> bool:
    try:
        local.lock_file(file)
    except OSError:
        return False
    return True


def _is_at(file: IO[str], path: Path) -> bool:
    """True if the open file is still the one at the path; the inode of an open file is not reused."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def owner(directory: Path) -> str:
    """The id of the process that holds the lock, "" if none does."""
    path = directory / LOCK
    if not path.exists():
        return ""
    with _open_lock(path) as file:
        return "" if _holds(file) else _owner_in_file(directory)


def _owner_in_file(directory: Path) -> str:
    """The process id in the lock file, which is written just after the lock is taken."""
    for _ in range(OWNER_POLLS):
        with suppress(OSError):
            if holder := (directory / LOCK).read_text().strip():
                return holder
        time.sleep(POLL_SECONDS)
    return "unknown"


def end(directory: Path, holder: str) -> None:
    """End a server that hangs: the process `holder`, and never one that took the lock after it."""
    for number in SIGNALS:
        if holder and owner(directory) == holder:
            _signal_holder(directory, holder, number)
        if has_gone(directory, holder, SIGNAL_POLLS):
            return
    raise TimeoutError(
        f"the engine server does not exit: process {holder} still holds {directory / LOCK}; end that process"
    )


def _signal_holder(directory: Path, holder: str, number: int) -> None:
    """Signal the process only if it has the lock file open: its id may come from another container, or belong to a
    process that was started after a crash."""
    if not (holder.isdigit() and int(holder) != os.getpid() and local.has_open(int(holder), directory / LOCK)):
        raise PlacementError(
            f"{directory / LOCK} is locked by something other than an engine server of yours (it names process"
            f" {holder}): end the process that holds it, or remove the file"
        )
    with suppress(ProcessLookupError):
        os.kill(int(holder), number)


def has_gone(directory: Path, holder: str, polls: int) -> bool:
    for _ in range(polls):
        if not holder or owner(directory) != holder:
            return True
        time.sleep(GONE_SECONDS)
    return False
