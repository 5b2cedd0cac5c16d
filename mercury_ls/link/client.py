"""The language server's way to the engine: starts the server, holds its lease, streams drafts."""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from mercury_engine.api import Draft, EngineError, InfillRequest
from mercury_ls.link import claim, local
from mercury_ls.link.connection import Address, Connection, Response, connect
from mercury_ls.link.requests import as_learned
from mercury_ls.link.wire import CLIENT_HEADER, PREFIX, Answer, Failure, Frames, Status, WireError, encode
from mercury_ls.settings import models

if TYPE_CHECKING:
    from mercury_ls.settings.schema import EngineSettings

__all__ = ["Backoff", "EngineClient", "EngineUnavailable", "Status"]

log = logging.getLogger(__name__)

Found = TypeVar("Found")

IDLE_CONNECTIONS = 4
FIRST_DELAY = 0.1
LONGEST_DELAY = 60.0
STABLE_SECONDS = 10.0
POLL_SECONDS = 0.03
START_SECONDS = 30.0
PATIENCE_SECONDS = 2.0
"""Beyond its deadline: a server that says nothing for so long is stopped, or its machine is."""
SILENCE_SECONDS = 4.0
"""A server says how it is at once, whatever its engine is at: one that does not is ended, so that another may start."""
LOOK_SECONDS = 0.5


class EngineUnavailable(Exception):  # noqa: N818  a state of the world, and no fault of the caller
    """There is no engine to ask right now. The message says why; the client's status says when it is back."""


class Process(Protocol):
    """What the client wants to know of the server that it started: the exit code, None while it runs."""

    def poll(self) -> int | None: ...


class Backoff:
    """Delays between two starts: none after a server that was of use for a while, then doubling."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._delay = 0.0
        self._ready_since: float | None = None

    def ready(self) -> None:
        if self._ready_since is None:
            self._ready_since = self._clock()

    def delay(self) -> float:
        if self._ready_since is not None and self._clock() - self._ready_since >= STABLE_SECONDS:
            self._delay = 0.0
        self._ready_since = None
        delay, self._delay = self._delay, min(max(2 * self._delay, FIRST_DELAY), LONGEST_DELAY)
        return delay


class EngineClient:
    """Keeps one lease with the server of this user, or with `settings.address`, from `start` to `close`.

    Without `spawn` it waits for a server that somebody else starts. Tests choose the rest. Of a path below one of the
    `roots` the engine learns only what is below it.
    """

    def __init__(
        self,
        settings: "EngineSettings",
        *,
        on_status: Callable[[Status], None] = lambda status: None,
        directory: str = "",
        spawn: Callable[[], Process] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.status = Status("starting")
        self.roots: Sequence[str] = ()
        self._settings = settings
        self._on_status = on_status
        self._directory = directory
        self._spawn = spawn
        self._clock = clock
        self._sleep = sleep
        self._backoff = Backoff(clock)
        self._headers = {CLIENT_HEADER: secrets.token_hex(8)}
        self._idle: list[Connection] = []
        self._lease: Connection | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns at once; the status tells when there is an engine."""
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep_lease())

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper
        self._drop_idle()

    async def infill(self, request: InfillRequest) -> AsyncIterator[Draft]:
        """Closing the generator cancels on the server. Raises `EngineError` for a request that failed."""
        last: Answer | None = None
        until = None if request.deadline_ms is None else self._now() + request.deadline_ms / 1000 + PATIENCE_SECONDS
        async with self._exchange("POST", "/infill", self._told(request), until) as (connection, response):
            frames, pieces = Frames(Answer), connection.body(response)
            while (piece := await in_time(anext(pieces, None), until)) is not None:
                for last in frames.feed(piece):
                    if last.draft is not None and not last.draft.final:
                        yield last.draft
        yield final_draft(last)

    async def warm(self, request: InfillRequest) -> None:
        until = self._now() + SILENCE_SECONDS
        async with self._exchange("POST", "/warm", self._told(request), until) as (connection, response):
            await connection.read(response)

    def _told(self, request: InfillRequest) -> bytes:
        """Where the project lies is for this user's own server, which knows what was tuned for it."""
        told = as_learned(request, self.roots)
        return encode(msgspec.structs.replace(told, root="") if self._settings.address else told)

    @asynccontextmanager
    async def _exchange(
        self, method: str, path: str, body: bytes, until: float | None = None
    ) -> AsyncIterator[tuple[Connection, Response]]:
        """A request and its response; the connection is kept when the body was read to its end."""
        if self.status.state != "ready":
            raise EngineUnavailable(self.status.detail or f"the engine is {self.status.state}")
        try:
            connection, response = await in_time(self._send(method, path, body), until)
            try:
                if response.status >= 400:
                    raise EngineError(refusal(await connection.read(response)))
                yield connection, response
            finally:
                self._give_back(connection)
        except (OSError, WireError) as error:
            self._gone(str(error))
            raise EngineUnavailable(str(error)) from error

    async def _send(self, method: str, path: str, body: bytes) -> tuple[Connection, Response]:
        while self._idle:
            connection = self._idle.pop()
            with suppress(ConnectionError):  # the server may close it while we write: the next one is asked
                return connection, await self._ask(connection, method, path, body)
        connection = await connect(self._address())
        return connection, await self._ask(connection, method, path, body)

    async def _ask(self, connection: Connection, method: str, path: str, body: bytes = b"") -> Response:
        try:
            return await connection.send(method, PREFIX + path, self._headers, body)
        except BaseException:
            connection.close()
            raise

    def _give_back(self, connection: Connection) -> None:
        if connection.usable and self.status.state == "ready" and len(self._idle) < IDLE_CONNECTIONS:
            self._idle.append(connection)
        else:
            connection.close()

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    async def _keep_lease(self) -> None:
        while True:
            try:
                await self._hold_lease()
                self._gone("the engine server has ended")
            except (OSError, WireError, EngineUnavailable, local.PlacementError) as error:
                self._gone(str(error))
            except Exception as error:
                log.exception("the lease with the engine server failed")
                self._gone(f"{type(error).__name__}: {error}")
            await self._sleep(self._backoff.delay())

    async def _hold_lease(self) -> None:
        """Lasts for as long as the server does."""
        holder = self._holder()
        self._lease = connection = await self._reach()
        try:
            response = await self._lease_of(connection, holder)
            if response.status >= 400:
                raise EngineUnavailable(refusal(await connection.read(response)))
            frames = Frames(Status)
            async for piece in connection.body(response):
                for status in frames.feed(piece):
                    self._tell(status)
        finally:
            self._lease = None
            connection.close()
            self._drop_idle()

    async def _lease_of(self, connection: Connection, holder: str) -> Response:
        try:
            return await in_time(self._ask(connection, "GET", "/lease"), self._now() + SILENCE_SECONDS)
        except TimeoutError:
            if holder:
                await self._end(holder)
            elif self._may_start:  # it has lost its lock: another may take its place
                self._spawn()
            raise

    async def _reach(self) -> Connection:
        """A connection to the server, which is started if it has to be and may be."""
        try:
            return await connect(self._address())
        except OSError:
            if not self._may_start:
                raise
        local.check_usable(self._place())
        self._tell(Status("starting"))
        patience = self._clock() + START_SECONDS
        seen, since = "", 0.0
        while self._clock() < patience:
            holder = claim.owner(self._place())
            if holder != seen:
                seen, since = holder, self._clock()
            elif holder and self._clock() - since >= SILENCE_SECONDS:
                await self._end(holder)
                seen = ""
                continue
            process = None if holder else self._spawn()
            if connection := await self._opened(self._clock() + LOOK_SECONDS if holder else patience, process):
                return connection
        raise EngineUnavailable(f"the engine server opened no socket in {START_SECONDS:.0f} s: see {local.log_file()}")

    async def _opened(self, until: float, process: Process | None) -> Connection | None:
        """A connection as soon as a server listens; None when `process` was not the first, or the time is up."""
        while self._clock() < until:
            await self._sleep(POLL_SECONDS)
            with suppress(OSError):
                return await connect(self._address())
            code = None if process is None else process.poll()
            if code == local.ALREADY_RUNNING:
                return None
            if code is not None:
                raise EngineUnavailable(f"the engine server ended with code {code}: see {local.log_file()}")
        return None

    async def _end(self, holder: str) -> None:
        log.warning("the engine server (process %s) is silent: it is ended, and another started", holder)
        await asyncio.to_thread(claim.end, self._place(), holder)

    def _holder(self) -> str:
        """The process that may be ended if it is silent: one that this client could start again."""
        return claim.owner(self._place()) if self._may_start else ""

    @property
    def _may_start(self) -> bool:
        return self._spawn is not None and not self._settings.address

    def _place(self) -> Path:
        return local.runtime_directory(self._directory)

    def _address(self) -> Address:
        if self._settings.address:
            return remote_address(self._settings.address, self._settings.token_file)
        return local.address(self._place())

    def _gone(self, reason: str) -> None:
        """What the server itself said about its end is the better reason."""
        if self.status.state != "unavailable":
            self._tell(Status("unavailable", reason))
        if self._lease is not None:
            self._lease.close()

    def _difference(self, status: Status) -> str:
        """A server that runs already keeps the model that it was started with."""
        wanted = self._settings
        if wanted.address or status.info is None or models.answers(wanted.model, status.info):
            return ""
        return (
            f"the engine server that runs answers with {status.info.model}, and was not started with "
            f"engine.model = {wanted.model}; run `mercury-ls serve --stop`, and it starts anew"
        )

    def _tell(self, status: Status) -> None:
        if status.state == "ready":
            self._backoff.ready()
            status = msgspec.structs.replace(status, detail=self._difference(status) or status.detail)
        if status != self.status:
            self.status = status
            self._on_status(status)


async def in_time(awaited: Awaitable[Found], until: float | None) -> Found:
    """What is awaited, or `TimeoutError` at `until` by the loop's clock."""
    try:
        async with asyncio.timeout_at(until):
            return await awaited
    except TimeoutError as error:
        raise TimeoutError("the engine server does not answer: is it stopped?") from error


def final_draft(last: Answer | None) -> Draft:
    if last is not None and last.failure is not None:
        raise failed(last.failure)
    if last is None or last.draft is None or not last.draft.final:
        raise EngineUnavailable("the engine server ended its answer before the final draft")
    return last.draft


def failed(failure: Failure) -> Exception:
    return (EngineUnavailable if failure.kind == "unavailable" else EngineError)(failure.detail)


def refusal(body: bytes) -> str:
    """The server's own words; a proxy in between may speak otherwise."""
    try:
        said = msgspec.json.decode(body, type=dict[str, str])
        return f"{said['error']}: {said['remedy']}"
    except (msgspec.DecodeError, KeyError):
        return body.decode(errors="replace")[:200]


def remote_address(text: str, token_file: str) -> Address:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise EngineUnavailable(f"engine.address is {text!r} ({error}): write it as https://HOST:PORT") from error
    if parts.hostname is None or parts.scheme not in ("https", "http") or parts.path.strip("/"):
        raise EngineUnavailable(f"engine.address is {text!r}: write it as https://HOST:PORT")
    if parts.scheme == "http" and parts.hostname not in local.LOOPBACK:
        raise EngineUnavailable(f"engine.address is {text!r}, which would send code in the clear: use https://")
    tls = parts.scheme == "https"
    return Address(host=parts.hostname, port=port or (443 if tls else 80), tls=tls, token=read_token(token_file))


def read_token(path: str) -> str:
    try:
        return Path(path).expanduser().read_text().strip() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise EngineUnavailable(f"engine.token_file {path} cannot be read ({error}): write the token there") from error
