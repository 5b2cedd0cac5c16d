"""Offers a stronger model, once: after a while with the small one, ours, or one that this machine runs smoothly."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from lsprotocol import types as lsp
from msgspec import Struct

from mercury_engine import model_folders
from mercury_ls.lsp.server import Server
from mercury_ls.settings.load import user_file
from mercury_ls.wording import MISSING, abbreviated, one_line

if TYPE_CHECKING:
    from mercury_ls.models.recommended import Prediction, Recommendation

log = logging.getLogger(__name__)

USED_SECONDS = 3600.0
FEW_SHOWN = 20
"""Suggestions of one session, after which it does not take an hour to know what they are like."""
FREE = "Apache-2.0"
"""The licence of mercury-ls: nobody is offered by surprise what they may not use at work."""
DOWNLOADED_BYTES = 2
"""Of a parameter."""
COMMAND = (sys.executable, "-P", "-m", "mercury_ls")
INSTALL, NOT_NOW, NEVER = "Install", "Not now", "Never"

Report = Callable[[str], None]


class _Finished(Struct, frozen=True):
    """A command that has ended: what it printed, and the last that it said of its work."""

    code: int
    printed: bytes
    remark: str


class StrongerModel:
    """The offer of one server. What it takes is done by commands of mercury-ls in processes of their own, which measure
    and load what a language server never imports; nothing is downloaded before the user agrees."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._began = server.started.clock()
        self._choice: Prediction | None = None
        self._is_over = False

    async def tend(self) -> None:
        """At a quiet moment: nobody is asked while they type."""
        if self._is_over or not self._is_due:
            return
        if not self._is_wanted:
            self._is_over = True
        elif not self._lacks_ours and self._choice is None:
            self._choice = await self._strongest()
            self._is_over = self._choice is None
        if not self._is_over and not self._server.started.idle.active.is_set():
            self._is_over = True
            if not self._claims():
                return
            if self._choice:
                self._server.keep(self._offer(self._choice))
            else:
                self._server.show(lsp.MessageType.Info, MISSING)

    @property
    def _is_due(self) -> bool:
        session = self._server.started
        status = session.engine.status
        is_small = status.state == "ready" and status.info is not None and status.info.small
        is_known = session.tally.counts["shown"] >= FEW_SHOWN or session.clock() - self._began >= USED_SECONDS
        return is_small and is_known

    @property
    def _lacks_ours(self) -> bool:
        """Whether the engine answers with the small model because a strong one of ours is not installed: then no other
        is offered."""
        info = self._server.started.engine.status.info
        return info is not None and info.choice == MISSING

    @property
    def _is_wanted(self) -> bool:
        """Whether the user has left the choice of a model to us, and can be asked."""
        engine, window = self._server.started.settings.engine, self._server.protocol.client_capabilities.window
        is_ours = engine.model == model_folders.AUTO and not engine.address and not model_folders.added()
        can_be_asked = window is not None and window.show_message is not None
        mark = self._mark
        return engine.offer_stronger and is_ours and can_be_asked and mark is not None and not mark.exists()

    @property
    def _mark(self) -> Path | None:
        """The file that says that the user was asked, by any server, and what they answered."""
        counts = self._server.started.stats.path
        return counts.with_name("stronger-model") if counts else None

    async def _strongest(self) -> "Prediction | None":
        from mercury_ls.models.recommended import Recommendation

        finished = await self._run(["model", "recommend", "--json", "--for", "completions"])
        if finished.code:
            log.info("no stronger model is offered: %s", finished.remark)
            return None
        return strongest(msgspec.json.decode(finished.printed, type=Recommendation))

    def _claims(self) -> bool:
        """Whether this is the server that asks."""
        try:
            assert self._mark is not None, "it is wanted"
            self._mark.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self._mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            log.info("no stronger model is offered: %s", error)
            return False
        return True

    async def _offer(self, choice: "Prediction") -> None:
        message = one_line(f"mercury: this machine can run a stronger model: {_described(choice)}")
        actions = [lsp.MessageActionItem(title) for title in (INSTALL, NOT_NOW, NEVER)]
        asked = lsp.ShowMessageRequestParams(lsp.MessageType.Info, message, actions)
        answer = await self._server.window_show_message_request_async(asked)
        title = answer.title if answer else NOT_NOW
        if self._mark:
            self._mark.write_text(f"{title}\n", encoding="utf-8")
        if title == INSTALL:
            try:
                await self._install(choice.known.id)
            except asyncio.CancelledError:  # offered again next time, where the download goes on
                if self._mark:
                    self._mark.unlink(missing_ok=True)
                raise
        elif title == NOT_NOW:
            self._server.show(lsp.MessageType.Info, "`mercury-ls model recommend` names stronger models at any time")

    async def _install(self, id: str) -> None:
        """What `mercury-ls model add` and `model use` do, or their reason and remedy."""
        from mercury_ls.models.sources import parse

        name = parse(id)[1]
        verbs = (["model", "add", "--yes", "--name", name, id], ["model", "use", name])
        async with self._server.progressing(f"mercury: installing {id}") as report:
            for verb in verbs:
                finished = await self._run(verb, report)
                if finished.code:
                    again = f"`mercury-ls {' '.join(verb)}` tries again"
                    self._server.show(lsp.MessageType.Error, f"{finished.remark}; {again}")
                    return
        back = "`mercury-ls model use auto` goes back"
        self._server.show(lsp.MessageType.Info, f"{id} suggests from now on; {back}")

    async def _run(self, arguments: Sequence[str], report: Report = lambda line: None) -> _Finished:
        """Never in the folder where the editor was started: a project chooses no model."""
        user = self._server.wiring.user_file
        config = [] if user == user_file() else ["--config", str(user)]
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *arguments,
            *config,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=os.path.abspath(os.sep),
        )
        assert process.stdout is not None, "it is a pipe"
        assert process.stderr is not None, "it is a pipe"
        try:
            printed, remark = await asyncio.gather(process.stdout.read(), _last_line(process.stderr, report))
            return _Finished(await process.wait(), printed, remark)
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()


async def _last_line(stream: asyncio.StreamReader, report: Report) -> str:
    last = ""
    async for line in stream:
        if text := abbreviated(one_line(line.decode(errors="replace").strip())):
            last = text
            report(text)
    return last


def strongest(recommendation: "Recommendation") -> "Prediction | None":
    """The largest that follows the user's typing, and that we can run ourselves."""
    choices = [
        choice
        for choice in recommendation.choices
        if choice.fit == "smooth" and choice.known.licence == FREE and not choice.known.prompt
    ]
    return max(choices, key=lambda choice: choice.known.parameters, default=None)


def _described(choice: "Prediction") -> str:
    from mercury_ls.models.hub import megabytes

    download = megabytes(DOWNLOADED_BYTES * choice.known.parameters)
    memory = f"{megabytes(choice.memory)} of memory"
    return f"{choice.known.id} ({download} to download, {memory}, licence {choice.known.licence})"
