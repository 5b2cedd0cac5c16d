"""One suggestion for one place of one file, without an editor."""

import asyncio
from pathlib import Path
from typing import Any

from mercury_ls import languages
from mercury_ls.session import Ask, Reply, Session
from mercury_ls.wiring import Wiring

__all__ = ["complete"]

PATIENCE_SECONDS = 60.0


async def complete(path: str, line: int, column: int, **wiring: Any) -> dict[str, Any]:
    """The answer as plain data. Lines and columns count from one; a column is a character."""
    file = Path(path).resolve()
    waiting = asyncio.Event()
    maker = Wiring(**wiring)
    session = maker.session([str(project_of(file))], {}, lambda status: waiting.set())
    try:
        await session.engine.start()
        await until_settled(session, waiting)
        return described(await answer(session, file, line, column), session)
    finally:
        await session.end()


async def until_settled(session: Session, changed: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while session.engine.status.state in ("starting", "loading"):
            changed.clear()
            await changed.wait()


async def answer(session: Session, file: Path, line: int, column: int) -> Reply:
    uri = file.as_uri()
    if reason := session.privacy.why_hidden(str(file)):
        return Reply(silence=f"the file is private: {reason}")
    language = languages.find("", str(file))
    text = file.read_bytes().decode("utf-8", "replace")
    session.open(uri, str(file), language.id if language else "plaintext", 1, text)
    offset = session.documents[uri].snapshot().offset(line - 1, column - 1, "utf-32")
    reply = Reply(silence="no answer")
    async for latest in session.inline(Ask(uri=uri, offset=offset, invoked=True)):
        reply = latest
    return reply


def described(reply: Reply, session: Session) -> dict[str, Any]:
    info = session.engine.status.info
    return {
        "engine": info.engine if info else "",
        "model": info.model if info else "",
        "silence": reply.silence,
        "items": [
            {"start": i.start, "end": i.end, "text": i.text, "p_accept": round(i.p_accept, 4)} for i in reply.items
        ],
    }


def project_of(file: Path) -> Path:
    """The nearest folder above that is a repository, else the file's own."""
    return next((parent for parent in file.parents if (parent / ".git").exists()), file.parent)
