"""A request with the line ends that models know: other people's were trained on line feeds alone."""

from msgspec.structs import replace

from mercury_engine.api import InfillRequest


def with_line_feeds(request: InfillRequest) -> InfillRequest:
    """The same places in the same texts, without carriage returns at the ends of lines."""
    if not any("\r\n" in text for text in _texts(request)):
        return request
    texts = [window.text for window in request.windows]
    at = request.spans[0].window if request.spans else 0
    return replace(
        request,
        windows=tuple(replace(window, text=_unified(window.text)) for window in request.windows),
        spans=tuple(
            replace(span, start=_moved(texts[span.window], span.start), end=_moved(texts[span.window], span.end))
            for span in request.spans
        ),
        cursor=_moved(texts[at], request.cursor),
        snippets=tuple(replace(snippet, text=_unified(snippet.text)) for snippet in request.snippets),
        edits=tuple(edit.with_texts(_unified) for edit in request.edits),
    )


def _texts(request: InfillRequest) -> list[str]:
    own = [source.text for source in (*request.windows, *request.snippets)]
    return own + [text for edit in request.edits for text in (edit.before, edit.after, edit.above, edit.below)]


def _unified(text: str) -> str:
    return text.replace("\r\n", "\n")


def _moved(text: str, offset: int) -> int:
    return offset - text.count("\r\n", 0, max(offset, 0))
