"""`mercury-ls complete`: the suggestion for one position in a file, without an editor."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from mercury_ls.code import languages
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.files import read_small
from mercury_ls.completion.offers import Answer
from mercury_ls.session.session import Session
from mercury_ls.session.wiring import Wiring
from mercury_ls.wording import counted

PATIENCE_SECONDS = 60.0
READING_SECONDS = 2.0
LARGEST_FILE = 64 << 20


class PlaceError(Exception):
    """There is no such position. The message names it and says what there is."""


async def complete(path: str, line: int, column: int, **wiring: Any) -> dict[str, Any]:
    """The answer as plain data. Lines and columns are counted from 1, columns in characters."""
    file = Path(os.path.abspath(path))
    waiting = asyncio.Event()
    maker = Wiring(**wiring)
    session = maker.session([str(_project_of(file))], {}, lambda status: waiting.set())
    try:
        answer = await _asked(session, file, (line, column), waiting)
        status = session.engine.status
        other = [status.detail] if status.state == "ready" and status.detail else []
        return _described(answer, session, [*map(str, maker.loaded.problems), *other])
    finally:
        await session.end()


async def _asked(session: Session, file: Path, place: tuple[int, int], changed: asyncio.Event) -> Answer:
    """Refuses a position that does not exist before it waits for an engine."""
    if reason := session.files.privacy.why_hidden(str(file)):
        return Answer(silence=f"the file is private: {reason}")
    snapshot = _opened(session, file)
    offset = _offset_of(snapshot, *place)
    await session.engine.start()
    await session.files.project_read(READING_SECONDS)
    await _until_started(session, changed)
    await _learn_names(session, snapshot, offset)
    answer = Answer(silence="no answer")
    async for latest in session.inline(snapshot.uri, offset, invoked=True):
        answer = latest
    return answer


async def _learn_names(session: Session, snapshot: Snapshot, offset: int) -> None:
    """As an editor's session has learned them by the time that somebody asks."""
    names = session.questions.names
    names.look_ahead(snapshot, offset)
    with suppress(TimeoutError):
        async with asyncio.timeout(READING_SECONDS):
            await names.settled()


def _opened(session: Session, file: Path) -> Snapshot:
    try:
        text = read_small(str(file), LARGEST_FILE).decode("utf-8", "replace")
    except OSError as error:
        reason = error.strerror or "it is not a regular file, or is very large"
        raise PlaceError(f"{file} cannot be read ({reason}): name a text file") from error
    language = languages.find("", str(file))
    session.open(file.as_uri(), str(file), language.id if language else "plaintext", 1, text)
    return session.files.documents[file.as_uri()].snapshot()


def _offset_of(snapshot: Snapshot, line: int, column: int) -> int:
    if line > snapshot.line_count:
        raise PlaceError(f"{snapshot.path}:{line}: the file has {counted(snapshot.line_count, 'line')}")
    columns = len(snapshot.line(line - 1)) + 1
    if column > columns:
        raise PlaceError(
            f"{snapshot.path}:{line}:{column}: line {line} has {counted(columns, 'column')}, counting the end of line"
        )
    return snapshot.offset(line - 1, column - 1, "utf-32")


async def _until_started(session: Session, changed: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while session.engine.status.state in ("starting", "loading"):
                changed.clear()
                await changed.wait()
    except TimeoutError as error:
        state = session.engine.status.state
        raise TimeoutError(
            f"the engine is still {state} after {PATIENCE_SECONDS:.0f} s: run `mercury-ls doctor`"
        ) from error


def _described(answer: Answer, session: Session, problems: list[str]) -> dict[str, Any]:
    info = session.engine.status.info
    return {
        "engine": info.engine if info else "",
        "model": info.model if info else "",
        "silence": answer.silence,
        "problems": problems,
        "items": [
            {"start": edit.start, "end": edit.end, "text": edit.text, "p_accept": round(offer.p_accept, 4)}
            for offer in answer.offers
            for edit in offer.edits
        ],
    }


def _project_of(file: Path) -> Path:
    """The nearest repository around the file, else its folder."""
    return next((parent for parent in file.parents if (parent / ".git").exists()), file.parent)
