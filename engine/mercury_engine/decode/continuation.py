"""Continues answers that did not fit between two anchors: the request that follows, with their text written in."""

from collections.abc import Sequence

from msgspec.structs import replace

from mercury_engine.api import InfillRequest
from mercury_engine.decode.drafts import DraftSource
from mercury_engine.tokens.layout import Hole, until_end
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import EOM


def continued(request: InfillRequest, texts: Sequence[str], tails: Sequence[str | None]) -> InfillRequest:
    """The request with the `texts` of the answers in place of its spans, each followed by a span over its old text's
    tail. Where that is None the answer is complete, and there is no such span."""
    windows, spans = list(request.windows), {}
    for index, window in enumerate(request.windows):
        own = [number for number, span in enumerate(request.spans) if span.window == index]
        text, at = "", 0
        for number in sorted(own, key=lambda number: (request.spans[number].start, request.spans[number].end)):
            span, tail = request.spans[number], tails[number]
            text += window.text[at : span.start] + texts[number]
            if tail is not None:
                spans[number] = replace(span, start=len(text), end=len(text) + len(tail))
                text += tail
            at = span.end
        windows[index] = replace(window, text=text + window.text[at:])
    return replace(request, windows=tuple(windows), spans=tuple(spans[number] for number in sorted(spans)))


def left_to_rewrite(tokenizer: Tokenizer, hole: Hole, old: str, ids: Sequence[int]) -> str:
    """The end of a span's old text that its answer has not reached yet."""
    source = DraftSource("old", [*hole.old, EOM])
    for token in ids:
        source.advance(token)
    tail = tokenizer.decode_bytes(until_end(source.proposal().ids)[0]).decode("utf-8", "ignore")
    return tail[-len(old) :] if old else ""
