"""Answers that do not fit between two anchors: the request that goes on with them, what was said written in."""

from collections.abc import Sequence

from msgspec.structs import replace

from mercury_engine.api import InfillRequest
from mercury_engine.decode.drafts import Known
from mercury_engine.tokens.layout import Hole, until_end
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import EOM

__all__ = ["continued", "still_to_rewrite"]


def continued(request: InfillRequest, said: Sequence[str], left: Sequence[str | None]) -> InfillRequest:
    """The request with `said` in place of each span, and behind it what is `left` of the span's old text, still to
    be rewritten. A span with None left has its whole answer and is none any longer."""
    windows, spans = list(request.windows), {}
    for index, window in enumerate(request.windows):
        own = [number for number, span in enumerate(request.spans) if span.window == index]
        text, at = "", 0
        for number in sorted(own, key=lambda number: (request.spans[number].start, request.spans[number].end)):
            span, rest = request.spans[number], left[number]
            text += window.text[at : span.start] + said[number]
            if rest is not None:
                spans[number] = replace(span, start=len(text), end=len(text) + len(rest))
                text += rest
            at = span.end
        windows[index] = replace(window, text=text + window.text[at:])
    return replace(request, windows=tuple(windows), spans=tuple(spans[number] for number in sorted(spans)))


def still_to_rewrite(tokenizer: Tokenizer, hole: Hole, old: str, ids: Sequence[int]) -> str:
    """The end of a span's old text that its answer has not come to yet."""
    known = Known("old", [*hole.old, EOM])
    for token in ids:
        known.advance(token)
    rest = tokenizer.decode_bytes(until_end(known.rest().ids)[0]).decode("utf-8", "ignore")
    return rest[-len(old) :] if old else ""
