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
from functools import partial
from pathlib import Path
from typing import Any

import pyte

from tests.editors.patience import until

SECONDS = 60
MOMENT = 0.5
"""Longer than any of the editors waits before it asks for a suggestion."""
ROWS, COLUMNS = 30, 100


class Screen(pyte.Screen):
    """One that answers what programs ask of a terminal at their start, so that none waits for it in vain."""

    def __init__(self, rows: int, columns: int, answer: Callable[[str], None]):
        super().__init__(columns, rows)
        self.answer = answer

    def write_process_input(self, data: str) -> None:
        self.answer(data)

    def report_device_status(self, mode: int, private: bool = False) -> None:
        """Questions of other terminals, such as that for the colour scheme, have no answer here."""
        if not private:
            super().report_device_status(mode)

    def select_graphic_rendition(self, *attributes: int, private: bool = False) -> None:
        """Nor have those for the state of the keyboard, which look like colours."""
        if not private:
            super().select_graphic_rendition(*attributes)


class Terminal:
    """A running editor. `lines` is what a person would see; `log` is what its language servers of ours have to say."""

    def __init__(
        self,
        command: Sequence[str],
        environment: dict[str, str],
        folder: Path,
        rows: int = ROWS,
        columns: int = COLUMNS,
    ):
        self.folder = folder
        self.log = folder / "server.log"
        self.log.touch()
        self._end, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        size = {"LINES": str(rows), "COLUMNS": str(columns)}
        variables = {**environment, **size, "TERM": "xterm-256color", "MERCURY_LOG_FILE": str(self.log)}
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        self.process = subprocess.Popen(["setsid", "--ctty", *command], env=variables, cwd=folder, **streams)
        os.close(theirs)
        self.screen = Screen(rows, columns, self.keys)
        self._stream = pyte.ByteStream(self.screen)

    def keys(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def ready(self, servers: int = 1) -> None:
        """Once that many servers have said in their log that there is an engine."""
        told = "engine ready"
        self.until(lambda: self.log.read_text(encoding="utf-8").count(told) >= servers, told)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    def until(self, holds: Callable[[], Any], what: str) -> Any:
        return until(holds, what, self.told, seconds=SECONDS, pause=partial(self.read, 0.02))

    def told(self) -> str:
        return "\n".join(self.lines)

    def settle(self) -> None:
        """Until nothing new is painted for a moment."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and self.read(MOMENT):
            pass

    def read(self, seconds: float) -> bool:
        """Whether there was something to read."""
        ready, _, _ = select.select([self._end], [], [], seconds)
        if ready:
            try:
                self._stream.feed(os.read(self._end, 1 << 16))
            except OSError as error:
                raise AssertionError(f"the editor is gone\n{self.told()}") from error
        return bool(ready)

    def read_for(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.read(left)

    def children(self) -> list[int]:
        return children(self.process.pid)

    def kill_server(self) -> None:
        (server,) = self.children()
        os.kill(server, signal.SIGKILL)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._end)


def children(process: int) -> list[int]:
    """The programs that this one has started, by whichever of its threads."""
    threads = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for thread in threads for child in thread.read_text(encoding="ascii").split()]
