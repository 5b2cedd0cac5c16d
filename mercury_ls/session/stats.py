"""Statistics of suggestions: counts by day, language and kind, stored on this machine only."""

import errno
import logging
import os
import re
import tempfile
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Literal, TypeVar, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mercury_ls.code.files import read_small
from mercury_ls.link.local import lock_file
from mercury_ls.settings.folders import folders
from mercury_ls.wording import columns, readable

log = logging.getLogger(__name__)

Kind = Literal["inline", "nextEdit"]
Stored = TypeVar("Stored", bound=Struct)
Count = Literal["shown", "typed_through", "accepted", "rejected", "characters"]

COUNTS: tuple[Count, ...] = get_args(Count)
REMEMBERED_OFFERS = 64
SECONDS_BETWEEN_WRITES = 30.0
COMPACTED_BYTES = 1 << 16
"""After growing by this much, the file is rewritten with one line for each day, language and kind."""
LARGEST_FILE = 1 << 24
KEPT_DAYS = 730
LANGUAGE = re.compile(r"[\w+#.-]{1,32}", re.ASCII)
NAMES = {"inline": "inline", "nextEdit": "next edits"}


Key = tuple[date, str, str, str]


class Row(Struct, frozen=True, rename="camel"):
    """The counts of one day, language, kind and model. Nothing else is stored: no text, no path, no time of day."""

    day: date
    language: str
    kind: Kind
    shown: int = 0
    typed_through: int = 0
    accepted: int = 0
    rejected: int = 0
    characters: int = 0
    model: str = ""

    @property
    def key(self) -> Key:
        return self.day, self.language, self.kind, self.model


def default_file() -> Path | None:
    """In the user's state folder; None if the user has no home folder."""
    path = folders().user_state_path / "stats.jsonl"
    return path if path.is_absolute() else None


class Stats:
    """The counts of this process, and the file to which they are appended from time to time, unless `path` is None.

    Several servers share the file, under a lock that none of them waits for: if the lock is taken or the disk is full,
    the counts stay in memory until the next time.
    """

    def __init__(self, path: Path | None = None, clock: Callable[[], float] = time.time):
        self.path = path
        self.enabled = True
        self._clock = clock
        self.model: Callable[[], str] = lambda: ""
        """The name of the model that suggests by now."""
        self._new: dict[Key, Row] = {}
        self._written_at = clock()
        self._compacted = 0
        self._problem = ""

    @property
    def today(self) -> date:
        return date.fromtimestamp(self._clock())

    @property
    def where(self) -> str:
        """Where the counts are stored, in words."""
        if not self.enabled:
            return "Counting is off: `record.counts = false`."
        if self.path is None:
            return "Kept in memory only, until this process ends."
        if self._problem:
            return f"Not stored: cannot use `{readable(self.path)}` ({self._problem})."
        return f"Stored in `{readable(self.path)}`, on this machine only."

    def add(self, language: str, kind: Kind, count: Count, number: int = 1) -> None:
        if not self.enabled:
            return
        language = language if LANGUAGE.fullmatch(language) else "other"
        row = Row(self.today, language, kind, model=self.model())
        row = self._new.get(row.key, row)
        self._new[row.key] = replace(row, **{count: getattr(row, count) + number})

    def rows(self) -> list[Row]:
        """All counts, the latest day first."""
        return _merged([*self._kept(), *self._new.values()])

    def _kept(self) -> list[Row]:
        try:
            return _read(self.path) if self.path else []
        except OSError as error:
            self._complain(error)
            return []

    def write_now_and_then(self) -> bool:
        """Whether it was time to."""
        is_due = self._clock() - self._written_at >= SECONDS_BETWEEN_WRITES
        if is_due:
            self.write()
        return is_due

    def write(self) -> None:
        """Append the new counts to the file; those that cannot be written stay in memory."""
        self._written_at = self._clock()
        if self.path is None or not self._new:
            return
        try:
            with locked(self.path):
                self._compacted = append(self.path, self._new.values(), self._compacted)
            self._new.clear()
            self._problem = ""
        except BlockingIOError:
            log.debug("another server is writing %s", self.path)
        except OSError as error:
            self._complain(error)

    def _complain(self, error: OSError) -> None:
        if not self._problem:
            log.warning("cannot store counts in %s: %s", self.path, error.strerror or error)
        self._problem = error.strerror or str(error)


class _CountedOffer(Struct, eq=False):
    """One suggestion or next edit that the client may still report on."""

    language: str
    kind: Kind
    learn: Callable[[bool], None] | None
    characters: int = 0
    is_shown: bool = False
    is_settled: bool = False
    is_typed: bool = False


class Tally:
    """What became of each offer of one session: each counts once, whatever a client reports and how often."""

    def __init__(self, stats: Stats, limit: int = REMEMBERED_OFFERS):
        self.stats = stats
        self._most = limit
        self._offers: OrderedDict[str, _CountedOffer] = OrderedDict()
        self._reporting: set[Kind] = set()
        self.counts: Counter[Count] = Counter()
        """Of this session."""

    def offered(
        self, id: str, language: str, kind: Kind, learn: Callable[[bool], None] | None = None, characters: int = 0
    ) -> None:
        """`learn` is told whether the user took it, once that is known of an offer that was shown. `characters` count
        when it is accepted as a whole."""
        self._offers[id] = _CountedOffer(language, kind, learn, characters)
        while len(self._offers) > self._most:
            self._offers.popitem(last=False)

    def knows(self, id: str) -> bool:
        """Whether the offer is one whose fate is followed."""
        return id in self._offers

    def kind(self, id: str) -> Kind:
        return self._offers[id].kind

    def answered(self, id: str) -> None:
        """The client has received it. If a client never reports what it shows, everything it received counts."""
        offer = self._offers.get(id)
        if offer and offer.kind not in self._reporting:
            self._show(offer)

    def shown(self, id: str) -> None:
        """The client reports that the user sees it."""
        if offer := self._offers.get(id):
            self._reporting.add(offer.kind)
            self._show(offer)

    def is_shown(self, id: str) -> bool:
        offer = self._offers.get(id)
        return offer is not None and offer.is_shown

    def typed_through(self, id: str) -> None:
        """The whole text is in the document. A client that inserted it may report only later that it was accepted."""
        offer = self._offers.get(id)
        if offer and not offer.is_settled and not offer.is_typed:
            offer.is_typed = True
            self._count(offer, "typed_through")
            self._learn(offer, is_taken=True)

    def accepted(self, id: str, characters: int | None = None) -> bool:
        """Whether this is the first report about the offer; `characters` count each time, since an offer may be
        accepted word by word. None are all of its characters, once."""
        offer = self._offers.get(id)
        if offer is None:
            return False
        if offer.is_typed:
            offer.is_typed = False
            self._count(offer, "typed_through", -1)
        self._show(offer)
        self._count(offer, "characters", offer.characters if characters is None else characters)
        offer.characters = 0
        return self._settle(offer, "accepted")

    def rejected(self, id: str) -> bool:
        offer = self._offers.get(id)
        return offer is not None and not offer.is_typed and self._settle(offer, "rejected")

    def passed_over(self, id: str) -> bool:
        """The user typed something else, with or without having seen it: this is not counted."""
        offer = self._offers.get(id)
        if offer is None or offer.is_settled:
            return False
        offer.is_settled = True
        self._learn(offer, is_taken=False)
        return True

    def typed_over(self, id: str) -> None:
        """The text conflicts with it, but a client may still report that it made a part of it."""
        if offer := self._offers.get(id):
            self._learn(offer, is_taken=False)

    def _settle(self, offer: _CountedOffer, count: Count) -> bool:
        if offer.is_settled:
            return False
        offer.is_settled = True
        self._count(offer, count)
        self._learn(offer, is_taken=count == "accepted")
        return True

    def _learn(self, offer: _CountedOffer, is_taken: bool) -> None:
        """Once for each that was shown."""
        if offer.is_shown and offer.learn:
            offer.learn(is_taken)
            offer.learn = None

    def _show(self, offer: _CountedOffer) -> None:
        if not offer.is_shown:
            offer.is_shown = True
            self._count(offer, "shown")

    def _count(self, offer: _CountedOffer, count: Count, number: int = 1) -> None:
        self.counts[count] += number
        self.stats.add(offer.language, offer.kind, count, number)


def total(rows: Iterable[Row]) -> Row:
    """The sum of one or more rows, with the day, language and kind of the first."""
    rows = list(rows)
    return replace(rows[0], **{name: sum(getattr(row, name) for row in rows) for name in COUNTS})


def _merged(rows: Iterable[Row]) -> list[Row]:
    by_key: dict[Key, Row] = {}
    for row in rows:
        by_key[row.key] = total([by_key[row.key], row]) if row.key in by_key else row
    return sorted(by_key.values(), key=lambda row: (-row.day.toordinal(), row.language, row.kind, row.model))


def _read(path: Path) -> list[Row]:
    try:
        data = read_small(str(path), LARGEST_FILE)
    except FileNotFoundError:
        return []
    lines = [line for line in data.splitlines() if line.strip()]
    rows = [row for row in readable_rows(lines, Row) if LANGUAGE.fullmatch(row.language)]
    if len(rows) < len(lines):
        log.warning("%s: skipped %d of %d lines, which cannot be read", path, len(lines) - len(rows), len(lines))
    return rows


def readable_rows(lines: Iterable[bytes], kind: type[Stored]) -> Iterator[Stored]:
    """Without lines that a crash or a full disk has cut off."""
    for line in lines:
        with suppress(ValueError, msgspec.MsgspecError):
            yield msgspec.json.decode(line, type=kind)


@contextmanager
def locked(path: Path) -> Generator[None]:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        try:
            lock_file(file)
        except OSError as error:
            raise BlockingIOError(error.errno, f"{file.name} is locked") from error
        yield


def append(path: Path, rows: Iterable[Row], compacted: int) -> int:
    """Append to the file, and compact it if it has grown; returns the size after the last compaction."""
    if append_lines(path, rows) <= compacted + COMPACTED_BYTES:
        return compacted
    return rewrite(path, recent(_merged(_read(path)), KEPT_DAYS, date.today()))


def append_lines(path: Path, rows: Iterable[Struct]) -> int:
    """All of the rows or none; returns the size before."""
    with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "r+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        start = b"" if file.read(1) in (b"", b"\n") else b"\n"  # the last line may have been cut off
        data = start + _lines_of(rows)
        if (count := file.write(data)) < len(data):
            file.truncate(size)
            raise OSError(errno.ENOSPC, f"{count} of {len(data)} bytes could be written")
    return size


def rewrite(path: Path, rows: Iterable[Struct]) -> int:
    """Replaces the file by these rows; returns its size."""
    data = _lines_of(rows)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise
    return len(data)


def _lines_of(rows: Iterable[Struct]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def recent(rows: Sequence[Row], days: int, today: date) -> list[Row]:
    """The rows of the last `days` days, including today."""
    return [row for row in rows if (today - row.day).days < days]


def _cells(row: Row, day: str, language: str) -> tuple[str, ...]:
    return day, language, NAMES[row.kind], *(f"{getattr(row, name):,}" for name in COUNTS)


def _by_language(rows: Iterable[Row]) -> list[Row]:
    """Those in which something was offered, whichever the model."""
    together = _merged(replace(row, model="") for row in rows)
    return [row for row in together if any(getattr(row, name) for name in COUNTS)]


HEAD = ("day", "language", "kind", "shown", "typed through", "accepted", "rejected", "characters saved")


def table(rows: Sequence[Row]) -> str:
    """The statistics for a terminal."""
    rows = _by_language(rows)
    lines = [HEAD, *(_cells(row, str(row.day), row.language) for row in rows), *_sums(rows)]
    return "\n".join(columns(lines, right=range(3, len(HEAD))))


def plain(rows: Sequence[Row], where: str) -> str:
    """The statistics where nothing makes a table of Markdown."""
    return f"{table(rows) if rows else 'nothing has been counted'}\n\n{where}"


def _sums(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    kinds = sorted({row.kind for row in rows})
    return [_cells(total(row for row in rows if row.kind == kind), "total", "") for kind in kinds]


def markdown(rows: Sequence[Row], where: str) -> str:
    """The statistics page for editors."""
    rows = _by_language(rows)
    lines = [
        HEAD,
        ("---",) * 3 + ("---:",) * 5,
        *_sums(rows),
        *(_cells(row, str(row.day), row.language) for row in rows),
    ]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines) if rows else "Nothing has been counted yet."
    return f"# mercury-ls: suggestions\n\n{body}\n\n{where}\n"
