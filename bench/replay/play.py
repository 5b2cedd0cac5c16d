"""The parts of every replay: a separate engine server, the project of a session, and its outcome."""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.harness.client import COMMAND, Client, isolated, until_ready
from bench.harness.usage import Usage, watched
from bench.replay.figures import Played
from bench.replay.player import Player
from bench.replay.session import Opened, RecordedSession, Texts, digest
from mercury_ls.link.claim import LOCK

LOADING_SECONDS = 120.0

SHIPPED, CONFIGURED = "shipped", "config"

MODELS = "a folder, `fake`, `shipped` with all settings as shipped, or `config` for this machine's configuration"


@contextlib.contextmanager
def engine_server(model: str) -> Iterator[tuple[Path, dict[str, str]]]:
    """A separate folder for the engine server, and the environment in which it and the language servers run."""
    with TemporaryDirectory() as folder:
        named = str(Path(model).resolve()) if Path(model).is_dir() else model  # the servers run elsewhere
        environment = isolated(Path(folder).resolve()) | {"MERCURY_ENGINE_MODEL": named}
        if model == SHIPPED:
            del environment["MERCURY_ENGINE_MODEL"]
        elif model == CONFIGURED:
            environment = {"MERCURY_LS_RUNTIME_DIR": environment["MERCURY_LS_RUNTIME_DIR"]}
        try:
            yield Path(environment["MERCURY_LS_RUNTIME_DIR"]), environment
        finally:
            stop = [*COMMAND[:3], "serve", "--stop"]
            subprocess.run(stop, env={**os.environ, **environment}, check=False, stdout=subprocess.DEVNULL)


def project(session: RecordedSession, root: Path) -> Path:
    """The session's initial files, in a folder that looks like a working tree."""
    (root / ".git").mkdir(parents=True, exist_ok=True)
    texts = Texts(session)
    for event in session.events:
        if isinstance(event, Opened) and event.d not in texts.documents:
            texts.apply(event)
            path = root / texts.documents[event.d].path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(event.text.encode("utf-8", "replace"))
    return root


async def is_ready(client: Client) -> None:
    status = await until_ready(client, LOADING_SECONDS)
    if status["state"] != "ready":
        raise SystemExit(f"the engine is {status['state']}: {status['detail']}: choose another --model")


def engine_pid(runtime: Path) -> int:
    return int((runtime / LOCK).read_text(encoding="ascii"))


@asynccontextmanager
async def measured(pid: int, into: Usage | None = None) -> AsyncIterator[Usage]:
    into = into or Usage()
    watching = asyncio.create_task(watched(pid, into))
    try:
        yield into
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        into.look(pid)


async def outcome(player: Player, client: Client, session: RecordedSession, server: Usage) -> Played:
    """The player's record, and whether the server's texts are exactly the player's."""
    told = (await client.request("mercury/status", {"digests": True}))["digests"]
    mine = {uri: digest(text) for uri, text in player.texts().items()}
    wrong = tuple(uri for uri, found in told.items() if mine.get(uri) != found)
    return Played(session.name, player.asked, player.shown, player.logs, server, len(told), wrong)
