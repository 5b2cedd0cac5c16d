"""What became of the answers of each model, and the judge that is fitted to it: stored on this machine only, beside the
statistics and under the same setting."""

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mercury_ls.code.files import read_small
from mercury_ls.completion.judge import MOST_OUTCOMES, UNTAUGHT, Evidence, Judge, Outcome, fitted
from mercury_ls.session.stats import Kind, append_lines, locked, readable_rows, rewrite

log = logging.getLogger(__name__)

Key = tuple[str, Kind]
"""A model's name, and the kind of its answers."""

FILE = "outcomes.jsonl"
COMPACTED_BYTES = 1 << 19
LARGEST_FILE = 1 << 22
KEPT_DAYS = 60
MOST_UNFITTED = 8


class Fate(Struct, frozen=True):
    """One answer: the numbers that were known of it, whether it was shown, and whether the user kept it. Nothing else
    is stored: no text, no path, no time of day."""

    day: date
    model: str
    kind: Kind
    evidence: Evidence
    kept: bool
    shown: bool

    @property
    def key(self) -> Key:
        return self.model, self.kind


class Outcomes:
    """Those of this user, newest last, and what is not yet in the file, unless there is no file."""

    def __init__(self, folder: Path | None = None, clock: Callable[[], float] = time.time):
        self.enabled = True
        self._path = folder and folder / FILE
        self._clock = clock
        self._known: dict[Key, list[Fate]] | None = None
        self._new: list[Fate] = []
        self._judges: dict[Key, tuple[date, Judge]] = {}
        self._unfitted: Counter[Key] = Counter()

    def settled(self, model: str, kind: Kind, evidence: Evidence, kept: bool, shown: bool) -> None:
        if not self.enabled:
            return
        rounded = replace(evidence, p_accept=round(evidence.p_accept, 4))
        fate = Fate(self._today, name_of(model), kind, rounded, kept, shown)
        fates = self._all.setdefault(fate.key, [])
        fates.append(fate)
        if len(fates) > 3 * MOST_OUTCOMES:
            fates[:] = _latest(fates, self._today)
        if self._path is not None:
            self._new.append(fate)
        self._unfitted[fate.key] += 1
        if kept or shown or self._unfitted[fate.key] >= MOST_UNFITTED:
            del self._unfitted[fate.key]
            self._judges.pop(fate.key, None)

    def judge(self, model: str, kind: Kind) -> Judge:
        """Fitted again when it is asked for after an outcome, or some of answers that nobody saw, or on another day."""
        if not self.enabled:
            return UNTAUGHT
        today = self._today
        key: Key = name_of(model), kind
        if key not in self._judges or self._judges[key][0] != today:
            fates = [fate for fate in self._all.get(key, ()) if kind != "inline" or _is_comparable(fate.evidence)]
            outcomes = [Outcome(fate.evidence, fate.kept, fate.shown, (today - fate.day).days) for fate in fates]
            self._judges[key] = today, fitted(outcomes)
        return self._judges[key][1]

    def misses(self, model: str, kind: Kind) -> int:
        """How many of a model's last answers in a row were not kept."""
        if not self.enabled:
            return 0
        fates = self._all.get((name_of(model), kind), ())
        return next((number for number, fate in enumerate(reversed(fates)) if fate.kept), len(fates))

    def write(self) -> None:
        """What cannot be written now stays for the next time; without a disk, for this session."""
        if self._path is None or not self._new:
            return
        try:
            with locked(self._path):
                if append_lines(self._path, self._new) > COMPACTED_BYTES:
                    rewrite(self._path, _latest(_read(self._path), self._today))
            self._new.clear()
        except OSError as error:
            log.debug("outcomes stay in memory: %s", error)
            del self._new[:-MOST_OUTCOMES]

    def forget(self, model: str) -> None:
        """Removes what the file has of a model: another one of that name has to be known anew."""
        if self._path is None or not self._path.exists():
            return
        with locked(self._path):
            rewrite(self._path, [fate for fate in _read(self._path) if fate.model != name_of(model)])

    @property
    def _today(self) -> date:
        return date.fromtimestamp(self._clock())

    @property
    def _all(self) -> dict[Key, list[Fate]]:
        if self._known is None:
            self._known = {}
            for fate in _latest(_read(self._path) if self._path else [], self._today):
                self._known.setdefault(fate.key, []).append(fate)
        return self._known


def _is_comparable(evidence: Evidence) -> bool:
    """Not what an earlier version knew of a completion: it had no fit for models that were not calibrated."""
    return evidence.calibrated or not evidence.tokens


def name_of(model: str) -> str:
    """A server may call its model by the path of a file: only its name is stored."""
    return re.split(r"[/\\]", model)[-1]


def _latest(fates: Iterable[Fate], today: date) -> list[Fate]:
    """The last ones of each model and kind, after a miss and otherwise, oldest first."""
    by_kind: dict[tuple[str, Kind, bool], list[Fate]] = {}
    for fate in fates:
        if (today - fate.day).days <= KEPT_DAYS:
            by_kind.setdefault((*fate.key, fate.evidence.missed), []).append(fate)
    return [fate for some in by_kind.values() for fate in some[-MOST_OUTCOMES:]]


def _read(path: Path) -> list[Fate]:
    """None of a file that cannot be read, and none of the rows that an earlier version wrote."""
    try:
        return [*readable_rows(read_small(str(path), LARGEST_FILE).splitlines(), Fate)]
    except OSError:
        return []
