"""Neovim's msgpack-RPC on the pipes of a child process: one request at a time, each with a deadline."""

import os
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgpack

SECONDS = 30


class Rpc:
    """A running Neovim. Notifications, such as screen updates, are dropped."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], folder: Path):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, env=environment, cwd=folder, **pipes)
        self._unpacker = msgpack.Unpacker(ext_hook=lambda kind, data: msgpack.unpackb(data))
        self._last = 0

    def __call__(self, method: str, *arguments: Any) -> Any:
        self._last += 1
        self.send(method, *arguments)
        deadline = time.monotonic() + SECONDS
        while True:
            for message in self._unpacker:
                if message[:2] == [1, self._last]:
                    return self._result(method, message)
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not data:
                raise TimeoutError(f"{method}: Neovim {'is gone' if ready else f'was silent for {SECONDS} s'}")
            self._unpacker.feed(data)

    def send(self, method: str, *arguments: Any) -> None:
        self.process.stdin.write(msgpack.packb([0, self._last, method, arguments]))
        self.process.stdin.flush()

    def _result(self, method: str, message: list[Any]) -> Any:
        if message[2] is not None:
            raise RuntimeError(f"{method}: {message[2][1]}")
        return message[3]

    def close(self) -> None:
        """Neovim takes its language servers along when it is asked to leave."""
        try:
            self.send("nvim_command", "qall!")
            self.process.wait(SECONDS)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
