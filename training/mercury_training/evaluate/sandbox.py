"""Runs programs that a model wrote in isolation: no network, no files, no privileges, and tight limits.

    with Sandbox() as sandbox:
        sandbox.run("assert 1 + 1 == 2").passed

A server in namespaces of its own forks a child for each program, so that one costs milliseconds. It needs Linux and
root, or root of a user namespace with subordinate ids (`unshare --map-root-user --map-auto …`); without these, nothing
is run.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from contextlib import suppress
from types import TracebackType
from typing import Literal

import msgspec
from msgspec import Struct

from mercury_training.errors import TrainingError
from mercury_training.evaluate import jail

REMEDY = (
    "run as root on Linux (in a container: with CAP_SYS_ADMIN), or begin the command with `unshare --map-root-user "
    "--map-auto`; model code is never run unsandboxed"
)
FIRST_USER, USERS = 61_184, 4_096
"""User ids that belong to no one and fit a user namespace; two sandboxes rarely get the same one."""


class SandboxError(TrainingError):
    """Programs cannot be isolated here."""


class Limits(Struct, frozen=True):
    """What one program may use. `seconds` limits wall time and each process' CPU time."""

    seconds: float = 3.0
    memory_mebibytes: int = 512
    disk_mebibytes: int = 16
    processes: int = 8


class Execution(Struct, frozen=True):
    verdict: Literal["passed", "failed", "timed out"]
    detail: str = ""

    @property
    def passed(self) -> bool:
        return self.verdict == "passed"


class Sandbox:
    """Owns the server and its empty root folder."""

    def __init__(self, limits: Limits | None = None) -> None:
        if platform.system() != "Linux" or os.geteuid() or platform.machine() not in jail.PIVOT_ROOT:
            raise SandboxError(f"user {os.getuid()} on {platform.platform()} cannot isolate programs; {REMEDY}")
        options = msgspec.structs.asdict(limits or Limits()) | {"user": FIRST_USER + os.getpid() % USERS}
        self._folder = tempfile.TemporaryDirectory(prefix="mercury-sandbox-")
        self._server = subprocess.Popen(
            [sys.executable, "-I", "-S", jail.__file__, self._folder.name, json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            text=True,
            start_new_session=True,
        )
        hello = self._receive()
        trial = self.run("pass") if "ready" in hello else Execution("failed", hello.get("error", "it did not start"))
        if not trial.passed:
            self.close()
            raise SandboxError(f"no sandbox here: {trial.detail or trial.verdict}; {REMEDY}")

    def run(self, program: str) -> Execution:
        """A Python program passes if it reaches its end without raising or exiting."""
        assert self._server.stdin
        with suppress(BrokenPipeError):
            self._server.stdin.write(json.dumps({"program": program}) + "\n")
            self._server.stdin.flush()
        answer = self._receive()
        if not answer:
            raise SandboxError("the sandbox ended; look for a kernel message about memory, and run again")
        return msgspec.convert(answer, Execution)

    def close(self) -> None:
        self._server.communicate()
        self._folder.cleanup()

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _receive(self) -> dict:
        assert self._server.stdout
        line = self._server.stdout.readline()
        return json.loads(line) if line else {}
