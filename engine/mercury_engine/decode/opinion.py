"""How likely a model finds an edit that it did not write: the probability of each of its tokens as a diff goes on."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.api import InfillRequest, Span
from mercury_engine.decode.canvas import fuse
from mercury_engine.decode.policy import Report
from mercury_engine.decode.reading import ReadingPace
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.model.runtime import Pass, Passes
from mercury_engine.prompts.proposal import diffs, proposal_prompt
from mercury_engine.tokens.prefix import Prefix
from mercury_engine.tokens.tokenizer import Tokenizer

LONGEST_HISTORY, LONGEST_PLACE, LONGEST_WRITTEN = 600, 300, 200
"""In tokens: of earlier edits, of which the newest count most; of the lines above and the old ones; of the new ones."""


def read_history(tokenizer: Tokenizer, request: InfillRequest) -> list[int]:
    """The newest edits that fit, the oldest of them first."""
    history: list[int] = []
    for text in diffs(request.edits):
        ids = tokenizer.encode(text)
        if history and len(history) + len(ids) > LONGEST_HISTORY:
            break
        history = ids[:LONGEST_HISTORY] + history
    return history


class Opinion(Struct, eq=False):
    """What a model has to say of one proposal: `ids` from `anchor` + 1 on are what it may find likely or not."""

    ids: np.ndarray
    anchor: int
    probabilities: tuple[float, ...] = ()

    @classmethod
    def of(cls, tokenizer: Tokenizer, history: Sequence[int], request: InfillRequest, span: Span) -> "Opinion":
        prompt = proposal_prompt(request, span)
        read = [*history, *tokenizer.encode(prompt.place)[-LONGEST_PLACE:]]
        judged = [*tokenizer.encode(prompt.written)[:LONGEST_WRITTEN], *tokenizer.encode(prompt.after)[:1]]
        return cls(np.array(read + judged, np.int32), len(read) - 1)

    def form(self, session: EngineSession, pace: ReadingPace, report: Report) -> Passes[None]:
        """Read what comes before, then the proposal in one forward."""
        prefix = Prefix.of(self.ids, np.arange(len(self.ids), dtype=np.int32))
        before, chunk = prefix.upto(self.anchor + 1), pace.chunk()
        leave = max(chunk - (len(prefix) - len(before)), 1)
        while (yield from pace.read(session, before, report, leave=leave, chunk=chunk)):
            yield
        cached = session.align(before)
        fused = fuse(cached, prefix, self.anchor - cached)
        forward = yield Pass(fused.rows, session.cache)
        session.keep(forward, before)
        report.count("opinion", rows=len(fused.rows.ids_R), settled=0)
        self.probabilities = _of_next(np.asarray(forward.logits_WV, np.float32)[:-1], self.ids[self.anchor + 1 :])


def _of_next(logits_WV: np.ndarray, ids_W: np.ndarray) -> tuple[float, ...]:
    """The probability of each row's next token."""
    shifted_WV = logits_WV - logits_WV.max(axis=1, keepdims=True)
    own_W = np.take_along_axis(shifted_WV, ids_W[:, None], axis=1)[:, 0]
    return tuple(map(float, np.exp(own_W) / np.exp(shifted_WV).sum(axis=1)))
