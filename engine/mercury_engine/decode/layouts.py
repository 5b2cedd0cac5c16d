"""Which row a gap gets: the longest and newest that is read quickly, among those whose context stays frozen."""

from collections.abc import Iterator

from mercury_engine.api import Gap
from mercury_engine.decode.reading import ReadingPace
from mercury_engine.decode.sessions import Layout, Place, Places, SessionPool
from mercury_engine.tokens.layout import Budget, LayoutRow, lay_out, shorter_budget
from mercury_engine.tokens.tokenizer import Tokenizer


class Layouts:
    """Owns the places of gaps."""

    def __init__(self, tokenizer: Tokenizer, context: int, pace: ReadingPace, sessions: SessionPool) -> None:
        self._tokenizer, self._context, self._pace, self._sessions = tokenizer, context, pace, sessions
        self._places = Places()

    def place(self, gap: Gap) -> Place:
        return self._places.open(gap.session, (gap.root, gap.path))

    def row(self, gap: Gap) -> LayoutRow:
        """The gap with the frozen edits, and no more than is read quickly."""
        candidates = self._candidates(self.place(gap), gap)
        row = next(candidates)
        while not self._is_quick(row) and (shorter := next(candidates, None)):
            row = shorter
        return row

    def rows_ahead(self, gap: Gap) -> list[LayoutRow]:
        """What to read while nobody waits: one row if that is quick, else shorter ones before it."""
        place = self.place(gap)
        rows = [self._ahead(place, gap, budget) for budget in self._budgets()]
        return rows[:1] if self._is_quick(rows[0]) else rows[::-1]

    def _budgets(self) -> tuple[Budget, ...]:
        """Of the rows that a gap may have, the longest first."""
        return tuple(shorter_budget(self._context, length) for length in self._pace.prompts(self._context))

    def _candidates(self, place: Place, gap: Gap) -> Iterator[LayoutRow]:
        """The rows that a gap may have, the longest and newest first."""
        for budget in self._budgets():
            layouts = place.usable(gap, budget) or [place.keep(Layout.of(self._tokenizer, gap, budget))]
            yield from (self._row(gap, layout) for layout in layouts)

    def _ahead(self, place: Place, gap: Gap, budget: Budget) -> LayoutRow:
        usable, fresh = place.usable(gap, budget), Layout.of(self._tokenizer, gap, budget)
        row = self._row(gap, fresh)
        if usable and not (self._is_quick(row) or usable[0].is_outdated(gap)):
            return self._row(gap, usable[0])
        place.keep(fresh)
        return row

    def _row(self, gap: Gap, layout: Layout) -> LayoutRow:
        return lay_out(self._tokenizer, gap, layout.frozen, layout.budget)

    def _is_quick(self, row: LayoutRow) -> bool:
        return self._pace.is_quick(self._sessions.unread(row.ids))
