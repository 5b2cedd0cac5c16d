"""Answers what the user will make of several regions next: the past is read, all regions are judged, the likeliest
changes are written. `rewriting.py` has the passes, `tokens/revisions.py` the form."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.api import Region, Regions, Rewritten
from mercury_engine.decode.batching import until_pause
from mercury_engine.decode.confidence import Calibration
from mercury_engine.decode.policy import Report
from mercury_engine.decode.reading import ReadingPace
from mercury_engine.decode.rewriting import RegionAnswer, RegionQuestion, Rewriting
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.model.runtime import Passes
from mercury_engine.tokens import revisions
from mercury_engine.tokens.tokenizer import Tokenizer

LONGEST_ANSWER = 160
"""In tokens."""
WRITTEN = 3
"""The most changes that are written: each pass takes longer with each."""
LEAST = -2.0
"""The logarithm of how likely a change has to be to be written on; a less likely one is below the usual bar."""

JOINT = Calibration(bias=1.3, least=0.0, complete=0.0, joint=1.25)
"""Of models without a fit of their own: by how likely the text is. Fitted to 96 lines at which an edit was due, in
commits that nobody trained on (docs/log/2026-Q4.md): a text that is .15 likely has the usual bar, .25."""


class Revising(Struct, eq=False):
    """The answers to one request, as far as they are known."""

    tokenizer: Tokenizer
    calibration: Calibration
    regions: Sequence[Region]
    past: np.ndarray
    questions: Sequence[RegionQuestion]
    answers: Mapping[int, RegionAnswer] = {}
    is_finished: bool = False

    @classmethod
    def of(cls, tokenizer: Tokenizer, calibration: Calibration, question: Regions) -> "Revising":
        ids, path = revisions.past(tokenizer, question.edits, question.regions[0])
        return cls(
            tokenizer,
            calibration.rewriting or JOINT,
            question.regions,
            np.array(ids, np.int32),
            [_question(tokenizer, region, path) for region in question.regions],
        )

    def run(self, session: EngineSession, permitted_V: np.ndarray, pace: ReadingPace, report: Report) -> Passes[None]:
        """Each pause is after a pass."""
        chunk = pace.chunk()
        while (yield from pace.read(session, self.past, report, leave=chunk, chunk=chunk)):
            yield
        rewriting = Rewriting(session, self.past, self.questions, permitted_V, LONGEST_ANSWER, LEAST)
        for numbers in self._groups(chunk):
            before = rewriting.rows
            yield from rewriting.judge(numbers)
            report.count("judge", rows=rewriting.rows - before, settled=0)
            self.answers = rewriting.answers
            yield
        before = rewriting.rows
        writing = rewriting.write(WRITTEN)
        while (yield from until_pause(writing)):
            report.count("rewrite", rows=rewriting.rows - before, settled=0)
            before, self.answers = rewriting.rows, rewriting.answers
            yield
        self.is_finished = True

    def rewritten(self) -> tuple[Rewritten, ...]:
        return tuple(self._rewritten(region, self.answers.get(number)) for number, region in enumerate(self.regions))

    def _groups(self, rows: int) -> Iterator[list[int]]:
        """The regions that can be asked, so many at once as have about so many rows; the first ones first."""
        group: list[int] = []
        size = 0
        for number, region in enumerate(self.regions):
            if not revisions.is_readable(region.old):
                continue
            own = len(self.questions[number].question) + len(self.questions[number].old)
            if group and size + own > rows:
                yield group
                group, size = [], 0
            group.append(number)
            size += own
        if group:
            yield group

    def _rewritten(self, region: Region, answer: RegionAnswer | None) -> Rewritten:
        if not revisions.is_readable(region.old):
            return Rewritten(region.old, refused="a line is too long for the model")
        if answer is None:
            return Rewritten(region.old)
        p_keep = math.exp(answer.log_kept)
        if not answer.complete:
            return Rewritten(region.old, p_keep=p_keep, complete=self.is_finished)
        chance = self.calibration.p_accept(answer.probabilities, complete=True)
        text = self.tokenizer.decode(answer.ids)
        return Rewritten(text, tuple(answer.probabilities), chance, p_keep, complete=True)


def _question(tokenizer: Tokenizer, region: Region, path: str) -> RegionQuestion:
    return RegionQuestion(revisions.question(tokenizer, region, path), revisions.answer(tokenizer, region.old))
