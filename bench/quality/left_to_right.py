"""Our weights decoded token by token by another runtime, which keeps what it has read.

It gets the rows that our engine lays out, and chooses tokens and presents answers as it does. Every token costs it a
forward, and it has no copy bias, so its answers differ from ours.
"""

from collections.abc import Generator
from itertools import count
from pathlib import Path
from typing import Protocol

import numpy as np
from msgspec.structs import replace

from mercury_engine.api import Draft, Engine, EngineInfo, Gap, Regions
from mercury_engine.decode.answer import GapAnswer, Presentation
from mercury_engine.decode.choice import Chooser
from mercury_engine.decode.confidence import read_calibration
from mercury_engine.decode.ending import indentation
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


class LeftToRight(Engine):
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

    def fill(self, gap: Gap) -> Generator[Draft]:
        row = self.row(gap)
        answer, probability = self._answer(gap, row), 1.0
        logits_V = self._reach(row.ids.tolist())
        for step in count(1):
            choice = self._chooser.best(logits_V, answer.typed)
            answer.add(choice)
            probability *= choice.probability
            final = answer.done or (gap.effort == "low" and probability < HOPELESS)
            yield replace(self._presentation.show(answer, answer.decoded(), bar=gap.bar), step=step, final=final)
            if final:
                return
            logits_V = self._append([choice.token])

    def warm(self, question: Gap | Regions) -> Generator[None]:
        if isinstance(question, Gap):
            self._reach(self.row(question).ids.tolist()[:-1])
            yield

    def info(self) -> EngineInfo:
        return self._info

    def row(self, gap: Gap) -> LayoutRow:
        return lay_out(self._tokenizer, gap, freeze(self._tokenizer, gap, self._budget), self._budget)

    def _answer(self, gap: Gap, row: LayoutRow) -> GapAnswer:
        wanted = min(gap.most_tokens, LOW_TOKENS) if gap.effort == "low" else gap.most_tokens
        limit = max(1, min(wanted, self._budget.context - len(row.ids)))
        margin = indentation(gap.before.rpartition("\n")[2])
        return GapAnswer(self._tokenizer, row.part, limit, block=gap.block, margin=margin)

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
