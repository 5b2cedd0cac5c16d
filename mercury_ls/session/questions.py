"""What the engine is asked, and whether it may be: settings, context and budget, the same for both kinds of request."""

import logging
import math
import uuid
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from msgspec.structs import replace

from mercury_engine.api import Proposed
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.modules import Project
from mercury_ls.completion import context, shapes
from mercury_ls.completion.aftermath import Learn
from mercury_ls.completion.calibration import AS_GIVEN, Correction
from mercury_ls.completion.context import Budget, Related
from mercury_ls.completion.judge import UNTAUGHT, Evidence, Judge
from mercury_ls.completion.offers import Answer, Offer
from mercury_ls.completion.shapes import Elsewhere
from mercury_ls.completion.suggest import Question, asked_modes
from mercury_ls.names.members import KnownNames
from mercury_ls.session.open_files import OpenFiles, unfit
from mercury_ls.session.outcomes import Outcomes
from mercury_ls.session.stats import Kind
from mercury_ls.settings.schema import Settings
from mercury_ls.wording import counted

__all__ = ["Questions"]

log = logging.getLogger(__name__)

MOST_DEFINING = 2
"""Files that are read for the definition of one name."""
LONGEST_SNOOZE_MINUTES = 60.0 * 24 * 365

Asked = TypeVar("Asked", bound=Question)


class Questions:
    """Owns what a question depends on besides the files: settings, engine, known names, snooze, the snippets last
    chosen, and what became of earlier suggestions."""

    def __init__(
        self,
        settings: Settings,
        engine: Any,
        files: OpenFiles,
        clock: Callable[[], float],
        outcomes: Outcomes | None = None,
    ):
        self.session = uuid.uuid4().hex[:12]
        self.settings = settings
        self.engine = engine
        self.files = files
        self.clock = clock
        self.outcomes = outcomes or Outcomes()
        self.outcomes.enabled = settings.record.counts
        self.names = KnownNames()
        self.snoozed_until = 0.0
        self.sent = ""
        """What went to another program last, and where."""
        self._related: Related | None = None
        self._forgotten = 0

    def snooze(self, minutes: float) -> None:
        """For a year at most; not at all for zero, a negative number or NaN."""
        bounded = min(minutes, LONGEST_SNOOZE_MINUTES) if minutes > 0 else 0.0
        self.snoozed_until = self.clock() + bounded * 60

    def unavailable(self, uri: str, invoked: bool) -> str:
        """Why this document gets no suggestions at all; empty if it may."""
        settings = self.settings.suggest
        if reason := self.files.why_missing(uri):
            return reason
        document = self.files.documents[uri]
        if not settings.enabled:
            return "suggestions are off (suggest.enabled)"
        if self.clock() < self.snoozed_until and not invoked:
            return f"snoozed for another {counted(math.ceil((self.snoozed_until - self.clock()) / 60), 'minute')}"
        if not settings.suggests_in(document.language):
            return f"off for {document.language} (suggest.languages)"
        return unfit(document.text)

    def about(self, kind: type[Asked], snapshot: Snapshot, offset: int, bar: float, **more: Any) -> Asked:
        settings = self.settings
        return kind(
            snapshot=snapshot,
            offset=offset,
            history=self.files.history,
            related=self.related(snapshot, offset),
            settings=settings.suggest,
            budget=self.budget,
            session=self.session,
            bar=bar,
            effort=settings.engine.effort,
            deadline_ms=settings.engine.deadline_ms,
            recent_edits=settings.context.recent_edits,
            modes=asked_modes(self.engine.status.info),
            **more,
        )

    def adopt(self, settings: Settings) -> None:
        self.settings = settings
        self.outcomes.enabled = settings.record.counts

    def judge(self, kind: Kind) -> Judge:
        """What decides how likely the model's answers are to be kept here."""
        info = self.engine.status.info
        if info is None:
            return UNTAUGHT
        judge = self.outcomes.judge(info.model, kind) if self.settings.suggest.adapt else UNTAUGHT
        return replace(judge, calibrated=info.calibrated)

    def lesson(self, kind: Kind, evidence: Evidence) -> Learn:
        """What to do once it is known whether the user kept an answer of which this was known."""
        info = self.engine.status.info
        return partial(self.outcomes.settled, info.model if info else "", kind, evidence)

    def taught_by(self, kind: Kind, offer: Offer) -> Callable[[bool], None] | None:
        """What to do once it is known whether an offer that was shown was taken; nothing if it is not a model's."""
        return partial(self.lesson(kind, offer.evidence), shown=True) if offer.evidence else None

    def correction(self, kind: Kind) -> Correction:
        """None: `judge` has its place."""
        return AS_GIVEN

    def learn(self, kind: Kind, p_model: float) -> Callable[[bool], None] | None:
        """None: `lesson` has its place."""
        return None

    async def telling(self, answers: AsyncGenerator[Answer]) -> AsyncGenerator[Answer]:
        """These answers; what they sent to another program is logged as soon as the first of them says so."""
        told = ""
        async with aclosing(answers):
            async for answer in answers:
                if answer.sent and answer.sent != told:
                    told = self.sent = answer.sent
                    log.info("sent %s", told)
                yield answer

    @property
    def budget(self) -> Budget:
        info = self.engine.status.info
        limit = self.settings.context
        if info is None:
            return Budget(tokens=limit.budget_tokens, snippets=limit.snippets)
        tokens = min(limit.budget_tokens, info.context_tokens or limit.budget_tokens)
        return Budget(tokens, info.characters_per_token, limit.snippets)

    def proposals(self, snapshot: Snapshot, offset: int) -> tuple[Proposed, ...]:
        """What the code around the cursor says may follow, for the model to verify."""
        workspace = self.files.workspace

        def defining(name: str) -> Iterator[str]:
            for found in islice(workspace.find(name, snapshot.path), MOST_DEFINING):
                if text := workspace.text(found.path):
                    yield text

        def module(named: str) -> str | None:
            path = Project((), workspace.text, workspace.exists).module(snapshot, named, snapshot.path)
            return workspace.text(path) if path else None

        return shapes.proposed(snapshot, offset, Elsewhere(defining, module))

    def related(self, snapshot: Snapshot, offset: int) -> Related:
        """Kept while the user types in one place, unless something of it has become private."""
        files, now = self.files, self.clock()
        known = self._related if self._forgotten == files.forgotten else None
        if known is None or not known.still_fits(snapshot, offset, now):
            others = files.around(snapshot) if self.settings.context.snippets else []
            known = context.relate(snapshot, offset, others, files.workspace.definitions, self.budget, now)
            self._related, self._forgotten = known, files.forgotten
        return known
