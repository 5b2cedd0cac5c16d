"""Reads a prefix into a session's cache, a chunk in each forward (chunked prefill), if there is memory for it."""

from bisect import bisect_right

from mercury_engine.decode.canvas import fuse
from mercury_engine.decode.policy import Report
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.model.runtime import Pass, Passes, Runtime
from mercury_engine.tokens.prefix import HintedPrefix

__all__ = ["CHUNK", "chunk_at", "prefill", "reading_bytes", "tokens_within"]

CHUNK = 256
"""Rows of context encoded in one forward: the longest forward that a keystroke has to wait for."""

SCORES = 1 << 22
"""Pairs of a row and a column in one forward: behind a long text chunks are shorter, so that what one of them takes in
time and memory stays bounded."""

SHORTEST_CHUNK = 32
FLOAT = 4


def chunk_at(cached: int, chunk: int = CHUNK) -> int:
    return min(chunk, max(SHORTEST_CHUNK, SCORES // max(1, cached)))


def reading_bytes(runtime: Runtime, tokens: int) -> int:
    """What reading so many tokens takes besides the weights: keys and values, and for one chunk the mask and three
    arrays of scores."""
    pairs = min(CHUNK * tokens, max(SCORES, SHORTEST_CHUNK * tokens))
    return runtime.cache_bytes(tokens) + FLOAT * pairs * (1 + 3 * runtime.config.heads)


def tokens_within(runtime: Runtime, room: int) -> int:
    """How many tokens can be read in so many bytes."""
    return bisect_right(range(runtime.config.context + 1), room, key=lambda tokens: reading_bytes(runtime, tokens)) - 1


def prefill(
    session: EngineSession, prefix: HintedPrefix, report: Report, *, leave: int = CHUNK, chunk: int = CHUNK
) -> Passes[bool]:
    """Encode a chunk of rows if more than `leave` are missing from the cache; whether that took a pass."""
    cached = session.align(prefix)
    if len(prefix) - cached <= chunk_at(cached, leave):
        return False
    part = prefix.upto(min(cached + chunk_at(cached, chunk), len(prefix) - 1))
    rows = fuse(cached, part, len(part) - cached).rows
    forward = yield Pass(rows, session.cache)
    session.keep(forward, part)
    report.count("read", rows=len(rows.ids_R), settled=0)
    return True
