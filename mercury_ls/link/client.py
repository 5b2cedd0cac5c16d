"""The language server's client of the engine server: starts it, holds a lease, streams drafts."""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from mercury_engine import model_folders
from mercury_engine.addresses import is_loopback
from mercury_engine.api import (
    ChatRequest,
    Draft,
    EngineError,
    Gap,
    Opinions,
    Proposals,
    Regions,
    RequestError,
    Rewrites,
    TooLongError,
)
from mercury_engine.redaction import ForeignText, Secrets
from mercury_ls.link import claim, local
from mercury_ls.link.connection import Address, Connection, Response, connect
from mercury_ls.link.questioner import Answered, Questioner
from mercury_ls.link.requests import prepared
from mercury_ls.link.wire import (
    CLIENT_HEADER,
    PREFIX,
    Failure,
    FrameReader,
    Request,
    Status,
    WireError,
    encode,
)

if TYPE_CHECKING:
    from mercury_ls.settings.schema import EngineSettings

log = logging.getLogger(__name__)

Found = TypeVar("Found")

IDLE_CONNECTIONS = 4
FIRST_DELAY = 0.1
LONGEST_DELAY = 60.0
STABLE_SECONDS = 10.0
POLL_SECONDS = 0.03
START_SECONDS = 30.0
PATIENCE_SECONDS = 2.0
"""Added to a request's deadline: a server silent for longer is suspended, or its machine is."""
SILENCE_SECONDS = 4.0
"""A server sends its status at once, even while its engine is busy: one that does not is hanging, and is replaced."""
CONNECT_SECONDS = 0.5
LONGEST_REFUSAL = 400


class EngineUnavailable(Exception):  # noqa: N818  a state of the world, not an error of the caller
    """No engine is available right now. The message says why; the client's status tells when there is one again."""


class _Process(Protocol):
    """A server process that the client started: `poll` returns its exit code, None while it runs."""

    def poll(self) -> int | None: ...


class EngineLink(Protocol):
    """The connection to an engine, local or remote, as a session uses it. Closing a generator cancels its request; it
    raises `EngineError` if that fails."""

    roots: Sequence[str]

    @property
    def status(self) -> Status: ...
    async def start(self) -> None: ...
    async def close(self) -> None: ...
    def fill(self, gap: Gap) -> AsyncGenerator[Draft]: ...
    def rewrite(self, regions: Regions) -> AsyncGenerator[Rewrites]: ...
    def judge(self, proposals: Proposals) -> AsyncGenerator[Opinions]: ...
    async def warm(self, question: Gap | Regions) -> None: ...


class Backoff:
    """Delays between server starts: none after a server that was ready for a while, otherwise doubling."""

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


class EngineClient(Questioner):
    """Holds a lease with the user's engine server, or with the one at `settings.address`, from `start` to `close`.

    Without `spawn` it waits for a server that something else starts. The engine sees paths relative to `roots`.
    """

    def __init__(
        self,
        settings: "EngineSettings",
        *,
        on_status: Callable[[Status], None] = lambda status: None,
        directory: str = "",
        spawn: Callable[[], _Process] | None = None,
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
        """Return at once; the status tells when the engine is ready."""
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep_lease())

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper
        self._drop_idle()

    async def _answers(self, request: Request, kind: type[Answered]) -> AsyncGenerator[Answered]:
        last: Answered | Failure | None = None
        until = None if request.deadline_ms is None else self._now() + request.deadline_ms / 1000 + PATIENCE_SECONDS
        async with self._exchange("/ask", request, until) as (connection, response):
            frames = FrameReader[Answered | Failure](kind | Failure, connection.secrets)
            pieces = connection.body(response)
            while (piece := await _in_time(anext(pieces, None), until)) is not None:
                for last in frames.feed(piece):
                    if not (isinstance(last, Failure) or last.final):
                        yield last
        yield _final_answer(last)

    async def warm(self, question: Gap | Regions) -> None:
        until = self._now() + SILENCE_SECONDS
        async with self._exchange("/warm", question, until) as (connection, response):
            await connection.read(response)

    def _encoded(self, request: Request) -> bytes:
        """Only the user's own server learns where the project is."""
        request = prepared(request, self.roots)
        if not isinstance(request, ChatRequest) and self._settings.address:
            request = msgspec.structs.replace(request, root="")
        return encode(request)

    @asynccontextmanager
    async def _exchange(
        self, path: str, request: Request, until: float | None
    ) -> AsyncGenerator[tuple[Connection, Response]]:
        """The response; the connection is reused if the body is read to its end."""
        body = self._encoded(request)
        if self.status.state != "ready":
            raise EngineUnavailable(self.status.reason)
        try:
            connection, response = await _in_time(self._send(path, body), until)
            try:
                if response.status >= 400:
                    raise EngineError(_refusal(await connection.read(response), connection.secrets))
                yield connection, response
            finally:
                self._give_back(connection)
        except (OSError, WireError) as error:
            self._lost(str(error))
            raise EngineUnavailable(str(error)) from error

    async def _send(self, path: str, body: bytes) -> tuple[Connection, Response]:
        while self._idle:
            connection = self._idle.pop()
            with suppress(ConnectionError):  # the server may have closed it: try the next one
                return connection, await self._ask(connection, "POST", path, body)
        connection = await connect(self._address())
        return connection, await self._ask(connection, "POST", path, body)

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
                self._lost("the engine server has exited")
            except (OSError, WireError, EngineUnavailable, local.PlacementError) as error:
                self._lost(str(error))
            except Exception as error:
                log.exception("the lease with the engine server failed")
                self._lost(f"{type(error).__name__}: {error}")
            await self._sleep(self._backoff.delay())

    async def _hold_lease(self) -> None:
        """Hold the lease for as long as the server runs."""
        holder = self._holder()
        self._lease = connection = await self._reach()
        try:
            response = await self._lease_of(connection, holder)
            if response.status >= 400:
                raise EngineUnavailable(_refusal(await connection.read(response), connection.secrets))
            frames = FrameReader(Status, connection.secrets)
            async for piece in connection.body(response):
                for status in frames.feed(piece):
                    self._publish(status)
        finally:
            self._lease = None
            connection.close()
            self._drop_idle()

    async def _lease_of(self, connection: Connection, holder: str) -> Response:
        try:
            return await _in_time(self._ask(connection, "GET", "/lease"), self._now() + SILENCE_SECONDS)
        except TimeoutError:
            if holder:
                await self._end(holder)
            elif self._spawn and self._may_start:  # it has lost its lock, so another can take its place
                self._spawn()
            raise

    async def _reach(self) -> Connection:
        """A connection to the server, which is started first if necessary and allowed."""
        try:
            return await connect(self._address())
        except OSError:
            if self._spawn is None or not self._may_start:
                raise
        local.check_usable(self._place())
        self._publish(Status("starting"))
        patience = self._clock() + START_SECONDS
        last_holder, since = "", 0.0
        while self._clock() < patience:
            holder = claim.owner(self._place())
            if holder != last_holder:
                last_holder, since = holder, self._clock()
            elif holder and self._clock() - since >= SILENCE_SECONDS:
                await self._end(holder)
                last_holder = ""
                continue
            process = None if holder else self._spawn()
            if connection := await self._opened(self._clock() + CONNECT_SECONDS if holder else patience, process):
                return connection
        raise EngineUnavailable(
            f"the engine server did not open a socket within {START_SECONDS:.0f} s: see {local.log_file()}"
        )

    async def _opened(self, until: float, process: _Process | None) -> Connection | None:
        """A connection as soon as a server listens; None if `process` found another one running, or time is up."""
        while self._clock() < until:
            await self._sleep(POLL_SECONDS)
            with suppress(OSError):
                return await connect(self._address())
            code = None if process is None else process.poll()
            if code == local.ALREADY_RUNNING:
                return None
            if code is not None:
                raise EngineUnavailable(f"the engine server exited with code {code}: see {local.log_file()}")
        return None

    async def _end(self, holder: str) -> None:
        log.warning("the engine server (process %s) does not answer: ending it and starting another", holder)
        await asyncio.to_thread(claim.end, self._place(), holder)

    def _holder(self) -> str:
        """The process to end if it does not answer: only one that this client could start again."""
        return claim.owner(self._place()) if self._may_start else ""

    @property
    def _may_start(self) -> bool:
        return self._spawn is not None and not self._settings.address

    def _place(self) -> Path:
        return local.runtime_directory(self._directory)

    def _address(self) -> Address:
        if self._settings.address:
            return _remote_address(self._settings.address, self._settings.token_file)
        return local.address(self._place())

    def _lost(self, reason: str) -> None:
        """Report a lost connection, unless the server itself gave a better reason."""
        if self.status.state != "unavailable":
            self._publish(Status("unavailable", reason))
        if self._lease is not None:
            self._lease.close()

    def _other_model(self, status: Status) -> str:
        """A note if the server runs another model, which it keeps."""
        settings = self._settings
        if settings.address or status.info is None or model_folders.answers(settings.model, status.info):
            return ""
        return (
            f"the engine server is running with {status.info.model}, not with engine.model = {settings.model}: "
            "run `mercury-ls serve --stop` to restart it"
        )

    def _publish(self, status: Status) -> None:
        if status.state == "ready":
            self._backoff.ready()
            status = msgspec.structs.replace(status, detail=self._other_model(status) or status.detail)
        if status != self.status:
            self.status = status
            self._on_status(status)


async def _in_time(awaited: Awaitable[Found], until: float | None) -> Found:
    """The awaited result, or `TimeoutError` at `until` by the loop's clock."""
    try:
        async with asyncio.timeout_at(until):
            return await awaited
    except TimeoutError as error:
        raise TimeoutError("the engine server does not answer: run `mercury-ls doctor`") from error


def _final_answer(last: Answered | Failure | None) -> Answered:
    if isinstance(last, Failure):
        raise failed(last)
    if last is None or not last.final:
        raise EngineUnavailable("the engine server ended its answer without a final draft")
    return last


class BusyError(EngineError):
    """Other requests come first: the same request may be answered in a moment."""


FAILED = {
    "unavailable": EngineUnavailable,
    "request": RequestError,
    "length": TooLongError,
    "busy": BusyError,
    "superseded": BusyError,
}


def failed(failure: Failure) -> Exception:
    return FAILED.get(failure.kind, EngineError)(failure.detail)


def _refusal(body: bytes, secrets: Secrets) -> str:
    """The server's own message, or the text of a proxy in between."""
    try:
        answer = msgspec.json.decode(body, type=dict[str, str])
        text = ForeignText(f"{answer['error']}: {answer['remedy']}")
    except (msgspec.DecodeError, KeyError, UnicodeDecodeError):
        text = ForeignText.of(body)
    return secrets.shown(text, LONGEST_REFUSAL)


def _remote_address(text: str, token_file: str) -> Address:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise EngineUnavailable(f"engine.address is {text!r} ({error}): write it as https://HOST:PORT") from error
    if parts.hostname is None or parts.scheme not in ("https", "http") or parts.path.strip("/"):
        raise EngineUnavailable(f"engine.address is {text!r}: write it as https://HOST:PORT")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise EngineUnavailable(f"engine.address is {text!r}, which would send code unencrypted: use https://")
    tls = parts.scheme == "https"
    return Address(host=parts.hostname, port=port or (443 if tls else 80), tls=tls, token=_read_token(token_file))


def _read_token(path: str) -> str:
    try:
        return Path(path).expanduser().read_text().strip() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise EngineUnavailable(f"cannot read engine.token_file {path} ({error}): write the token there") from error
