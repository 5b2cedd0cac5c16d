"""How likely a model finds an edit that it did not write: the probability of each of its tokens as a diff goes on."""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.api import Edit, Likelihood, Proposal
from mercury_engine.decode.canvas import fuse
from mercury_engine.decode.policy import Report
from mercury_engine.decode.reading import ReadingPace
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.model.runtime import Pass, Passes
from mercury_engine.prompts.proposal import diffs, proposal_prompt
from mercury_engine.tokens.tokenizer import Tokenizer

LONGEST_HISTORY, LONGEST_PLACE, LONGEST_WRITTEN = 200, 300, 200
"""In tokens: of earlier edits, of which the newest count most; of the lines above and the old ones; of the new ones."""

LEAST = math.log(1e-9)
"""What a token takes from the likelihood at most."""


def read_history(tokenizer: Tokenizer, edits: Sequence[Edit]) -> list[int]:
    """The newest edits that fit, the oldest of them first."""
    history: list[int] = []
    for text in diffs(edits):
        ids = tokenizer.encode(text)
        if history and len(history) + len(ids) > LONGEST_HISTORY:
            break
        history = ids[:LONGEST_HISTORY] + history
    return history


class Opinion(Struct, eq=False):
    """What a model has to say of one proposal: `ids` from `anchor` + 1 on are what it may find likely or not."""

    ids: np.ndarray
    anchor: int
    likelihood: Likelihood | None = None

    @classmethod
    def of(cls, tokenizer: Tokenizer, history: Sequence[int], proposal: Proposal) -> "Opinion":
        prompt = proposal_prompt(proposal)
        read = [*history, *tokenizer.encode(prompt.place)[-LONGEST_PLACE:]]
        judged = [*tokenizer.encode(prompt.written)[:LONGEST_WRITTEN], *tokenizer.encode(prompt.after)[:1]]
        return cls(np.array(read + judged, np.int32), len(read) - 1)

    def form(self, session: EngineSession, pace: ReadingPace, report: Report) -> Passes[None]:
        """Read what comes before, then the proposal in one forward; then pause, for the caller may need no other."""
        before, chunk = self.ids[: self.anchor + 1], pace.chunk()
        leave = max(chunk - (len(self.ids) - len(before)), 1)
        while (yield from pace.read(session, before, report, leave=leave, chunk=chunk)):
            yield
        cached = session.align(before)
        fused = fuse(cached, self.ids, self.anchor - cached)
        forward = yield Pass(fused.rows, session.cache)
        session.keep(forward, before)
        report.count("opinion", rows=len(fused.rows.ids_R), settled=0)
        self.likelihood = _likelihood(np.asarray(forward.logits_WV, np.float32)[:-1], self.ids[self.anchor + 1 :])
        yield


def _likelihood(logits_WV: np.ndarray, ids_W: np.ndarray) -> float:
    """The sum of the log probabilities of each row's next token, of which none counts without limit."""
    shifted_WV = logits_WV - logits_WV.max(axis=1, keepdims=True)
    own_W = np.take_along_axis(shifted_WV, ids_W[:, None], axis=1)[:, 0]
    logs_W = own_W - np.log(np.exp(shifted_WV).sum(axis=1))
    return float(np.maximum(logs_W, LEAST).sum())
