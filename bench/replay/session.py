"""Edit sessions in the format mls-session/1: what was opened, typed and saved, and when."""

import argparse
import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from mercury_ls.code.documents import Document, Snapshot


class SessionError(Exception):
    """A session that cannot be played. The message names the file, the line and what to do."""


class NamedDocument(Struct, frozen=True, omit_defaults=True):
    """One document of the header."""

    d: int
    path: str
    lang: str = ""


class Header(Struct, frozen=True, omit_defaults=True, tag_field="ev", tag="header"):
    """`pos` is the unit of columns; our own recordings state it in each change instead."""

    v: int
    id: str = ""
    source: str = ""
    repo: str | None = None
    commit: str | None = None
    licence: str | None = None
    root: str = "file:///ws"
    pos: str = "utf-16"
    timing: str = "recorded"
    docs: list[NamedDocument] = []


class _At(Struct, frozen=True, omit_defaults=True, tag_field="ev", kw_only=True):
    """`t` in milliseconds since the session began."""

    t: int


class Opened(_At, tag="open", kw_only=True):
    d: int
    ver: int = 1
    text: str
    path: str = ""
    lang: str = ""


class Changed(_At, tag="change", kw_only=True):
    """`c` as a client sends it: `[line, column, line, column, text]` in sending order, `[text]` for the whole."""

    d: int
    ver: int
    c: list[list[int | str]]
    why: str = "unknown"
    pos: str = ""


class Cursor(_At, tag="cursor", kw_only=True):
    d: int
    sel: list[tuple[int, int, int, int]]


class Focused(_At, tag="focus", kw_only=True):
    d: int


class Saved(_At, tag="save", kw_only=True):
    d: int


class Closed(_At, tag="close", kw_only=True):
    d: int


class Marked(_At, tag="edit", kw_only=True):
    """Marks that a logical edit is complete; servers never see it."""

    n: int
    d: int
    diff: str = ""
    span: tuple[int, int, int, int] | None = None
    new: str = ""


class Asked(_At, tag="request", kw_only=True):
    d: int
    at: int | None = None


class Answered(_At, tag="answer", kw_only=True):
    """The recording server's answer; a replay gets its own."""

    d: int | None = None
    ms: float = 0.0
    source: str = ""
    silence: str = ""
    items: list[dict] = []


class Accepted(_At, tag="accept", kw_only=True):
    id: str
    length: int | None = None


class Rejected(_At, tag="reject", kw_only=True):
    id: str


class Expected(_At, tag="expect", kw_only=True):
    """What the person did next, where a recording stops; a replay ends there too."""


class Ended(_At, tag="end", kw_only=True):
    """The digest of each document at the end, or when it was closed."""

    sha256: dict[str, str]


Event = (
    Opened
    | Changed
    | Cursor
    | Focused
    | Saved
    | Closed
    | Marked
    | Asked
    | Answered
    | Accepted
    | Rejected
    | Expected
    | Ended
)
_line = msgspec.json.Decoder(Header | Event)


class RecordedSession(Struct, frozen=True):
    header: Header
    events: tuple[Event, ...]
    name: str = ""


class Texts:
    """The documents of a session as it proceeds; closed ones keep their last text."""

    def __init__(self, session: RecordedSession) -> None:
        self.documents: dict[int, Document] = {}
        self.open: set[int] = set()
        self._named = {each.d: each for each in session.header.docs}
        self._unit = session.header.pos

    def apply(self, event: Event) -> list[tuple[int, int, str]]:
        """The effect of a change, in sending order: `[start, end)` in code points of the text before, and the new
        text."""
        if isinstance(event, Opened):
            self._open(event)
        elif isinstance(event, Closed):
            self.open.discard(event.d)
        elif isinstance(event, Changed):
            return [self._change(event, each) for each in event.c]
        return []

    def _open(self, event: Opened) -> None:
        named = self._named.get(event.d, NamedDocument(event.d, f"unnamed-{event.d}"))
        path, language = event.path or named.path, event.lang or named.lang
        self.documents[event.d] = Document(f"file:///{path}", path, language, event.ver, event.text)
        self.open.add(event.d)

    def _change(self, event: Changed, entry: list[int | str]) -> tuple[int, int, str]:
        document, unit = self.documents[event.d], event.pos or self._unit
        here, text = document.snapshot(), str(entry[-1])
        place = tuple(map(int, entry[:4])) if len(entry) == 5 else None
        start = here.offset(*place[:2], unit) if place else 0
        end = here.offset(*place[2:], unit) if place else len(here.text)
        document.apply([(place, text)], event.ver, unit)
        return start, end, text

    def offset(self, d: int, line: int, column: int) -> int:
        return self.documents[d].snapshot().offset(line, column, self._unit)

    def digests(self) -> dict[str, str]:
        return {str(d): digest(document.text) for d, document in self.documents.items()}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read(path: Path) -> RecordedSession:
    """A session after a complete check, including its digests."""
    events = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            events.append(_line.decode(line))
        except msgspec.DecodeError as error:
            raise SessionError(f"{path}:{number}: not a line of mls-session/1 ({error}): record it again") from error
    if not events or not isinstance(events[0], Header) or events[0].v != 1:
        raise SessionError(f"{path}:1: the first line is not a header of version 1: record it again")
    session = RecordedSession(events[0], tuple(events[1:]), path.stem)
    check(session, str(path))
    return session


def check(session: RecordedSession, where: str = "session") -> None:
    """Raise `SessionError` unless the session can be played as it stands."""
    texts, before = Texts(session), 0
    for number, event in enumerate(session.events, 2):
        if problem := wrong(event, texts, before, session.header.pos):
            raise SessionError(f"{where}:{number}: {problem}: import or record it again")
        texts.apply(event)
        before = event.t
    last = session.events[-1] if session.events else None
    if not isinstance(last, Ended):
        raise SessionError(f"{where}: the last line is not `end`, so it was cut off: record it again")
    for d, wanted in last.sha256.items():
        if texts.digests().get(d) != wanted:
            raise SessionError(f"{where}: document {d} does not have the digest {wanted[:12]}…: it was changed")


def wrong(event: Event, texts: Texts, before: int, unit: str) -> str:
    """What is wrong with an event after the ones before it; empty if nothing is."""
    if isinstance(event, Header) or event.t < before:
        return "time runs backwards" if not isinstance(event, Header) else "a second header"
    d = getattr(event, "d", None)
    if d is not None and not isinstance(event, Opened) and d not in texts.documents:
        return f"document {d} was not opened"
    if not isinstance(event, Changed):
        return ""
    if d not in texts.open:
        return f"document {d} is closed"
    if event.ver <= texts.documents[d].version:
        return f"version {event.ver} comes after {texts.documents[d].version}"
    if bad := [entry for entry in event.c if len(entry) not in (1, 5) or not isinstance(entry[-1], str)]:
        return f"{bad[0]} is not [line, column, line, column, text]"
    first = event.c[0]
    here = texts.documents[d].snapshot()
    return "" if len(first) == 1 or _inside(here, first, event.pos or unit) else f"{first[:4]} lies outside of the text"


def _inside(here: Snapshot, entry: Sequence[int | str], unit: str) -> bool:
    ends = [(int(entry[0]), int(entry[1])), (int(entry[2]), int(entry[3]))]
    return ends[0] <= ends[1] and all(here.position(here.offset(*end, unit), unit) == end for end in ends)


def ended(header: Header, events: Sequence[Event], name: str = "") -> RecordedSession:
    """The session of these events, closed with the resulting digests."""
    texts = Texts(RecordedSession(header, ()))
    for event in events:
        texts.apply(event)
    last = Ended(t=events[-1].t if events else 0, sha256=texts.digests())
    return RecordedSession(header, (*events, last), name)


def write(session: RecordedSession, path: Path) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in (session.header, *session.events)))


def capped(events: Iterable[Event], cap_ms: float | None) -> Iterator[tuple[float, Event]]:
    """Each event with its playback time: no pause exceeds the cap, and there is none before the first."""
    now = before = None
    for event in events:
        gap = 0.0 if before is None else float(event.t - before)
        now = (now or 0.0) + (gap if cap_ms is None else min(gap, cap_ms))
        before = event.t
        yield now, event


def main() -> None:
    parser = argparse.ArgumentParser(description="Check sessions: every position, version and digest.")
    parser.add_argument("files", type=Path, nargs="+")
    for path in parser.parse_args().files:
        session = read(path)
        sys.stdout.write(f"{path}: {len(session.events)} events, {session.events[-1].t / 1000:.0f} s\n")


if __name__ == "__main__":
    main()
