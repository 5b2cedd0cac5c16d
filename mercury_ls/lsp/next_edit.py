"""The next edit's faces: Copilot's dialect for sidekick.nvim, our own for our plugins, and one for every LSP client."""

from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp

from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.completion.pending import CLOSED, PendingEdits, SpanEdit, summary
from mercury_ls.lsp.protocol import Diagnostic, DiagnosticsParams, NextEditParams, ShownParams
from mercury_ls.next_edit.imports import Diagnosed
from mercury_ls.session.next_edits import Proposed

if TYPE_CHECKING:
    from mercury_ls.lsp.server import Server

__all__ = ["register"]

UNNECESSARY = 1
REWRITE = lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.RefactorRewrite])
UNANSWERED = Proposed(silence="a newer request took its place")


def register(server: "Server") -> None:
    server.feature("textDocument/copilotInlineEdit")(copilot_inline_edit)
    server.feature("textDocument/didShowInlineEdit")(did_show_inline_edit)
    server.feature("mercury/nextEdit")(next_edit)
    server.feature("mercury/didChangeDiagnostics")(did_change_diagnostics)
    server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, REWRITE)(code_action)
    server.command("mercury.applyNextEdit")(apply_next_edit)


async def proposed(ls: "Server", params: NextEditParams) -> PendingEdits | None:
    """The offer for this request; an answer for a version that the editor has left is none."""
    uri, version = params.text_document.uri, params.text_document.version
    document = ls.started.documents.get(uri)
    if document is None or version not in (None, document.version):
        return told(ls, params, Proposed(silence="the request is for a text that is not here"))
    offset = ls.offset(uri, params.position.line, params.position.character)
    invoked = params.context.trigger_kind == lsp.InlineCompletionTriggerKind.Invoked
    context = params.context
    work = ls.started.proposals.ask(uri, offset, invoked, closed=context.closed_files, renamer=context.rename_provider)
    return told(ls, params, await ls.newest("next edit", uri, work, UNANSWERED))


def told(ls: "Server", params: NextEditParams, found: Proposed) -> PendingEdits | None:
    """The offer; the reason where there is none goes to a client that asked for it by a partial result token."""
    if found.offer:
        ls.started.tally.answered(found.offer.id)
    if params.partial_result_token is not None:
        value = {"kind": "nextEdit", "silence": "" if found.offer else found.silence}
        ls.progress(lsp.ProgressParams(params.partial_result_token, value))
    return found.offer


async def copilot_inline_edit(ls: "Server", params: NextEditParams) -> dict[str, Any]:
    """All edits of open files at once: sidekick.nvim shows and applies them together, copilot-lsp takes the first."""
    offer = await proposed(ls, params)
    command = accept(ls, offer) if offer else {}
    snapshots = snapshots_of(offer)
    return {
        "edits": [
            {
                "text": edit.text,
                "range": span(ls, snapshots[edit.uri], edit),
                "textDocument": {"uri": edit.uri, "version": version(offer, edit)},
                "command": command,
            }
            for edit in (offer.edits if offer else ())
            if version(offer, edit) is not None
        ]
    }


async def next_edit(ls: "Server", params: NextEditParams) -> dict[str, Any] | None:
    offer = await proposed(ls, params)
    if offer is None:
        return None
    uri = params.text_document.uri
    edits = [e for e in offer.edits if params.context.closed_files or version(offer, e) is not None]
    edits.sort(key=lambda edit: edit.uri != uri)
    snapshots = snapshots_of(offer)
    return {
        "id": offer.id,
        "label": offer.label,
        "summary": summary(edits, uri),
        "note": offer.note,
        "pAccept": round(offer.p_accept, 4),
        "edits": [
            {
                "textDocument": {"uri": edit.uri, "version": version(offer, edit)},
                "range": span(ls, snapshots[edit.uri], edit),
                "oldText": offer.old_text(edit),
                "newText": edit.text,
                "display": edit.display,
            }
            for edit in edits
        ],
        "command": accept(ls, offer),
    }


def did_show_inline_edit(ls: "Server", params: ShownParams) -> None:
    for id in params.item.command.arguments[:1]:
        ls.started.tally.shown(str(id))


def did_change_diagnostics(ls: "Server", params: DiagnosticsParams) -> None:
    """For the text as it is now, or the version that is named; what is said of another is out of date."""
    document = ls.started.documents.get(params.text_document.uri)
    if document is not None and params.text_document.version in (None, document.version):
        found = tuple(diagnosed(ls, document.uri, each) for each in params.diagnostics)
        ls.started.proposals.diagnosed(document.uri, document.version, found)


def diagnosed(ls: "Server", uri: str, said: Diagnostic | lsp.Diagnostic) -> Diagnosed:
    start, end = (ls.offset(uri, place.line, place.character) for place in (said.range.start, said.range.end))
    return Diagnosed(start, end, str(said.message), UNNECESSARY in map(int, said.tags or ()))


async def code_action(ls: "Server", params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """What is on offer already: editors ask at every move of the cursor, and no model runs for that. Where the user
    asks, or has edited since there was an offer, the edit is looked for."""
    uri, only, place = params.text_document.uri, params.context.only, params.range.end
    if only and not any(lsp.CodeActionKind.RefactorRewrite.startswith(kind) for kind in only):
        return []
    if (document := ls.started.documents.get(uri)) and params.context.diagnostics:
        said = tuple(diagnosed(ls, uri, each) for each in params.context.diagnostics)
        ls.started.proposals.diagnosed(uri, document.version, said)
    by_hand = asked_by_hand(params.context)
    if by_hand or (ls.started.proposals.current() and ls.started.proposals.is_outdated):
        work = ls.started.proposals.ask(uri, ls.offset(uri, place.line, place.character), by_hand)
        await ls.newest("next edit", uri, work, UNANSWERED)
    offer = ls.started.proposals.current()
    if offer is None or uri not in offer.versions:
        return []
    ls.started.tally.answered(offer.id)
    return [
        lsp.CodeAction(
            title=f"mercury: {title(offer, uri)}",
            kind=lsp.CodeActionKind.RefactorRewrite,
            edit=workspace_edit(ls, offer, uri),
            command=lsp.Command(title="", command="mercury.didAccept", arguments=[offer.id]),
        )
    ]


def asked_by_hand(context: lsp.CodeActionContext) -> bool:
    """Helix says so. Eglot says nothing, but asks for rewrites alone only when its user does."""
    if context.trigger_kind is None:
        return list(context.only or ()) == [lsp.CodeActionKind.RefactorRewrite]
    return context.trigger_kind == lsp.CodeActionTriggerKind.Invoked


async def apply_next_edit(ls: Any, uri: str = "", line: int = 0, character: int = 0) -> bool:
    """The edit on offer, or the one that is found now for a place that is given; whether it was applied. pygls reads
    the types of a command's arguments at run time, where `Server` is not known."""
    session = ls.started
    if uri:
        await session.proposals.ask(uri, ls.offset(uri, line, character), invoked=True)
    offer = session.proposals.current()
    if offer is None:
        ls.show(lsp.MessageType.Info, "mercury: no next edit to apply")
        return False
    uri = uri or offer.edits[0].uri
    edit = lsp.ApplyWorkspaceEditParams(workspace_edit(ls, offer, uri), title(offer, uri))
    answer = await ls.workspace_apply_edit_async(edit)
    if answer.applied:
        session.accepted(offer.id)
    return answer.applied


def title(offer: PendingEdits, uri: str) -> str:
    return f"{offer.label} ({summary(offer.edits, uri)})"


def workspace_edit(ls: "Server", offer: PendingEdits, uri: str) -> lsp.WorkspaceEdit:
    """All of it at once, so that it is undone at once. Bound to the versions that it was made for, where the client
    understands that; one that can show the parts of an edit asks its user about those of other files."""
    workspace = ls.protocol.client_capabilities.workspace
    able = workspace and workspace.workspace_edit
    annotates = bool(able and able.document_changes and able.change_annotation_support)
    changes: dict[str, list[lsp.TextEdit]] = {}
    snapshots = snapshots_of(offer)
    for edit in sorted(offer.edits, key=lambda edit: edit.uri != uri):
        change = lsp.TextEdit(lsp_range(ls, snapshots[edit.uri], edit), edit.text)
        changes.setdefault(edit.uri, []).append(annotated(change, edit.uri) if annotates else change)
    if not (able and able.document_changes):
        return lsp.WorkspaceEdit(changes=changes)
    versions = {edit.uri: version(offer, edit) for edit in offer.edits}
    return lsp.WorkspaceEdit(
        document_changes=[
            lsp.TextDocumentEdit(lsp.OptionalVersionedTextDocumentIdentifier(uri, versions[uri]), edits)
            for uri, edits in changes.items()
        ],
        change_annotations={each: annotation(offer, each, uri) for each in changes} if annotates else None,
    )


def annotated(change: lsp.TextEdit, id: str) -> lsp.AnnotatedTextEdit:
    return lsp.AnnotatedTextEdit(id, change.range, change.new_text)


def annotation(offer: PendingEdits, uri: str, seen_from: str) -> lsp.ChangeAnnotation:
    edits = [edit for edit in offer.edits if edit.uri == uri]
    return lsp.ChangeAnnotation(offer.label, needs_confirmation=uri != seen_from, description=summary(edits, seen_from))


def accept(ls: "Server", offer: PendingEdits) -> dict[str, Any]:
    return {"title": "Accept", "command": ls.accept_command, "arguments": [offer.id]}


def version(offer: PendingEdits, edit: SpanEdit) -> int | None:
    """None for a file that is not open: it is edited as it is on the disk."""
    found = offer.versions[edit.uri]
    return None if found == CLOSED else found


def snapshots_of(offer: PendingEdits | None) -> dict[str, Snapshot]:
    """The texts that the edits count in: one line index for each file, however many edits it gets."""
    texts = offer.texts.items() if offer else ()
    return {uri: Document(uri, "", "", 0, text).snapshot() for uri, text in texts}


def lsp_range(ls: "Server", snapshot: Snapshot, edit: SpanEdit) -> lsp.Range:
    ends = [snapshot.position(offset, ls.encoding) for offset in (edit.start, edit.end)]
    return lsp.Range(*(lsp.Position(line, character) for line, character in ends))


def span(ls: "Server", snapshot: Snapshot, edit: SpanEdit) -> dict[str, Any]:
    found = lsp_range(ls, snapshot, edit)
    return {
        name: {"line": position.line, "character": position.character}
        for name, position in (("start", found.start), ("end", found.end))
    }
