"""Work in progress, as far as the client shows it: what takes longer than a moment, and a model that loads."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import Future
from typing import cast

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from mercury_ls.completion.offers import Answer
from mercury_ls.link.wire import Status
from mercury_ls.wording import one_line

LOADING = "mercury-loading"
WORK_SHOWN_SECONDS = 0.3


class Progress:
    """Owns what the client shows of it."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._shows_loading = False

    async def during_work(self, work: Callable[[], Awaitable[Answer]], title: Callable[[], str]) -> Answer:
        """Does the work, and lets the client show that something is done if it takes longer than a moment."""
        task = asyncio.ensure_future(work())
        try:
            await asyncio.wait([task], timeout=WORK_SHOWN_SECONDS)
            if task.done():
                return await task
            async with self.during(title()):
                return await task
        finally:
            task.cancel()

    @contextlib.asynccontextmanager
    async def during(self, title: str) -> AsyncGenerator[None]:
        """From the beginning of something to its end."""
        token = uuid.uuid4().hex
        if self._client_shows:
            with contextlib.suppress(JsonRpcException):
                await self._create(token)
            self._begin(token, title)
        try:
            yield
        finally:
            self._end(token)

    async def loading(self, status: Status, latest: Callable[[], Status]) -> None:
        """A model that loads is shown from the first status that says so to the first that does not."""
        if not self._client_shows:
            return
        if status.state == "loading" and not self._shows_loading:
            self._shows_loading = True
            await self._create(LOADING)
            self._begin(LOADING, "mercury: loading the model")
            status = latest()  # it may be ready before the client has agreed to a progress
        if LOADING not in self._shown:
            return
        if status.state == "loading":
            percentage = round(status.progress * 100) if status.progress is not None else None
            self._server.work_done_progress.report(LOADING, lsp.WorkDoneProgressReport(percentage=percentage))
        else:
            self._end(LOADING, status.detail or status.state)
            self._shows_loading = False

    @property
    def _client_shows(self) -> bool:
        window = self._server.protocol.client_capabilities.window
        return bool(window and window.work_done_progress)

    @property
    def _shown(self) -> dict[int | str, Future[None]]:
        """What the client shows, by its token."""
        return cast("dict[int | str, Future[None]]", self._server.work_done_progress.tokens)  # pyright: ignore[reportUnknownMemberType]

    async def _create(self, token: str) -> None:
        await self._server.window_work_done_progress_create_async(lsp.WorkDoneProgressCreateParams(token))

    def _begin(self, token: str, title: str) -> None:
        self._server.work_done_progress.begin(token, lsp.WorkDoneProgressBegin(title=one_line(title)))

    def _end(self, token: str, message: str | None = None) -> None:
        if self._shown.pop(token, None):
            self._server.work_done_progress.end(token, lsp.WorkDoneProgressEnd(message=message and one_line(message)))
