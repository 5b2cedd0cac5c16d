"""One client's language server: its life, its documents, and what its user is shown of the engine and the settings."""

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from lsprotocol import types as lsp
from msgspec.structs import replace
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter
from pygls.uris import to_fs_path

from mercury_ls import __version__
from mercury_ls.code.documents import Change, Snapshot
from mercury_ls.code.edits import TextEdit
from mercury_ls.code.positions import Encoding
from mercury_ls.completion.offers import Answer
from mercury_ls.link.wire import Status
from mercury_ls.lsp.names import EditorAnalyser
from mercury_ls.lsp.progress import Progress
from mercury_ls.lsp.protocol import LspProtocol, PlaceParams, Position, json_object
from mercury_ls.names.known import NamesRequest
from mercury_ls.session.session import Session
from mercury_ls.session.wiring import Wiring, needs_new_engine
from mercury_ls.settings.load import SettingsProblem
from mercury_ls.wording import abbreviated, one_line, remarks

log = logging.getLogger(__name__)

NOTEBOOKS = lsp.NotebookDocumentSyncOptions(notebook_selector=[lsp.NotebookDocumentFilterWithNotebook(notebook="*")])
COPILOT_ACCEPT = "github.copilot.didAcceptCompletionItem"
SUPERSEDED = Answer(silence="a newer request took its place")
ENCODINGS: dict[str, Encoding] = {"utf-8": "utf-8", "utf-32": "utf-32"}
"""What a client may choose instead of UTF-16."""


class Server(LanguageServer):
    """pygls dispatches to it, and the session decides. `lsp/app.py` registers what it answers."""

    protocol: LspProtocol  # pyright: ignore[reportIncompatibleVariableOverride]  made by pygls of `protocol_cls`

    def __init__(self, wiring: Wiring) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            "mercury-ls",
            __version__,
            notebook_document_sync=NOTEBOOKS,
            protocol_cls=LspProtocol,
            converter_factory=default_converter,
        )
        self.protocol.server = self
        self.wiring = wiring
        self.session: Session | None = None
        self.dialect = "lsp"
        self.client_version = self.plugin_version = ""
        self.accept_command = "mercury.didAccept"
        self._latest: dict[tuple[str, str], asyncio.Task[Answer]] = {}
        self._tasks: set[asyncio.Task[object]] = set()
        self.work_shown = Progress(self)
        self._reported: tuple[SettingsProblem, ...] = ()
        self._was_ready = False
        self._explained: set[str] = set()
        self._remarked = ""
        self._logged = ("", "")

    # Life

    def start(self, params: lsp.InitializeParams) -> Session:
        options = params.initialization_options
        if self.knows_names:
            self.wiring.analysers = (EditorAnalyser(self.protocol.ask, self.place_of),)
        self.session = self.wiring.session(_roots_of(params), options, self.engine_changed)
        self.session.idle.add("following the settings", self.follow_user_file)
        if self.of_mercury.get("grows") is True:
            self.session.following.on_growth = self.tell_growth
        if "editorPluginInfo" in (json_object(options) or {}):  # by which Copilot's clients introduce themselves
            self.dialect = "copilot"
        self.plugin_version = str((json_object(options) or {}).get("pluginVersion", ""))
        self.client_version = (params.client_info and params.client_info.version) or ""
        if self.dialect == "copilot":
            self.accept_command = COPILOT_ACCEPT
        return self.session

    async def initialized(self) -> None:
        session = self.started
        self.report_problems()
        self.compare_plugin()
        self.keep(session.idle.tend())
        self.keep(session.engine.start())
        await self.watch_files()

    async def close(self) -> None:
        for task in [*self._tasks, *self._latest.values()]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.session:
            await self.session.end()

    @property
    def started(self) -> Session:
        if self.session is None:
            raise RuntimeError("initialize has not been answered yet")
        return self.session

    @property
    def pending_work(self) -> int:
        """Requests that are still being answered, for tests and `mercury/status`."""
        return len(self._latest)

    def keep(self, work: Awaitable[object]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("background work failed", exc_info=error)

    async def newest(self, method: str, uri: str, work: Awaitable[Answer]) -> Answer:
        """Run `work`, and cancel what the same method is still doing for the same document: that request is answered
        with `SUPERSEDED`. A client's own cancellation is passed on as it is."""
        key = (method, uri)
        if older := self._latest.get(key):
            older.cancel()
        task = self._latest[key] = asyncio.ensure_future(work)
        try:
            return await task
        except asyncio.CancelledError:
            if (current := asyncio.current_task()) and current.cancelling():
                raise
            return SUPERSEDED
        finally:
            if self._latest.get(key) is task:
                del self._latest[key]

    # Documents

    def did_open(self, params: lsp.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        self.opened(document.uri, document.language_id, document.version, document.text)

    def opened(self, uri: str, language: str, version: int, text: str) -> None:
        cell = "#" + uri.partition("#")[2] if uri.startswith("vscode-notebook-cell:") else ""
        self.started.open(uri, path_of(uri), language, version, text, cell)

    def did_change(self, params: lsp.DidChangeTextDocumentParams) -> None:
        changes = [change_of(change) for change in params.content_changes]
        document = params.text_document
        self.started.change(document.uri, document.version, changes, self.encoding)

    def did_close(self, params: lsp.DidCloseTextDocumentParams) -> None:
        self.started.close(params.text_document.uri)

    def lost(self, uri: str, reason: str) -> None:
        """A message about this document could not be read."""
        if self.session is not None:
            self.session.lose(uri, reason)

    def did_change_folders(self, params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        removed = {path_of(folder.uri) for folder in params.event.removed}
        added = [path_of(folder.uri) for folder in params.event.added]
        remaining = [root for root in self.wiring.roots if root not in removed]
        self.wiring.reroot(self.started, [*remaining, *added])

    # Positions

    @property
    def encoding(self) -> Encoding:
        return ENCODINGS.get(self.protocol.server_capabilities.position_encoding or "", "utf-16")

    @property
    def offers_inline(self) -> bool:
        document = self.protocol.client_capabilities.text_document
        return document is not None and document.inline_completion is not None

    @property
    def wants_menu(self) -> bool:
        """Whether suggestions are shown in the ordinary completion menu."""
        fallback = self.started.settings.suggest.completion_fallback
        return fallback == "on" or (fallback == "auto" and not self.offers_inline)

    def dated(self, params: PlaceParams) -> PlaceParams:
        """With the version in which its position counts: a didChange may be handled before the request has its turn."""
        document = self.started.files.documents.get(params.text_document.uri)
        version = document.version if document else None
        return replace(params, text_document=replace(params.text_document, version=version))

    def offset(self, uri: str, place: Position | lsp.Position) -> int:
        document = self.started.files.documents.get(uri)
        return document.snapshot().offset(place.line, place.character, self.encoding) if document else 0

    def place_of(self, ask: NamesRequest) -> Position | None:
        """Where the client has it; None if it has another version, or the document has become private."""
        files = self.started.files
        document = None if files.why_missing(ask.uri) else files.documents[ask.uri]
        if document is None or document.version != ask.version:
            return None
        snapshot = document.snapshot()
        return Position(*snapshot.position(snapshot.line_start(ask.line - 1) + ask.column, self.encoding))

    def range_of(self, snapshot: Snapshot, edit: TextEdit) -> lsp.Range:
        ends = [snapshot.position(offset, self.encoding) for offset in (edit.start, edit.end)]
        return lsp.Range(*(lsp.Position(line, character) for line, character in ends))

    # What the user is shown

    def engine_changed(self, status: Status) -> None:
        """The engine is loading, ready or gone: shown as the client can show it."""
        if (status.state, status.detail) != self._logged:
            self._logged = status.state, status.detail
            log.info("engine %s %s", status.state, status.detail)
        if self.session is not None:
            self.session.next_edits.engine_changed()
        if status.state == "unavailable":  # `mercury-ls model use` ended it: the next one has the model chosen there
            self.follow_user_file()
        if self.dialect == "copilot":
            self.protocol.notify("didChangeStatus", _copilot_status(status))
        if self.knows_mercury:
            self.protocol.notify("mercury/didChangeStatus", status_fields(status))
        self.keep(self.work_shown.loading(status, lambda: self.started.engine.status))
        self.explain(status)
        if status.state == "ready" and status.info and status.info.model != self._remarked:
            self._remarked = status.info.model
            for remark in remarks(status.info):
                log.info("%s: %s", status.info.model, remark)

    @property
    def knows_mercury(self) -> bool:
        return self.experimental.get("mercury") is not None

    @property
    def knows_names(self) -> bool:
        """Whether the client asks its other language servers for us which names exist."""
        return self.of_mercury.get("names") is True

    @property
    def of_mercury(self) -> dict[str, Any]:
        """What a client that knows us says of itself."""
        return json_object(self.experimental.get("mercury")) or {}

    @property
    def experimental(self) -> dict[str, Any]:
        """The client's capabilities that are not in LSP."""
        return json_object(self.protocol.client_capabilities.experimental) or {}

    def tell_growth(self, uri: str) -> None:
        """A client that asks again gets more of what it shows."""
        self.protocol.notify("mercury/didGrow", {"uri": uri})

    def showing_work(self, work: Callable[[], Awaitable[Answer]]) -> Awaitable[Answer]:
        """Does the work, and lets the client show that something is done if it takes longer than a moment."""
        return self.work_shown.during_work(work, self._asking)

    def _asking(self) -> str:
        info = self.started.engine.status.info
        return f"mercury: asking {info.model}" if info else "mercury: waiting for the engine"

    def explain(self, status: Status) -> None:
        """Once, what a client that knows of no engine would not show: that there is none, or not the one wanted."""
        is_ready, is_lost = status.state == "ready", status.state == "unavailable"
        is_told = is_ready or (is_lost and not (self._was_ready or self.knows_mercury))
        self._was_ready |= is_ready
        if not is_told or status.detail in ("", *self._explained):
            return
        self._explained.add(status.detail)
        self.show(lsp.MessageType.Warning, status.detail)

    async def pulled_settings(self) -> dict[str, Any]:
        workspace = self.protocol.client_capabilities.workspace
        if not (workspace and workspace.configuration):
            return {}
        items = [lsp.ConfigurationItem(section="mercury")]
        sections = await self.workspace_configuration_async(lsp.ConfigurationParams(items))
        return {"mercury": sections[0]} if sections and isinstance(sections[0], dict) else {}

    def follow_user_file(self) -> None:
        if self.wiring.user_file_changed():
            self.change_settings(lambda: self.wiring.rebuild(self.started))

    def change_settings(self, change: Callable[[], object]) -> None:
        """Read the settings again, and report what is wrong with them and what needs a new engine server."""
        before = self.started.settings
        change()
        self.report_problems()
        after = self.started.settings
        if not needs_new_engine(before, after):
            return
        self.keep(self.wiring.renew_engine(self.started))
        ready = self.started.engine.status.state == "ready"
        if ready and not after.engine.address and not before.engine.address:
            remedy = "run `mercury-ls serve --stop`, and it starts with the new ones"
            self.show(lsp.MessageType.Info, f"a running engine server keeps its old settings: {remedy}")

    def report_problems(self) -> None:
        """Each problem once: settings are read again whenever something changes."""
        for problem in self.wiring.loaded.problems:
            if problem not in self._reported:
                log.warning("configuration: %s", problem)
                self.show(lsp.MessageType.Warning, self.described(problem))
        self._reported = self.wiring.loaded.problems

    def described(self, problem: SettingsProblem | str) -> str:
        """In one line of an editor: with a project's own file by the project's name."""
        text = str(problem)
        for root in self.wiring.roots:
            text = text.replace(os.path.join(root, ""), os.path.join(os.path.basename(root), ""))
        return abbreviated(text)

    def show(self, kind: lsp.MessageType, message: str) -> None:
        self.window_show_message(lsp.ShowMessageParams(type=kind, message=f"mercury: {message}"))

    def window_show_message(self, params: lsp.ShowMessageParams) -> None:
        """pygls reports errors by this, too."""
        super().window_show_message(lsp.ShowMessageParams(params.type, one_line(params.message)))

    def compare_plugin(self) -> None:
        """A plugin that is older than the server would not say so: whichever is newer knows what has changed."""
        for difference in _differences(self.plugin_version, self.of_mercury.get("version", self.plugin_version)):
            self.show(lsp.MessageType.Warning, difference)

    async def watch_files(self) -> None:
        """Ask to be told about changed files: definitions, ignore rules, settings and branches follow them."""
        workspace = self.protocol.client_capabilities.workspace
        watching = workspace and workspace.did_change_watched_files
        if not (watching and watching.dynamic_registration):
            return
        watchers = [lsp.FileSystemWatcher(glob_pattern=g) for g in ("**/*", "**/.git/HEAD")]
        options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
        registration = lsp.Registration("mercury-files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        with contextlib.suppress(Exception):
            await self.client_register_capability_async(lsp.RegistrationParams([registration]))


def status_fields(status: Status) -> dict[str, Any]:
    """`eager`: whether next edits are to be asked for at once. A model that rewrites all around the cursor has them, at
    no price for each. `atRest`: whether to ask also where the user rests in another line after an edit."""
    info = status.info
    return {
        "state": status.state,
        "detail": one_line(status.detail),
        "progress": status.progress,
        "engine": info.engine if info else "",
        "model": one_line(info.model) if info else "",
        "device": info.device if info else "",
        "remarks": [*map(one_line, remarks(info))] if info else [],
        "eager": bool(info and info.rewrites and not info.rewrites_lines and not info.metered),
        "atRest": info is not None and info.rewrites_lines,
    }


def _copilot_status(status: Status) -> dict[str, Any]:
    busy, kind = status.state in ("starting", "loading"), "Warning" if status.state == "unavailable" else "Normal"
    return {"busy": busy, "message": one_line(status.detail), "kind": kind}


def change_of(change: lsp.TextDocumentContentChangeEvent) -> Change:
    if isinstance(change, lsp.TextDocumentContentChangeWholeDocument):
        return None, change.text
    span = change.range
    return (span.start.line, span.start.character, span.end.line, span.end.character), change.text


def _roots_of(params: lsp.InitializeParams) -> list[str]:
    if params.workspace_folders:
        return [path_of(folder.uri) for folder in params.workspace_folders]
    if params.root_uri:
        return [path_of(params.root_uri)]
    return [params.root_path] if params.root_path else []


def _differences(in_options: str, version: object) -> Iterator[str]:
    """What to say of a plugin of another version. One that only tells it in the options compares nothing itself."""
    if is_older(__version__, in_options):
        yield (
            f"this server is {__version__}, and the editor's plugin {in_options}: update the server, or take the "
            "plugin that came with it, where `mercury-ls editor` says"
        )
    if isinstance(version, str) and is_older(version, __version__):
        yield (
            f"the editor's plugin is {version}, and this server {__version__}: update the plugin, or take the one "
            "that came with the server, where `mercury-ls editor` says"
        )


VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.|\Z)")


def is_older(version: str, other: str) -> bool:
    """By the first two numbers, which say whether they fit; False for what is no version."""
    first, second = (VERSION.match(text) for text in (version, other))
    return first is not None and second is not None and [*map(int, first.groups())] < [*map(int, second.groups())]


def path_of(uri: str) -> str:
    """A file's path; for untitled buffers, notebook cells, other schemes and impossible file names a readable name."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return _readable(uri)
    path = unquote(parts.path)
    if parts.scheme in ("file", "vscode-notebook-cell"):
        path = to_fs_path(uri.partition("#")[0].replace("vscode-notebook-cell:", "file:", 1)) or path
        if path == _readable(path):
            return path
    return _readable(path.lstrip("/") or uri)


def _readable(name: str) -> str:
    return name.encode(errors="replace").decode().replace("\0", "?")
