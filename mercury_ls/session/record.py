"""Edit sessions as data: what was typed, asked, answered and accepted, one JSON object per line; off by default."""

import hashlib
import json
import logging
import os
import time
from array import array
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO

from msgspec import Struct

from mercury_engine.redaction import mask_secrets
from mercury_ls.code.documents import Change, Document, LineRange
from mercury_ls.code.positions import Encoding
from mercury_ls.completion.offers import Answer

log = logging.getLogger(__name__)

FORMAT = "mls-session/1"
NEARBY_LINES = 40
MOST_HELD = 2000
SHORTEST_SECRET = 4


class NoRecorder:
    """Records nothing: the default."""

    records = False

    def opened(self, document: Document) -> None: ...
    def changed(self, document: Document, version: int, changes: Sequence[Change], encoding: Encoding) -> None: ...
    def saved(self, document: Document) -> None: ...
    def closed(self, document: Document) -> None: ...
    def answered(self, uri: str, offset: int, answer: Answer, milliseconds: float, *, invoked: bool) -> None: ...
    def accepted(self, id: str, length: int | None = None) -> None: ...
    def rejected(self, id: str) -> None: ...
    def close(self) -> None: ...


class Recorder(NoRecorder):
    """Writes one session to one file of `directory`; the oldest files go when all of them exceed `max_mb`.

    Secrets are masked character by character, so that all positions stay valid, and events are held back until the user
    leaves the line: only a complete password is recognized as one. Files that privacy rules hide never reach a
    recorder. A disk that is full or read-only ends the recording, not the session.
    """

    records = True

    def __init__(self, directory: Path, max_mb: float, root: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._limit = int(max_mb * (1 << 20))
        self._clock = clock
        self._began = clock()
        self._texts: dict[str, _TypedText] = {}
        self._held: list[dict[str, Any]] = []
        self._place: tuple[str, int] | None = None
        self._file: TextIO | None = None
        self._written = 0
        self._begin(root)

    def _begin(self, root: str) -> None:
        name = f"session-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{id(self):x}.jsonl"
        try:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._rotate()
            descriptor = os.open(self._directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._file = os.fdopen(descriptor, "w", encoding="utf-8")
        except OSError as error:
            log.warning("nothing is recorded: %s (record.directory)", error)
            return
        self._hold({"v": 1, "ev": "header", "format": FORMAT, "root": root, "timing": "recorded"})
        self._release()

    def _rotate(self) -> None:
        files = sorted(self._directory.glob("session-*.jsonl"), key=lambda path: path.stat().st_mtime)
        total = sum(path.stat().st_size for path in files)
        while files and total > self._limit:
            total -= files[0].stat().st_size
            files.pop(0).unlink()

    def opened(self, document: Document) -> None:
        self._release()
        recorded = self._texts.get(document.uri)
        text = self._texts[document.uri] = _TypedText(document, recorded.number if recorded else len(self._texts))
        about = {"path": document.path, "lang": document.language}
        self._hold(self._event("open", d=text.number, ver=document.version, text=text.masked(), **about))

    def changed(self, document: Document, version: int, changes: Sequence[Change], encoding: Encoding) -> None:
        if text := self._texts.get(document.uri):
            entries = [text.change(where, typed, version, encoding) for where, typed in changes]
            self._at(document.uri, text.line)
            self._hold(self._event("change", d=text.number, ver=version, pos=encoding, c=entries))

    def _at(self, uri: str, line: int) -> None:
        if self._place != (uri, line) or len(self._held) > MOST_HELD:
            self._release()
        self._place = (uri, line)

    def saved(self, document: Document) -> None:
        self._hold(self._event("save", d=self._number(document.uri)))

    def closed(self, document: Document) -> None:
        self._hold(self._event("close", d=self._number(document.uri)))
        self._release()

    def answered(self, uri: str, offset: int, answer: Answer, milliseconds: float, *, invoked: bool) -> None:
        recorded = self._texts.get(uri)
        items = [
            {
                "id": offer.id,
                "start": edit.start,
                "end": edit.end,
                "text": recorded.masked_in(edit.start, edit.text) if recorded else "*" * len(edit.text),
                "p": round(offer.p_accept, 4),
            }
            for offer in answer.offers
            for edit in offer.edits
        ]
        self._hold(
            self._event(
                "answer",
                d=self._number(uri),
                at=offset,
                invoked=invoked,
                ms=round(milliseconds, 2),
                source=answer.source,
                silence=answer.silence,
                items=items,
            )
        )

    def accepted(self, id: str, length: int | None = None) -> None:
        self._hold(self._event("accept", id=id, length=length))

    def rejected(self, id: str) -> None:
        self._hold(self._event("reject", id=id))

    def close(self) -> None:
        """The last line holds a digest of each document as it was recorded, so that a replay can check itself."""
        digests = {str(text.number): text.digest() for text in self._texts.values()}
        self._hold(self._event("end", sha256=digests))
        self._release()
        if self._file:
            self._file.close()
            self._file = None

    def _number(self, uri: str) -> int | None:
        text = self._texts.get(uri)
        return text.number if text else None

    def _event(self, kind: str, **fields: Any) -> dict[str, Any]:
        return {"t": round((self._clock() - self._began) * 1000), "ev": kind, **fields}

    def _hold(self, event: dict[str, Any]) -> None:
        if self._file is not None:
            self._held.append(event)

    def _release(self) -> None:
        events, self._held = self._held, []
        try:
            for event in events:
                self._write(json.dumps(event, ensure_ascii=False, default=_TypedChange.masked) + "\n")
            if self._file is not None:
                self._file.flush()
        except (OSError, ValueError) as error:
            log.warning("recording ends: %s", error)
            self._file = None

    def _write(self, line: str) -> None:
        self._written += len(line)
        if self._file is not None and self._written > self._limit:
            log.warning("recording ends: this session alone exceeds record.max_mb")
            self._file.close()
            self._file = None
        if self._file is not None:
            self._file.write(line)


class _TypedText:
    """A document as it is typed. Each character has a number of its own, so that secret ones stay known as such."""

    def __init__(self, document: Document, number: int):
        self.number = number
        self.secret: set[int] = set()
        self.line = 0
        self._document = Document(document.uri, document.path, "", document.version, document.text)
        self._characters = array("L", range(len(document.text)))
        self._next = len(document.text)
        self._look(0, len(document.text))

    def change(self, where: LineRange | None, typed: str, version: int, encoding: Encoding) -> "_TypedChange":
        start, end = self._document.offsets(where, encoding)
        first, self._next = self._next, self._next + len(typed)
        self._characters[start:end] = array("L", range(first, self._next))
        self._document.apply([(where, typed)], version, encoding)
        self.line = self._document.snapshot().line_of(start)
        self._look(start, start + len(typed))
        return _TypedChange(self, where, typed, first)

    def _look(self, start: int, end: int) -> None:
        """Find the secrets in these lines and those around them."""
        snapshot = self._document.snapshot()
        first = max(snapshot.line_of(start) - NEARBY_LINES, 0)
        last = min(snapshot.line_of(end) + NEARBY_LINES, snapshot.line_count - 1)
        begin = snapshot.line_start(first)
        piece = snapshot.text[begin : snapshot.line_end(last)]
        for offset, (visible, masked) in enumerate(zip(piece, mask_secrets(piece), strict=True), begin):
            if visible != masked:
                self.secret.add(self._characters[offset])

    def masked_in(self, start: int, text: str) -> str:
        """A text suggested at `start`, without what is secret there or elsewhere in the document."""
        snapshot = self._document.snapshot()
        begin = snapshot.line_start(max(snapshot.line_of(min(start, len(snapshot.text))) - NEARBY_LINES, 0))
        masked = mask_secrets(snapshot.text[begin:start] + text)[len(snapshot.text[begin:start]) :]
        for secret in self._secrets():
            masked = masked.replace(secret, "*" * len(secret))
        return masked

    def _secrets(self) -> list[str]:
        """The masked pieces of the document, but for those so short that they occur anywhere."""
        pieces, end = list[str](), 0
        for is_secret, run in groupby(self._characters, self.secret.__contains__):
            start, end = end, end + sum(1 for _ in run)
            if is_secret and end - start >= SHORTEST_SECRET:
                pieces.append(self._document.text[start:end])
        return pieces

    def masked(self) -> str:
        return _stars(self._document.text, self._characters, self.secret)

    def digest(self) -> str:
        return hashlib.sha256(self.masked().encode("utf-8", "surrogatepass")).hexdigest()


class _TypedChange(Struct, frozen=True):
    """One content change, written once it is known whether what was typed is secret."""

    text: _TypedText
    where: LineRange | None
    typed: str
    first: int

    def masked(self) -> list[Any]:
        numbers = range(self.first, self.first + len(self.typed))
        return [*(self.where or ()), _stars(self.typed, numbers, self.text.secret)]


def _stars(text: str, numbers: Sequence[int], secret: set[int]) -> str:
    if not secret:
        return text
    return "".join("*" if n in secret and c not in "\r\n" else c for c, n in zip(text, numbers, strict=True))
