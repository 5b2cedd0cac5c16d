"""The next edit's faces: Copilot's dialect for sidekick.nvim, our own for our plugins, and one for every LSP client."""

from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp

from mercury_ls.lsp import NextEditParams, ShownParams
from mercury_ls.pending import PendingEdits, SpanEdit
from mercury_ls.proposals import Proposed

if TYPE_CHECKING:
    from mercury_ls.server import Server

__all__ = ["register"]

REWRITE = lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.RefactorRewrite])
UNANSWERED = Proposed(silence="a newer request took its place")


def register(server: "Server") -> None:
    server.feature("textDocument/copilotInlineEdit")(copilot_inline_edit)
    server.feature("textDocument/didShowInlineEdit")(did_show_inline_edit)
    server.feature("mercury/nextEdit")(next_edit)
    server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, REWRITE)(code_action)
    server.command("mercury.applyNextEdit")(apply_next_edit)


async def proposed(ls: "Server", params: NextEditParams) -> PendingEdits | None:
    """The offer for this request; an answer for a version that the editor has left is none."""
    uri, version = params.text_document.uri, params.text_document.version
    document = ls.started.documents.get(uri)
    if document is None or version not in (None, document.version):
        return None
    offset = ls.offset(uri, params.position.line, params.position.character)
    invoked = params.context.trigger_kind == lsp.InlineCompletionTriggerKind.Invoked
    work = ls.started.proposals.ask(uri, offset, invoked)
    return (await ls.newest("next edit", uri, work, UNANSWERED)).offer


async def copilot_inline_edit(ls: "Server", params: NextEditParams) -> dict[str, Any]:
    """All edits at once: sidekick.nvim shows and applies them together, copilot-lsp takes the first."""
    offer = await proposed(ls, params)
    command = accept(ls, offer) if offer else {}
    return {
        "edits": [
            {
                "text": edit.text,
                "range": span(ls, edit),
                "textDocument": {"uri": edit.uri, "version": offer.versions[edit.uri]},
                "command": command,
            }
            for edit in (offer.edits if offer else ())
        ]
    }


async def next_edit(ls: "Server", params: NextEditParams) -> dict[str, Any] | None:
    offer = await proposed(ls, params)
    if offer is None:
        return None
    return {
        "id": offer.id,
        "label": offer.label,
        "pAccept": round(offer.p_accept, 4),
        "edits": [
            {
                "textDocument": {"uri": edit.uri, "version": offer.versions[edit.uri]},
                "range": span(ls, edit),
                "newText": edit.text,
                "display": edit.display,
            }
            for edit in offer.edits
        ],
        "command": accept(ls, offer),
    }


def did_show_inline_edit(ls: "Server", params: ShownParams) -> None:
    """Nothing is counted that was only seen."""


def code_action(ls: "Server", params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """What is on offer already: editors ask at every move of the cursor, and no model runs for that."""
    only = params.context.only
    if only and not any(lsp.CodeActionKind.RefactorRewrite.startswith(kind) for kind in only):
        return []
    offer = ls.started.proposals.current()
    if offer is None or params.text_document.uri not in offer.versions:
        return []
    return [
        lsp.CodeAction(
            title=f"mercury: {offer.label}",
            kind=lsp.CodeActionKind.RefactorRewrite,
            edit=workspace_edit(ls, offer),
            command=lsp.Command(title="", command="mercury.didAccept", arguments=[offer.id]),
        )
    ]


async def apply_next_edit(ls: "Server", uri: str = "", line: int = 0, character: int = 0) -> bool:
    """The edit on offer, or the one that is found now for a place that is given; whether it was applied."""
    session = ls.started
    if uri:
        await session.proposals.ask(uri, ls.offset(uri, line, character), invoked=True)
    offer = session.proposals.current()
    if offer is None:
        ls.show(lsp.MessageType.Info, "mercury: no next edit to apply")
        return False
    answer = await ls.workspace_apply_edit_async(lsp.ApplyWorkspaceEditParams(workspace_edit(ls, offer), offer.label))
    if answer.applied:
        session.accepted(offer.id)
    return answer.applied


def workspace_edit(ls: "Server", offer: PendingEdits) -> lsp.WorkspaceEdit:
    """Bound to the versions it was made for, where the client understands that."""
    changes: dict[str, list[lsp.TextEdit]] = {}
    for edit in offer.edits:
        changes.setdefault(edit.uri, []).append(lsp.TextEdit(lsp_range(ls, edit), edit.text))
    workspace = ls.protocol.client_capabilities.workspace
    if not (workspace and workspace.workspace_edit and workspace.workspace_edit.document_changes):
        return lsp.WorkspaceEdit(changes=changes)
    return lsp.WorkspaceEdit(
        document_changes=[
            lsp.TextDocumentEdit(lsp.OptionalVersionedTextDocumentIdentifier(uri, offer.versions[uri]), edits)
            for uri, edits in changes.items()
        ]
    )


def accept(ls: "Server", offer: PendingEdits) -> dict[str, Any]:
    return {"title": "Accept", "command": ls.accept_command, "arguments": [offer.id]}


def lsp_range(ls: "Server", edit: SpanEdit) -> lsp.Range:
    snapshot = ls.started.documents[edit.uri].snapshot()
    ends = [snapshot.position(offset, ls.encoding) for offset in (edit.start, edit.end)]
    return lsp.Range(*(lsp.Position(line, character) for line, character in ends))


def span(ls: "Server", edit: SpanEdit) -> dict[str, Any]:
    found = lsp_range(ls, edit)
    return {
        name: {"line": position.line, "character": position.character}
        for name, position in (("start", found.start), ("end", found.end))
    }
