"""Everything that depends on the platform: where the server's socket is, who may use it, how the server is started."""

import json
import os
import secrets
import socket
import stat
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from msgspec import Struct

from mercury_engine.api import PROTOCOL_VERSION
from mercury_ls.link.connection import Address
from mercury_ls.settings.folders import folders

ALREADY_RUNNING = 3
"""The exit code of a server that found another one running."""
IGNORES_CASE = sys.platform in ("darwin", "win32")
"""True if the file system usually ignores the case of names."""
DIRECTORY_VARIABLE = "MERCURY_LS_RUNTIME_DIR"
SOCKET = f"engine-v{PROTOCOL_VERSION}.sock"
PORT = f"engine-v{PROTOCOL_VERSION}.json"
SOCKET_PATH_LIMIT = 103
"""In bytes: the limit of macOS, the lowest of all supported systems."""
LOG_LIMIT = 4 << 20
DETACHED = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.DETACHED_PROCESS if sys.platform == "win32" else 0
CGROUPS = Path("/sys/fs/cgroup")
FILES_OF_LIMITS = {
    "": ("", "memory.max", "memory.current", "memory.stat"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat"),
}
"""For the second and the first version of control groups, by the controllers in a line of /proc/self/cgroup."""
ADDRESSES_BESIDE = 400 << 20
"""Addresses that an opened model takes besides its memory: code, stacks, what allocators reserve. Measured: 457 MB."""
LOCKED_BYTE = 1 << 30
"""Windows does not allow reading a locked range, so the locked byte lies behind the process id."""


class PlacementError(Exception):
    """The runtime directory, or a file in it, cannot be used or trusted. The message names the path and the remedy."""


class AlreadyRunningError(Exception):
    """Another server of this user holds the lock."""


class Listener(Struct, frozen=True):
    """A bound socket, the token that clients must send ("" if file permissions protect the socket), and the file by
    which they find it."""

    socket: socket.socket
    token: str
    path: Path
    stamp: tuple[int, int, int] | None

    def is_in_place(self) -> bool:
        return _stamp_of(self.path) == self.stamp


def has_unix_sockets() -> bool:
    return sys.platform != "win32"  # asyncio has no streams for them there


def runtime_directory(chosen: str = "") -> Path:
    """The directory of the socket and the lock: `chosen`, $MERCURY_LS_RUNTIME_DIR or the system's default."""
    directory = Path(chosen or os.environ.get(DIRECTORY_VARIABLE, "") or _system_directory())
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_private(directory)
    return directory


def _system_directory() -> Path:
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # it falls back to /tmp, which is fine
        return folders().user_runtime_path


def _check_private(path: Path) -> None:
    """Refuse a directory that another user owns or can write to: that user could impersonate the engine."""
    if os.name == "nt":  # the profile's access control list already keeps others out
        return
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise PlacementError(f"{path} is not a folder: remove it, or set {DIRECTORY_VARIABLE} to another")
    if status.st_uid != os.getuid():
        raise PlacementError(
            f"{path} belongs to user {status.st_uid}, not to you ({os.getuid()}):"
            f" remove it, or set {DIRECTORY_VARIABLE} to a folder of yours"
        )
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        raise PlacementError(f"{path} has mode {mode:o}, which gives other users access: run `chmod 700 {path}`")


def check_usable(directory: Path) -> None:
    """Raise if no server could open its socket here, before one is started in vain."""
    if not os.access(directory, os.W_OK | os.X_OK):
        raise PlacementError(
            f"cannot create a socket in {directory}, which is read-only: make the folder writable, or set"
            f" {DIRECTORY_VARIABLE} to another"
        )
    for name in (SOCKET, PORT):
        if (directory / name).is_dir():
            raise PlacementError(f"{directory / name} is a folder in place of the socket: remove it")


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


def _uses_unix_socket(directory: Path) -> bool:
    """True for Unix sockets, else a loopback port is used: some systems have none, and their paths must be short."""
    return has_unix_sockets() and len(os.fsencode(directory / SOCKET)) <= SOCKET_PATH_LIMIT


def bind(directory: Path, token: str = "") -> Listener:
    """Bind the local socket, with a `token` if it needs one. The caller holds the lock, so an existing file is
    stale."""
    try:
        if _uses_unix_socket(directory):
            return _bind_unix(directory / SOCKET)
        return _bind_loopback(directory / PORT, token or secrets.token_urlsafe(32))
    except OSError as error:
        raise PlacementError(
            f"cannot create a socket in {directory} ({error}): remove what is in its place, make the folder writable,"
            f" free disk space, or set {DIRECTORY_VARIABLE} to another folder"
        ) from error


def _bind_unix(path: Path) -> Listener:
    assert sys.platform != "win32"
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    bound.bind(str(path))
    path.chmod(0o600)
    return Listener(bound, "", path, _stamp_of(path))


def _bind_loopback(path: Path, token: str) -> Listener:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.bind(("127.0.0.1", 0))
    bound.listen()
    _write_private(path, json.dumps({"port": bound.getsockname()[1], "token": token}))
    return Listener(bound, token, path, _stamp_of(path))


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    """A stamp that distinguishes a file from a later one with the same name."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _write_private(path: Path, text: str) -> None:
    """Write a file that is private from the start, and never visible half written."""
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)


def address(directory: Path) -> Address:
    """Where a client finds the server of this protocol version. Raise FileNotFoundError if none listens on a port."""
    if _uses_unix_socket(directory):
        return Address(path=str(directory / SOCKET))
    stored = json.loads((directory / PORT).read_text())
    return Address(host="127.0.0.1", port=stored["port"], token=stored["token"])


def is_listed(directory: Path) -> bool:
    """True if the file by which clients find the server exists."""
    return (directory / (SOCKET if _uses_unix_socket(directory) else PORT)).exists()


def token_file() -> Path:
    return _own_folder(folders().user_state_path) / "http-token"


def standing_token() -> tuple[str, Path]:
    """The token for listeners without a configured one: created once and kept, so that clients need it only once."""
    path = token_file()
    if not path.exists() or not path.read_text().strip():  # an empty token would admit everybody
        _write_private(path, secrets.token_urlsafe(32))
    return path.read_text().strip(), path


def log_file() -> Path:
    return _own_folder(folders().user_log_path) / "serve.log"


def _own_folder(path: Path) -> Path:
    """The requested folder, or the runtime directory if the home folder is read-only."""
    with suppress(OSError):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(path, os.W_OK):
            return path
    return runtime_directory()


def memory() -> int:
    """The memory of this machine or container in bytes; 0 if unknown."""
    if sys.platform == "win32":
        return _windows_memory()
    try:
        installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0
    return min([installed, *(limit for limit, _ in memory_limits())])


def free_memory() -> int:
    """The memory in bytes that the system or container could give to a process now; 0 if unknown."""
    if sys.platform == "win32":
        return _windows_memory(free=True)
    try:
        meminfo = Path("/proc/meminfo").read_text(encoding="ascii").partition("MemAvailable:")[2]
        available = int(meminfo.split()[0]) << 10
    except (OSError, ValueError, IndexError):
        return 0
    limits = [*memory_limits(), *_limit_of_process()]
    return min([available, *(max(1, limit - used) for limit, used in limits)])


def _limit_of_process() -> Iterator[tuple[int, int]]:
    """The limit for the addresses of this process (`ulimit -v`), and how many are no memory for a model."""
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        with suppress(OSError, ValueError, IndexError):  # not Linux
            pages, resident = map(int, Path("/proc/self/statm").read_text(encoding="ascii").split()[:2])
            beside = max((pages - resident) * os.sysconf("SC_PAGE_SIZE"), ADDRESSES_BESIDE)
            yield limit, resident * os.sysconf("SC_PAGE_SIZE") + beside


def memory_limits(groups: Path = Path("/proc/self/cgroup"), mounted: Path = CGROUPS) -> Iterator[tuple[int, int]]:
    """For each control group of this process, its limit and its use in bytes, without reclaimable file cache. A
    container sees only the innermost, as the root."""
    try:
        lines = groups.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        controllers, _, path = line.partition(":")[2].partition(":")
        if controllers not in FILES_OF_LIMITS:
            continue
        root, *names = FILES_OF_LIMITS[controllers]
        group = mounted / root / path.strip("/")
        for folder in (group, *group.parents):
            with suppress(OSError, ValueError, IndexError):  # no limit there
                limit, used, inactive = ((folder / name).read_text(encoding="ascii") for name in names)
                yield int(limit), int(used) - int(inactive.rpartition("inactive_file ")[2].split()[0])
            if folder == mounted / root:
                break


def resident_memory() -> int:
    """This process's resident memory in bytes; 0 if unknown."""
    if sys.platform == "win32":
        return 0
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _windows_memory(free: bool = False) -> int:
    import ctypes

    class MemoryCounters(ctypes.Structure):
        """MEMORYSTATUSEX"""

        _fields_ = (("length", ctypes.c_uint32), ("load", ctypes.c_uint32), ("sizes", ctypes.c_uint64 * 7))

    counters = MemoryCounters(length=ctypes.sizeof(MemoryCounters))
    kernel = getattr(ctypes, "windll", None)
    return counters.sizes[free] if kernel and kernel.kernel32.GlobalMemoryStatusEx(ctypes.byref(counters)) else 0


def settle_home() -> None:
    """Give a user without a home folder the runtime directory as one, if there is any."""
    if os.path.expanduser("~") == "~":
        try:
            os.environ["HOME"] = str(runtime_directory())
        except (PlacementError, OSError):
            os.environ["HOME"] = os.devnull


M_MMAP_THRESHOLD, MAPPED_FROM = -3, 1 << 18


def return_dropped_memory() -> None:
    """Make glibc return the memory of dropped caches and masks to the system; other C libraries have no such
    setting."""
    import ctypes

    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, MAPPED_FROM)


def spawn(arguments: Sequence[str], log: Path | None = None) -> subprocess.Popen[bytes]:
    """Start `mercury-ls …` so that it outlives this process and its terminal."""
    with _log_output(log or log_file()) as output:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "mercury_ls", *arguments],  # -P: import nothing from the current folder
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=os.path.abspath(os.sep),
            start_new_session=True,  # ignored on Windows, as its flags are elsewhere
            creationflags=DETACHED,
        )


def _log_output(path: Path) -> IO[bytes]:
    """The log file, or nothing if it cannot be written: an engine without a log is better than no engine."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > LOG_LIMIT:
            path.replace(path.with_suffix(".old.log"))
        return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
    except OSError:
        return open(os.devnull, "ab")


def has_open(process: int, path: Path) -> bool:
    """True if a process has a file open or, if the system cannot tell, if its command line is one of ours."""
    if os.name == "nt":  # only its owner can have written to the locked file there
        return True
    if not os.path.isdir("/proc/self/fd"):
        listing = subprocess.run(
            ["ps", "-o", "command=", "-p", str(process)], capture_output=True, text=True, check=False
        )
        return "mercury" in listing.stdout
    with suppress(OSError):  # the process has ended, or belongs to another user
        return any(os.path.samestat(status, path.stat()) for status in _open_files(process))
    return False


def _open_files(process: int) -> Iterator[os.stat_result]:
    for name in os.listdir(f"/proc/{process}/fd"):
        with suppress(OSError):
            yield os.stat(f"/proc/{process}/fd/{name}")
