"""What the language server answers: every request, notification and command, registered in one place."""

from functools import partial

from lsprotocol import types as lsp

from mercury_ls.lsp import inline, next_edit, notebooks, status
from mercury_ls.lsp.protocol import DidFocusParams, StatusParams
from mercury_ls.lsp.server import COPILOT_ACCEPT, Server, path_of
from mercury_ls.session.wiring import Wiring

ANY_FILE = lsp.FileOperationRegistrationOptions(
    [lsp.FileOperationFilter(lsp.FileOperationPattern("**/*"), scheme="file")]
)
REWRITE = lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.RefactorRewrite])


def create_server(wiring: Wiring) -> Server:
    server = Server(wiring)
    replace = server.protocol.replace
    replace(lsp.SHUTDOWN, server.protocol.shut_down)
    replace(lsp.EXIT, server.protocol.exit)
    replace(lsp.TEXT_DOCUMENT_DID_OPEN, server.did_open)
    replace(lsp.TEXT_DOCUMENT_DID_CHANGE, server.did_change)
    replace(lsp.TEXT_DOCUMENT_DID_CLOSE, server.did_close)
    replace(lsp.NOTEBOOK_DOCUMENT_DID_OPEN, partial(notebooks.did_open, server))
    replace(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE, partial(notebooks.did_change, server))
    replace(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE, partial(notebooks.did_close, server))
    replace(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, server.did_change_folders)
    server.feature(lsp.INITIALIZE)(initialize)
    server.feature(lsp.INITIALIZED)(initialized)
    server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)(_did_save)
    server.feature("textDocument/didFocus")(_did_focus)
    server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)(_did_change_configuration)
    server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)(_did_change_watched_files)
    server.feature(lsp.WORKSPACE_DID_RENAME_FILES, ANY_FILE)(_did_rename_files)
    server.feature(lsp.TEXT_DOCUMENT_INLINE_COMPLETION, lsp.InlineCompletionOptions())(inline.inline_completion)
    server.feature("textDocument/didShowCompletion")(inline.did_show)
    server.feature("textDocument/didPartiallyAcceptCompletion")(inline.did_partially_accept)
    server.feature("mercury/didAccept")(inline.did_accept)
    server.feature("mercury/didReject")(inline.did_reject)
    server.command("mercury.didAccept")(inline.accept)
    server.feature("mercury/nextEdit")(next_edit.next_edit)
    server.feature("textDocument/copilotInlineEdit")(next_edit.copilot_inline_edit)
    server.feature("textDocument/didShowInlineEdit")(inline.did_show)
    server.feature("mercury/didChangeDiagnostics")(next_edit.did_change_diagnostics)
    server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, REWRITE)(next_edit.code_action)
    server.command("mercury.applyNextEdit")(next_edit.apply_next_edit)
    server.feature("mercury/status")(status.status)
    server.feature("mercury/stats")(status.stats)
    server.feature("mercury/why")(status.why)
    server.feature("mercury/snooze")(status.snooze)
    server.command("mercury.status")(status.status_command)
    server.command("mercury.why")(status.why_command)
    server.command("mercury.snooze")(status.snooze_command)
    for account in ("signIn", "signOut", "checkStatus"):
        server.feature(account)(_sign_in)
    return server


async def initialize(ls: Server, params: lsp.InitializeParams) -> None:
    ls.start(params)
    if ls.dialect == "copilot":
        ls.command(COPILOT_ACCEPT)(inline.accept)
    if ls.wants_menu:
        ls.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions())(inline.completion)


async def initialized(ls: Server, params: lsp.InitializedParams) -> None:
    await ls.initialized()


def _did_save(ls: Server, params: lsp.DidSaveTextDocumentParams) -> None:
    ls.started.files.saved(params.text_document.uri)


def _did_focus(ls: Server, params: DidFocusParams) -> None:
    if params.text_document:
        ls.started.files.focus(params.text_document.uri)


def _did_rename_files(ls: Server, params: lsp.RenameFilesParams) -> None:
    for file in params.files:
        ls.started.files.renamed(path_of(file.old_uri), path_of(file.new_uri))


async def _did_change_configuration(ls: Server, params: lsp.DidChangeConfigurationParams) -> None:
    """Clients that send null instead of their settings are asked for them."""
    options = params.settings or await ls.pulled_settings()
    ls.change_settings(lambda: ls.wiring.reconfigure(ls.started, options))


def _did_change_watched_files(ls: Server, params: lsp.DidChangeWatchedFilesParams) -> None:
    paths = [path_of(change.uri) for change in params.changes]
    removed = [path_of(c.uri) for c in params.changes if c.type == lsp.FileChangeType.Deleted]
    ls.change_settings(lambda: ls.wiring.files_changed(ls.started, paths, removed))


async def _sign_in(ls: Server, params: StatusParams) -> dict[str, str]:
    """Copilot's clients ask for an account before anything else; none is needed here."""
    ls.engine_changed(ls.started.engine.status)
    return {"status": "AlreadySignedIn", "user": "local"}
