"""What differs between systems: where the server's socket lies, who may use it, how the server is started."""

import asyncio
import json
import os
import secrets
import socket
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from msgspec import Struct

from mercury_engine.api import PROTOCOL_VERSION
from mercury_ls.serve.connection import Address

__all__ = [
    "ALREADY_RUNNING",
    "LOOPBACK",
    "AlreadyRunningError",
    "Listener",
    "PlacementError",
    "address",
    "has_unix_sockets",
    "listening",
    "lock",
    "log_file",
    "runtime_directory",
    "spawn",
    "standing_token",
]

ALREADY_RUNNING = 3
"""The exit code of a server that found another one in its place."""
APPLICATION = "mercury-ls"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
DIRECTORY_VARIABLE = "MERCURY_LS_RUNTIME_DIR"
SOCKET = f"engine-v{PROTOCOL_VERSION}.sock"
PORT = f"engine-v{PROTOCOL_VERSION}.json"
LOCK = "engine.lock"
OWNER_POLLS, POLL_SECONDS = 50, 0.02
SOCKET_PATH_LIMIT = 103
"""Bytes of a Unix socket's path on macOS, the least of the systems we know."""
LOG_LIMIT = 4 << 20
LOCKED_BYTE = 1 << 30
"""Windows forbids to read what is locked, so the locked byte lies behind the process id."""


class PlacementError(Exception):
    """The runtime directory or a file in it cannot be trusted. The message names the path and the remedy."""


class AlreadyRunningError(Exception):
    """Another server of this user holds the lock."""


class Listener(Struct, frozen=True):
    """A bound socket, and the token its clients have to send ("" where the file system guards the door)."""

    socket: socket.socket
    token: str


def has_unix_sockets() -> bool:
    return hasattr(socket, "AF_UNIX") and hasattr(asyncio, "open_unix_connection")


def runtime_directory(chosen: str = "") -> Path:
    """The directory of sockets and lock: `chosen`, $MERCURY_LS_RUNTIME_DIR or the system's place."""
    directory = Path(chosen or os.environ.get(DIRECTORY_VARIABLE, "") or system_directory())
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_private(directory)
    return directory


def system_directory() -> Path:
    from platformdirs import user_runtime_path

    with warnings.catch_warnings(action="ignore", category=UserWarning):  # no XDG_RUNTIME_DIR: /tmp does as well
        return user_runtime_path(APPLICATION)


def check_private(path: Path) -> None:
    """Refuses what another user made or could write to: he could answer in the engine's place."""
    if os.name == "nt":  # the profile's access control list already keeps others out
        return
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise PlacementError(f"{path} is no directory: remove it, or set {DIRECTORY_VARIABLE}")
    if found.st_uid != os.getuid():
        raise PlacementError(
            f"{path} belongs to user {found.st_uid} and not to you ({os.getuid()}):"
            f" remove it, or set {DIRECTORY_VARIABLE} to a directory of yours"
        )
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        raise PlacementError(f"{path} has mode {mode:o}, so that others can reach into it: run `chmod 700 {path}`")


@contextmanager
def lock(directory: Path) -> Iterator[None]:
    """One server per user. The system releases the lock when the process ends, however it ends."""
    with open(os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        try:
            lock_file(file)
        except OSError as error:
            owner = owner_of(file)
            raise AlreadyRunningError(
                f"an engine server of yours is running already (process {owner}, {directory}):"
                " stop it with `mercury-ls serve --stop`"
            ) from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def owner_of(file: IO[str]) -> str:
    """The process id in a lock file; who has just taken the lock may not have written it yet."""
    for _ in range(OWNER_POLLS):
        file.seek(0)
        if owner := file.read().strip():
            return owner
        time.sleep(POLL_SECONDS)
    return "unknown"


def lock_file(file: IO[str]) -> None:
    if os.name == "nt":
        import msvcrt

        file.seek(LOCKED_BYTE)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        finally:
            file.seek(0)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def listening(directory: Path, *, unix: bool | None = None) -> Iterator[Listener]:
    """Binds the local socket and takes its name away at the end. Under the lock, what lies there is stale."""
    unix = has_unix_sockets() if unix is None else unix
    name = directory / (SOCKET if unix else PORT)
    name.unlink(missing_ok=True)
    listener = bind_unix(name) if unix else bind_loopback(name)
    try:
        yield listener
    finally:
        name.unlink(missing_ok=True)
        listener.socket.close()


def bind_unix(path: Path) -> Listener:
    if len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
        raise PlacementError(f"{path} is too long for a socket: set {DIRECTORY_VARIABLE} to a shorter directory")
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    bound.bind(str(path))
    path.chmod(0o600)
    return Listener(bound, "")


def bind_loopback(path: Path) -> Listener:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.bind(("127.0.0.1", 0))
    bound.listen()
    token = secrets.token_urlsafe(32)
    write_private(path, json.dumps({"port": bound.getsockname()[1], "token": token}))
    return Listener(bound, token)


def write_private(path: Path, text: str) -> None:
    """Nobody else ever sees the file, and nobody sees half of it."""
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)


def address(directory: Path, *, unix: bool | None = None) -> Address:
    """Where a client finds the server of this protocol version. FileNotFoundError when none can listen."""
    if has_unix_sockets() if unix is None else unix:
        return Address(path=str(directory / SOCKET))
    found = json.loads((directory / PORT).read_text())
    return Address(host="127.0.0.1", port=found["port"], token=found["token"])


def standing_token() -> tuple[str, Path]:
    """The token of the HTTP listener when none is configured: made once, so that editors can be told once."""
    from platformdirs import user_state_path

    path = user_state_path(APPLICATION) / "http-token"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists() or not path.read_text().strip():  # an empty token would open the door to everybody
        write_private(path, secrets.token_urlsafe(32))
    return path.read_text().strip(), path


def log_file() -> Path:
    from platformdirs import user_log_path

    return user_log_path(APPLICATION) / "serve.log"


RETURNING = {"MALLOC_MMAP_THRESHOLD_": "262144"}
"""So that glibc gives back the memory of caches that were dropped; other libraries do not read it."""


def spawn(arguments: Sequence[str], log: Path | None = None) -> subprocess.Popen[bytes]:
    """Starts `mercury-ls …` so that it outlives this process and whatever kills its terminal."""
    path = log or log_file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > LOG_LIMIT:
        path.replace(path.with_suffix(".old.log"))
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "mercury_ls", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=path.parent,  # `-m` imports from where it runs, and the user's folder is not to be trusted
            env={**RETURNING, **os.environ},
            **detached(),
        )


def detached() -> dict[str, object]:
    if os.name == "nt":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.DETACHED_PROCESS}
    return {"start_new_session": True}
