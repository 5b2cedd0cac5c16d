"""Requests as models read them: line feeds, and paths inside of the project."""

import os
from collections.abc import Sequence

from msgspec.structs import replace

from mercury_engine.api import InfillRequest
from mercury_ls.code.documents import unified

__all__ = ["as_learned"]


def as_learned(request: InfillRequest, roots: Sequence[str]) -> InfillRequest:
    """The same as models learn it: with line feeds, and paths as the innermost root around its file has them, which
    tell nothing of whose machine this is. Of other projects' files the last folder is told."""
    request = with_line_feeds(request)
    here = request.windows[0].path if request.windows else ""
    around = [root.rstrip(os.sep) + os.sep for root in roots]
    root = max((each for each in around if here.startswith(each)), key=len, default=os.path.dirname(here) + os.sep)

    def inside(path: str) -> str:
        parts = path.removeprefix(root).split(os.sep)
        return sendable("/".join(parts if path.startswith(root) or not os.path.isabs(path) else parts[-2:]))

    return replace(
        request,
        root=sendable(root),
        windows=tuple(
            replace(each, path=inside(each.path), language=sendable(each.language)) for each in request.windows
        ),
        snippets=tuple(replace(each, path=inside(each.path)) for each in request.snippets),
        edits=tuple(replace(each, path=inside(each.path)) for each in request.edits),
    )


def sendable(name: str) -> str:
    """The name of a file on a Unix disk, or what a client calls a language, may be no Unicode."""
    return name if name.isascii() else name.encode(errors="replace").decode()


def with_line_feeds(request: InfillRequest) -> InfillRequest:
    """Whoever takes the answers gives them the file's own line ends again."""
    spans, texts = request.spans, [each.text for each in request.windows]
    if any("\r\n" in text for text in texts):
        ends = ((each, (moved(texts[each.window], at) for at in (each.start, each.end))) for each in spans)
        spans = tuple(replace(each, start=start, end=end) for each, (start, end) in ends)
    return replace(
        request,
        windows=tuple(replace(each, text=unified(each.text)) for each in request.windows),
        spans=spans,
        snippets=tuple(replace(each, text=unified(each.text)) for each in request.snippets),
        edits=tuple(replace(each, before=unified(each.before), after=unified(each.after)) for each in request.edits),
    )


def moved(text: str, offset: int) -> int:
    """Where an offset is in the unified text."""
    return offset - text.count("\r\n", 0, offset)
