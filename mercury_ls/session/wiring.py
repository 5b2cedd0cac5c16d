"""Builds sessions: settings from all their sources, and the parts that depend on them."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mercury_ls.code.files import stamp_of
from mercury_ls.completion.budgets import EnginePace
from mercury_ls.link import local
from mercury_ls.link.client import EngineClient, EngineLink, Status
from mercury_ls.names.analyser import Analyser, AnalyserProcess, installed_packages, jedi_is_installed
from mercury_ls.names.known import NamesProject
from mercury_ls.names.members import NameSources
from mercury_ls.project.privacy import IGNORE_FILES, Privacy
from mercury_ls.project.unended import FOLDER, Unended
from mercury_ls.project.workspace import Workspace
from mercury_ls.session.outcomes import Outcomes
from mercury_ls.session.record import NoRecorder, Recorder
from mercury_ls.session.session import Session
from mercury_ls.session.stats import Stats
from mercury_ls.settings import load as config
from mercury_ls.settings.folders import folders
from mercury_ls.settings.load import Loaded
from mercury_ls.settings.schema import Settings

if TYPE_CHECKING:
    from mercury_ls.models.library import MeasuredSpeed

OnStatus = Callable[[Status], None]

FIXED = ("model", "device", "threads", "memory_mb", "idle_exit_minutes")
"""Settings of the engine that cannot change while its server runs."""


class Wiring:
    """Builds one client's session, and rebuilds parts of it when settings or folders change.

    Tests, and commands that run the engine in their own process, pass `make_engine`.
    """

    def __init__(
        self,
        arguments: Mapping[str, Any] | None = None,
        *,
        user_file: Path | None = None,
        environ: Mapping[str, str] | None = None,
        make_engine: Callable[[Settings, OnStatus], EngineLink] | None = None,
        stats_file: Path | None = None,
    ):
        self.roots: list[str] = []
        self.analysers: tuple[Analyser, ...] = ()
        """Those that the client brings along, before our own."""
        self.loaded = Loaded()
        self._arguments = dict(arguments or {})
        self.user_file = user_file or config.user_file()
        self._environ = os.environ if environ is None else environ
        self._make_engine = make_engine or _engine_client
        self._stats_file = stats_file
        self._options: dict[str, Any] = {}
        self._on_status: OnStatus = lambda status: None
        self._seen: tuple[str, ...] = ()
        self._stamp: tuple[int, int] | None = None

    def session(self, roots: Sequence[str], options: Any, on_status: OnStatus) -> Session:
        self.roots = list(roots)
        self._options = _settings_in(options)
        self._on_status = on_status
        self._seen = tuple(self.roots)
        settings = self.load()
        privacy = Privacy(settings.privacy, self.roots, ignore_case=local.IGNORES_CASE)
        session = Session(
            settings,
            self._engine(settings),
            privacy,
            self._workspace(privacy, settings),
            _recorder(settings, self.roots),
            stats=Stats(self._stats_file),
            outcomes=Outcomes(self._stats_file and self._stats_file.parent),
        )
        session.roots = self.roots
        session.questions.pace = EnginePace(_tested_models)
        session.questions.names = self._names(settings)
        return session

    def user_file_changed(self) -> bool:
        """Whether the user's settings file has been written since it was read."""
        return stamp_of(str(self.user_file)) != self._stamp

    def load(self) -> Settings:
        self._stamp = stamp_of(str(self.user_file))
        self.loaded = config.load(
            self.user_file,
            config.project_files(self.roots),
            self._options,
            self._environ,
            self._arguments,
        )
        return self.loaded.settings

    def reconfigure(self, session: Session, options: Any) -> None:
        """`workspace/didChangeConfiguration`; some clients send null instead of their settings."""
        if isinstance(options, dict) and options:
            self._options = {**self._options, **options}
        self.rebuild(session)

    def reroot(self, session: Session, roots: Sequence[str]) -> None:
        self.roots = list(roots)
        session.roots = session.engine.roots = self.roots
        self.rebuild(session)

    def rebuild(self, session: Session) -> None:
        """Read all settings again. The index of the project is kept, unless folders or privacy rules have changed."""
        before, revision = session.settings, self._seen
        settings = self.load()
        self._seen = tuple(self.roots)
        if (revision, before.privacy, before.context) == (self._seen, settings.privacy, settings.context):
            session.adopt(settings)
            return
        privacy = Privacy(settings.privacy, self.roots, ignore_case=local.IGNORES_CASE)
        session.adopt(settings, privacy, self._workspace(privacy, settings))
        session.know_names(self._names(settings))

    def _workspace(self, privacy: Privacy, settings: Settings) -> Workspace:
        unended = Unended(self._stats_file and self._stats_file.parent / FOLDER)
        return Workspace(self.roots, privacy, settings.context, unended=unended)

    async def renew_engine(self, session: Session) -> None:
        """Connect to the engine that the settings name now; the old connection is closed with its requests."""
        before = session.engine
        session.questions.connect(self._engine(session.settings))
        try:
            await before.close()
        finally:
            await session.engine.start()

    def _names(self, settings: Settings) -> NameSources:
        if not settings.context.analysed_names:
            return NameSources()
        analysers = [*self.analysers]
        if jedi_is_installed():
            packages = installed_packages(self.roots, self._environ)
            project = NamesProject(tuple(self.roots), packages, settings.privacy, local.IGNORES_CASE)
            analysers.append(AnalyserProcess(project))
        return NameSources(analysers)

    def _engine(self, settings: Settings) -> EngineLink:
        engine = self._make_engine(settings, self._on_status)
        engine.roots = self.roots
        return engine

    def files_changed(self, session: Session, changed: Sequence[str], removed: Sequence[str]) -> None:
        """Follow the file system: definitions, branches, and the project's settings."""
        removed_uris = set(removed)
        workspace = session.files.workspace
        workspace.removed(removed)
        workspace.changed([path for path in changed if path not in removed_uris])
        session.idle.active.set()
        if workspace.branch_switched():
            session.branch_switched()
        names = {Path(path).name for path in changed}
        if config.PROJECT_FILE in names:
            self.rebuild(session)
        elif not names.isdisjoint(IGNORE_FILES):
            session.files.hide_again()
            session.know_names(self._names(session.settings))


def _tested_models() -> "Mapping[str, MeasuredSpeed]":
    """What `mercury-ls model test` measured; imported only once there is a model."""
    from mercury_ls.models.library import measurements

    return measurements()


def needs_new_engine(before: Settings, after: Settings) -> bool:
    """Whether a setting has changed that is fixed when an engine server starts."""
    return serve_arguments(before) != serve_arguments(after) or before.engine.address != after.engine.address


def _settings_in(options: Any) -> dict[str, Any]:
    """The initialization options without the plugin's version, which is no setting."""
    if not isinstance(options, dict):
        return {}
    return {name: value for name, value in cast("dict[str, Any]", options).items() if name != "pluginVersion"}


def _engine_client(settings: Settings, on_status: OnStatus) -> EngineClient:
    return EngineClient(settings.engine, on_status=on_status, spawn=lambda: local.spawn(serve_arguments(settings)))


def serve_arguments(settings: Settings) -> list[str]:
    """The command line of an engine server with these settings, whatever the user's file says."""
    fixed = {f"engine.{name}": getattr(settings.engine, name) for name in FIXED}
    fixed["privacy.allow_network"] = settings.privacy.allow_network
    return ["serve", *(part for path, value in fixed.items() for part in ("--set", f"{path}={value}"))]


def _recorder(settings: Settings, roots: Sequence[str]) -> NoRecorder:
    if not (settings.record.enabled or recording_switch().exists()):
        return NoRecorder()
    return Recorder(recordings(settings), settings.record.max_mb, roots[0] if roots else "")


def recording_switch() -> Path:
    """The file that `mercury-ls record on` creates."""
    return folders().user_state_path / "recording"


def recordings(settings: Settings) -> Path:
    chosen = settings.record.directory
    return Path(chosen) if chosen else folders().user_data_path / "recordings"
