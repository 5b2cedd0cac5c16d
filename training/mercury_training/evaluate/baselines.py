"""Completers without a model, behind the engine's API: a model has to beat them.

`FakeEngine` continues the longest match of the text before the cursor; `NgramEngine` gives, token by token, the most
frequent continuation of the last few tokens in the same file.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence

from mercury_engine.api import Draft, EngineInfo, Filled, InfillRequest, Span
from mercury_engine.fake import FakeEngine

TOKEN = re.compile(r"\n|[ \t]+|[^\W\d]\w*|\d|[^\w\s]|\s")
ORDER = 6
BLOCK_LINES = 8

Counts = dict[tuple[str, ...], Counter[str]]


class NgramEngine:
    """Deterministic; learns from the windows and snippets of a request, and forgets them again."""

    def infill(self, request: InfillRequest) -> Generator[Draft]:
        counts = _learned(request)
        yield Draft(1, tuple(_continued(counts, request, span) for span in request.spans), final=True)

    def warm(self, request: InfillRequest) -> Generator[None]:
        yield from ()

    def info(self) -> EngineInfo:
        return EngineInfo(engine="n-gram", model="counts what is already written", device="cpu", context_tokens=2048)


BASELINES = {"copy": FakeEngine, "ngram": NgramEngine}


def _learned(request: InfillRequest) -> Counts:
    """The tokens that followed each n-gram of up to ORDER tokens. Text on both sides of a span is never joined."""
    counts: Counts = defaultdict(Counter)
    for text in _texts(request):
        tokens = TOKEN.findall(text)
        for place, token in enumerate(tokens):
            for order in range(1, min(ORDER, place) + 1):
                counts[tuple(tokens[place - order : place])][token] += 1
    return counts


def _texts(request: InfillRequest) -> Iterator[str]:
    for number, window in enumerate(request.windows):
        edges = [edge for span in request.spans if span.window == number for edge in (span.start, span.end)]
        bounds = [0, *sorted(edges), len(window.text)]
        yield from (window.text[start:stop] for start, stop in zip(bounds[::2], bounds[1::2], strict=True))
    yield from (snippet.text for snippet in request.snippets)


def _continued(counts: Counts, request: InfillRequest, span: Span) -> Filled:
    """Greedy, with backoff from the longest known n-gram, until the line or the block ends or nothing is known."""
    window = request.windows[span.window].text
    before = TOKEN.findall(window[: span.start][-ORDER * 40 :])
    tokens: list[str] = []
    shares: list[float] = []
    depth = _margin(window[: span.start])
    while len(tokens) < span.budget:
        token, share = _likeliest(counts, [*before, *tokens][-ORDER:])
        if _ends(token, span, tokens, depth):
            break
        tokens.append(token)
        shares.append(share)
    tail = window[span.end :].partition("\n")[0]
    text = "".join(tokens).rstrip()
    text = text.removesuffix(tail) if span.mode == "line" else text
    sure = 1.0
    for share in shares:
        sure *= share
    return Filled(text, tuple(shares), sure if text else 0.0, len(tokens) < span.budget)


def _likeliest(counts: Counts, context: Sequence[str]) -> tuple[str, float]:
    """Ties go to the token that was seen first. The empty token if even the last token is new."""
    for start in range(len(context)):
        if followers := counts.get(tuple(context[start:])):
            token, count = followers.most_common(1)[0]
            return token, count / followers.total()
    return "", 0.0


def _ends(token: str, span: Span, tokens: Sequence[str], depth: int) -> bool:
    if token == "\n":
        return span.mode == "line" or tokens.count("\n") + 1 >= BLOCK_LINES
    indentation = len(token) if token.isspace() else 0
    return not token or (tokens[-1:] == ["\n"] and indentation < depth)


def _margin(before: str) -> int:
    """The indentation of the cursor's line."""
    line = before.rpartition("\n")[2]
    return len(line) - len(line.lstrip())
