"""What became of the suggestions of models that are not calibrated, and how their probabilities are corrected by it:
stored on this machine only, beside the statistics and under the same setting."""

import logging
import re
import time
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path

from msgspec import Struct

from mercury_ls.code.files import read_small
from mercury_ls.completion.calibration import AS_GIVEN, MOST_OUTCOMES, Correction, Outcome, fitted
from mercury_ls.session.stats import Kind, append_lines, locked, readable_rows, rewrite

__all__ = ["Outcomes", "Shown"]

log = logging.getLogger(__name__)

FILE = "outcomes.jsonl"
COMPACTED_BYTES = 1 << 17
LARGEST_FILE = 1 << 20
KEPT_DAYS = 60


class Shown(Struct, frozen=True):
    """One suggestion that was shown: how likely its model said that it was, and whether the user took it. Nothing else
    is stored: no text, no path, no time of day."""

    day: date
    model: str
    kind: Kind
    p: float
    taken: bool

    @property
    def key(self) -> tuple[str, Kind]:
        return self.model, self.kind


class Outcomes:
    """Those of this user, newest last, and what is not yet in the file, unless there is no file."""

    def __init__(self, folder: Path | None = None, clock: Callable[[], float] = time.time):
        self.enabled = True
        self._path = folder and folder / FILE
        self._clock = clock
        self._known: dict[tuple[str, Kind], list[Shown]] | None = None
        self._new: list[Shown] = []
        self._fitted: dict[tuple[str, Kind], tuple[date, Correction]] = {}

    def settled(self, model: str, kind: Kind, p: float, taken: bool) -> None:
        if not self.enabled:
            return
        shown = Shown(self._today, name_of(model), kind, round(p, 3), taken)
        known = self._all.setdefault(shown.key, [])
        known.append(shown)
        del known[:-MOST_OUTCOMES]
        self._new.append(shown)
        self._fitted.pop(shown.key, None)

    def correction(self, model: str, kind: Kind) -> Correction:
        """Fitted again after each outcome and each day."""
        if not self.enabled:
            return AS_GIVEN
        key, today = (name_of(model), kind), self._today
        if key not in self._fitted or self._fitted[key][0] != today:
            known = self._all.get(key, ())
            outcomes = [Outcome(each.p, each.taken, (today - each.day).days) for each in known]
            self._fitted[key] = today, fitted(outcomes)
        return self._fitted[key][1]

    def write(self) -> None:
        """What cannot be written now stays for the next time; without a disk, for this session."""
        if self._path is None or not self._new:
            return
        try:
            with locked(self._path):
                if append_lines(self._path, self._new) > COMPACTED_BYTES:
                    rewrite(self._path, latest(read(self._path), self._today))
            self._new.clear()
        except OSError as error:
            log.debug("outcomes stay in memory: %s", error)
            del self._new[:-MOST_OUTCOMES]

    @property
    def _today(self) -> date:
        return date.fromtimestamp(self._clock())

    @property
    def _all(self) -> dict[tuple[str, Kind], list[Shown]]:
        if self._known is None:
            self._known = {}
            for each in latest(read(self._path) if self._path else [], self._today):
                self._known.setdefault(each.key, []).append(each)
        return self._known


def name_of(model: str) -> str:
    """A server may call its model by the path of a file: only its name is stored."""
    return re.split(r"[/\\]", model)[-1]


def latest(rows: Iterable[Shown], today: date) -> list[Shown]:
    """The last ones of each model and kind, oldest first."""
    found: dict[tuple[str, Kind], list[Shown]] = {}
    for row in rows:
        if (today - row.day).days <= KEPT_DAYS:
            found.setdefault(row.key, []).append(row)
    return [row for some in found.values() for row in some[-MOST_OUTCOMES:]]


def read(path: Path) -> list[Shown]:
    """None of a file that cannot be read."""
    try:
        return [*readable_rows(read_small(str(path), LARGEST_FILE).splitlines(), Shown)]
    except OSError:
        return []
