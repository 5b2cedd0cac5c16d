"""Edit sessions as data: what was typed, asked, answered and accepted, one JSON object a line. Off unless asked for."""

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mercury_ls.documents import Document
from mercury_ls.privacy import mask_secrets

__all__ = ["FORMAT", "NoRecorder", "Recorder"]

log = logging.getLogger(__name__)

FORMAT = "mls-session/1"


class NoRecorder:
    """Records nothing: the default."""

    def opened(self, document: Document) -> None: ...
    def changed(self, document: Document, version: int, changes: Sequence[tuple], encoding: str) -> None: ...
    def saved(self, document: Document) -> None: ...
    def closed(self, document: Document) -> None: ...
    def answered(self, ask: Any, reply: Any, milliseconds: float) -> None: ...
    def accepted(self, id: str, length: int | None = None) -> None: ...
    def rejected(self, id: str) -> None: ...
    def close(self) -> None: ...


class Recorder(NoRecorder):
    """Writes one session to one file of `directory`; the oldest files go when all of them exceed `max_mb`.

    Secrets are masked character by character, so that every position stays true. Files that privacy rules hide
    never reach a recorder. A disk that is full or read-only ends the recording, not the session.
    """

    def __init__(self, directory: Path, max_mb: float, root: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._limit = int(max_mb * (1 << 20))
        self._clock = clock
        self._began = clock()
        self._numbers: dict[str, int] = {}
        self._file: Any = None
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
        self._put({"v": 1, "ev": "header", "format": FORMAT, "root": root, "timing": "recorded", "pos": "utf-16"})

    def _rotate(self) -> None:
        files = sorted(self._directory.glob("session-*.jsonl"), key=lambda p: p.stat().st_mtime)
        total = sum(path.stat().st_size for path in files)
        while files and total > self._limit:
            total -= files[0].stat().st_size
            files.pop(0).unlink()

    def opened(self, document: Document) -> None:
        number = self._numbers.setdefault(document.uri, len(self._numbers))
        text = mask_secrets(document.text)
        about = {"path": document.path, "lang": document.language}
        self._put(self._event("open", d=number, ver=document.version, text=text, **about))

    def changed(self, document: Document, version: int, changes: Sequence[tuple], encoding: str) -> None:
        self._put(
            self._event(
                "change",
                d=self._numbers.get(document.uri),
                ver=version,
                pos=encoding,
                c=[[*(where or ()), mask_secrets(text)] for where, text in changes],
            )
        )

    def saved(self, document: Document) -> None:
        self._put(self._event("save", d=self._numbers.get(document.uri)))

    def closed(self, document: Document) -> None:
        digest = hashlib.sha256(document.text.encode("utf-8", "surrogatepass")).hexdigest()
        self._put(self._event("close", d=self._numbers.get(document.uri), sha256=digest))

    def answered(self, ask: Any, reply: Any, milliseconds: float) -> None:
        items = [
            {
                "id": i.id,
                "start": i.start,
                "end": i.end,
                "text": mask_secrets(i.text),
                "p": round(i.p_accept, 4),
            }
            for i in reply.items
        ]
        self._put(
            self._event(
                "answer",
                d=self._numbers.get(ask.uri),
                at=ask.offset,
                invoked=ask.invoked,
                ms=round(milliseconds, 2),
                source=reply.source,
                silence=reply.silence,
                items=items,
            )
        )

    def accepted(self, id: str, length: int | None = None) -> None:
        self._put(self._event("accept", id=id, length=length))

    def rejected(self, id: str) -> None:
        self._put(self._event("reject", id=id))

    def close(self) -> None:
        if self._file:
            self._file.close()
            self._file = None

    def _event(self, kind: str, **fields: Any) -> dict[str, Any]:
        return {"t": round((self._clock() - self._began) * 1000), "ev": kind, **fields}

    def _put(self, event: dict[str, Any]) -> None:
        if self._file is None:
            return None
        line = json.dumps(event, ensure_ascii=False) + "\n"
        self._written += len(line)
        if self._written > self._limit:
            log.warning("recording ends: this session alone exceeds record.max_mb")
            return self.close()
        try:
            self._file.write(line)
            self._file.flush()
        except (OSError, ValueError) as error:
            log.warning("recording ends: %s", error)
            self.close()
        return None
