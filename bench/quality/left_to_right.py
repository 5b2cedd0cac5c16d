"""Our weights decoded token by token by another runtime, which keeps what it has read.

It gets the rows that our engine lays out, and chooses tokens and presents answers as it does. Every token costs it a
forward, and it has no copy bias, so its answers differ from ours.
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Protocol

import numpy as np

from mercury_engine.api import Draft, EngineError, EngineInfo, InfillRequest
from mercury_engine.decode.answer import HoleAnswer, Presentation
from mercury_engine.decode.choice import Chooser
from mercury_engine.decode.confidence import read_calibration
from mercury_engine.decode.search import HOPELESS, LOW_TOKENS
from mercury_engine.engine import BAR
from mercury_engine.model.config import TOKENIZER_FILE, read_config
from mercury_engine.tokens.layout import LayoutRow, budget_for, freeze, lay_out
from mercury_engine.tokens.tokenizer import Tokenizer


class Reader(Protocol):
    """One sequence of tokens that can be extended or truncated."""

    def logits(self, tokens: np.ndarray) -> np.ndarray:
        """Append to the cache; return the logits of the last token."""
        ...

    def keep(self, length: int) -> None: ...


class LeftToRight:
    """Greedy, one forward per token; the common prefix with the last request is not read again. `folder` has our model,
    whose config and tokenizer are needed here."""

    def __init__(self, folder: Path, reader: Reader, name: str, precision: str) -> None:
        config, self._tokenizer = read_config(folder / "config.json"), Tokenizer.load(folder / TOKENIZER_FILE)
        self._reader = reader
        self._chooser = Chooser(self._tokenizer, config.vocabulary)
        self._budget = budget_for(config.context)
        self._presentation = Presentation(self._tokenizer, read_calibration(folder), BAR)
        self._info = EngineInfo(name, config.name, f"cpu, {precision}", config.context)
        self._read: list[int] = []

    def infill(self, request: InfillRequest) -> Iterator[Draft]:
        row = self.row(request)
        answer, probability = self._answer(request, row), 1.0
        logits_V = self._reach(row.ids.tolist())
        for step in count(1):
            choice = self._chooser.best(logits_V, answer.typed)
            answer.add(choice)
            probability *= choice.probability
            final = answer.done or (request.effort == "low" and probability < HOPELESS)
            yield Draft(step, (self._presentation.show(answer, answer.decoded(), "", bar=request.bar),), final)
            if final:
                return
            logits_V = self._append([choice.token])

    def warm(self, request: InfillRequest) -> Iterator[None]:
        self._reach(self.row(request).ids.tolist()[:-1])
        yield

    def info(self) -> EngineInfo:
        return self._info

    def row(self, request: InfillRequest) -> LayoutRow:
        if len(request.spans) != 1 or request.spans[0].start != request.spans[0].end:
            raise EngineError("this peer continues one place; ask one of our own engines for next edits")
        return lay_out(self._tokenizer, request, freeze(self._tokenizer, request, self._budget), self._budget)

    def _answer(self, request: InfillRequest, row: LayoutRow) -> HoleAnswer:
        span = request.spans[0]
        wanted = min(span.budget, LOW_TOKENS) if request.effort == "low" else span.budget
        return HoleAnswer(self._tokenizer, row.holes[0], span, max(1, min(wanted, self._budget.context - len(row.ids))))

    def _reach(self, ids: list[int]) -> np.ndarray:
        """Read to the end of `ids`; the last token is always read, for its logits."""
        pairs = enumerate(zip(self._read, ids[:-1], strict=False))
        common = next((at for at, (old, new) in pairs if old != new), min(len(self._read), len(ids) - 1))
        self._reader.keep(common)
        del self._read[common:]
        return self._append(ids[common:])

    def _append(self, ids: list[int]) -> np.ndarray:
        self._read += ids
        return self._reader.logits(np.array(ids, np.int32))
