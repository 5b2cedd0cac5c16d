"""Inline completions as LSP has them, or as an entry of the completion menu, and what became of a suggestion."""

import contextlib
import re
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

from lsprotocol import types as lsp
from msgspec.structs import replace
from pygls.exceptions import JsonRpcInvalidParams

from mercury_ls.code.edits import TextEdit, is_word
from mercury_ls.completion.offers import Answer, Offer
from mercury_ls.lsp.protocol import AcceptParams, PartialAcceptParams, PlaceParams, ShownParams, SuggestParams
from mercury_ls.lsp.server import Server
from mercury_ls.session.requests import MenuEntry
from mercury_ls.wording import one_line

LONGEST_LABEL = 60
INTELLIJ = re.compile(r"\(build [A-Z]+-\d")
"""In the version of a client: LSP4IJ, which draws a suggestion behind what it replaces and then inserts it there."""


async def inline_completion(ls: Server, params: SuggestParams) -> lsp.InlineCompletionList:
    uri, offset = params.text_document.uri, ls.offset(params.text_document.uri, params.position)
    invoked = params.context.trigger_kind == lsp.InlineCompletionTriggerKind.Invoked
    version, selected = params.text_document.version, _selected(ls, params)
    answers = ls.started.inline(uri, offset, version=version, invoked=invoked, selected=selected)
    work = partial(_final_answer, ls, answers, params.partial_result_token)
    steps = ls.showing_work(work) if invoked else work()
    answer = await ls.newest(lsp.TEXT_DOCUMENT_INLINE_COMPLETION, uri, steps)
    offers = list(answer.offers)
    if INTELLIJ.search(ls.client_version):
        offers = [inserting for offer in offers if (inserting := _inserting_at(offset, offer))]
    return lsp.InlineCompletionList(items=[_inline_item(ls, offer) for offer in offers])


def _selected(ls: Server, params: SuggestParams) -> MenuEntry | None:
    if (selected := params.context.selected_completion_info) is None:
        return None
    start, end = (ls.offset(params.text_document.uri, place) for place in (selected.range.start, selected.range.end))
    return start, end, selected.text


async def _final_answer(ls: Server, answers: AsyncGenerator[Answer], token: str | int | None = None) -> Answer:
    """The last answer; the ones before it go to a client that asked for drafts by a partial result token."""
    latest = Answer()
    async with contextlib.aclosing(answers):
        async for latest in answers:
            if token is not None:
                ls.progress(lsp.ProgressParams(token, _draft_of(latest)))
    return latest


def _draft_of(answer: Answer) -> dict[str, Any]:
    return {
        "kind": "draft",
        "step": answer.step,
        "text": answer.draft,
        "tokens": answer.tokens,
        "final": answer.final,
        "silence": one_line(answer.silence),
        "source": answer.source,
    }


def _inserting_at(cursor: int, offer: Offer) -> Offer | None:
    insertion = as_insertion(offer.edit, offer.base[offer.edit.uri].text, cursor)
    return replace(offer, edits=(insertion,)) if insertion else None


def as_insertion(edit: TextEdit, text: str, cursor: int) -> TextEdit | None:
    """The same change of a text as an insertion at the cursor, before blanks that it would remove; None if it is more
    than that."""
    before, behind = text[edit.start : cursor], text[cursor : edit.end].rstrip(" \t")
    insertion = edit.text[len(before) : len(edit.text) - len(behind)]
    if not (edit.start <= cursor <= edit.end and edit.text == before + insertion + behind):
        return None
    return TextEdit(cursor, cursor, insertion, edit.uri)


def _inline_item(ls: Server, offer: Offer) -> lsp.InlineCompletionItem:
    return lsp.InlineCompletionItem(
        insert_text=offer.edit.text,
        range=ls.range_of(offer.base[offer.edit.uri], offer.edit),
        command=lsp.Command(title="", command=ls.accept_command, arguments=[offer.id]),
    )


async def completion(ls: Server, params: PlaceParams) -> lsp.CompletionList:
    """For clients without ghost text: the suggestion as one entry of the ordinary completion menu."""
    uri = params.text_document.uri
    offset = ls.offset(uri, params.position)
    answers = ls.started.inline(uri, offset, version=params.text_document.version)
    answer = await ls.newest(lsp.TEXT_DOCUMENT_COMPLETION, uri, _final_answer(ls, answers))
    return lsp.CompletionList(is_incomplete=True, items=[_menu_item(ls, offer) for offer in answer.offers])


def _menu_item(ls: Server, offer: Offer) -> lsp.CompletionItem:
    """One entry that replaces the word being typed, so that the menu's own filter keeps it."""
    edit = offer.edit
    snapshot, start = offer.base[edit.uri], edit.start
    while start and is_word(snapshot.text[start - 1]):
        start -= 1
    text = snapshot.text[start : edit.start] + edit.text
    first = text.strip().splitlines()[0]
    return lsp.CompletionItem(
        label=first if len(first) <= LONGEST_LABEL else first[: LONGEST_LABEL - 1] + "…",
        kind=lsp.CompletionItemKind.Text,
        detail="mercury",
        documentation=text if "\n" in text else None,
        filter_text=text,
        sort_text="\0mercury",
        text_edit=lsp.TextEdit(ls.range_of(snapshot, TextEdit(start, edit.end, text)), text),
        command=lsp.Command(title="", command=ls.accept_command, arguments=[offer.id]),
    )


def did_show(ls: Server, params: ShownParams) -> None:
    for id in params.item.command.arguments[:1]:
        ls.started.shown(str(id))


def accept(ls: Server, *arguments: Any) -> None:
    """The command with the arguments `[id]`, or `[id, how many of its edits were made]`. pygls checks only arguments
    that have a name of their own, and not even these if a client sends none."""
    if not (arguments and isinstance(arguments[0], str)):
        raise JsonRpcInvalidParams("the first argument must be the id of a suggestion")
    id, *edits = arguments
    ls.started.accepted(id, next((count for count in edits if isinstance(count, int)), None))


def did_accept(ls: Server, params: AcceptParams) -> None:
    ls.started.accepted(params.id, params.edits)


def did_reject(ls: Server, params: AcceptParams) -> None:
    ls.started.rejected(params.id)


def did_partially_accept(ls: Server, params: PartialAcceptParams) -> None:
    for id in params.item.command.arguments[:1]:
        ls.started.partially_accepted(str(id), params.accepted_length)
