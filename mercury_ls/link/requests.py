"""Normalises requests to the form that models are trained on: line feeds, and paths relative to the project."""

import os
from collections.abc import Sequence
from typing import cast

from msgspec.structs import replace

from mercury_engine.api import ChatRequest, InfillRequest
from mercury_ls.code.documents import unified
from mercury_ls.link.wire import Request, check


def prepared(request: Request, roots: Sequence[str]) -> Request:
    """The request, checked and normalized: a conversation stays as it is."""
    check(request)
    return request if isinstance(request, ChatRequest) else cast("Request", normalized(request, roots))


def normalized(request: InfillRequest, roots: Sequence[str]) -> InfillRequest:
    """The request with line feeds, and with paths relative to the innermost root around its file, which reveal nothing
    about the machine. Files outside this root keep their last folder."""
    request = _with_line_feeds(request)
    current_path = request.windows[0].path if request.windows else ""
    around = [root.rstrip(os.sep) + os.sep for root in roots]
    root = max(
        (root_path for root_path in around if current_path.startswith(root_path)),
        key=len,
        default=os.path.dirname(current_path) + os.sep,
    )

    def relative(path: str) -> str:
        parts = path.removeprefix(root).split(os.sep)
        return _encodable("/".join(parts if path.startswith(root) or not os.path.isabs(path) else parts[-2:]))

    return replace(
        request,
        root=_encodable(root),
        windows=tuple(
            replace(window, path=relative(window.path), language=_encodable(window.language))
            for window in request.windows
        ),
        snippets=tuple(replace(snippet, path=relative(snippet.path)) for snippet in request.snippets),
        edits=tuple(replace(edit, path=relative(edit.path)) for edit in request.edits),
        diagnostics=tuple(replace(diagnostic, path=relative(diagnostic.path)) for diagnostic in request.diagnostics),
    )


def _encodable(name: str) -> str:
    """The text without what UTF-8 cannot encode: file names and language ids of clients may not be Unicode."""
    return name if name.isascii() else name.encode(errors="replace").decode()


def _with_line_feeds(request: InfillRequest) -> InfillRequest:
    """The request with line feeds; the receiver of the answers restores the file's own line ends."""
    spans, cursor, texts = request.spans, request.cursor, [window.text for window in request.windows]
    if any("\r\n" in text for text in texts):
        ends = ((span, (_unified_offset(texts[span.window], at) for at in (span.start, span.end))) for span in spans)
        spans = tuple(replace(span, start=start, end=end) for span, (start, end) in ends)
        cursor = _unified_offset(texts[spans[0].window], cursor) if spans and cursor >= 0 else cursor
    return replace(
        request,
        cursor=cursor,
        windows=tuple(replace(window, text=unified(window.text)) for window in request.windows),
        spans=spans,
        snippets=tuple(replace(snippet, text=unified(snippet.text)) for snippet in request.snippets),
        edits=tuple(edit.with_texts(unified) for edit in request.edits),
    )


def _unified_offset(text: str, offset: int) -> int:
    """The offset in the text with line feeds."""
    return offset - text.count("\r\n", 0, offset)
