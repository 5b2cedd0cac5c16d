"""Where it happens: a home, a runtime folder and projects of its own; every process started there is ended there."""

import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.harness.client import own_home

REPOSITORY = Path(__file__).resolve().parents[2]
PYTHON = (sys.executable, "-m", "mercury_ls")
QUIET_LOOKS, MOST_LOOKS = 3, 300
MARK = "BENCH_ABUSE"
"""In the environment of all that is started here, and so of all that those start: nobody else is ever signalled."""


class Playground:
    """One folder for a server, its engine server and the project."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mark = secrets.token_hex(8)

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MERCURY", "XDG_"))}
        return {
            **kept,
            **own_home(self.root),
            "MERCURY_ENGINE_IDLE_EXIT_MINUTES": "1",
            MARK: self.mark,
            **more,
        }

    def processes(self) -> list[int]:
        """All that were started here, directly or not."""
        mark = f"{MARK}={self.mark}".encode()
        return [pid for pid in _pids() if mark in _read(pid, "environ").split(b"\0")]

    def signal(self, pid: int, number: int) -> bool:
        """By a descriptor that is of this very process, looked at once more after it was opened."""
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            return False
        try:
            if f"{MARK}={self.mark}".encode() not in _read(pid, "environ").split(b"\0"):
                return False
            signal.pidfd_send_signal(descriptor, number)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return True

    def end(self) -> list[int]:
        """Kill what is left, and say who it was. Who has just been started shows no environment for a moment."""
        left: dict[int, None] = {}
        quiet = 0
        for _ in range(MOST_LOOKS):
            if quiet == QUIET_LOOKS:
                break
            still = self.processes()
            quiet = 0 if still else quiet + 1
            left.update(dict.fromkeys(still))
            for pid in still:
                self.signal(pid, signal.SIGKILL)
            time.sleep(0.01)
        shutil.rmtree(self.root, onerror=_make_writable)
        return list(left)


@contextmanager
def sandbox() -> Iterator[Playground]:
    made = Playground(Path(tempfile.mkdtemp(prefix="mla-")).resolve())
    try:
        yield made
    finally:
        made.end()


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _read(pid: int, name: str) -> bytes:
    """Of a process that may have gone, or be somebody else's: then nothing. A zombie has nothing either."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _make_writable(function: object, path: str, _: object) -> None:
    """A folder that a case made read-only, or a file that went in the meantime."""
    with suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)
        os.chmod(path, 0o700)
        function(path)  # type: ignore[operator]
