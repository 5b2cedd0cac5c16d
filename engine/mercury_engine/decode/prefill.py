"""Reads a prefix into a session's cache, a chunk in each forward (chunked prefill)."""

from mercury_engine.decode.canvas import fuse
from mercury_engine.decode.policy import Report
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.model.room import CHUNK, chunk_at
from mercury_engine.model.runtime import Pass, Passes
from mercury_engine.tokens.prefix import HintedPrefix


def prefill(
    session: EngineSession, prefix: HintedPrefix, report: Report, *, leave: int = CHUNK, chunk: int = CHUNK
) -> Passes[bool]:
    """Encode a chunk of rows if more than `leave` are missing from the cache; True if that took a pass."""
    cached = session.align(prefix)
    if len(prefix) - cached <= chunk_at(cached, leave):
        return False
    part = prefix.upto(min(cached + chunk_at(cached, chunk), len(prefix) - 1))
    rows = fuse(cached, part, len(part) - cached).rows
    forward = yield Pass(rows, session.cache)
    session.keep(forward, part)
    report.count("read", rows=len(rows.ids_R), settled=0)
    return True
