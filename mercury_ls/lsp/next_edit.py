"""The next edit as each client has it: Copilot's dialect for sidekick.nvim, ours for our plugins, a code action for all
others."""

from functools import partial
from typing import Any

from lsprotocol import types as lsp

from mercury_engine.api import Severity
from mercury_ls.code import diagnostics
from mercury_ls.completion.offers import Answer, Offer, described, summary
from mercury_ls.lsp.protocol import ClientDiagnostic, DiagnosticsParams, Position, SuggestParams
from mercury_ls.lsp.server import Server
from mercury_ls.session.requests import Asker
from mercury_ls.wording import one_line

SEVERITIES: dict[int, Severity] = {1: "error", 2: "warning", 3: "info", 4: "hint"}


async def _offered(ls: Server, params: SuggestParams) -> Offer | None:
    """The offer for this request; none for a version that the editor has left."""
    uri, version = params.text_document.uri, params.text_document.version
    document = ls.started.files.documents.get(uri)
    if document is None or version not in (None, document.version):
        return _reported(ls, params, Answer(silence="the request is about another version of the text"))
    offset = ls.offset(uri, params.position)
    context = params.context
    invoked = context.trigger_kind == lsp.InlineCompletionTriggerKind.Invoked
    asker = Asker(
        closed=context.closed_files, renamer=context.rename_provider, is_typing=context.typing, places=context.places
    )
    work = partial(ls.started.next_edits.ask, uri, offset, invoked, asker, rests=context.rests)
    steps = ls.showing_work(work) if invoked else work()
    return _reported(ls, params, await ls.newest("next edit", uri, steps))


def _reported(ls: Server, params: SuggestParams, answer: Answer) -> Offer | None:
    """The offer; why there is none goes to a client that asked for it by a partial result token."""
    if answer.offer:
        ls.started.tally.answered(answer.offer.id)
    if params.partial_result_token is not None:
        value = {"kind": "nextEdit", "silence": "" if answer.offer else one_line(answer.silence)}
        ls.progress(lsp.ProgressParams(params.partial_result_token, value))
    return answer.offer


async def copilot_inline_edit(ls: Server, params: SuggestParams) -> dict[str, Any]:
    """All edits of open files at once: sidekick.nvim shows and applies them together, copilot-lsp takes the first."""
    offer = await _offered(ls, params)
    if offer is None:
        return {"edits": []}
    command = _accept_command(ls, offer)
    return {
        "edits": [
            {
                "text": edit.text,
                "range": ls.range_of(offer.base[edit.uri], edit),
                "textDocument": {"uri": edit.uri, "version": offer.version(edit.uri)},
                "command": command,
            }
            for edit in offer.edits
        ]
    }


async def next_edit(ls: Server, params: SuggestParams) -> dict[str, Any] | None:
    offer = await _offered(ls, params)
    if offer is None:
        return None
    uri = params.text_document.uri
    edits = sorted(offer.edits, key=lambda edit: edit.uri != uri)
    offset = ls.offset(uri, params.position)
    return {
        "id": offer.id,
        "label": one_line(offer.label),
        "kind": offer.kind,
        "summary": one_line(summary(edits, uri)),
        "note": one_line(offer.note),
        "edits": [
            {
                "textDocument": {"uri": edit.uri, "version": offer.version(edit.uri)},
                "range": ls.range_of(offer.base[edit.uri], edit),
                "oldText": offer.old_text(edit),
                "newText": edit.text,
                "display": "ghost" if (edit.uri, edit.start, edit.end) == (uri, offset, offset) else "diff",
            }
            for edit in edits
        ],
        "command": _accept_command(ls, offer),
    }


def did_change_diagnostics(ls: Server, params: DiagnosticsParams) -> None:
    """Diagnostics of the current text, or of the version that is named; those of any other are out of date."""
    document = ls.started.files.documents.get(params.text_document.uri)
    if document is not None and params.text_document.version in (None, document.version):
        diagnostics_of_file = tuple(_diagnosed(ls, document.uri, diagnostic) for diagnostic in params.diagnostics)
        if ls.started.next_edits.reported(document.snapshot(), diagnostics_of_file):
            ls.protocol.notify("mercury/didChangePlaces", {})


def _diagnosed(ls: Server, uri: str, reported: ClientDiagnostic | lsp.Diagnostic) -> diagnostics.FileDiagnostic:
    start, end = (ls.offset(uri, place) for place in (reported.range.start, reported.range.end))
    severity = SEVERITIES.get(int(reported.severity or 1), "hint")
    return diagnostics.FileDiagnostic(start, end, str(reported.message), severity)


async def code_action(ls: Server, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """What is on offer already: editors ask at every move of the cursor, and no model runs for that. An edit is looked
    for only if the user asks, or has edited since there was an offer; never where a plugin of ours asks for it: its
    request would be superseded, and nothing shown."""
    uri, only, place = params.text_document.uri, params.context.only, params.range.end
    if only and not any(lsp.CodeActionKind.RefactorRewrite.startswith(kind) for kind in only):
        return []
    next_edits = ls.started.next_edits
    if (document := ls.started.files.documents.get(uri)) and params.context.diagnostics:
        diagnostics_at_cursor = tuple(_diagnosed(ls, uri, diagnostic) for diagnostic in params.context.diagnostics)
        next_edits.next_questions.diagnosed(uri, document.version, diagnostics_at_cursor)
    by_hand, asker = _asked_by_hand(params.context), _asker_of(ls, uri)
    if by_hand or (not ls.knows_mercury and next_edits.standing.current() and next_edits.is_outdated):
        work = next_edits.ask(uri, ls.offset(uri, place), by_hand, asker)
        await ls.newest("next edit", uri, work)
    offer = next_edits.standing.current()
    if offer is None or uri not in offer.base or (offer := asker.shown(offer)) is None:
        return []
    ls.started.tally.answered(offer.id)
    return [
        lsp.CodeAction(
            title=one_line(f"mercury: {described(offer, uri)}"),
            kind=lsp.CodeActionKind.RefactorRewrite,
            edit=workspace_edit(ls, offer, uri),
            command=lsp.Command(title="", command="mercury.didAccept", arguments=[offer.id]),
        )
    ]


def _asker_of(ls: Server, uri: str) -> Asker:
    """Code actions and commands do not say what the client can show, so its last request for the document counts. A
    plugin of ours that has made none gets edits of open files alone; any other client also gets those of closed files
    if it supports document changes, in which a file on the disk has no version."""
    able = _workspace_edits(ls)
    can_change_closed = bool(able and able.document_changes) and not ls.knows_mercury
    return ls.started.next_edits.next_questions.asker(uri, Asker(can_change_closed))


def _workspace_edits(ls: Server) -> lsp.WorkspaceEditClientCapabilities | None:
    workspace = ls.protocol.client_capabilities.workspace
    return workspace and workspace.workspace_edit


def _asked_by_hand(context: lsp.CodeActionContext) -> bool:
    """Helix says so. Eglot says nothing, but asks for rewrites alone only if its user does."""
    if context.trigger_kind is None:
        return list(context.only or ()) == [lsp.CodeActionKind.RefactorRewrite]
    return context.trigger_kind == lsp.CodeActionTriggerKind.Invoked


async def apply_next_edit(ls: Server, uri: str = "", line: int = 0, character: int = 0) -> bool:
    """Apply the edit on offer, or the one that is found now for a given place; whether that was possible."""
    session = ls.started
    if uri:
        offset = ls.offset(uri, Position(line, character))
        await session.next_edits.ask(uri, offset, invoked=True, asker=_asker_of(ls, uri))
    standing = session.next_edits.standing.current()
    uri = uri or (standing.edit.uri if standing else "")
    offer = standing and _asker_of(ls, uri).shown(standing)
    if offer is None:
        ls.show(lsp.MessageType.Info, "no next edit to apply")
        return False
    edit = lsp.ApplyWorkspaceEditParams(workspace_edit(ls, offer, uri), one_line(described(offer, uri)))
    answer = await ls.workspace_apply_edit_async(edit)
    if answer.applied:
        session.accepted(offer.id)
    return answer.applied


def workspace_edit(ls: Server, offer: Offer, uri: str) -> lsp.WorkspaceEdit:
    """All of it at once, so that it is undone at once. Bound to the versions that it was made for if the client
    understands that; one that can show the parts of an edit asks its user about those of other files."""
    able = _workspace_edits(ls)
    changes: dict[str, list[lsp.TextEdit]] = {}
    for edit in sorted(offer.edits, key=lambda edit: edit.uri != uri):
        change = lsp.TextEdit(ls.range_of(offer.base[edit.uri], edit), edit.text)
        changes.setdefault(edit.uri, []).append(change)
    if not (able and able.document_changes):
        return lsp.WorkspaceEdit(changes=changes)
    annotates = able.change_annotation_support is not None
    return lsp.WorkspaceEdit(
        document_changes=[
            lsp.TextDocumentEdit(
                lsp.OptionalVersionedTextDocumentIdentifier(file_uri, offer.version(file_uri)),
                [lsp.AnnotatedTextEdit(file_uri, edit.range, edit.new_text) if annotates else edit for edit in edits],
            )
            for file_uri, edits in changes.items()
        ],
        change_annotations={file_uri: _annotation(offer, file_uri, uri) for file_uri in changes} if annotates else None,
    )


def _annotation(offer: Offer, uri: str, seen_from: str) -> lsp.ChangeAnnotation:
    edits = [edit for edit in offer.edits if edit.uri == uri]
    return lsp.ChangeAnnotation(
        one_line(offer.label),
        needs_confirmation=uri != seen_from,
        description=one_line(summary(edits, seen_from)),
    )


def _accept_command(ls: Server, offer: Offer) -> dict[str, Any]:
    return {"title": "Accept", "command": ls.accept_command, "arguments": [offer.id]}
