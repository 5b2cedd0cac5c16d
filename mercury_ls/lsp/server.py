"""The language server: LSP in and out, one `Server` for each client."""

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec
from lsprotocol import types as lsp
from msgspec.structs import replace
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter
from pygls.uris import to_fs_path

from mercury_ls import __version__
from mercury_ls.link.wire import Status
from mercury_ls.lsp import next_edit as faces
from mercury_ls.lsp.protocol import (
    AcceptParams,
    DidFocusParams,
    InlineParams,
    MenuParams,
    PartialAcceptParams,
    Protocol,
    Range,
    ShownParams,
    SnoozeParams,
    StatsParams,
    StatusParams,
    WhyParams,
)
from mercury_ls.session.session import Ask, Item, Reply, Session
from mercury_ls.session.stats import markdown, recent
from mercury_ls.session.wiring import Wiring, needs_new_engine

__all__ = ["Server", "create_server"]

log = logging.getLogger(__name__)

NOTEBOOKS = lsp.NotebookDocumentSyncOptions(notebook_selector=[lsp.NotebookDocumentFilterWithNotebook(notebook="*")])
ANY_FILE = lsp.FileOperationRegistrationOptions(
    [lsp.FileOperationFilter(lsp.FileOperationPattern("**/*"), scheme="file")]
)
COPILOT_ACCEPT = "github.copilot.didAcceptCompletionItem"
NOTHING = lsp.InlineCompletionList(items=[])
LOADING = "mercury-loading"

Placed = TypeVar("Placed", InlineParams, MenuParams)


class Server(LanguageServer):
    """One client's server. pygls dispatches to it; the session decides."""

    protocol: Protocol

    def __init__(self, wiring: Wiring):
        super().__init__(
            "mercury-ls",
            __version__,
            notebook_document_sync=NOTEBOOKS,
            protocol_cls=Protocol,
            converter_factory=default_converter,
        )
        self.wiring = wiring
        self.session: Session | None = None
        self.dialect = "lsp"
        self.accept_command = "mercury.didAccept"
        self._latest: dict[tuple[str, str], asyncio.Task] = {}
        self._tasks: set[asyncio.Task] = set()
        self._shows_loading = False
        self._reported: tuple = ()
        self._was_ready = False
        self._told: set[str] = set()
        register(self)

    # Life

    async def initialize(self, params: lsp.InitializeParams) -> None:
        options = params.initialization_options
        roots = roots_of(params)
        self.session = self.wiring.session(roots, options, self.engine_changed)
        self.session.when_idle = self.follow_user_file
        self.dialect = dialect_of(options)
        if self.dialect == "copilot":
            self.accept_command = COPILOT_ACCEPT
            self.protocol.fm.command(COPILOT_ACCEPT)(accept_command)
        if self.wants_menu(self.session.settings.suggest.completion_fallback):
            self.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions())(completion)

    async def initialized(self) -> None:
        session = self.started
        self.report_problems()
        self.keep(session.tend())
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

    def keep(self, work: Awaitable[Any]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("background work failed", exc_info=error)

    async def newest(self, method: str, uri: str, work: Awaitable[Any], superseded: Any) -> Any:
        """Run `work`, stopping what the same method still does for the same document; the older one answers
        `superseded`. A client's own cancel goes through as it is."""
        key = (method, uri)
        if older := self._latest.get(key):
            older.cancel()
        task = self._latest[key] = asyncio.ensure_future(work)
        try:
            return await task
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():  # type: ignore[union-attr]
                raise
            return superseded
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
        """A message about this document could not be taken in."""
        if self.session is not None:
            self.session.lost(uri, reason)

    def notebook_did_open(self, params: lsp.DidOpenNotebookDocumentParams) -> None:
        notebook = params.notebook_document
        self.started.notebooks[notebook.uri] = [cell.document for cell in notebook.cells]
        for cell in params.cell_text_documents:
            self.opened(cell.uri, cell.language_id, cell.version, cell.text)

    def notebook_did_change(self, params: lsp.DidChangeNotebookDocumentParams) -> None:
        cells = params.change.cells
        if cells is None:
            return
        if structure := cells.structure:
            order = self.started.notebooks.setdefault(params.notebook_document.uri, [])
            array = structure.array
            order[array.start : array.start + array.delete_count] = [c.document for c in array.cells or []]
            for closed in structure.did_close or []:
                self.started.close(closed.uri)
            for cell in structure.did_open or []:
                self.opened(cell.uri, cell.language_id, cell.version, cell.text)
        for content in cells.text_content or []:
            changes = [change_of(change) for change in content.changes]
            self.started.change(content.document.uri, content.document.version, changes, self.encoding)

    def notebook_did_close(self, params: lsp.DidCloseNotebookDocumentParams) -> None:
        self.started.notebooks.pop(params.notebook_document.uri, None)
        for cell in params.cell_text_documents:
            self.started.close(cell.uri)

    def did_change_folders(self, params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        removed = {path_of(folder.uri) for folder in params.event.removed}
        added = [path_of(folder.uri) for folder in params.event.added]
        kept = [root for root in self.wiring.roots if root not in removed]
        self.wiring.reroot(self.started, [*kept, *added])

    # Positions

    @property
    def encoding(self) -> str:
        return self.protocol.server_capabilities.position_encoding or "utf-16"

    @property
    def offers_inline(self) -> bool:
        document = self.protocol.client_capabilities.text_document
        return document is not None and document.inline_completion is not None

    def wants_menu(self, fallback: str) -> bool:
        return fallback == "on" or (fallback == "auto" and not self.offers_inline)

    def dated(self, params: Placed) -> Placed:
        """With the version that its position counts in: a didChange may be handled before the request has its turn."""
        document = self.started.documents.get(params.text_document.uri)
        version = document.version if document else None
        return replace(params, text_document=replace(params.text_document, version=version))

    def offset(self, uri: str, line: int, character: int) -> int:
        document = self.started.documents.get(uri)
        return document.snapshot().offset(line, character, self.encoding) if document else 0

    def range_of(self, reply: Reply, start: int, end: int) -> lsp.Range:
        snapshot = reply.snapshot
        ends = [snapshot.position(offset, self.encoding) for offset in (start, end)]
        return lsp.Range(*(lsp.Position(line, character) for line, character in ends))

    # What the user is told

    def engine_changed(self, status: Status) -> None:
        """The engine is loading, ready or gone: shown as the client can show it."""
        log.info("engine %s %s", status.state, status.detail)
        if self.dialect == "copilot":
            self.protocol.notify("didChangeStatus", copilot_status(status))
        if self.knows_mercury:
            self.protocol.notify("mercury/didChangeStatus", status_fields(status))
        self.keep(self.show_loading(status))
        self.explain(status)

    @property
    def knows_mercury(self) -> bool:
        experimental = self.protocol.client_capabilities.experimental
        return isinstance(experimental, dict) and "mercury" in experimental

    def explain(self, status: Status) -> None:
        """Once, what a client that knows of no engine would not show: that there is none, or not the one wanted."""
        is_lost = status.state == "unavailable" and not self._was_ready and not self.knows_mercury
        self._was_ready |= status.state == "ready"
        if (is_lost or status.state == "ready") and status.detail and status.detail not in self._told:
            self._told.add(status.detail)
            self.show(lsp.MessageType.Warning, f"mercury: {status.detail}")

    async def show_loading(self, status: Status) -> None:
        window = self.protocol.client_capabilities.window
        if not (window and window.work_done_progress):
            return
        progress = self.work_done_progress
        if status.state == "loading" and not self._shows_loading:
            self._shows_loading = True
            await progress.create_async(LOADING)
            progress.begin(LOADING, lsp.WorkDoneProgressBegin(title="mercury: loading the model"))
            status = self.started.engine.status  # it may be ready before the client has agreed to a progress
        if LOADING not in progress.tokens:
            return
        if status.state == "loading":
            percentage = round(status.progress * 100) if status.progress is not None else None
            progress.report(LOADING, lsp.WorkDoneProgressReport(percentage=percentage))
        else:
            progress.end(LOADING, lsp.WorkDoneProgressEnd(message=status.detail or status.state))
            del progress.tokens[LOADING]
            self._shows_loading = False

    async def pulled_settings(self) -> dict[str, Any]:
        workspace = self.protocol.client_capabilities.workspace
        if not (workspace and workspace.configuration):
            return {}
        items = [lsp.ConfigurationItem(section="mercury")]
        found = await self.workspace_configuration_async(lsp.ConfigurationParams(items))
        return {"mercury": found[0]} if found and isinstance(found[0], dict) else {}

    def follow_user_file(self) -> None:
        if self.wiring.user_file_changed():
            self.resettle(lambda: self.wiring.rebuild(self.started))

    def resettle(self, change: Callable[[], Any]) -> None:
        """Read settings again, and say what is wrong with them and what waits for a new engine server."""
        before = self.started.settings.engine
        change()
        self.report_problems()
        after = self.started.settings.engine
        if not needs_new_engine(before, after):
            return
        self.keep(self.wiring.renew_engine(self.started))
        if not after.address and not before.address:
            remedy = "run `mercury-ls serve --stop`, and it starts with the new ones"
            self.show(lsp.MessageType.Info, f"mercury: a running engine server keeps its old settings: {remedy}")

    def report_problems(self) -> None:
        """Each problem once: settings are read again whenever something changes."""
        for problem in self.wiring.problems:
            if problem not in self._reported:
                log.warning("configuration: %s", problem)
                self.show(lsp.MessageType.Warning, f"mercury: {problem}")
        self._reported = self.wiring.problems

    def show(self, kind: lsp.MessageType, message: str) -> None:
        self.window_show_message(lsp.ShowMessageParams(type=kind, message=message))

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


def create_server(wiring: Wiring) -> Server:
    return Server(wiring)


def register(server: Server) -> None:
    server.feature(lsp.INITIALIZE)(initialize)
    server.feature(lsp.INITIALIZED)(initialized)
    server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)(did_save)
    server.feature(lsp.TEXT_DOCUMENT_INLINE_COMPLETION, lsp.InlineCompletionOptions())(inline_completion)
    server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)(did_change_configuration)
    server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)(did_change_watched_files)
    server.feature(lsp.WORKSPACE_DID_RENAME_FILES, ANY_FILE)(did_rename)
    server.feature("textDocument/didFocus")(did_focus)
    server.feature("textDocument/didShowCompletion")(did_show)
    server.feature("textDocument/didPartiallyAcceptCompletion")(did_partially_accept)
    faces.register(server)
    server.feature("signIn")(sign_in)
    server.feature("signOut")(sign_in)
    server.feature("checkStatus")(sign_in)
    server.feature("mercury/status")(status)
    server.feature("mercury/stats")(stats)
    server.feature("mercury/why")(why)
    server.feature("mercury/snooze")(snooze)
    server.feature("mercury/didAccept")(did_accept_notification)
    server.feature("mercury/didReject")(did_reject)
    server.command("mercury.didAccept")(accept_command)
    server.command("mercury.snooze")(snooze_command)
    server.command("mercury.why")(why_command)
    server.command("mercury.status")(status_command)


async def initialize(ls: Server, params: lsp.InitializeParams) -> None:
    await ls.initialize(params)


async def initialized(ls: Server, params: lsp.InitializedParams) -> None:
    await ls.initialized()


def did_rename(ls: Server, params: lsp.RenameFilesParams) -> None:
    for file in params.files:
        ls.started.renamed(path_of(file.old_uri), path_of(file.new_uri))


def did_save(ls: Server, params: lsp.DidSaveTextDocumentParams) -> None:
    ls.started.saved(params.text_document.uri)


def did_focus(ls: Server, params: DidFocusParams) -> None:
    if params.text_document:
        ls.started.focus(params.text_document.uri)


def did_show(ls: Server, params: ShownParams) -> None:
    for id in params.item.command.arguments[:1]:
        ls.started.tally.shown(str(id))


async def inline_completion(ls: Server, params: InlineParams) -> lsp.InlineCompletionList:
    ask = ask_of(ls, params)
    work = final_reply(ls, ask, params.partial_result_token)
    reply = await ls.newest(lsp.TEXT_DOCUMENT_INLINE_COMPLETION, ask.uri, work, None)
    if reply is None or reply.snapshot is None:
        return NOTHING
    return lsp.InlineCompletionList(items=[inline_item(ls, reply, item) for item in reply.items])


def ask_of(ls: Server, params: InlineParams) -> Ask:
    uri = params.text_document.uri
    invoked = params.context.trigger_kind == lsp.InlineCompletionTriggerKind.Invoked
    offset = ls.offset(uri, params.position.line, params.position.character)
    selected = params.context.selected_completion_info
    chosen = (*offsets(ls, uri, selected.range), selected.text) if selected else None
    return Ask(uri=uri, offset=offset, version=params.text_document.version, invoked=invoked, selected=chosen)


def offsets(ls: Server, uri: str, given: Range) -> tuple[int, int]:
    start = ls.offset(uri, given.start.line, given.start.character)
    return start, ls.offset(uri, given.end.line, given.end.character)


async def final_reply(ls: Server, ask: Ask, token: str | int | None) -> Reply | None:
    """The last reply; the ones before it go to a client that asked for drafts by a partial result token."""
    latest = None
    async with contextlib.aclosing(ls.started.inline(ask)) as replies:
        async for latest in replies:
            if token is not None:
                ls.progress(lsp.ProgressParams(token, draft_of(latest)))
    return latest


def draft_of(reply: Reply) -> dict[str, Any]:
    return {
        "kind": "draft",
        "step": reply.step,
        "text": reply.draft,
        "tokens": reply.tokens,
        "final": reply.final,
        "silence": reply.silence,
        "source": reply.source,
    }


def inline_item(ls: Server, reply: Reply, item: Item) -> lsp.InlineCompletionItem:
    return lsp.InlineCompletionItem(
        insert_text=item.text,
        range=ls.range_of(reply, item.start, item.end),
        command=lsp.Command(title="", command=ls.accept_command, arguments=[item.id]),
    )


async def completion(ls: Server, params: MenuParams) -> lsp.CompletionList:
    """The fallback of clients without ghost text: the suggestion as one entry of the ordinary menu."""
    uri = params.text_document.uri
    offset = ls.offset(uri, params.position.line, params.position.character)
    ask = Ask(uri=uri, offset=offset, version=params.text_document.version)
    reply = await ls.newest(lsp.TEXT_DOCUMENT_COMPLETION, uri, final_reply(ls, ask, None), None)
    items = [] if reply is None or reply.snapshot is None else reply.items
    return lsp.CompletionList(is_incomplete=True, items=[menu_item(ls, reply, item) for item in items])


def menu_item(ls: Server, reply: Reply, item: Item) -> lsp.CompletionItem:
    """One entry that replaces the word being typed, so that the menu's own filter keeps it."""
    snapshot = reply.snapshot
    start = item.start
    while start and (snapshot.text[start - 1].isalnum() or snapshot.text[start - 1] == "_"):
        start -= 1
    text = snapshot.text[start : item.start] + item.text
    first = text.strip().splitlines()[0]
    return lsp.CompletionItem(
        label=first if len(first) <= 60 else first[:59] + "…",
        kind=lsp.CompletionItemKind.Text,
        detail="mercury",
        documentation=text if "\n" in text else None,
        filter_text=text,
        sort_text="\0mercury",
        text_edit=lsp.TextEdit(ls.range_of(reply, start, item.end), text),
        command=lsp.Command(title="", command=ls.accept_command, arguments=[item.id]),
    )


def did_accept(ls: Server, id: str, *edits: Any) -> None:
    """`[id]`, or `[id, how many of its edits were made]`. To pygls every argument that has a name is due."""
    ls.started.accepted(id, next((count for count in edits if isinstance(count, int)), None))


def did_accept_notification(ls: Server, params: AcceptParams) -> None:
    ls.started.accepted(params.id, params.edits)


def did_reject(ls: Server, params: AcceptParams) -> None:
    ls.started.rejected(params.id)


def did_partially_accept(ls: Server, params: PartialAcceptParams) -> None:
    for id in params.item.command.arguments[:1]:
        ls.started.partially_accepted(str(id), params.accepted_length)


async def did_change_configuration(ls: Server, params: lsp.DidChangeConfigurationParams) -> None:
    """Clients that send their settings along are taken at their word; those that send null are asked."""
    options = params.settings or await ls.pulled_settings()
    ls.resettle(lambda: ls.wiring.reconfigure(ls.started, options))


def did_change_watched_files(ls: Server, params: lsp.DidChangeWatchedFilesParams) -> None:
    paths = [path_of(change.uri) for change in params.changes]
    removed = [path_of(c.uri) for c in params.changes if c.type == lsp.FileChangeType.Deleted]
    ls.resettle(lambda: ls.wiring.files_changed(ls.started, paths, removed))


async def sign_in(ls: Server, params: StatusParams) -> dict[str, str]:
    """Copilot's clients ask for an account before anything else; here there is none to have."""
    ls.engine_changed(ls.started.engine.status)
    return {"status": "AlreadySignedIn", "user": "local"}


async def status(ls: Server, params: StatusParams) -> dict[str, Any]:
    session = ls.started
    digests = {"digests": {uri: digest(d.text) for uri, d in session.documents.items()}} if params.digests else {}
    return {
        **status_fields(session.engine.status),
        **digests,
        "version": __version__,
        "documents": len(session.documents),
        "accepted": session.accepted_count,
        "rejected": session.rejected_count,
        "today": msgspec.to_builtins(recent(session.stats.rows(), 1, session.stats.today)),
        "snoozed": session.clock() < session.snoozed_until,
        "bar": session.gate.bar(session.clock()),
        "pendingWork": ls.pending_work,
        "problems": [str(problem) for problem in ls.wiring.problems],
        "decisions": [session.decision_line(decision) for decision in session.decisions],
    }


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def why(ls: Server, params: WhyParams) -> dict[str, str]:
    uri = params.text_document.uri
    offset = ls.offset(uri, params.position.line, params.position.character)
    return {"reason": await ls.started.why(uri, offset), "nextEdit": await ls.started.proposals.why(uri, offset)}


async def reasons(ls: Server, uri: str, offset: int) -> str:
    """Both in one sentence, for clients that can show no more than that."""
    return f"{await ls.started.why(uri, offset)}; next edits: {await ls.started.proposals.why(uri, offset)}"


def stats(ls: Server, params: StatsParams) -> dict[str, Any]:
    counted = ls.started.stats
    rows = counted.rows()
    return {"page": markdown(rows, counted.where), "days": msgspec.to_builtins(rows)}


async def snooze(ls: Server, params: SnoozeParams) -> dict[str, float]:
    ls.started.snooze(params.minutes)
    return {"minutes": params.minutes}


def accept_command(ls: Server, *given: Any) -> None:
    """pygls does not look at the arguments where a client gives none at all."""
    if not (given and isinstance(given[0], str)):
        from pygls.exceptions import JsonRpcInvalidParams

        raise JsonRpcInvalidParams("the first argument must be the id of a suggestion")
    did_accept(ls, *given)


def snooze_command(ls: Server, minutes: float = 5.0) -> None:
    minutes = max(minutes, 0.0)
    ls.started.snooze(minutes)
    length = f"{minutes:g} {'minute' if minutes == 1 else 'minutes'}"
    told = f"no suggestions for {length}" if minutes else "suggestions are on again"
    ls.show(lsp.MessageType.Info, f"mercury: {told}")


async def why_command(ls: Server, uri: str = "", line: int = 0, character: int = 0) -> str:
    """Of a place, or of the last one that was typed or asked at: what a menu of commands can name."""
    place = (uri, ls.offset(uri, line, character)) if uri else ls.started.last_place()
    reason = await reasons(ls, *place) if place else "no document is open"
    ls.show(lsp.MessageType.Info, f"mercury: {reason}")
    return reason


def status_command(ls: Server) -> dict[str, Any]:
    fields = status_fields(ls.started.engine.status)
    ls.show(lsp.MessageType.Info, f"mercury: {fields['state']} {fields['model']} {fields['detail']}")
    return fields


def status_fields(status: Status) -> dict[str, Any]:
    info = status.info
    return {
        "state": status.state,
        "detail": status.detail,
        "progress": status.progress,
        "engine": info.engine if info else "",
        "model": info.model if info else "",
        "device": info.device if info else "",
    }


def copilot_status(status: Status) -> dict[str, Any]:
    kind = {"unavailable": "Warning", "ready": "Normal"}.get(status.state, "Normal")
    busy = status.state in ("starting", "loading")
    return {"busy": busy, "message": status.detail, "kind": kind}


def dialect_of(options: Any) -> str:
    """Copilot's clients introduce themselves by `editorPluginInfo`."""
    return "copilot" if isinstance(options, dict) and "editorPluginInfo" in options else "lsp"


def change_of(change: Any) -> tuple[tuple[int, int, int, int] | None, str]:
    if (given := getattr(change, "range", None)) is None:
        return None, change.text
    return (given.start.line, given.start.character, given.end.line, given.end.character), change.text


def roots_of(params: lsp.InitializeParams) -> list[str]:
    if params.workspace_folders:
        return [path_of(folder.uri) for folder in params.workspace_folders]
    if params.root_uri:
        return [path_of(params.root_uri)]
    return [params.root_path] if params.root_path else []


def path_of(uri: str) -> str:
    """A file's path; for untitled buffers, notebook cells, other schemes and what no file can be called, a readable
    name."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return readable(uri)
    path = unquote(parts.path)
    if parts.scheme in ("file", "vscode-notebook-cell"):
        path = to_fs_path(uri.partition("#")[0].replace("vscode-notebook-cell:", "file:", 1)) or path
        if path == readable(path):
            return path
    return readable(path.lstrip("/") or uri)


def readable(name: str) -> str:
    return name.encode(errors="replace").decode().replace("\0", "?")
