"""The process that runs jedi: it reads what it may, and does not write, start programs or connect.

`python -m mercury_ls.names.jedi_process` reads a `NamesProject`, then one `NamesRequest` per line, and
answers each with one `NameList`.
"""

import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from mercury_ls.names.known import NameList, NamesProject, NamesRequest
from mercury_ls.project.privacy import Privacy

MEMORY = 1 << 30
"""Bytes of address space, where the system can limit it: a project that needs more gets no names."""

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
ACTING = ("os.exec", "os.fork", "os.mkdir", "os.posix_spawn", "os.remove", "os.rename", "os.rmdir", "os.spawn")
REFUSED = (*ACTING, "os.startfile", "os.system", "pickle.", "shutil.", "socket.", "subprocess.")


def main() -> None:
    """Answer until the input ends or memory runs out."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # jedi's own output must not get into the answers
    project = msgspec.json.decode(requests.readline(), type=NamesProject)
    _limit()
    with suppress(MemoryError, BrokenPipeError):
        jedi = Jedi(project)
        sys.addaudithook(refusal(jedi.why_hidden))
        for line in requests:
            answers.write(msgspec.json.encode(jedi.known(msgspec.json.decode(line, type=NamesRequest))) + b"\n")
            answers.flush()


def _limit() -> None:
    if hasattr(os, "nice"):
        os.nice(10)  # pyright: ignore[reportAttributeAccessIssue]
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # pyright: ignore[reportAttributeAccessIssue]


def refusal(why_hidden: Callable[[str], str | None]) -> Callable[[str, tuple], None]:
    """An audit hook that refuses to write, to act on the system, and to open what privacy rules hide. The rules read
    the ignore files themselves."""
    judging = False

    def refuse(event: str, arguments: tuple) -> None:
        nonlocal judging
        if event.startswith(REFUSED):
            raise PermissionError(f"the analyser may not do this: {event}")
        if event != "open" or not isinstance(arguments[0], str | os.PathLike):
            return
        path, _, flags = arguments
        if flags & WRITING:
            raise PermissionError(f"{path}: the analyser writes nothing")
        if judging:
            return
        judging = True
        try:
            reason = why_hidden(os.fspath(path))
        finally:
            judging = False
        if reason:
            raise PermissionError(f"{path} is hidden: {reason}")

    return refuse


class Jedi:
    """Jedi for one project; a text that is asked about again is parsed once."""

    def __init__(self, project: NamesProject) -> None:
        import jedi
        import parso.cache

        # parso caches what it has parsed as pickles in a folder of the user's; here only memory holds it
        for name in ("_load_from_file_system", "_save_to_file_system", "_remove_cache_and_update_lock"):
            setattr(parso.cache, name, lambda *arguments, **named: None)
        jedi.settings.auto_import_modules = []
        self._script = jedi.Script
        self._environment = jedi.InterpreterEnvironment()
        self._library = tuple(_standard_library())
        own = (os.path.dirname(str(module.__file__)) for module in (jedi, parso.cache))
        trusted = map(os.path.realpath, (*self._library, *own, *project.packages))
        self._trusted = tuple(path + os.sep for path in trusted)
        self._privacy = Privacy(project.privacy, project.roots, ignore_case=project.ignore_case)
        self._packages = project.packages
        self._roots = project.roots
        self._projects: dict[str, Any] = {}
        self._last: tuple[str, str, Any] = ("", "", None)

    def why_hidden(self, path: str) -> str | None:
        """What lies in an installed package is what its links lead to."""
        return None if os.path.realpath(path).startswith(self._trusted) else self._privacy.why_hidden(path)

    def known(self, ask: NamesRequest) -> NameList:
        try:
            script = self._about(ask)
            return NameList(tuple(completion.name for completion in script.complete(ask.line, ask.column)))
        except MemoryError:
            raise
        except Exception as error:  # jedi meets code of any kind, and may fail in any way
            sys.stderr.write(f"{ask.path}:{ask.line}: jedi failed: {error!r}\n")
            return NameList()

    def _about(self, ask: NamesRequest) -> Any:
        path, text, script = self._last
        if (path, text) != (ask.path, ask.text):
            script = self._script(
                ask.text, path=ask.path, environment=self._environment, project=self._project(ask.path)
            )
            self._last = ask.path, ask.text, script
        return script

    def _project(self, path: str) -> Any:
        """Compiled modules are loaded from the standard library alone: a project's own could do anything."""
        import jedi

        inside = [root for root in self._roots if path.startswith(root.rstrip(os.sep) + os.sep)]
        root = max(inside, key=len, default=os.path.dirname(path))
        if root not in self._projects:
            added = [*_source_folders(root), *self._packages]
            self._projects[root] = jedi.Project(root, sys_path=self._library, added_sys_path=added)
        return self._projects[root]


def _standard_library() -> Iterator[str]:
    """The folders of this interpreter's own modules."""
    paths = sysconfig.get_paths()
    own = tuple(os.path.join(paths[name], "") for name in ("stdlib", "platstdlib"))
    for path in sys.path:
        is_installed = "site-packages" in path or "dist-packages" in path
        if os.path.join(path, "").startswith(own) and not is_installed:
            yield path


def _source_folders(root: str) -> list[str]:
    """Folders of a project that hold packages without being packages: `src`."""
    with suppress(OSError):
        holding = {package.parent.parent for package in Path(root).glob("[!.]*/*/__init__.py")}
        return sorted(str(path) for path in holding if not (path / "__init__.py").exists())
    return []


if __name__ == "__main__":
    main()
