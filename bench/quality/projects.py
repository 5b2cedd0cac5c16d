"""The projects of the rows: each row is completed among the other files of its commit."""

import io
import tarfile
from pathlib import Path

from msgspec import Struct

from mercury_ls.names.analyser import AnalyserProcess
from mercury_ls.names.known import NamesProject
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.workspace import Workspace
from mercury_ls.settings.schema import Settings
from mercury_training.corpus.sources import git
from mercury_training.rows.fim_rows import FimRow

PATIENCE_SECONDS = 60.0
"""Generous, since the measured machine may be slow."""


class CheckedOutProject(Struct, frozen=True, eq=False):
    """A folder, its complete index, and the analysers of its names."""

    root: str
    workspace: Workspace
    analyser: AnalyserProcess


class Projects:
    """Checks out the commits that rows name, each once, from bare `mirrors` (owner+name/repo) into a `folder`."""

    def __init__(self, mirrors: Path, folder: Path) -> None:
        self._mirrors = mirrors
        self._folder = folder
        self._known: dict[tuple[str, str], CheckedOutProject] = {}

    def of(self, row: FimRow) -> CheckedOutProject:
        key = row.repo, row.commit
        if key not in self._known:
            self._known[key] = self._opened(*key)
        return self._known[key]

    def _opened(self, repository: str, commit: str) -> CheckedOutProject:
        name = repository.replace("/", "+")
        mirror, root = self._mirrors / name / "repo", self._folder / f"{name}@{commit}"
        if not mirror.is_dir():
            raise ValueError(f"{mirror}: no clone of {repository}, which rows come from; leave out --projects")
        with tarfile.open(fileobj=io.BytesIO(git(str(mirror), "archive", commit))) as archive:
            archive.extractall(root, (member for member in archive if member.isfile()), filter="data")
        settings = Settings()
        workspace = Workspace([root], Privacy(settings.privacy, [root]), settings.context)
        while workspace.step(0.0):
            pass
        return CheckedOutProject(str(root), workspace, AnalyserProcess(NamesProject((str(root),))))

    async def close(self) -> None:
        for project in self._known.values():
            await project.analyser.close()
