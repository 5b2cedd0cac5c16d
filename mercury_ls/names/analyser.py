"""Analysers, which know which names exist; each may have its own process, started on the first request."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import msgspec

from mercury_ls.names.known import NameList, NamesProject, NamesRequest

JEDI = (sys.executable, "-P", "-m", "mercury_ls.names.jedi_process")  # -P: import nothing from the current folder
LONGEST_ANSWER = 4 << 20
ENVIRONMENTS = (".venv", "venv", "env", ".env", ".conda")
MARKS = ("pyvenv.cfg", "conda-meta")


class Analyser(Protocol):
    """Lists the names valid at a place, for these `languages`, or any if None. An analyser that is `only_cursor`
    answers for the text as it is, and not for receivers merely near the cursor.

    It answers one question at a time, and may be cancelled; after a failure or a timeout it is left alone for a while.
    None means that it cannot tell just now, and may be asked about that place again.
    """

    languages: frozenset[str] | None
    only_cursor: bool

    async def ask(self, ask: NamesRequest) -> NameList | None: ...

    async def close(self) -> None: ...


class AnalyserProcess:
    """Answers one question at a time; restarts after a failure, with the next question."""

    languages: frozenset[str] | None = frozenset({"python"})
    only_cursor: bool = False

    def __init__(self, project: NamesProject, command: Sequence[str] = JEDI) -> None:
        self._project = project
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def ask(self, ask: NamesRequest) -> NameList:
        async with self._turn:
            try:
                return await self._answer(ask)
            except BaseException:
                await self.close()  # a late answer would be taken for that to the next question
                raise

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _answer(self, ask: NamesRequest) -> NameList:
        process = self._process or await self._started()
        assert process.stdin is not None, "it is a pipe"
        assert process.stdout is not None, "it is a pipe"
        process.stdin.write(msgspec.json.encode(ask) + b"\n")
        await process.stdin.drain()
        line = await process.stdout.readline()
        if not line:
            raise EOFError(f"it ended with code {await process.wait()}")
        return msgspec.json.decode(line, type=NameList)

    async def _started(self) -> asyncio.subprocess.Process:
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=os.path.abspath(os.sep),
            limit=LONGEST_ANSWER,
        )
        assert self._process.stdin is not None, "it is a pipe"
        self._process.stdin.write(msgspec.json.encode(self._project) + b"\n")
        return self._process


def jedi_is_installed() -> bool:
    return find_spec("jedi") is not None


def installed_packages(roots: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """The packages of the projects' virtual environments, else of the active one; they are read, never run."""
    packages: list[Path] = []
    for folder in (Path(root) / name for root in roots for name in ENVIRONMENTS):
        if any((folder / mark).exists() for mark in MARKS):
            packages += _packages_in(folder)
    active = environ.get("VIRTUAL_ENV") or environ.get("CONDA_PREFIX")
    if not packages and active:
        packages = _packages_in(Path(active))
    return tuple(map(str, packages))


def _packages_in(environment: Path) -> list[Path]:
    """Not by links out of the environment: a project may have one to anywhere."""
    patterns, inside = ("lib/python3*/site-packages", "Lib/site-packages"), environment.resolve()
    folders = (path for pattern in patterns for path in sorted(environment.glob(pattern)) if path.is_dir())
    return [path for path in folders if path.resolve().is_relative_to(inside)]
