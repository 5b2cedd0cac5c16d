"""A program in a terminal of its own: keys go in, and what is painted is read from the screen."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyte

SECONDS = 60
ROWS, COLUMNS = 30, 100


class Screen(pyte.Screen):
    """One that answers what programs ask of a terminal at their start, so that none waits for it in vain."""

    def __init__(self, answer: Callable[[str], None]):
        super().__init__(COLUMNS, ROWS)
        self.answer = answer

    def write_process_input(self, data: str) -> None:
        self.answer(data)

    def report_device_status(self, mode: int, private: bool = False) -> None:
        """Questions of other terminals, such as that for the colour scheme, have no answer here."""
        if not private:
            super().report_device_status(mode)


class Terminal:
    """A running program. `lines` is what a person would see."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], folder: Path):
        self.folder = folder
        self._end, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        variables = {**environment, "TERM": "xterm-256color", "LINES": str(ROWS), "COLUMNS": str(COLUMNS)}
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        self.process = subprocess.Popen(["setsid", "--ctty", *command], env=variables, cwd=folder, **streams)
        os.close(theirs)
        self.screen = Screen(self.keys)
        self._stream = pyte.ByteStream(self.screen)

    def keys(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    def until(self, holds: Callable[[], Any], what: str) -> Any:
        """What `holds` says once it is true."""
        deadline = time.monotonic() + SECONDS
        while not (value := holds()):
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {SECONDS} s for {what}\n" + "\n".join(self.lines))
            self._read(0.02)
        return value

    def _read(self, seconds: float) -> None:
        ready, _, _ = select.select([self._end], [], [], seconds)
        if ready:
            try:
                self._stream.feed(os.read(self._end, 1 << 16))
            except OSError as error:
                raise AssertionError("the editor is gone\n" + "\n".join(self.lines)) from error

    def children(self) -> list[int]:
        """The programs that this one has started, by whichever of its threads."""
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(child) for thread in threads for child in thread.read_text(encoding="ascii").split()]

    def kill_server(self) -> None:
        (server,) = self.children()
        os.kill(server, signal.SIGKILL)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._end)
