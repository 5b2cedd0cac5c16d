"""Normalises requests to the form that models are trained on: line feeds, and paths relative to the project."""

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from mercury_engine.api import ChatRequest, Edit, Gap, Proposal, Question, Region, Regions
from mercury_ls.code.documents import unified
from mercury_ls.link.wire import Request, check

Asked = TypeVar("Asked", bound=Request)
AskedOfCode = TypeVar("AskedOfCode", bound=Question)


def prepared(request: Asked, roots: Sequence[str]) -> Asked:
    """The request, checked and normalized: a conversation stays as it is."""
    check(request)
    return request if isinstance(request, ChatRequest) else normalized(request, roots)


def normalized(question: AskedOfCode, roots: Sequence[str]) -> AskedOfCode:
    """The question with line feeds, and with paths relative to the innermost root around its file, which reveal nothing
    about the machine. Files outside this root keep their last folder. The receiver of the answers restores the file's
    own line ends."""
    current_path = question.paths[0]
    around = [root.rstrip(os.sep) + os.sep for root in roots]
    root = max(
        (root_path for root_path in around if current_path.startswith(root_path)),
        key=len,
        default=os.path.dirname(current_path) + os.sep,
    )

    def relative(path: str) -> str:
        parts = path.removeprefix(root).split(os.sep)
        return _encodable("/".join(parts if path.startswith(root) or not os.path.isabs(path) else parts[-2:]))

    question = replace(
        question,
        root=_encodable(root),
        snippets=tuple(
            replace(snippet, path=relative(snippet.path), text=unified(snippet.text)) for snippet in question.snippets
        ),
        edits=tuple(_edit(edit, relative) for edit in question.edits),
        diagnostics=tuple(replace(diagnostic, path=relative(diagnostic.path)) for diagnostic in question.diagnostics),
    )
    if isinstance(question, Gap):
        return replace(
            question,
            path=relative(question.path),
            language=_encodable(question.language),
            before=unified(question.before),
            after=unified(question.after),
        )
    if isinstance(question, Regions):
        cursor = len(unified(question.regions[0].old[: question.cursor]))
        return replace(question, regions=tuple(_region(region, relative) for region in question.regions), cursor=cursor)
    proposals = (Proposal(_region(one.region, relative), unified(one.text)) for one in question.proposals)
    return replace(question, proposals=tuple(proposals))


def _edit(edit: Edit, relative: Callable[[str], str]) -> Edit:
    unified_edit = edit.with_texts(unified)
    mentions = (replace(mention, path=relative(mention.path)) for mention in unified_edit.mentions)
    return replace(unified_edit, path=relative(edit.path), mentions=tuple(mentions))


def _region(region: Region, relative: Callable[[str], str]) -> Region:
    return replace(
        region,
        path=relative(region.path),
        language=_encodable(region.language),
        above=unified(region.above),
        old=unified(region.old),
        below=unified(region.below),
    )


def _encodable(name: str) -> str:
    """The text without what UTF-8 cannot encode: file names and language ids of clients may not be Unicode."""
    return name if name.isascii() else name.encode(errors="replace").decode()
