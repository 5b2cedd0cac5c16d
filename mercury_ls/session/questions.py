"""What the engine is asked, and whether it may be: settings, context and budget, the same for both kinds of request."""

import logging
import math
import uuid
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from mercury_ls.code.documents import Snapshot
from mercury_ls.completion import context
from mercury_ls.completion.aftermath import Learn
from mercury_ls.completion.budgets import Budgets, EnginePace, bar_of, budgets_for
from mercury_ls.completion.context import Related
from mercury_ls.completion.judge import UNTAUGHT, Evidence, Judge
from mercury_ls.completion.offers import Answer, Offer
from mercury_ls.completion.suggest import Question, judges_in_time
from mercury_ls.completion.target import Target
from mercury_ls.link.client import EngineLink
from mercury_ls.names.members import NameSources
from mercury_ls.session.gate import Gate
from mercury_ls.session.open_files import OpenFiles, unfit
from mercury_ls.session.outcomes import Outcomes, name_of
from mercury_ls.session.requests import EXPLICIT_SECONDS
from mercury_ls.session.stats import Kind
from mercury_ls.settings.schema import Settings
from mercury_ls.wording import counted

log = logging.getLogger(__name__)

LONGEST_SNOOZE_MINUTES = 60.0 * 24 * 365

MOST_MISSES = 4
"""In a row, after which a next-edit model is not asked more rarely still."""


class Questions:
    """Owns what a question depends on besides the files: settings, engine, known names, snooze, the snippets last
    chosen, and what became of earlier suggestions."""

    def __init__(
        self,
        settings: Settings,
        engine: EngineLink,
        files: OpenFiles,
        clock: Callable[[], float],
        outcomes: Outcomes | None = None,
    ):
        self.session = uuid.uuid4().hex[:12]
        self.settings = settings
        self.files = files
        self.connect(engine)
        self.clock = clock
        self.outcomes = outcomes or Outcomes()
        self.outcomes.enabled = settings.record.counts
        self.names = NameSources()
        self.pace = EnginePace()
        self.snoozed_until = 0.0
        self.sent = ""
        """What went to another program last, and where."""
        self._related: Related | None = None
        self._forgotten = 0

    def connect(self, engine: EngineLink) -> None:
        """To this engine, which is told nothing of hidden files."""
        self.engine = Gate(engine, lambda path: self.files.privacy.why_hidden(path))

    def snooze(self, minutes: float) -> None:
        """For a year at most; not at all for zero, a negative number or NaN."""
        bounded = min(minutes, LONGEST_SNOOZE_MINUTES) if minutes > 0 else 0.0
        self.snoozed_until = self.clock() + bounded * 60

    def unavailable(self, uri: str, invoked: bool) -> str:
        """Why this document gets no suggestions at all, neither ghost text nor next edits, in an editor or over HTTP;
        empty if it may."""
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
        if not invoked and (setting := settings.waits_in(document.language)):
            return f"suggestions come on request only (suggest.{setting})"
        return unfit(document.text)

    @property
    def budgets(self) -> Budgets:
        info = self.engine.status.info
        self.pace.follow(info)
        return budgets_for(info, self.pace, self.settings)

    def pause_ms(self, snapshot: Snapshot, offset: int) -> float:
        """How long to wait before the engine is asked about this place."""
        budgets, is_missed = self.budgets, self.files.aftermath.missed(snapshot, offset)
        return max(budgets.pause_ms, budgets.pause_after_miss_ms if is_missed else 0.0)

    @property
    def rewrite_pause_ms(self) -> float:
        """How long to wait before a next-edit model is asked by itself: longer with each answer of its that nobody
        kept, until one is."""
        budgets, misses = self.budgets, self.outcomes.misses(self.model, "nextEdit")
        return max(budgets.pause_ms, budgets.pause_after_miss_ms * min(misses, MOST_MISSES))

    def about(self, snapshot: Snapshot, offset: int, *, invoked: bool = False) -> Question:
        """What any question to the engine about this place tells it."""
        settings, info, budgets = self.settings, self.engine.status.info, self.budgets
        return Question(
            snapshot=snapshot,
            offset=offset,
            target=Target(offset, offset),
            history=self.files.history,
            related=self.related(snapshot, offset),
            settings=settings.suggest,
            budget=budgets.context,
            session=self.session,
            bar=bar_of(settings),
            invoked=invoked,
            effort=settings.engine.effort,
            deadline_ms=budgets.deadline_ms,
            recent_edits=settings.context.recent_edits,
            fills=info is None or info.fills,
            rewrites=info is not None and info.rewrites,
            rewrites_lines=info is not None and info.rewrites_lines,
            judges=info is not None and judges_in_time(info),
            strong=info is not None and info.strong,
            slow=info is not None and not (info.follows_typing or settings.engine.deadline_ms),
            grows=info is not None and info.grows and not (info.starts and invoked),
            starts=info is not None and info.starts,
            most_tokens=budgets.tokens,
            persistent=invoked and info is not None and not info.metered,
        )

    def completion(self, snapshot: Snapshot, offset: int, *, invoked: bool = False) -> Question:
        """The question for what belongs at the cursor: what is known of the names there goes along."""
        question = self.about(snapshot, offset, invoked=invoked)
        return replace(
            question,
            bar=self.budgets.bar,
            blind_bar=bar_of(self.settings),
            deadline_ms=max(self.budgets.deadline_ms, 1000 * EXPLICIT_SECONDS if invoked else 0.0),
            members=self.names.about(snapshot, offset),
            judge=self.judge("inline"),
            missed=self.files.aftermath.missed(snapshot, offset),
        )

    def adopt(self, settings: Settings) -> None:
        self.settings = settings
        self.outcomes.enabled = settings.record.counts

    @property
    def model(self) -> str:
        """The engine's, by its name; of a file, without its folder."""
        info = self.engine.status.info
        return name_of(info.model) if info else ""

    @property
    def learns(self) -> bool:
        """Whether what becomes of answers changes what is shown."""
        return self.settings.suggest.adapt and self.outcomes.enabled

    def judge(self, kind: Kind) -> Judge:
        """What decides how likely the model's answers are to be kept here: completions are judged by a fit, if not to
        this model."""
        info = self.engine.status.info
        if info is None:
            return UNTAUGHT
        judge = self.outcomes.judge(info.model, kind) if self.learns else UNTAUGHT
        return replace(judge, calibrated=info.calibrated, fitted=kind == "inline")

    def lesson(self, kind: Kind, evidence: Evidence) -> Learn:
        """What to do once it is known whether the user kept an answer of which this was known."""
        info = self.engine.status.info
        return partial(self.outcomes.settled, info.model if info else "", kind, evidence)

    def taught_by(self, kind: Kind, offer: Offer) -> Callable[[bool], None] | None:
        """What to do once it is known whether an offer that was shown was taken; nothing if it is not a model's."""
        return partial(self.lesson(kind, offer.evidence), shown=True) if offer.evidence else None

    def tell(self, answer: Answer) -> None:
        """Logs once what an answer sent to another program."""
        if answer.sent and answer.sent != self.sent:
            self.sent = answer.sent
            log.info("sent %s", answer.sent)

    def related(self, snapshot: Snapshot, offset: int) -> Related:
        """Kept while the user types in one place, unless something of it has become private."""
        files, time = self.files, self.clock()
        related = self._related if self._forgotten == files.forgotten else None
        if related is None or not related.still_fits(snapshot, offset, time):
            neighbours = files.around(snapshot) if self.settings.context.snippets else []
            budget = self.budgets.context
            related = context.relate(snapshot, offset, neighbours, files.workspace.definitions, budget, time)
            self._related, self._forgotten = related, files.forgotten
        return related
