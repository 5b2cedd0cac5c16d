"""Completers without a model, behind the engine's API: a model has to beat them.

`FakeEngine` continues the longest match of the text before the cursor; `NgramEngine` gives, token by token, the most
frequent continuation of the last few tokens in the same file.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Generator, Sequence

from mercury_engine.api import Draft, Engine, EngineInfo, Gap, Regions
from mercury_engine.fake import FakeEngine

TOKEN = re.compile(r"\n|[ \t]+|[^\W\d]\w*|\d|[^\w\s]|\s")
ORDER = 6
BLOCK_LINES = 8

Counts = dict[tuple[str, ...], Counter[str]]


class NgramEngine(Engine):
    """Deterministic; learns from the text and snippets of a gap, and forgets them again."""

    def fill(self, gap: Gap) -> Generator[Draft]:
        yield _continued(_learned(gap), gap)

    def warm(self, question: Gap | Regions) -> Generator[None]:
        yield from ()

    def info(self) -> EngineInfo:
        return EngineInfo(engine="n-gram", model="counts what is already written", device="cpu", context_tokens=2048)


BASELINES = {"copy": FakeEngine, "ngram": NgramEngine}


def _learned(gap: Gap) -> Counts:
    """The tokens that followed each n-gram of up to ORDER tokens. Text on both sides of a gap is never joined."""
    counts: Counts = defaultdict(Counter)
    for text in (gap.before, gap.after, *(snippet.text for snippet in gap.snippets)):
        tokens = TOKEN.findall(text)
        for place, token in enumerate(tokens):
            for order in range(1, min(ORDER, place) + 1):
                counts[tuple(tokens[place - order : place])][token] += 1
    return counts


def _continued(counts: Counts, gap: Gap) -> Draft:
    """Greedy, with backoff from the longest known n-gram, until the line or the block ends or nothing is known."""
    before = TOKEN.findall(gap.before[-ORDER * 40 :])
    tokens: list[str] = []
    shares: list[float] = []
    depth = _margin(gap.before)
    while len(tokens) < gap.most_tokens:
        token, share = _likeliest(counts, [*before, *tokens][-ORDER:])
        if _ends(token, gap, tokens, depth):
            break
        tokens.append(token)
        shares.append(share)
    text = "".join(tokens).rstrip()
    text = text if gap.block else text.removesuffix(gap.after.partition("\n")[0])
    sure = math.prod(shares) if text else 0.0
    return Draft(1, text, tuple(shares), sure, len(tokens) < gap.most_tokens, final=True)


def _likeliest(counts: Counts, context: Sequence[str]) -> tuple[str, float]:
    """Ties go to the token that was seen first. The empty token if even the last token is new."""
    for start in range(len(context)):
        if followers := counts.get(tuple(context[start:])):
            token, count = followers.most_common(1)[0]
            return token, count / followers.total()
    return "", 0.0


def _ends(token: str, gap: Gap, tokens: Sequence[str], depth: int) -> bool:
    if token == "\n":
        return not gap.block or tokens.count("\n") + 1 >= BLOCK_LINES
    indentation = len(token) if token.isspace() else 0
    return not token or (tokens[-1:] == ["\n"] and indentation < depth)


def _margin(before: str) -> int:
    """The indentation of the cursor's line."""
    line = before.rpartition("\n")[2]
    return len(line) - len(line.lstrip())
